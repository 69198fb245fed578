"""DaemonSets on three real nodes: what really happens to containers and addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.scenarios.daemons import NEW, OLD, DaemonStage
from tests.scenarios.podlog import is_serving
from tests.scenarios.stage import Pace, images_of, names, restarts_of, uids
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.world import Json

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
PACE = Pace(seconds=3, calm=3.0, within=180.0, every=0.3, slack=10.0)
QUICK = {"terminationGracePeriodSeconds": 1}
Play = Callable[[Callable[[DaemonStage], Awaitable[None]]], None]


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str) -> Play:
    def run(story: Callable[[DaemonStage], Awaitable[None]]) -> None:
        async def main() -> None:
            async with kruise_on_nodes.world(nodes_namespace) as world:
                await story(DaemonStage(world, gates={}, pace=PACE))

        asyncio.run(main())

    return run


def addresses(pods: list[Json]) -> dict[str, str]:
    return {pod["spec"]["nodeName"]: pod["status"]["podIP"] for pod in pods}


@pytest.mark.smoke
def test_an_image_changes_in_place(play: Play) -> None:
    """DS-66, IPU-164: same pods, same addresses, one restart each."""

    async def story(stage: DaemonStage) -> None:
        before = await stage.start(rolling={"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 1}, pod=QUICK)
        assert len(before) == 3
        await stage.set_image(NEW)
        after = await stage.complete()
        assert uids(after) == uids(before)
        assert addresses(after) == addresses(before)
        assert [restarts_of(pod)["main"] for pod in after] == [1, 1, 1]
        assert {images_of(pod)["main"] for pod in after} == {NEW}

    play(story)


def test_a_surge_leaves_no_node_without_a_pod(play: Play) -> None:
    """DS-68."""

    async def story(stage: DaemonStage) -> None:
        before = await stage.start(rolling={"maxSurge": 1, "maxUnavailable": 0}, minReadySeconds=2, pod=QUICK)
        async with stage.watching() as log:
            await stage.set_image(NEW)
            after = await stage.complete()
        assert log.lowest(is_serving) >= 3
        assert not set(names(after)) & set(names(before))

    play(story)


def test_a_node_that_leaves_and_comes_back(play: Play) -> None:
    """DS-21, DS-100: by a label of its own, which no other test looks at."""

    async def story(stage: DaemonStage) -> None:
        nodes = await stage.nodes()
        for node in nodes:
            selector = await stage.label(node, "in")
        await stage.start(pod={**QUICK, "nodeSelector": dict(selector)}, image=OLD)
        await stage.label(nodes[0], "out")
        await stage.reaches(desiredNumberScheduled=2, currentNumberScheduled=2, numberMisscheduled=0)
        assert sorted(await stage.by_node()) == nodes[1:]
        await stage.set_image(NEW)
        await stage.complete()
        await stage.label(nodes[0], "in")
        await stage.reaches(desiredNumberScheduled=3, numberAvailable=3, updatedNumberScheduled=3)
        assert images_of((await stage.by_node())[nodes[0]])["main"] == NEW
        for node in nodes:
            await stage.label(node, None)

    play(story)
