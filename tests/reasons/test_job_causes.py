"""What `kruise why` says of BroadcastJobs and AdvancedCronJobs, every cause of theirs, and of Kubernetes' own Jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.native.apps import JOBS
from kruise.api.native.pod import PODS
from kruise.local.workloads.objects import CRON_JOBS
from kruise.machinery.causes import Act
from kruise.machinery.times import format_time
from kruise.reasons.words import answer_lines
from kruise.workloads.advancedcronjob import causes as cron_causes
from kruise.workloads.broadcastjob import causes as job_causes
from tests.reasons.asking import ask, ask_journal, ask_pod, codes, is_helped
from tests.scenarios.stage import Stage
from tests.support.world import LocalWorld, run_local
from tests.workloads.advancedcronjob.modelled import IMAGES
from tests.workloads.advancedcronjob.test_local import cron, on_each_node
from tests.workloads.advancedcronjob.test_local import pod as pod_template
from tests.workloads.broadcastjob.test_local import job, refuse_deletions

Play = Callable[[LocalWorld], Awaitable[None]]
SCENES: dict[str, tuple[Play, str]] = {}
JOB, CRON = "broadcastjobs.apps.kruise.io", "advancedcronjobs.apps.kruise.io"
FAILS = "sleep 1; exit 1"


def reaches(code: str, kind: str = JOB) -> Callable[[Play], Play]:
    def enlist(play: Play) -> Play:
        SCENES[code] = (play, kind)
        return play

    return enlist


def broadcast(code: str, command: str = "sleep 600", **spec: Any) -> None:
    @reaches(code)
    async def play(world: LocalWorld) -> None:
        await world.create(job("web", command, **spec))
        await world.sleep(10)


def scheduled(code: str, template: Any = None, *, wait: float = 5, version: str = "v1alpha1", **spec: Any) -> None:
    @reaches(code, CRON)
    async def play(world: LocalWorld) -> None:
        await world.create(cron("web", template or on_each_node("sleep 600"), version=version, **spec))
        await world.sleep(wait)


ON_FAILURE = {
    "restartPolicy": "OnFailure",
    "containers": [{"name": "m", "image": "busybox", "command": ["sh", "-c", FAILS]}],
}

broadcast("job-paused", paused=True)
broadcast("failure-pauses", FAILS, failurePolicy={"type": "Pause"})
broadcast("parallelism", parallelism=1)
broadcast("no-parallelism", parallelism=0)
broadcast("tasks")
broadcast("never-completes", "true", completionPolicy={"type": "Never"})
broadcast("job-failed", FAILS, completionPolicy={"type": "Never"})
broadcast("task-failed", FAILS)
broadcast("no-node", template={"spec": {**pod_template("true")["spec"], "nodeSelector": {"a": "b"}}})
broadcast("restarts", template={"spec": ON_FAILURE}, failurePolicy={"type": "Continue"})
scheduled("scheduled")
scheduled("runs-paused", paused=True)
scheduled("still-active", concurrencyPolicy="Forbid", wait=130)
scheduled("never-due", schedule="0 0 30 2 *")
scheduled("no-deadline-left", startingDeadlineSeconds=0)
scheduled("run-refused", {"jobTemplate": {"spec": {"template": pod_template("true"), "backoffLimit": -1}}}, wait=63)
scheduled("runs-gate-off", IMAGES, version="v1beta1")


@reaches("clock-behind", CRON)
async def a_clock_was_set_back(world: LocalWorld) -> None:
    await world.create(cron("web", on_each_node("true")))
    await world.sleep(1)
    later = world.clock.now().replace(year=2031)
    await world.patch(
        ADVANCED_CRON_JOBS, "web", {"status": {"lastScheduleTime": format_time(later)}}, subresource="status"
    )
    await world.sleep(1)


@reaches("still-runs")
async def a_pod_of_a_failed_job_may_not_be_deleted(world: LocalWorld) -> None:
    await world.kill_manager()
    refuse_deletions(world)
    await world.create(job("web", "sleep 600", completionPolicy={"type": "Always", "activeDeadlineSeconds": 5}))
    await world.sleep(20)


UNREACHABLE = {
    "bad-schedule": "admission refuses it; tests/workloads/advancedcronjob/test_rules.py shows it in the model",
    "no-template": "the same",
    "runs-unseen": "a moment when the manager starts; shown in the model as well",
    "missed-too-many": "takes two hours without a manager; shown in the model as well",
}


@pytest.mark.parametrize("code", [code for code in SCENES if code not in UNREACHABLE])
def test_a_cause_is_named_and_helped(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    play, kind = SCENES[code]

    async def scene(world: LocalWorld) -> None:
        await play(world)
        stage = Stage(world, gates=world.options.gates)
        anew = await ask(stage, "web", kind=kind)
        told = await ask_journal(stage, monkeypatch, "web", kind=kind)
        assert code in codes(told), told.waiting
        if code not in ("run-refused", "runs-gate-off"):  # only the manager has heard the refusal, and knows its gates
            assert code in codes(anew), anew.waiting
        is_helped(told)
        assert answer_lines(told)

    run_local(scene, nodes=3)


def test_every_cause_has_a_scene() -> None:
    known = {cause.code for cause in (*job_causes.CAUSES, *cron_causes.CAUSES)}
    assert known == {*SCENES, *UNREACHABLE}


def test_jobs_of_kubernetes() -> None:
    """A known kind, the right answer, and what has succeeded is not stuck."""

    async def scene(world: LocalWorld) -> None:
        stage = Stage(world, gates=world.options.gates)
        missing = {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "nginx:missing"}]}}
        for name, template in (("done", pod_template("true")), ("long", pod_template("sleep 900")), ("lost", missing)):
            body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": template}}
            await world.client.create(JOBS, body, "default")
        await world.sleep(120)
        done, long, lost = [await ask(stage, name, kind="job") for name in ("done", "long", "lost")]
        assert (done.waiting, long.waiting) == ({}, {})
        assert "completed: 1 of 1 succeeded" in answer_lines(done)[0]
        assert codes(lost) == {"image-pull"}
        single = {"metadata": {"name": "single", "namespace": "default"}, **pod_template("true")}
        await world.client.create(PODS, single, "default")
        await world.sleep(10)
        [link] = await ask_pod(stage, "single")
        assert (link.code, link.act) == ("finished", Act.NOBODY)

    run_local(scene, nodes=1)


@pytest.mark.parametrize("suspended", [False, True])
def test_a_cron_job_of_kubernetes_that_has_not_run_yet(suspended: bool) -> None:
    """Its status never says which spec its controller has seen: it is empty until the first run, for months maybe."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "busybox"}]}}
    spec = {"schedule": "0 0 1 1 *", "suspend": suspended, "jobTemplate": {"spec": {"template": template}}}

    async def scene(world: LocalWorld) -> None:
        body = {"metadata": {"name": "yearly", "namespace": "default"}, "spec": spec}
        await world.client.create(CRON_JOBS, body, "default")
        await world.sleep(60)
        found = await ask(Stage(world, gates=world.options.gates), "yearly", kind="cronjob")
        assert found.waiting == {}
        assert "it has not run yet, 0 active" in answer_lines(found)[0]

    run_local(scene, nodes=1)
