"""Spreading while managers die at their writes in turn, and in storms: answers lost, watches cut, stale lists.

Whatever was half done is finished by the next manager; no subset has more pods than it may, no workload is made twice,
and no pod loses its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.native.pod import PODS
from tests.scenarios.podstate import HOST, OS, PodStateStage
from tests.scenarios.stage import Pace
from tests.scenarios.united import NEW, NOWHERE, UnitedStage
from tests.spread.workloadspread.stories import (
    adaptive,
    costs,
    create,
    scale,
    seen,
    settled,
    spread,
    subset,
    subset_of,
    workload,
    zones,
)
from tests.support.dying import play
from tests.support.dying_both import insist
from tests.support.examples import EXAMPLES
from tests.support.storms import Witness, in_a_storm
from tests.support.world import Json, LocalWorld

SPREAD = ("workloadspread", "cloneset", "statefulset")
STATES = ("persistentpodstate", "statefulset")
UNITED = ("uniteddeployment", "cloneset", "statefulset")
PACE = Pace(within=600.0)
STORMS = range(2 * EXAMPLES)
STRIDE = max(1, 6 // EXAMPLES)
"""Every so manieth write is one to die at; with many examples, each is."""
Story = Callable[[LocalWorld], Awaitable[None]]


class Limits:
    """Of subsets, held at every moment."""

    def __init__(self, **limits: int) -> None:
        self._limits = limits
        self._subsets: dict[str, str] = {}

    def __call__(self, kind: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED" or "deletionTimestamp" in pod["metadata"]:
            self._subsets.pop(uid, None)
            return
        self._subsets[uid] = subset_of(pod)
        counts = Counter(self._subsets.values())
        for name, limit in self._limits.items():
            assert counts[name] <= limit, f"{name} has {counts[name]} pods"


async def _counted(world: LocalWorld, pods: int) -> Counter[str]:
    """Each pod is in a subset and costs what it has to; the count is right, and nobody waits for a place any more. A
    place that was entered for a pod that never came is taken for half a minute: then pods go on to the next subset."""

    async def check() -> Counter[str]:
        found = Counter(subset_of(pod) for pod in await world.pods("app=web"))
        assert found.total() == pods, found
        told = await seen(world)
        limits = {"a": 2, "b": 3}
        assert told == {name: (found[name], limits.get(name, -1 + found[name]) - found[name]) for name in told}, told
        each = {"a": 300, "b": 200, "rest": 100}
        assert {*await costs(world)} == {(name, each[name]) for name in found}
        ledger = (await world.get(WORKLOAD_SPREADS, "ws"))["status"].get("versionedSubsetStatuses", {})
        entered = [
            one for one in ledger.get("versionIgnored", ()) if one.get("creatingPods") or one.get("deletingPods")
        ]
        assert not entered, entered
        return found

    return await world.until(check, within=300)


async def pods_in_subsets(world: LocalWorld) -> None:
    """WS-22, WS-33, WS-36, WS-45, WS-47: up, down, and up again."""
    await zones(world, "a", "b")
    await insist(world, lambda: create(world, spread(subset("a", "a", 2), subset("b", "b", 3), subset("rest"))))
    async with Witness(world, PODS, Limits(a=2, b=3)):
        await insist(world, lambda: create(world, workload(6)))
        before = await _counted(world, 6)
        await insist(world, lambda: scale(world, 3))
        after = await _counted(world, 3)
        assert after["rest"] == max(0, before["rest"] - 3), "the last subset is drained first"
        await insist(world, lambda: scale(world, 5))
        await _counted(world, 5)


async def pods_that_move_on(world: LocalWorld) -> None:
    """WS-50 to WS-52: a subset is marked before its stuck pods go, so that none comes back to it."""
    await zones(world, "b")
    made = spread(subset("a", "a", 2), subset("b", "b"), scheduleStrategy=adaptive(5))
    await insist(world, lambda: create(world, made))
    async with Witness(world, PODS, Limits(a=2)):
        await insist(world, lambda: create(world, workload(4)))
        await settled(world, {"b": 4}, counts={"a": (0, 2), "b": (4, -1)}, within=600)


async def pods_that_come_back(world: LocalWorld) -> None:
    """PPS-13, PPS-17, PPS-20, PPS-23, PPS-30: recorded, found again, forgotten."""
    stage = PodStateStage(world, gates={}, pace=PACE)
    auto = {
        "kruise.io/auto-generate-persistent-pod-state": "true",
        "kruise.io/required-persistent-topology": HOST,
        "kruise.io/preferred-persistent-topology": OS,
    }
    await stage.make(annotations=auto)
    await stage.records("web", 3, {HOST, OS})
    before = await stage.are_ready(3)
    for name in before:
        await insist(world, lambda name=name: stage.delete_pod(name))  # type: ignore[misc]
    assert await stage.are_ready(3) == before
    await stage.scaled(1)
    await stage.records("web", 1, {HOST, OS})
    await stage.annotated({"kruise.io/required-persistent-topology": None})
    await stage.records("web", 1, {OS})
    await stage.annotated({"kruise.io/auto-generate-persistent-pod-state": None})

    async def gone() -> None:
        assert not await stage.list_of("web")

    await stage.until(gone)


async def subsets_that_move_on(world: LocalWorld) -> None:
    """UD-61 to UD-64, UD-78: children are made once, stuck pods move on, and an update reaches all."""
    stage = UnitedStage(world, gates={}, pace=PACE)
    await stage.label_nodes(("a", "b", "c"))
    subsets = [stage.subset("a", maxReplicas=1), stage.subset("b", zone=NOWHERE, maxReplicas=2), stage.subset("c")]
    seconds = {"rescheduleCriticalSeconds": 5, "unschedulableDuration": 600}
    schedule = {"type": "Adaptive", "adaptive": seconds}
    await insist(world, lambda: stage.create(subsets=subsets, replicas=3, schedule=schedule))
    await stage.settles({"a": 1, "b": 0, "c": 2})
    await insist(world, lambda: stage.image(NEW))
    await stage.is_updated(3)
    await insist(world, lambda: stage.scale(4))
    await stage.settles({"a": 1, "b": 0, "c": 3})
    assert len(await stage.children()) == 3


async def pods_that_are_kept_in_reserve(world: LocalWorld) -> None:
    """UD-67 to UD-71, UD-74: as many stand in as are stuck, and go when these come up."""
    stage = UnitedStage(world, gates={}, pace=PACE)
    await stage.label_nodes(("c", "x", "x"))
    seconds = {"rescheduleCriticalSeconds": 5, "unschedulableDuration": 1, "reserveUnschedulablePods": True}
    subsets = [stage.subset("a"), stage.subset("c")]
    schedule = {"type": "Adaptive", "adaptive": seconds}
    await insist(world, lambda: stage.create(subsets=subsets, replicas=2, schedule=schedule))

    async def reserved() -> None:
        status = await stage.status()
        assert await stage.by_subset() == {"a": 2, "c": 2}, status
        assert (status["replicas"], status.get("readyReplicas", 0), status.get("reservedPods", 0)) == (2, 2, 2), status

    await stage.until(reserved)
    await stage.label_nodes(("c", "a", "x"))

    async def back() -> None:
        status = await stage.status()
        assert await stage.by_subset() == {"a": 2}, status
        assert (status["replicas"], status.get("readyReplicas", 0), status.get("reservedPods", 0)) == (2, 2, 0), status

    await stage.until(back)


STORIES: list[tuple[Story, tuple[str, ...]]] = [
    (pods_in_subsets, SPREAD),
    (pods_that_move_on, SPREAD),
    (pods_that_come_back, STATES),
    (subsets_that_move_on, UNITED),
    (pods_that_are_kept_in_reserve, UNITED),
]
NAMED = [pytest.param(story, kinds, id=story.__name__) for story, kinds in STORIES]


@pytest.mark.parametrize(("story", "kinds"), NAMED)
def test_a_manager_that_dies_at_any_write(story: Story, kinds: tuple[str, ...]) -> None:
    writes = play(story, kinds=kinds)
    assert writes > 3
    for at in range(0, writes, STRIDE):
        try:
            play(story, at, kinds=kinds, heard=at // STRIDE % 2 == 0)
        except AssertionError as error:
            raise AssertionError(f"the manager died at its write {at + 1} of {writes}: {error}") from error


@pytest.mark.parametrize("seed", STORMS)
@pytest.mark.parametrize(("story", "kinds"), NAMED)
def test_a_storm(story: Story, kinds: tuple[str, ...], seed: int) -> None:
    assert in_a_storm(story, kinds=kinds, seed=seed) > 0
