"""BroadcastJobs: a task on each node, and how jobs go on, end, fail and wait."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from typing import Any

from kruise.api.apps.broadcastjob import BROADCAST_JOBS, NAME_LABEL, UID_LABEL
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.inplace import keys
from tests.scenarios.stage import ALPHA, BETA, Scenario, Stage, scenario
from tests.support.world import Json

SCENARIOS: dict[str, Scenario] = {}
LONG = "sleep 100000"
NODE = [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]


class BroadcastStage(Stage):
    """A BroadcastJob `task`. Its nodes are those with a label of the scenario's own, or all."""

    resource: Resource[Any] = BROADCAST_JOBS

    def job(
        self,
        command: str = "sleep 1",
        *,
        name: str = "task",
        version: str = BETA,
        policy: str = "Never",
        pod: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> Json:
        container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command], "env": NODE}
        template = {"restartPolicy": policy, "terminationGracePeriodSeconds": 1, "containers": [container]}
        return {
            "apiVersion": f"{BROADCAST_JOBS.group}/{version}",
            "kind": BROADCAST_JOBS.kind,
            "metadata": {"name": name},
            "spec": {
                "template": {"metadata": {"labels": {"app": name}}, "spec": {**template, **(pod or {})}},
                **spec,
            },
        }

    async def begin(self, command: str = "sleep 1", **options: Any) -> Json:
        return await self.world.create(self.job(command, **options))

    async def some_nodes(self, number: int) -> tuple[list[str], Json]:
        """So many nodes, and the part of a pod's spec that wants one of them."""
        chosen = (await self.nodes())[:number]
        for node in chosen:
            selector = await self.label(node, "yes")
        return chosen, {"nodeSelector": dict(selector)}

    async def status(self, name: str = "task") -> Json:
        return await super().status(name)

    async def counts(self, *wanted: int, name: str = "task", phase: str = "") -> Json:
        """Wait until the columns say this: desired, active, succeeded, failed."""

        async def are_so() -> Json:
            status = await self.status(name)
            shown = tuple(status.get(column) for column in ("desired", "active", "succeeded", "failed"))
            assert shown == wanted, status
            assert phase in ("", status["phase"]), status
            return status

        found: Json = await self.until(are_so)
        return found

    async def places(self, name: str = "task") -> list[str]:
        """The nodes of its pods."""
        return sorted(pod["spec"].get("nodeName", "") for pod in await self.pods(name))

    async def most_at_a_time(self, name: str = "task") -> int:
        """How many of its pods had not ended at the same time, until it is complete."""
        most = 0
        while (await self.status(name)).get("phase") != "completed":
            pods = await self.pods(name)
            most = max(most, sum(pod.get("status", {}).get("phase") in ("Pending", "Running") for pod in pods))
            await asyncio.sleep(self.pace.every / 2)
        return most


broadcast = functools.partial(scenario, into=SCENARIOS, stage=BroadcastStage)


@broadcast("BJ-8", "BJ-12", "BJ-20", "BJ-46", "BJ-55", "BJ-56", "BJ-59", "BJ-66", "BJ-75", smoke=True)
async def a_pod_on_each_node(stage: BroadcastStage) -> None:
    """Each node gets one pod, the job completes when all have ended, and both stay."""
    made = await stage.begin()
    assert made["spec"]["completionPolicy"] == {"type": "Always"}
    assert made["spec"]["failurePolicy"] == {"type": "FailFast"}
    nodes = await stage.nodes()
    status = await stage.counts(len(nodes), 0, len(nodes), 0, phase="completed")
    [condition] = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Complete", "True", "Complete")
    assert condition["message"] == f"Job completed, {len(nodes)} pods succeeded, 0 pods failed"
    assert await stage.places() == nodes
    for pod in await stage.pods("task"):
        labels = pod["metadata"]["labels"]
        assert (labels[NAME_LABEL], labels[UID_LABEL]) == ("task", made["metadata"]["uid"])
        assert pod["metadata"]["name"].startswith("task-")
        assert [gate["conditionType"] for gate in pod["spec"]["readinessGates"]] == [keys.KRUISE_POD_READY]
    await stage.has_event("SuccessfulCreate", "Created pod: task-", name="task")
    await stage.has_event("JobComplete", f"{len(nodes)} pods succeeded, 0 pods failed", name="task")
    await stage.world.sleep(stage.pace.calm)
    assert await stage.status() == status
    assert await stage.places() == nodes


