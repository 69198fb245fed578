"""UnitedDeployments on three real nodes, which are three zones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kruise.spread.uniteddeployment import keys
from tests.scenarios.stage import Pace, restarts_of, uids
from tests.scenarios.united import NEW, OLD, UnitedStage, play_guestbook
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
PACE = Pace(seconds=3, calm=3.0, within=180.0, every=0.3, slack=10.0)
Play = Callable[[Callable[[UnitedStage], Awaitable[None]]], None]
IN_PLACE = {"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}}}


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str) -> Play:
    def run(story: Callable[[UnitedStage], Awaitable[None]]) -> None:
        async def main() -> None:
            async with kruise_on_nodes.world(nodes_namespace) as world:
                await story(UnitedStage(world, gates={}, pace=PACE))

        asyncio.run(main())

    return run


@pytest.mark.smoke
def test_zones_and_partitions(play: Play) -> None:
    """UD-43, UD-57, UD-80, UD-81: pods are in the zone of their subset, and change in place as partitions allow."""

    async def story(stage: UnitedStage) -> None:
        await stage.label_nodes()
        subsets = [stage.subset("a", replicas=1), stage.subset("b", replicas="50%"), stage.subset("c")]
        await stage.create(subsets=subsets, replicas=4, child=IN_PLACE)
        await stage.settles({"a": 1, "b": 2, "c": 1})
        before = await stage.pods()
        by_subset: dict[str, set[str]] = {}
        for pod in before:
            by_subset.setdefault(pod["metadata"]["labels"][keys.SUBSET], set()).add(pod["spec"]["nodeName"])
        assert [len(found) for found in by_subset.values()] == [1, 1, 1]
        assert len(set.union(*by_subset.values())) == 3
        await stage.change({"updateStrategy": {"manualUpdate": {"partitions": {"a": 9, "b": 1}}}})
        await stage.image(NEW)
        await stage.is_updated(2)
        await stage.change({"updateStrategy": {"manualUpdate": {"partitions": None}}})
        await stage.is_updated(4)
        after = await stage.pods()
        assert uids(after) == uids(before)
        assert [restarts_of(pod)["main"] for pod in after] == [1, 1, 1, 1]

    play(story)


def test_pods_move_on_from_a_zone_without_nodes(play: Play) -> None:
    """UD-61 to UD-64, with the real scheduler's verdict."""

    async def story(stage: UnitedStage) -> None:
        await stage.label_nodes(("a", "c", "c"))
        subsets = [stage.subset("a", maxReplicas=1), stage.subset("b", maxReplicas=2), stage.subset("c")]
        adaptive = {"rescheduleCriticalSeconds": 5, "unschedulableDuration": 5}
        await stage.create(subsets=subsets, replicas=3, schedule={"type": "Adaptive", "adaptive": adaptive})
        await stage.settles({"a": 1, "b": 0, "c": 2})
        assert (await stage.subset_condition("b"))["reason"] in ("reschedule", "recover")

    play(story)


def test_the_guestbook_in_three_zones(play: Play) -> None:
    """UD-43, UD-57: 2, 5 and 3 pods of StatefulSets; with an image that the nodes have."""

    async def story(stage: UnitedStage) -> None:
        await play_guestbook(stage, OLD, "IfNotPresent")

    play(story)
