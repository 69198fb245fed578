"""Whole stories of StatefulSets and DaemonSets while nothing works reliably.

Requests get lost before and after they are done, come twice, are refused; watches tear; lists lag behind. The stories
end as ever, and their limits hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kruise.api.native.storage import STORAGE_CLASSES
from kruise.kinds import features
from kruise.local.inprocess import InProcessTransport
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import run_virtual
from tests.scenarios import daemons
from tests.scenarios.podlog import is_serving, is_there
from tests.scenarios.stage import Pace, uids
from tests.support.examples import EXAMPLES
from tests.support.faults import Delay, FaultyTransport, Rule, storm
from tests.support.rollout_log import RolloutLog, watching
from tests.support.world import LocalWorld, World, local_world
from tests.workloads.statefulset import stories
from tests.workloads.statefulset.stories import IN_PLACE, Stateful, manifest

FEATURES = tuple(feature for feature in features() if feature.name in ("statefulset", "daemonset", "readiness"))
NODES = 4
PATIENT = Pace(within=900.0)
Story = Callable[[World], Awaitable[None]]


async def updated_in_order(world: World) -> None:
    """At most one pod is down at any moment, whatever gets lost (ST-70)."""
    web = Stateful(world)
    await web.start(manifest(4, rolling=IN_PLACE))
    async with watching(world.client, world.namespace, "app=web", world.clock) as log:
        await web.set_image("nginx:1.26")
        await web.complete()
    _keeps(log, at_least=3, at_most=4)


async def recreated_two_at_a_time(world: World) -> None:
    """And never two pods of one ordinal: the next one comes when the last is gone (ST-77, ST-131)."""
    web = Stateful(world)
    await web.start(manifest(5, parallel=True, rolling={"maxUnavailable": 2}))
    async with watching(world.client, world.namespace, "app=web", world.clock) as log:
        await web.set_image("nginx:1.26")
        await web.complete()
    _keeps(log, at_least=3, at_most=5)


def _keeps(log: RolloutLog, *, at_least: int, at_most: int) -> None:
    assert log.fewest_available(0) >= at_least
    assert log.most_pods() <= at_most


def _daemons(play: Callable[[daemons.DaemonStage], Awaitable[None]]) -> Story:
    async def story(world: World) -> None:
        await play(daemons.DaemonStage(world, gates={}, pace=PATIENT))

    return story


async def _one_node_after_the_other(stage: daemons.DaemonStage) -> None:
    """DS-64."""
    before = await stage.start(rolling={"maxUnavailable": 1})
    async with stage.watching() as log:
        await stage.set_image(daemons.NEW)
        after = await stage.complete()
    assert log.lowest(is_serving) >= len(before) - 1
    assert log.highest(is_there) <= len(before)
    assert not set(uids(after)) & set(uids(before))


async def _in_place(stage: daemons.DaemonStage) -> None:
    """DS-66: nobody is made anew."""
    before = await stage.start(rolling={"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 1})
    async with stage.watching() as log:
        await stage.set_image(daemons.NEW)
        after = await stage.complete()
    assert log.lowest(is_serving) >= len(before) - 1
    assert uids(after) == uids(before)


async def _a_surge(stage: daemons.DaemonStage) -> None:
    """DS-68: no node is ever without a pod that serves, and none has three."""
    before = await stage.start(rolling={"maxSurge": 1, "maxUnavailable": 0})
    async with stage.watching() as log:
        await stage.set_image(daemons.NEW)
        await stage.complete()
    assert log.lowest(is_serving) >= len(before)


STORIES: dict[str, Story] = {
    "a life of a StatefulSet": stories.a_life,
    "a partition": stories.parallel_with_a_partition,
    "ordinals move": stories.ordinals_move,
    "orphans": stories.orphans_are_adopted,
    "in order": updated_in_order,
    "two at a time": recreated_two_at_a_time,
    "daemons one by one": _daemons(_one_node_after_the_other),
    "daemons in place": _daemons(_in_place),
    "daemons surge": _daemons(_a_surge),
}


async def _told(story: str, seed: int, weather: tuple[Rule, ...]) -> int:
    async with local_world(features=FEATURES, start=False, nodes=NODES, seed=seed) as world:
        transport = FaultyTransport(InProcessTransport(world.cluster.core), seed=seed, clock=world.clock)
        await _prepared(world, transport)
        transport.add(*weather)
        await STORIES[story](world)
        return len(transport.log)


async def _prepared(world: LocalWorld, transport: FaultyTransport) -> None:
    await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
    world.start_manager(transport)
    await asyncio.sleep(1)


@pytest.mark.parametrize("story", STORIES)
def test_storms_do_not_change_the_end(story: str) -> None:
    seeds = range(1, 2 * EXAMPLES + 1)
    faults = 0
    for seed in seeds:
        try:
            faults += run_virtual(_told(story, seed, storm(0.06)))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert faults > 2 * len(seeds)


@pytest.mark.parametrize("story", STORIES)
def test_writes_that_outlast_their_pass_break_no_promise(story: str) -> None:
    """A slow server: passes follow each other while writes of earlier ones are under way, and end in any order."""
    slow = Rule(Delay(0.0, spread=0.6), verbs={Verb.PATCH, Verb.DELETE, Verb.CREATE})
    for seed in range(1, 2 * EXAMPLES + 1):
        try:
            assert run_virtual(_told(story, seed, (slow,))) >= 8
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
