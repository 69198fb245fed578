"""Jobs on virtual time, with a kubelet that only moves the status of pods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS, Pod
from kruise.local.workloads import job_indexes, specs
from kruise.local.workloads.job import FINALIZER
from kruise.local.workloads.objects import JOBS, Job
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import run_virtual
from kruise.machinery.codec import decode
from tests.local.workloads import bodies
from tests.local.workloads.world import Habits, World

Scenario = Callable[[World], Awaitable[None]]


def play(scenario: Scenario, habits: Habits | None = None) -> None:
    async def main() -> None:
        world = World(specs, habits=habits or Habits(run=lambda pod: 5.0))
        async with world.running():
            await scenario(world)

    run_virtual(main())


def conditions(job: Job) -> dict[str, tuple[str, str]]:
    return {item.type: (item.status, item.reason) for item in job.status.conditions}


async def raw(world: World, name: str) -> dict[str, Any]:
    answer = await world.client.send(Request(Verb.GET, JOBS, "default", name))
    return decode(answer.body, dict[str, Any])


def test_a_job_completes() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("sum", completions=5, parallelism=2))
        await asyncio.sleep(3)
        job = await world.get(JOBS, "sum")
        assert (job.status.active, job.status.ready, job.status.succeeded) == (2, 2, 0)
        assert job.status.start_time is not None
        pods = await world.pods()
        assert all(FINALIZER in pod.metadata.finalizers for pod in pods.values())
        await asyncio.sleep(60)
        job = await world.get(JOBS, "sum")
        assert conditions(job) == {
            "SuccessCriteriaMet": ("True", "CompletionsReached"),
            "Complete": ("True", "CompletionsReached"),
        }
        assert (job.status.active, job.status.ready, job.status.succeeded, job.status.failed) == (0, 0, 5, 0)
        assert job.status.completion_time is not None
        assert (await raw(world, "sum"))["status"]["uncountedTerminatedPods"] == {}
        pods = await world.pods()
        assert len(pods) == 5
        assert all(pod.metadata.finalizers == () for pod in pods.values())
        messages = await world.messages("job-controller")
        assert sorted(messages)[-5:] == sorted(("SuccessfulCreate", f"Created pod: {name}") for name in pods)
        assert messages[-1] == ("Completed", "Job completed")

    play(scenario)


def test_a_job_without_completions_ends_with_its_last_pod() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, {**bodies.job("queue"), "spec": {**bodies.job("queue")["spec"], "parallelism": 3}})
        await asyncio.sleep(30)
        job = await world.get(JOBS, "queue")
        assert conditions(job)["Complete"][0] == "True"
        assert job.status.succeeded == 3

    play(scenario)


def test_failures_are_tried_again_with_longer_and_longer_delays() -> None:
    habits = Habits(start=lambda pod: 1.0, run=lambda pod: 1.0, exit_code=lambda pod: 1)

    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("bad", backoffLimit=3))
        await asyncio.sleep(200)
        job = await world.get(JOBS, "bad")
        assert conditions(job) == {
            "FailureTarget": ("True", "BackoffLimitExceeded"),
            "Failed": ("True", "BackoffLimitExceeded"),
        }
        assert (job.status.failed, job.status.active) == (4, 0)
        made = sorted(pod.metadata.creation_timestamp for pod in (await world.pods()).values())
        gaps = [(after - before).total_seconds() for before, after in pairwise(made)]
        assert [round(gap / 10) for gap in gaps] == [1, 2, 4]
        assert (await world.messages())[-1] == ("BackoffLimitExceeded", "Job has reached the specified backoff limit")

    play(scenario, habits)


def test_restarts_in_place_count_too() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("bad", restart="OnFailure", backoffLimit=2))
        await asyncio.sleep(3)
        (name,) = await world.pods()
        for count in (1, 2):
            status = {"containerStatuses": [{"name": "main", "image": "a", "imageID": "a", "restartCount": count}]}
            for item in status["containerStatuses"]:
                item["ready"] = False
            await world.patch(PODS, name, {"status": status}, subresource="status")
            await asyncio.sleep(3)
        job = await world.get(JOBS, "bad")
        assert conditions(job)["FailureTarget"] == ("True", "BackoffLimitExceeded")
        await asyncio.sleep(10)
        job = await world.get(JOBS, "bad")
        assert conditions(job)["Failed"] == ("True", "BackoffLimitExceeded")
        assert job.status.failed == 1
        assert await world.pods() == {}

    play(scenario, Habits())


def test_a_deadline_ends_a_job() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("slow", activeDeadlineSeconds=20, parallelism=2, completions=2))
        await asyncio.sleep(15)
        assert conditions(await world.get(JOBS, "slow")) == {}
        await asyncio.sleep(15)
        job = await world.get(JOBS, "slow")
        assert conditions(job)["Failed"] == ("True", "DeadlineExceeded")
        assert (job.status.failed, job.status.active, job.status.terminating) == (2, 0, 0)
        assert await world.pods() == {}

    play(scenario, Habits())


def test_a_job_that_begins_suspended_runs_when_it_is_resumed() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("later", suspend=True))
        await asyncio.sleep(5)
        job = await world.get(JOBS, "later")
        assert conditions(job) == {"Suspended": ("True", "JobSuspended")}
        assert job.status.start_time is None
        assert await world.pods() == {}
        await world.patch(JOBS, "later", {"spec": {"suspend": False}})
        await asyncio.sleep(30)
        job = await world.get(JOBS, "later")
        assert conditions(job)["Complete"][0] == "True"
        assert conditions(job)["Suspended"] == ("False", "JobResumed")
        reasons = [reason for reason, _ in await world.messages("job-controller")]
        assert reasons == ["Suspended", "SuccessfulCreate", "Resumed", "Completed"]

    play(scenario)


def test_a_suspension_removes_pods_without_counting_them() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("later", parallelism=2, completions=2))
        await asyncio.sleep(4)
        assert len(await world.pods()) == 2
        await world.patch(JOBS, "later", {"spec": {"suspend": True}})
        await asyncio.sleep(4)
        job = await world.get(JOBS, "later")
        assert await world.pods() == {}
        assert (job.status.failed, job.status.active, job.status.terminating) == (0, 0, 0)
        assert conditions(job) == {"Suspended": ("True", "JobSuspended")}

    play(scenario)


def test_a_finished_job_goes_after_its_time_to_live() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("brief", ttlSecondsAfterFinished=30))
        await asyncio.sleep(25)
        assert conditions(await world.get(JOBS, "brief"))["Complete"][0] == "True"
        await asyncio.sleep(25)
        found = await world.find(JOBS, "brief")
        assert found is None or found.metadata.deletion_timestamp is not None

    play(scenario)


def test_pods_of_a_job_that_is_gone_are_let_go() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("gone", parallelism=2, completions=2))
        await asyncio.sleep(3)
        names = list(await world.pods())
        await world.delete(JOBS, "gone", propagation="Background")
        for name in names:
            await world.delete(PODS, name)
        await asyncio.sleep(10)
        assert await world.pods() == {}

    play(scenario, Habits())


def test_a_deleted_pod_counts_as_failed_and_is_replaced() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("sum"))
        await asyncio.sleep(3)
        (name,) = await world.pods()
        await world.delete(PODS, name)
        await asyncio.sleep(60)
        job = await world.get(JOBS, "sum")
        assert (job.status.failed, job.status.succeeded) == (1, 1)
        assert conditions(job)["Complete"][0] == "True"

    play(scenario)


def test_an_indexed_job_runs_each_index_once() -> None:
    failed: set[str] = set()

    def exit_code(pod: Pod) -> int:
        """Index 1 fails the first time."""
        index = pod.metadata.annotations[job_indexes.INDEX]
        first = index == "1" and index not in failed
        failed.add(index)
        return int(first)

    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("parts", completions=4, parallelism=3, completionMode="Indexed"))
        await asyncio.sleep(120)
        job = await world.get(JOBS, "parts")
        assert conditions(job)["Complete"][0] == "True"
        assert (job.status.completed_indexes, job.status.succeeded, job.status.failed) == ("0-3", 4, 1)
        pods = await world.pods()
        assert sorted(pod.metadata.labels[job_indexes.INDEX] for pod in pods.values()) == ["0", "1", "1", "2", "3"]
        assert {name.rpartition("-")[0] for name in pods} == {f"parts-{index}" for index in range(4)}
        for pod in pods.values():
            (variable,) = pod.spec.containers[0].env
            assert variable.name == "JOB_COMPLETION_INDEX"

    play(scenario, Habits(run=lambda pod: 5.0, exit_code=exit_code))


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scenario(world: World) -> None:
        await world.create(JOBS, bodies.job("sum", completions=2))
        await asyncio.sleep(60)
        before = world.core.storage.version
        await asyncio.sleep(3600)
        assert world.core.storage.version == before

    play(scenario)


@given(st.sets(st.integers(0, 40)))
def test_indexes_are_written_and_read(indexes: set[int]) -> None:
    assert job_indexes.parse(job_indexes.to_text(indexes), 41) == indexes


def test_indexes_are_written_as_kubernetes_does() -> None:
    assert job_indexes.to_text({0, 1, 2, 4, 6, 7}) == "0-2,4,6,7"
    assert job_indexes.parse("0-5,x,9-", 3) == {0, 1, 2}