@broadcast("BJ-60", "BJ-61", "BJ-67")
async def two_at_a_time(stage: BroadcastStage) -> None:
    """Never more than `parallelism`; `desired` tells of all nodes from the beginning."""
    await stage.begin(parallelism=2)
    nodes = await stage.nodes()

    async def told() -> None:
        assert (await stage.status()).get("desired") == len(nodes)

    await stage.until(told, within=10)
    assert await stage.most_at_a_time() == 2
    assert await stage.places() == nodes


@broadcast("BJ-61", "BJ-63")
async def a_share_of_the_nodes_at_a_time(stage: BroadcastStage) -> None:
    """A percentage of the nodes that suit, rounded up."""
    nodes, pod = await stage.some_nodes(3)
    await stage.begin(pod=pod, parallelism="40%")
    assert await stage.most_at_a_time() == 2
    assert await stage.places() == nodes


@broadcast("BJ-28", "BJ-31", "BJ-36", "BJ-37")
async def one_failure_ends_it(stage: BroadcastStage) -> None:
    """FailFast: the pods that run are deleted and count as failed; the one that failed stays."""
    nodes, pod = await stage.some_nodes(3)
    await stage.begin(f'if [ "$NODE" = {nodes[0]} ]; then sleep 2; exit 3; else {LONG}; fi', pod=pod)
    status = await stage.counts(3, 0, 0, 3, phase="failed")
    [condition] = status["conditions"]
    assert (condition["type"], condition["reason"]) == ("Failed", "Failed")
    assert condition["message"].startswith("failure policy is FailurePolicyTypeFailFast and failed pod is found")
    assert status["completionTime"] >= status["startTime"]
    await stage.has_event("failed pod is found", "0 pods succeeded, 3 pods failed", name="task", type="Warning")

    async def only_the_failed_one() -> None:
        assert await stage.places() == [nodes[0]]

    await stage.until(only_the_failed_one)


@broadcast("BJ-38")
async def failures_do_not_matter(stage: BroadcastStage) -> None:
    """Continue: the other nodes go on, and the job completes, whatever became of the pods."""
    nodes, pod = await stage.some_nodes(3)
    command = f'if [ "$NODE" = {nodes[0]} ]; then exit 3; else sleep 1; fi'
    await stage.begin(command, pod=pod, parallelism=1, failurePolicy={"type": "Continue"})
    status = await stage.counts(3, 0, 2, 1, phase="completed")
    assert status["conditions"][0]["message"] == "Job completed, 2 pods succeeded, 1 pods failed"
    assert await stage.places() == nodes


@broadcast("BJ-39", "BJ-52")
async def a_failure_pauses_it_until_the_pod_is_deleted(stage: BroadcastStage) -> None:
    """Pause: no more pods; when the failed pod goes, its node is served anew."""
    _, pod = await stage.some_nodes(2)
    await stage.begin("exit 3", pod=pod, parallelism=1, failurePolicy={"type": "Pause"})
    await stage.counts(2, 0, 0, 1, phase="paused")
    await stage.has_event("Paused", "job is paused, due to failed pod", name="task", type="Warning")
    [failed] = await stage.pods("task")
    await stage.world.sleep(stage.pace.calm)
    assert [one["metadata"]["name"] for one in await stage.pods("task")] == [failed["metadata"]["name"]]
    await stage.delete_pod(failed["metadata"]["name"])

    async def served_anew() -> None:
        again = {one["spec"].get("nodeName"): one["metadata"]["uid"] for one in await stage.pods("task")}
        assert set(again) == {failed["spec"]["nodeName"]}
        assert again[failed["spec"]["nodeName"]] != failed["metadata"]["uid"]

    await stage.until(served_anew)
    await stage.change({"failurePolicy": {"type": "Continue"}}, "task")
    await stage.counts(2, 0, 0, 2, phase="completed")
    await stage.has_event("Continue", "continue to process job", name="task")


