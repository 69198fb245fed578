"""A story on the local cluster in a storm: the manager loses answers, its watches are cut, its lists are stale."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from kruise.api.resource import Resource
from kruise.kinds import features
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import run_virtual
from tests.support.faults import FaultyTransport, storm
from tests.support.world import Json, LocalWorld, local_world

Story = Callable[[LocalWorld], Awaitable[None]]
Hears = Callable[[str, Json], None]


def in_a_storm(
    story: Story, *, kinds: Collection[str], seed: int, nodes: int = 3, rate: float = 0.06, **options: Any
) -> int:
    """How many faults struck. `kinds`: the features that the story needs; others would only make it slower."""

    async def main() -> int:
        chosen = tuple(feature for feature in features() if feature.name in kinds)
        async with local_world(features=chosen, start=False, nodes=nodes, seed=seed, **options) as world:
            transport = FaultyTransport(InProcessTransport(world.cluster.core), seed=seed, clock=world.clock)
            world.start_manager(transport)
            await asyncio.sleep(1)
            transport.add(*storm(rate))
            await story(world)
            return len(transport.log)

    return run_virtual(main())


class Witness:
    """Hears of every change of a kind, by a watch that is in no storm: `async with Witness(world, PODS, hears):`."""

    def __init__(self, world: LocalWorld, resource: Resource[Any], hears: Hears) -> None:
        self._world = world
        self._resource = resource
        self._hears = hears
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        if self._task.done():
            self._task.result()  # a broken promise
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _watch(self) -> None:
        query = (("watch", "true"), ("resourceVersion", "0"))
        request = Request(Verb.WATCH, self._resource, self._world.place_of(self._resource), query=query)
        async with self._world.client.transport.stream(request) as lines:
            async for line in lines:
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                    self._hears(event["type"], event["object"])
