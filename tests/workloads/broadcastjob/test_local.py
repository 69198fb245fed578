"""BroadcastJobs on the local cluster, on virtual time: the walk-throughs that everybody reads."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.kinds import feature_of
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import Verb
from kruise.manager.installation.manifests import manifests
from kruise.manager.options import WORKER_NAMES
from tests.support.faults import Answer, FaultyTransport, Rule
from tests.support.installed import DEFINITIONS
from tests.support.world import Json, LocalWorld, run_local

FAST = 30.0


def job(name: str, command: str = "echo started", *, version: str = "v1alpha1", **spec: Any) -> Json:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "BroadcastJob",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def counts(found: Json) -> tuple[int, ...]:
    return tuple(found["status"][name] for name in ("desired", "active", "succeeded", "failed"))


async def phase(world: LocalWorld, name: str, wanted: str) -> Json:
    async def check() -> Json:
        found = await world.get(BROADCAST_JOBS, name)
        assert found.get("status", {}).get("phase") == wanted
        return found

    return await world.until(check, within=FAST)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_the_well_known_example(version: str) -> None:  # BJ-4, BJ-7, BJ-12 to BJ-14, BJ-17, BJ-75, BJ-81
    async def story(world: LocalWorld) -> None:
        given = {**job("bcj-demo", "i=0; sleep 1", version=version), "status": {"phase": "completed"}}
        made = await world.create(given)
        assert "status" not in made  # BJ-16
        assert made["spec"]["completionPolicy"] == {"type": "Always"}
        assert made["spec"]["failurePolicy"] == {"type": "FailFast"}
        assert made["spec"]["parallelism"] == 2147483647
        found = await phase(world, "bcj-demo", "completed")
        assert counts(found) == (2, 0, 2, 0)
        pods = await world.pods("broadcastjob-name=bcj-demo")
        assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["node-1", "node-2"]
        assert {pod["spec"]["readinessGates"][0]["conditionType"] for pod in pods} == {"KruisePodReady"}
        assert all(pod["metadata"]["name"].startswith("bcj-demo-") for pod in pods)
        await world.sleep(300)
        assert len(await world.pods("app=bcj-demo")) == 2

    run_local(story, nodes=2)


def test_a_job_as_the_plugin_of_the_original_makes_it() -> None:  # BJ-78
    """One container of the name of the job; everything else is left to defaults."""

    async def story(world: LocalWorld) -> None:
        container = {"name": "once", "image": "busybox:1.36", "command": ["true"]}
        await world.create(
            {
                "apiVersion": "apps.kruise.io/v1alpha1",
                "kind": "BroadcastJob",
                "metadata": {"name": "once"},
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
            }
        )
        assert counts(await phase(world, "once", "completed")) == (2, 0, 2, 0)

    run_local(story, nodes=2)


def test_it_goes_a_minute_after_its_end() -> None:  # BJ-47, BJ-79, BJ-80
    async def story(world: LocalWorld) -> None:
        await world.create(job("download-image", completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 60}))
        await phase(world, "download-image", "completed")
        await world.sleep(55)
        assert await world.list(BROADCAST_JOBS)
        await world.sleep(10)
        assert await world.list(BROADCAST_JOBS) == []
        assert await world.list(PODS) == []

    run_local(story, nodes=3)


def test_the_policies_of_the_walk_through() -> None:  # BJ-48, BJ-51, BJ-61, BJ-82
    async def story(world: LocalWorld) -> None:
        deadline = {"type": "Always", "activeDeadlineSeconds": 10}
        await world.create(job("late", "sleep 1000", completionPolicy=deadline))
        found = await phase(world, "late", "failed")
        assert counts(found) == (10, 0, 0, 10)
        await world.create(job("few", "sleep 2", parallelism=3))
        most = 0
        for _ in range(200):
            pods = await world.pods("app=few")
            most = max(most, sum(pod.get("status", {}).get("phase") in ("Pending", "Running") for pod in pods))
            if len(pods) == 10 and all(pod["status"]["phase"] == "Succeeded" for pod in pods):
                break
            await world.sleep(0.1)
        assert most == 3
        await phase(world, "few", "completed")

    run_local(story, nodes=10)


def test_a_restart_of_the_manager_forgets_no_deadline() -> None:  # BJ-49, BJ-70
    async def story(world: LocalWorld) -> None:
        await world.create(job("late", "sleep 1000", completionPolicy={"type": "Always", "activeDeadlineSeconds": 60}))
        await phase(world, "late", "running")
        await world.kill_manager()
        await world.sleep(5)
        world.start_manager()
        await world.sleep(40)
        assert (await world.get(BROADCAST_JOBS, "late"))["status"]["phase"] == "running"
        await phase(world, "late", "failed")
        assert len(await world.list(PODS)) <= 3

    run_local(story, nodes=3)


@pytest.mark.parametrize(("policy", "ends"), [("Always", "failed"), ("Always", "succeeded"), ("Never", "failed")])
def test_a_pod_that_may_not_be_deleted_is_active_until_it_goes(policy: str, ends: str) -> None:  # BJ-10, BJ-36
    """A job that has failed tells of pods that run on. Later they count by how they ended, those that are deleted as
    failed."""

    async def story(world: LocalWorld) -> None:
        refusing = refuse_deletions(world)
        await world.sleep(1)  # until its webhooks answer
        late = "sleep 1000" if ends == "failed" else "sleep 40"
        made = job("task", f'if [ "$NODE" = node-1 ]; then sleep 5; exit 3; else {late}; fi', version="v1beta1")
        field = {"fieldRef": {"fieldPath": "spec.nodeName"}}
        made["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "NODE", "valueFrom": field}]
        made["spec"]["completionPolicy"] = {"type": policy}
        await world.create(made)
        found = await phase(world, "task", "failed")

        async def shows(*wanted: int) -> None:
            assert counts(await world.get(BROADCAST_JOBS, "task")) == wanted

        await world.until(lambda: shows(3, 2, 0, 1), within=FAST)
        assert len(await world.pods("app=task")) == 3
        [condition] = found["status"]["conditions"]
        told = await world.events("task", "failed pod is found")
        assert {one["message"].partition(": ")[2] for one in told} == {"0 pods succeeded, 1 pods failed"}
        assert len(refusing.log) >= 2
        if ends == "failed":
            refusing.clear()
            await world.until(lambda: shows(3, 0, 0, 3 if policy == "Always" else 1), within=600)
            assert len(await world.pods("app=task")) == 1
        else:
            await world.until(lambda: shows(3, 0, 2, 1), within=600)
        assert (await world.get(BROADCAST_JOBS, "task"))["status"]["conditions"] == [condition]

    run_local(story, nodes=3, start=False)


def refuse_deletions(world: LocalWorld) -> FaultyTransport:
    """A manager whose deletions of pods are refused."""
    rule = Rule(Answer(403, "Forbidden", "a policy keeps it"), verbs={Verb.DELETE}, resource="pods")
    transport = FaultyTransport(InProcessTransport(world.cluster.core), [rule], clock=world.clock)
    world.start_manager(transport)
    return transport


def test_a_pod_that_somebody_took_from_it_is_made_anew_beside_that_one() -> None:  # BJ-27, BJ-52, BJ-66
    """The name that the new one would have is taken: one refusal, then another name."""

    async def story(world: LocalWorld) -> None:
        await world.create(job("task", "sleep 1000"))
        await world.sleep(5)
        [before] = await world.pods("app=task")
        await world.patch(PODS, before["metadata"]["name"], {"metadata": {"ownerReferences": None}})
        await world.sleep(30)
        old, new = sorted(await world.pods("app=task"), key=lambda pod: "ownerReferences" in pod["metadata"])
        assert old["metadata"]["uid"] == before["metadata"]["uid"]
        assert new["spec"]["nodeName"] == old["spec"]["nodeName"]
        assert counts(await world.get(BROADCAST_JOBS, "task")) == (1, 1, 0, 0)
        assert sum(event.get("count", 1) for event in await world.events("task", "FailedCreate")) == 1

    run_local(story, nodes=1)


def test_a_node_that_is_uncordoned_is_served() -> None:  # BJ-23, BJ-69
    async def story(world: LocalWorld) -> None:
        await world.client.patch(NODES, "node-1", {"spec": {"unschedulable": True}})
        await world.create(job("task", completionPolicy={"type": "Never"}))

        async def served(*nodes: str) -> None:
            assert sorted(pod["spec"].get("nodeName", "") for pod in await world.pods("app=task")) == [*nodes]

        await world.until(lambda: served("node-2"), within=FAST)
        await world.client.patch(NODES, "node-1", {"spec": {"unschedulable": False}})
        await world.until(lambda: served("node-1", "node-2"), within=FAST)

    run_local(story, nodes=2)


def test_the_definition_is_installed_with_what_its_controller_may_do() -> None:  # BJ-1, BJ-73, BJ-83
    feature = feature_of("apps.kruise.io", "BroadcastJob")
    assert feature is not None
    assert "broadcastjobs.apps.kruise.io" in DEFINITIONS
    assert "broadcastjob" in WORKER_NAMES  # BJ-71
    rules = [
        rule
        for found in manifests([feature])
        if found["kind"] == "ClusterRole"
        for rule in found["rules"]
        if "broadcastjobs" in rule["resources"]
    ]
    assert {"delete", "watch", "patch"} <= {verb for rule in rules for verb in rule["verbs"]}


@pytest.mark.parametrize(
    ("policy", "command", "wanted"),
    [
        ("Never", "sleep 2", "completed"),
        ("OnFailure", "sleep 2; exit 1", "failed"),
        ("OnFailure", "sleep 2", "completed"),
    ],
)
def test_a_sidecar_does_not_keep_it_from_its_end(policy: str, command: str, wanted: str) -> None:  # BJ-76
    """One that a SidecarSet has put into its pods, and that never ends by itself."""

    async def story(world: LocalWorld) -> None:
        terminated = {"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": "true"}
        endless = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
        sidecar = {"name": "side", "image": "busybox:1.36", "command": endless, "env": [terminated]}
        await world.create(
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "SidecarSet",
                "metadata": {"name": "side"},
                "spec": {"selector": {"matchLabels": {"app": "task"}}, "containers": [sidecar]},
            }
        )
        given = job("task", command)
        given["spec"]["template"]["spec"]["restartPolicy"] = policy
        await world.create(given)

        async def over() -> Json:
            found = await world.get(BROADCAST_JOBS, "task")
            assert found.get("status", {}).get("phase") == wanted
            return found

        found = await world.until(over, within=120)
        assert counts(found)[0] == 2
        for pod in await world.pods("app=task"):
            assert {one["name"] for one in pod["spec"]["containers"]} == {"main", "side"}
            assert pod["status"]["phase"] == "Succeeded"

    run_local(story, nodes=2, feature_gates="SidecarTerminator=true")
