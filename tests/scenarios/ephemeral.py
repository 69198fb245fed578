"""EphemeralJobs: containers that are added to running pods, and how they end."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import pytest

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS, FINALIZER, JOB_ENV
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError, NotFoundError
from tests.scenarios.stage import Scenario, Stage, scenario
from tests.support.world import Json

SCENARIOS: dict[str, Scenario] = {}
ENDLESS = ("sleep", "100000")


class EphemeralStage(Stage):
    """A CloneSet `web`, and EphemeralJobs for its pods."""

    jobs: Resource[Any] = EPHEMERAL_JOBS

    def job(
        self,
        name: str = "dbg",
        *,
        command: Sequence[str] = ("sh", "-c", "sleep 3"),
        containers: Sequence[Json] | None = None,
        image: str = "busybox:1.36",
        **spec: Any,
    ) -> Json:
        made = {
            "name": name,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePolicy": "File",
            "command": list(command),
        }
        return {
            "apiVersion": EPHEMERAL_JOBS.api_version,
            "kind": EPHEMERAL_JOBS.kind,
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"ephemeralContainers": list(containers if containers is not None else [made])},
                **spec,
            },
        }

    async def begin(self, name: str = "dbg", **options: Any) -> Json:
        return await self.world.create(self.job(name, **options))

    async def status(self, name: str = "dbg") -> Json:
        found: Json = (await self.world.get(self.jobs, name)).get("status", {})
        return found

    async def counts(self, name: str = "dbg", **wanted: Any) -> Json:
        """Wait until the status says this."""

        async def is_so() -> Json:
            status = await self.status(name)
            assert {key: status.get(key) for key in wanted} == wanted, status
            return status

        found: Json = await self.until(is_so)
        return found

    async def end_by_deadline(self, name: str = "dbg") -> None:
        """Only now: on a busy machine a deadline set at first could pass before what comes before it was seen."""
        await self.world.patch(EPHEMERAL_JOBS, name, {"spec": {"activeDeadlineSeconds": self.pace.seconds}})

    async def gone(self, name: str = "dbg", within: float | None = None) -> None:
        async def is_gone() -> None:
            try:
                found = await self.world.get(self.jobs, name)
            except NotFoundError:
                return
            raise AssertionError(f"{name} is still there: {found['metadata']}")

        await self.until(is_gone, within=within)

    async def served(self, container: str = "dbg") -> list[Json]:
        """The pods that have this ephemeral container, by name."""
        return [pod for pod in await self.pods("web") if container in ephemeral_names(pod)]


def ephemeral_names(pod: Json) -> list[str]:
    return [one["name"] for one in pod["spec"].get("ephemeralContainers", ())]


def conditions(status: Json) -> dict[str, str]:
    return {one["type"]: one.get("reason", "") for one in status.get("conditions", ())}


behaviour = functools.partial(scenario, into=SCENARIOS, stage=EphemeralStage)


@behaviour("EJ-18", "EJ-22", "EJ-36", "EJ-39", "EJ-41", "EJ-46", "EJ-49", "EJ-60", smoke=True)
async def four_of_five_pods_one_after_the_other(stage: EphemeralStage) -> None:
    """The oldest pods get the container, never two at a time, each once; their own containers do not notice."""
    before = await stage.start(replicas=5)
    job = await stage.begin(replicas=4, parallelism=1)
    most = 0

    async def all_done() -> None:
        nonlocal most
        pods = await stage.served()
        states = [one["state"] for pod in pods for one in pod["status"].get("ephemeralContainerStatuses", ())]
        most = max(most, sum("terminated" not in state for state in states))
        assert (await stage.status()).get("phase") == "Succeeded"

    await stage.until(all_done)
    assert most <= 1
    status = await stage.status()
    assert {key: status[key] for key in ("match", "succeeded", "failed", "running", "waiting")} == {
        "match": 4,
        "succeeded": 4,
        "failed": 0,
        "running": 0,
        "waiting": 0,
    }
    assert conditions(status) == {"Initialized": "Initialized", "JobSucceeded": "JobSucceeded"}
    assert status["completionTime"] >= status["startTime"]
    oldest = sorted(before, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))[:4]
    served = await stage.served()
    assert sorted(pod["metadata"]["name"] for pod in served) == sorted(pod["metadata"]["name"] for pod in oldest)
    for pod in served:
        [container] = pod["spec"]["ephemeralContainers"]
        assert container["env"] == [{"name": JOB_ENV, "value": job["metadata"]["uid"]}]
        [main] = pod["status"]["containerStatuses"]
        assert main["restartCount"] == 0
    assert (await stage.world.get(stage.jobs, "dbg"))["metadata"]["finalizers"] == [FINALIZER]


@behaviour("EJ-10", "EJ-24", "EJ-27", "EJ-28", "EJ-30", "EJ-38")
async def all_fail(stage: EphemeralStage) -> None:
    """A command that fails in each pod: the job has failed, and says that containers did."""
    await stage.start(replicas=3)
    await stage.begin(command=("sh", "-c", "exit 4"), parallelism=3)
    status = await stage.counts(phase="Failed", failed=3)
    assert conditions(status)["JobFailed"] == "CreateFailed"
    assert status["completionTime"]


@behaviour("EJ-29", "EJ-30", "EJ-32", "EJ-45")
async def a_deadline_ends_it_and_the_numbers_stay_true(stage: EphemeralStage) -> None:
    """Past its deadline the job has failed and serves nobody else; containers that run on are told of."""
    await stage.start(replicas=2)
    await stage.begin(command=("sleep", str(3 * stage.pace.seconds)), activeDeadlineSeconds=stage.pace.seconds)
    await stage.counts(running=1, phase="Running")
    status = await stage.counts(phase="Failed")
    assert conditions(status)["JobFailed"] == "DeadlineExceeded"
    assert status["running"] == 1
    await stage.counts(running=0, succeeded=1, phase="Failed")
    assert len(await stage.served()) == 1


@behaviour("EJ-20", "EJ-21", "EJ-52", "EJ-67")
async def a_name_that_is_taken(stage: EphemeralStage) -> None:
    """A second job with the same container name finds no pod; one with another name shares the pods."""
    await stage.start(replicas=1)
    await stage.begin(command=ENDLESS)
    await stage.counts(running=1)
    await stage.begin("other", command=ENDLESS)
    await stage.counts("other", running=1)
    twin = stage.job("twin")
    twin["spec"]["template"]["ephemeralContainers"][0]["name"] = "dbg"
    await stage.world.create(twin)
    status = await stage.counts("twin", phase="Waiting", match=0)
    assert conditions(status)["MatchedEmpty"] == "MatchEmpty"
    [pod] = await stage.pods("web")
    assert sorted(ephemeral_names(pod)) == ["dbg", "other"]


@behaviour("EJ-4", "EJ-17", "EJ-23", "EJ-56")
async def pods_that_come_later_are_served(stage: EphemeralStage) -> None:
    """A job without pods waits for them, and serves those that come."""
    await stage.begin(parallelism=5)
    await stage.counts(phase="Waiting", match=0)
    await stage.start(replicas=2)
    await stage.counts(phase="Succeeded", succeeded=2)


@behaviour("EJ-31", "EJ-55")
async def a_paused_job_serves_nobody(stage: EphemeralStage) -> None:
    """Nothing is injected while it is paused, and it goes on where it was."""
    await stage.start(replicas=2)
    await stage.begin(paused=True, parallelism=2)
    await stage.counts(phase="Paused", match=2)
    await stage.world.sleep(stage.pace.calm)
    assert await stage.served() == []
    await stage.world.patch(stage.jobs, "dbg", {"spec": {"paused": False}})
    await stage.counts(phase="Succeeded", succeeded=2)


@behaviour("EJ-35", "EJ-50", "EJ-60")
async def it_is_deleted_after_its_time(stage: EphemeralStage) -> None:
    """ttlSecondsAfterFinished after its end, not before, the job goes; the containers stay in the pods."""
    await stage.start(replicas=1)
    await stage.begin(ttlSecondsAfterFinished=stage.pace.seconds)
    status = await stage.counts(phase="Succeeded")
    ended = stage.world.clock.now()
    assert status["completionTime"]
    await stage.gone(within=stage.pace.seconds + stage.pace.slack)
    assert (stage.world.clock.now() - ended).total_seconds() >= stage.pace.seconds - 2 * stage.pace.every - 1
    assert len(await stage.served()) == 1


@behaviour("EJ-35")
async def a_time_of_zero_is_at_once(stage: EphemeralStage) -> None:
    """ttlSecondsAfterFinished 0: it is gone as soon as it has ended."""
    await stage.start(replicas=1)
    await stage.begin(ttlSecondsAfterFinished=0)
    await stage.gone(within=30)


@behaviour("EJ-50", "EJ-51")
async def deleting_it_leaves_the_containers(stage: EphemeralStage) -> None:
    """A running job is gone in seconds; its containers run on."""
    await stage.start(replicas=1)
    await stage.begin(command=ENDLESS)
    await stage.counts(running=1)
    await stage.world.delete(stage.jobs, "dbg")
    await stage.gone(within=10)
    [pod] = await stage.served()
    assert "running" in pod["status"]["ephemeralContainerStatuses"][0]["state"]


@behaviour("EJ-19", "EJ-23", "EJ-57")
async def a_pod_that_vanishes_leaves_the_numbers(stage: EphemeralStage) -> None:
    """The pod in which the container runs is deleted: its successor is served in its place."""
    [before] = await stage.start(replicas=1)
    await stage.begin(command=ENDLESS)
    await stage.counts(running=1, match=1)
    await stage.world.delete(PODS, before["metadata"]["name"])

    async def successor_is_served() -> None:
        pods = await stage.served()
        assert [pod["metadata"]["name"] for pod in pods] not in ([], [before["metadata"]["name"]])

    await stage.until(successor_is_served)
    await stage.counts(running=1, match=1)


@behaviour("EJ-24", "EJ-25", "EJ-30")
async def an_image_that_does_not_exist(stage: EphemeralStage) -> None:
    """The pod waits, and keeps no other pod waiting; the deadline ends the job."""
    await stage.start(replicas=2)
    await stage.begin(
        containers=[
            {
                "name": "dbg",
                "image": "registry.example/no-such:1",
                "imagePullPolicy": "Never",
                "terminationMessagePolicy": "File",
            }
        ]
    )
    await stage.counts(waiting=2, phase="Waiting")
    await stage.end_by_deadline()
    status = await stage.counts(phase="Failed", waiting=2)
    assert conditions(status)["JobFailed"] == "DeadlineExceeded"
    assert len(await stage.served()) == 2


@behaviour("EJ-29")
async def mixed_results_do_not_end(stage: EphemeralStage) -> None:
    """One pod succeeds and one fails: the job stays Unknown until its deadline."""
    await stage.start(replicas=2)
    first = min(pod["metadata"]["name"] for pod in await stage.pods("web"))
    script = f'if [ "$HOSTNAME" = "{first}" ]; then exit 0; else exit 1; fi'
    await stage.begin(command=("sh", "-c", script), parallelism=2)
    await stage.counts(phase="Unknown", succeeded=1, failed=1)
    await stage.end_by_deadline()
    status = await stage.counts(phase="Failed")
    assert conditions(status)["JobFailed"] == "DeadlineExceeded"


@behaviour("EJ-25", "EJ-40")
async def two_containers_in_each_pod(stage: EphemeralStage) -> None:
    """Each pod gets all containers at once; one that fails makes the pod fail, whatever the other does."""
    await stage.start(replicas=1)
    common = {"image": "busybox:1.36", "imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}
    containers = [
        {"name": "good", "command": list(ENDLESS), **common},
        {"name": "bad", "command": ["sh", "-c", "exit 1"], **common},
    ]
    await stage.begin(containers=containers)
    await stage.counts(phase="Failed", failed=1, running=0)
    [pod] = await stage.pods("web")
    assert sorted(ephemeral_names(pod)) == ["bad", "good"]


@behaviour("EJ-44", "EJ-43")
async def a_refused_pod_keeps_nobody_waiting(stage: EphemeralStage) -> None:
    """A pod that cannot take the containers is told of in an event, and the others are served."""
    await stage.start(replicas=1)
    await stage.start("other", replicas=1, containers=[{"name": "side", "image": "nginx:1.25"}])
    job = stage.job()
    job["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "other"]}]}
    job["spec"]["template"]["ephemeralContainers"][0]["targetContainerName"] = "side"
    await stage.world.create(job)
    await stage.counts(succeeded=1, match=2)

    async def is_told() -> None:
        events = await stage.world.events("dbg", "CreateFailed")
        assert events
        assert "failed to create ephemeral container in pod" in events[0]["message"]

    await stage.until(is_told)
    assert await stage.served() == []


@behaviour("EJ-11", "EJ-12", "EJ-13", "EJ-14")
async def what_could_never_run_is_refused(stage: EphemeralStage) -> None:
    """Containers without the fields that nobody fills in, numbers below zero, a list that is none."""
    wrong: list[tuple[Json, str]] = []
    bare = stage.job()
    del bare["spec"]["template"]["ephemeralContainers"][0]["imagePullPolicy"]
    wrong.append((bare, "ephemeralContainers[0].imagePullPolicy: Required value"))
    wrong.append((stage.job(replicas=-1), "spec.replicas: Invalid value: -1"))
    odd = stage.job()
    odd["spec"]["template"]["ephemeralContainers"] = {"name": "dbg"}
    wrong.append((odd, "ephemeralContainers"))
    for manifest, text in wrong:
        with pytest.raises(ApiError, match=re.escape(text)) as refusal:
            await stage.world.create(manifest)
        assert refusal.value.code == 400


@behaviour("EJ-34")
async def a_job_without_containers_says_so(stage: EphemeralStage) -> None:
    """An empty list passes admission; the job ends in Error, and can be deleted."""
    await stage.start(replicas=1)
    await stage.begin(containers=[])
    status = await stage.counts(phase="Error")
    assert conditions(status)["JobError"] == "Error"
    await stage.world.delete(stage.jobs, "dbg")
    await stage.gone(within=10)


@behaviour("EJ-64", "EJ-66")
async def an_update_in_place_goes_on_beside_it(stage: EphemeralStage) -> None:
    """A pod with an ephemeral container is updated in place as usual: same uid, new image."""
    [before] = await stage.start(replicas=1)
    await stage.begin(command=ENDLESS)
    await stage.counts(running=1)
    await stage.edit_template({"spec": {"containers": [{"name": "main", "image": "nginx:1.26"}]}})
    [after] = await stage.complete()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert ephemeral_names(after) == ["dbg"]