@broadcast("BJ-40", "BJ-41", "BJ-42", "BJ-67")
async def created_paused_and_resumed(stage: BroadcastStage) -> None:
    """While it is paused it counts nodes and makes no pods."""
    _, pod = await stage.some_nodes(2)
    await stage.begin(pod=pod, paused=True)
    await stage.counts(2, 0, 0, 0, phase="paused")
    await stage.world.sleep(stage.pace.calm)
    assert await stage.pods("task") == []
    await stage.change({"paused": False}, "task")
    await stage.counts(2, 0, 2, 0, phase="completed")


@broadcast("BJ-43")
async def all_end_while_it_is_paused(stage: BroadcastStage) -> None:
    """Pods that run go on; the job is over when it is resumed."""
    _, pod = await stage.some_nodes(2)
    await stage.begin(f"sleep {stage.pace.seconds}", pod=pod)
    await stage.counts(2, 2, 0, 0, phase="running")
    await stage.change({"paused": True}, "task")
    await stage.counts(2, 0, 2, 0, phase="paused")
    await stage.change({"paused": False}, "task")
    await stage.counts(2, 0, 2, 0, phase="completed")


@broadcast("BJ-36", "BJ-48", "BJ-82")
async def a_deadline_ends_it(stage: BroadcastStage) -> None:
    """Not before its time; pods that run are deleted."""
    _, pod = await stage.some_nodes(2)
    began = stage.world.clock.now()
    policy = {"type": "Always", "activeDeadlineSeconds": stage.pace.seconds}
    await stage.begin(LONG, pod=pod, completionPolicy=policy)
    status = await stage.counts(2, 0, 0, 2, phase="failed")
    assert (stage.world.clock.now() - began).total_seconds() >= stage.pace.seconds
    assert "was active longer than specified deadline" in status["conditions"][0]["message"]
    await stage.has_event("DeadlineExceeded", "0 pods succeeded, 2 pods failed", name="task", type="Warning")

    async def none_is_left() -> None:
        assert await stage.pods("task") == []

    await stage.until(none_is_left)


@broadcast("BJ-47", "BJ-79", "BJ-82")
async def it_goes_after_its_time(stage: BroadcastStage) -> None:
    """ttlSecondsAfterFinished after its end, not before, job and pods go, one that failed as well; with 0 at once."""
    _, pod = await stage.some_nodes(2)
    later = {"type": "Always", "ttlSecondsAfterFinished": stage.pace.seconds}
    made = await stage.begin(pod=pod, completionPolicy=later)
    assert made["spec"]["completionPolicy"] == later
    await stage.begin("exit 1", name="fails", pod=pod, completionPolicy=later)
    await stage.begin(name="at-once", pod=pod, completionPolicy={**later, "ttlSecondsAfterFinished": 0})
    await stage.counts(2, 0, 2, 0, phase="completed")
    ended = stage.world.clock.now()
    await stage.is_gone(BROADCAST_JOBS, "task")
    slack = 2 * stage.pace.every + 1
    assert (stage.world.clock.now() - ended).total_seconds() >= stage.pace.seconds - slack
    await stage.is_gone(BROADCAST_JOBS, "fails")
    await stage.is_gone(BROADCAST_JOBS, "at-once")

    async def no_pod_is_left() -> None:
        assert await stage.world.list(PODS) == []

    await stage.until(no_pod_is_left)


@broadcast("BJ-21", "BJ-34", "BJ-51", "BJ-69", "BJ-82")
async def it_follows_nodes_that_come_and_go(stage: BroadcastStage) -> None:
    """Never: it stays and serves nodes that suit later. One that does not suit any more loses its pod."""
    nodes, pod = await stage.some_nodes(2)
    await stage.begin(pod=pod, completionPolicy={"type": "Never"})
    await stage.counts(2, 0, 2, 0, phase="running")
    later = (await stage.nodes())[2]
    await stage.label(later, "yes")
    await stage.counts(3, 0, 3, 0, phase="running")
    assert await stage.places() == [*nodes, later]
    await stage.label(nodes[0], None)
    await stage.counts(2, 0, 2, 0, phase="running")
    assert await stage.places() == [nodes[1], later]


