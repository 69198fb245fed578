"""Rollouts on the local cluster while the manager dies at each of its writes, or while nothing works reliably.

A death before a write is sent leaves behind what a death after the former write does, but for writes that were under
way at the same time. So all deaths after a write are tried, and of those before one only some, unless
`KRUISE_EXAMPLES` is more than 1, which also multiplies the storms. Run with `-s` to see how much was tried.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import os
import time
from collections.abc import Callable

import pytest

from kruise.api.native.storage import STORAGE_CLASSES
from kruise.kinds import features
from kruise.local.inprocess import InProcessTransport
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.machinery.client.requests import Verb
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import run_virtual
from tests.support.faults import Delay, FaultyTransport, Rule, storm
from tests.support.world import LocalWorld, local_world
from tests.workloads.cloneset.chaos import STORIES, DeadlyTransport, Json, Stage, Witness, end_state, numbered

FEATURES = tuple(feature for feature in features() if feature.name in ("cloneset", "readiness"))
"""Other kinds have nothing to do in these stories, and a cluster for each death starts sooner without them."""
EXAMPLES = int(os.environ.get("KRUISE_EXAMPLES", "1"))
CALM = 5.0
"""Seconds of the cluster's time after a story, in which whatever is still under way comes to its end."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    state: Json
    writes: list[str]
    events: int


async def _prepared(world: LocalWorld, transport: Transport) -> None:
    await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
    world.start_manager(transport)
    await asyncio.sleep(1)


async def _bury_and_replace(world: LocalWorld, transport: DeadlyTransport) -> None:
    await transport.struck.wait()
    await world.kill_manager()
    await asyncio.sleep(0.5)
    world.start_manager()


async def _tell(story: str, *, deadly: int = 0, before: bool = False) -> Ending:
    """Tell a story; the manager dies at write number `deadly`, and another one takes over."""
    async with local_world(features=FEATURES, start=False, nodes=3) as world:
        transport = DeadlyTransport(InProcessTransport(world.cluster.core), deadly=deadly, before=before)
        await _prepared(world, transport)
        successor = asyncio.create_task(_bury_and_replace(world, transport))
        async with Witness(world).watching() as witness:
            await STORIES[story](world, Stage(witness, transport.arm))
            if deadly:
                async with asyncio.timeout(60):
                    await successor
            await asyncio.sleep(CALM)
        successor.cancel()
        return Ending(await end_state(world), transport.writes, witness.seen)


@functools.cache
def _undisturbed(story: str) -> Ending:
    return run_virtual(_tell(story))


@pytest.mark.parametrize("before", [True, False], ids=["before it is sent", "before its answer comes"])
@pytest.mark.parametrize("story", STORIES)
def test_the_manager_dies_at_every_write(
    story: str, before: bool, record_property: Callable[[str, object], None]
) -> None:
    """Another manager finishes what the dead one began: the same end, and no promise broken at any moment."""
    begun = time.perf_counter()
    expected = _undisturbed(story)
    events = 0
    numbers = range(1, len(expected.writes) + 1, 6 if before and EXAMPLES == 1 else 1)
    for number in numbers:
        try:
            ending = run_virtual(_tell(story, deadly=number, before=before))
        except AssertionError as error:
            history = "\n".join(numbered(expected.writes[:number]))
            raise AssertionError(f"the manager died at write {number}:\n{history}\n{error}") from error
        assert ending.writes[:number] == expected.writes[:number], "the story goes another way each time"
        assert ending.state == expected.state, f"died at write {number}, {expected.writes[number - 1]}"
        events += ending.events
    record_property("deaths", len(numbers))
    record_property("events", events)
    print(f"\n{story}: {len(numbers)} deaths, {events} events checked, {time.perf_counter() - begun:.1f} s")
    assert len(expected.writes) >= 8


async def _weather(story: str, seed: int) -> tuple[Json, int, int]:
    async with local_world(features=FEATURES, start=False, nodes=3, seed=seed) as world:
        transport = FaultyTransport(InProcessTransport(world.cluster.core), seed=seed, clock=world.clock)
        await _prepared(world, transport)
        async with Witness(world).watching() as witness:
            await STORIES[story](world, Stage(witness, lambda: transport.add(*storm(0.06))))
            transport.clear()
            await asyncio.sleep(60)
        return await end_state(world), len(transport.log), witness.seen


@pytest.mark.parametrize("story", STORIES)
def test_storms_do_not_change_the_end(story: str, record_property: Callable[[str, object], None]) -> None:
    """Requests get lost before and after they are done, come twice, are refused; watches tear; lists lag behind."""
    begun = time.perf_counter()
    expected = _undisturbed(story).state
    faults = events = 0
    seeds = range(1, 3 * EXAMPLES + 1)
    for seed in seeds:
        try:
            state, injected, seen = run_virtual(_weather(story, seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert state == expected, f"seed {seed}"
        faults += injected
        events += seen
    record_property("faults", faults)
    record_property("events", events)
    print(
        f"\n{story}: {len(seeds)} storms, {faults} faults, {events} events checked, {time.perf_counter() - begun:.1f} s"
    )
    assert faults > len(seeds) * 3


async def _slowly(story: str, seed: int) -> tuple[Json, int, int]:
    async with local_world(features=FEATURES, start=False, nodes=3, seed=seed) as world:
        transport = FaultyTransport(InProcessTransport(world.cluster.core), seed=seed, clock=world.clock)
        await _prepared(world, transport)
        slow = Rule(Delay(0.0, spread=0.6), verbs={Verb.PATCH, Verb.DELETE, Verb.CREATE})
        async with Witness(world).watching() as witness:
            await STORIES[story](world, Stage(witness, lambda: transport.add(slow)))
            transport.clear()
            await asyncio.sleep(60)
        return await end_state(world), len(transport.log), witness.seen


@pytest.mark.parametrize("story", STORIES)
def test_writes_that_outlast_their_pass_break_no_promise(story: str) -> None:
    """A slow server: passes follow each other while writes of earlier ones are under way, and end in any order."""
    expected = _undisturbed(story).state
    for seed in range(1, 4 * EXAMPLES + 1):
        try:
            state, delayed, _ = run_virtual(_slowly(story, seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert state == expected, f"seed {seed}"
        assert delayed >= 8
