"""WorkloadSpreads on three real nodes, which are three zones: real kubelets, scheduler and controllers."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable

import pytest

from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.machinery.client.requests import PatchType
from tests.spread.workloadspread import stories
from tests.spread.workloadspread.stories import (
    CLONE_SET,
    DEPLOYMENT,
    Json,
    adaptive,
    create,
    placed,
    scale,
    schedulable,
    settled,
    spread,
    subset_of,
    workload,
)
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.world import World

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
WITHIN = 180.0


class Zones:
    """The nodes are zones a, b and c, by a label that no other test has. Subsets are named after them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.key = f"example.io/zone-{world.namespace[-40:].strip('-')}"
        self.subset = functools.partial(stories.subset, key=self.key)
        self.settled = functools.partial(settled, world, within=WITHIN)

    async def label(self, *names: str) -> None:
        await stories.zones(self.world, *names, key=self.key)

    async def pods_are_in_their_zones(self) -> None:
        nodes = {node.metadata.name: node for node in (await self.world.client.list(NODES)).items}
        for pod in await self.world.pods("app=web"):
            assert nodes[pod["spec"]["nodeName"]].metadata.labels[self.key] == subset_of(pod)


async def in_three_zones(zones: Zones, target: tuple[str, str] = CLONE_SET) -> None:
    """Zones are filled in order and drained in reverse; a pod that is deleted is followed into its zone (WS-22, WS-24,
    WS-45, WS-58)."""
    world = zones.world
    await zones.label("a", "b", "c")
    subsets = [zones.subset("a", "a", 2), zones.subset("b", "b", 2), zones.subset("c", "c")]
    await create(world, spread(*subsets, target=target), workload(5, target))
    full = {"a": (2, 0), "b": (2, 0), "c": (1, -1)}
    await zones.settled({"a": 2, "b": 2, "c": 1}, counts=full)
    await zones.pods_are_in_their_zones()
    chosen = next(pod for pod in await world.pods("app=web") if subset_of(pod) == "b")["metadata"]["name"]
    await world.delete(PODS, chosen)
    await world.until(functools.partial(_is_gone, world, chosen), within=WITHIN)
    await zones.settled({"a": 2, "b": 2, "c": 1}, counts=full)
    await scale(world, 3, target)
    await zones.settled(
        {"a": 2, "b": 1}, counts={"a": (2, 0), "b": (1, 1), "c": (0, -1)}, costs_=[("a", 300)] * 2 + [("b", 200)]
    )
    await scale(world, 6, target)
    await zones.settled({"a": 2, "b": 2, "c": 2}, counts={"a": (2, 0), "b": (2, 0), "c": (2, -1)})
    await zones.pods_are_in_their_zones()


async def _is_gone(world: World, name: str) -> None:
    assert name not in [pod["metadata"]["name"] for pod in await world.pods("app=web")]


async def a_rollout_keeps_the_spread(zones: Zones) -> None:
    """New pods of a Deployment fill the zones anew (WS-7, WS-46, WS-59)."""
    await in_three_zones(zones, DEPLOYMENT)
    image: list[Json] = [
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"},
    ]
    await zones.world.patch(DEPLOYMENTS, "web", image, patch_type=PatchType.JSON)

    async def rolled() -> None:
        pods = await zones.world.pods("app=web")
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"nginx:1.26"}

    await zones.world.until(rolled, within=WITHIN)
    await zones.settled({"a": 2, "b": 2, "c": 2}, costs_=[("a", 300)] * 2 + [("b", 200)] * 2 + [("c", 100)] * 2)
    await zones.pods_are_in_their_zones()


async def pods_move_on_from_a_zone_without_nodes(zones: Zones) -> None:
    """By the verdict of the real scheduler (WS-50 to WS-52, WS-61)."""
    world = zones.world
    await zones.label("b", "c", "c")
    subsets = [zones.subset("a", "a", 2), zones.subset("b", "b", 1), zones.subset("c", "c")]
    await create(world, spread(*subsets, scheduleStrategy=adaptive(5)), workload(4))
    await zones.settled({"b": 1, "c": 3}, counts={"a": (0, 2), "b": (1, 0), "c": (3, -1)})
    told = await schedulable(world)
    assert told["a"] == ("False", "PodUnschedulable")
    assert told["c"] == ("True", "Sufficient")
    await zones.pods_are_in_their_zones()


async def ordinals_in_three_zones(zones: Zones) -> None:
    """A StatefulSet of Kubernetes, whose pods come one after the other (WS-21)."""
    world, target = zones.world, ("apps/v1", "StatefulSet")
    await zones.label("a", "b", "c")
    subsets = [zones.subset("a", "a", 1), zones.subset("b", "b", 1), zones.subset("c", "c")]
    await create(world, spread(*subsets, target=target), workload(3, target))
    await zones.settled({"a": 1, "b": 1, "c": 1})
    by_name = {pod["metadata"]["name"]: subset_of(pod) for pod in await world.pods("app=web")}
    assert by_name == {"web-0": "a", "web-1": "b", "web-2": "c"}
    uids = {pod["metadata"]["uid"] for pod in await world.pods("app=web")}
    await world.delete(PODS, "web-0")

    async def again() -> None:
        pods = await world.pods("app=web")
        assert len(pods) == 3
        assert len(uids & {pod["metadata"]["uid"] for pod in pods}) == 2

    await world.until(again, within=WITHIN)
    await zones.settled({"a": 1, "b": 1, "c": 1}, counts={"a": (1, 0), "b": (1, 0), "c": (1, -1)})
    assert await placed(world) == {"a": 1, "b": 1, "c": 1}
    await zones.pods_are_in_their_zones()


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(in_three_zones, marks=pytest.mark.smoke),
        a_rollout_keeps_the_spread,
        pods_move_on_from_a_zone_without_nodes,
        ordinals_in_three_zones,
    ],
)
def test_on_real_nodes(
    story: Callable[[Zones], Awaitable[None]],
    kruise_on_nodes: KruiseCluster,
    real_nodes: RealNodes,
    nodes_namespace: str,
) -> None:
    async def main() -> None:
        async with kruise_on_nodes.world(nodes_namespace) as world:
            await story(Zones(world))

    asyncio.run(main())