@broadcast("BJ-30", "BJ-32", "BJ-37")
async def a_pod_that_restarts_too_often_has_failed(stage: BroadcastStage) -> None:
    """OnFailure: more restarts than the limit are a failure; as many as the limit are none."""
    _, pod = await stage.some_nodes(1)
    await stage.begin("sleep 1; exit 1", pod=pod, policy="OnFailure")
    patient = {"type": "FailFast", "restartLimit": 1000}
    await stage.begin("sleep 1; exit 1", name="patient", pod=pod, policy="OnFailure", failurePolicy=patient)
    status = await stage.counts(1, 0, 0, 1, phase="failed")
    assert status["conditions"][0]["type"] == "Failed"

    async def has_restarted() -> None:
        statuses = [one["status"].get("containerStatuses", ()) for one in await stage.pods("patient")]
        assert [status["restartCount"] >= 1 for found in statuses for status in found] == [True]

    await stage.until(has_restarted)
    await stage.counts(1, 1, 0, 0, name="patient", phase="running")


@broadcast("BJ-52", "BJ-59")
async def a_deleted_pod_is_made_again(stage: BroadcastStage) -> None:
    """While the job is not over, a node whose pod somebody deletes is served again. Its end may look like a failure,
    so that must not matter (BJ-28)."""
    _, pod = await stage.some_nodes(2)
    await stage.begin(LONG, pod=pod, failurePolicy={"type": "Continue"})
    await stage.counts(2, 2, 0, 0)
    [first, _] = await stage.pods("task")
    await stage.delete_pod(first["metadata"]["name"])

    async def is_served_again() -> None:
        found = {one["spec"].get("nodeName"): one["metadata"]["uid"] for one in await stage.pods("task")}
        assert len(found) == 2
        assert found[first["spec"]["nodeName"]] != first["metadata"]["uid"]

    await stage.until(is_served_again)
    await stage.counts(2, 2, 0, 0)


@broadcast("BJ-53", "BJ-64")
async def changes_count_for_pods_to_come(stage: BroadcastStage) -> None:
    """A new template is for pods that are made from then on, and so is another parallelism."""
    _, pod = await stage.some_nodes(2)
    await stage.begin(LONG, pod=pod, parallelism=1)
    await stage.counts(2, 1, 0, 0)
    await stage.edit_template({"metadata": {"labels": {"edition": "two"}}}, "task")
    await stage.world.sleep(stage.pace.calm)
    await stage.counts(2, 1, 0, 0)
    await stage.change({"parallelism": 2}, "task")
    await stage.counts(2, 2, 0, 0)
    editions = [one["metadata"]["labels"].get("edition") for one in await stage.pods("task")]
    assert sorted(editions, key=str) == [None, "two"]


@broadcast("BJ-4", "BJ-17", "BJ-79")
async def the_older_version_and_deletion(stage: BroadcastStage) -> None:
    """One that was made through v1alpha1 is the same; its pods go with it."""
    _, pod = await stage.some_nodes(2)
    await stage.begin(pod=pod, version=ALPHA)
    await stage.counts(2, 0, 2, 0, phase="completed")
    assert (await stage.subject("task"))["apiVersion"] == f"{BROADCAST_JOBS.group}/{BETA}"
    await stage.world.delete(BROADCAST_JOBS, "task", propagation="Background")

    async def no_pod_is_left() -> None:
        assert await stage.world.list(PODS) == []

    await stage.until(no_pod_is_left)


@broadcast("BJ-46")
async def one_that_suits_no_node_waits(stage: BroadcastStage) -> None:
    """It stays running until a node suits."""
    await stage.begin(pod={"nodeSelector": {f"example.com/{stage.namespace}": "yes"}})
    await stage.counts(0, 0, 0, 0, phase="running")
    await stage.label((await stage.nodes())[0], "yes")
    await stage.counts(1, 0, 1, 0, phase="completed")


@broadcast("BJ-15", "BJ-18")
async def what_is_refused(stage: BroadcastStage) -> None:
    """A pod that would never end, one that says nothing about it, and a name that no label takes."""
    await stage.is_refused(stage.begin(policy="Always"), "restartPolicy")
    silent = stage.job()
    del silent["spec"]["template"]["spec"]["restartPolicy"]
    await stage.is_refused(stage.world.create(silent), "restartPolicy")
    await stage.is_refused(stage.begin(name="a.b"), "name")
