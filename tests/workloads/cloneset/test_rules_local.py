"""Rules that take a whole cluster to be seen, on virtual time."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS
from kruise.inplace import keys
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.client import Client
from tests.support.faults import Cut, CutWatch, ExpireWatch, FaultyTransport, Rule, WatchFault
from tests.support.world import Json, LocalWorld, World, run_local

ALPHA = dataclasses.replace(CLONE_SETS, version="v1alpha1")


def manifest(replicas: int = 3, image: str = "nginx:1.25", **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": CLONE_SETS.api_version,
        "kind": "CloneSet",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": selector, "template": template, **spec},
    }


async def available(world: World, count: int) -> Json:
    async def check() -> Json:
        found = await world.cloneset()
        status = found.get("status", {})
        assert [status.get(name) for name in ("replicas", "availableReplicas")] == [count, count]
        return found

    return await world.until(check, within=300)


def conditions(pod: Mapping[str, Any]) -> dict[str, str]:
    return {item["type"]: item["status"] for item in pod["status"]["conditions"]}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ready_since(pod: Mapping[str, Any]) -> datetime:
    [found] = [item["lastTransitionTime"] for item in pod["status"]["conditions"] if item["type"] == "Ready"]
    return moment(found)


def test_pods_pass_the_pod_webhook() -> None:  # CS-154, IPU-75, IPU-80, IPU-81
    async def scenario(world: LocalWorld) -> None:
        await world.create(manifest(replicas=1))
        await available(world, 1)
        [pod] = await world.pods()
        gates = {gate["conditionType"] for gate in pod["spec"]["readinessGates"]}
        assert gates == {keys.IN_PLACE_READY, keys.KRUISE_POD_READY}
        assert {conditions(pod)[gate] for gate in gates} == {"True"}

    run_local(scenario)


@pytest.mark.parametrize("resource", [ALPHA, CLONE_SETS], ids=lambda resource: resource.version)
def test_an_autoscaler_may_use_either_version(resource: Any) -> None:  # CS-155, CS-3
    async def scenario(world: LocalWorld) -> None:
        await world.create(manifest(replicas=2))
        await available(world, 2)
        scale = await world.client.get_scale(resource, "web", "default")
        assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (2, 2, "app=web")
        await world.client.set_scale(resource, "web", 4, "default")
        found = await available(world, 4)
        assert found["spec"]["replicas"] == 4
        assert (await world.client.get_scale(resource, "web", "default")).status.replicas == 4

    run_local(scenario)


def test_streaming_scale_up_follows_each_pod_closely() -> None:  # CS-69a, CS-76, CS-81
    """The next pod comes when the last one has been ready for minReadySeconds: never earlier, and within 2 s."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(manifest(replicas=4, minReadySeconds=10, scaleStrategy={"maxUnavailable": 1}))
        await available(world, 4)
        pods = sorted(await world.pods(), key=lambda pod: moment(pod["metadata"]["creationTimestamp"]))
        for former, latter in itertools.pairwise(pods):
            waited = (moment(latter["metadata"]["creationTimestamp"]) - ready_since(former)).total_seconds()
            assert 10 <= waited <= 12

    run_local(scenario)


@pytest.mark.parametrize("fault", [CutWatch(after=2, how=Cut.MID_LINE), ExpireWatch(after=2)], ids=["cut", "expired"])
def test_events_that_are_lost_block_nothing(fault: WatchFault) -> None:  # IPU-141, CS-64, edge case 20
    """Every watch on pods breaks after two events, and pods are deleted as soon as they are there."""

    async def scenario(world: LocalWorld) -> None:
        inner = InProcessTransport(world.cluster.core)
        broken = FaultyTransport(inner, [Rule(fault, resource="pods")], seed=1, clock=world.clock)
        world.start_manager(broken)
        await world.sleep(1)
        await world.create(manifest(replicas=3))
        for _ in range(5):
            await world.sleep(0.3)
            for pod in await world.pods():
                await world.delete(PODS, pod["metadata"]["name"], grace_period_seconds=0)
        await available(world, 3)
        assert len(broken.injected(type(fault))) > 5

    run_local(scenario, start=False)


def test_a_second_look_changes_nothing() -> None:  # CS-28, IPU-142
    """Minutes after it settled, no object has another version: nothing was written."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(manifest(replicas=3, minReadySeconds=5))
        await available(world, 3)
        await world.sleep(30)
        before = await versions(world.client)
        await world.stop_manager()
        world.start_manager()
        await world.sleep(600)
        assert await versions(world.client) == before

    run_local(scenario)


async def versions(client: Client) -> dict[str, str]:
    """What everything is at. Only what a write changes raises a version, so heartbeats of nodes do not matter."""
    found = {}
    for resource in (CLONE_SETS, PODS):
        for item in (await client.list(resource, "default")).items:
            found[f"{resource}/{item.metadata.name}"] = item.metadata.resource_version
    return found
