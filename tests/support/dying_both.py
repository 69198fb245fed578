"""Manager and node daemon as processes that die, on the local cluster: at any of their writes, or in a storm.

A process that dies has lost all that it remembered; its last write was seen by the API, or was not. The next one starts
half a second later.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection
from random import Random
from typing import Any, cast

from kruise.daemon.daemon import Daemon
from kruise.daemon.parts import Place, Settings, parts
from kruise.kinds import features
from kruise.local.inprocess import InProcessTransport
from kruise.local.nodes.pods import BOUND, BOUND_PODS
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import AlreadyExistsError, ApiError, NotFoundError
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import run_virtual
from kruise.machinery.journal import Journal
from kruise.machinery.watched import Watched
from tests.support.dying import Mortal
from tests.support.faults import FaultyTransport, storm
from tests.support.world import LocalWorld, local_world

REST = 0.5
"""Seconds until the next process starts."""
START = 3.0
"""Seconds after which the webhooks of a manager are there."""
Story = Callable[[LocalWorld], Awaitable[None]]


class NodeDaemon:
    """The daemon of all simulated nodes, as a process of its own."""

    def __init__(self, world: LocalWorld, *, max_pulls: int = 0) -> None:
        self._world = world
        self._settings = Settings(gates=world.options.gates, max_pulls=max_pulls)
        self._tasks: list[asyncio.Task[None]] = []
        self._random = Random(7)

    def start(self, transport: Transport, journal: Journal | None = None) -> None:
        world = self._world
        client = Client(transport, clock=world.clock, field_manager="kruise-daemon")
        cache = Cache(client, clock=world.clock, seed=self._random.getrandbits(32))
        nodes = world.cluster.nodes
        assert nodes is not None
        daemon = Daemon(
            parts(self._settings.gates),
            place=Place(settings=self._settings, pods=cast(Any, Watched(BOUND_PODS, fields=BOUND))),
            nodes=nodes,
            client=client,
            cache=cache,
            clock=world.clock,
            random=self._random,
            journal=journal,
        )
        self._tasks = [asyncio.create_task(cache.run()), asyncio.create_task(daemon.run())]

    async def kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks = []


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """What became of the two processes."""

    manager: int
    daemon: int
    """Their writes, until the first of them died."""
    died: bool


def play(
    story: Story,
    *,
    kinds: Collection[str],
    gates: str = "",
    nodes: int = 3,
    who: str = "",
    at: int | None = None,
    heard: bool = False,
    max_pulls: int = 0,
) -> Lives:
    """`who`: `manager` or `daemon`, which dies at its write number `at`; `heard`: the API has seen that write."""

    async def main() -> Lives:
        chosen = tuple(feature for feature in features() if feature.name in kinds)
        async with local_world(
            features=chosen, start=False, nodes=nodes, feature_gates=gates, node_daemon=False
        ) as world:
            inner = InProcessTransport(world.cluster.core)
            manager = Mortal(inner, at if who == "manager" else None, heard=heard)
            agent = Mortal(inner, at if who == "daemon" else None, heard=heard)
            daemon = NodeDaemon(world, max_pulls=max_pulls)
            world.start_manager(manager)
            daemon.start(agent)
            deaths = asyncio.create_task(_deaths(world, daemon, manager, agent))
            await asyncio.sleep(START)
            manager.is_counted = agent.is_counted = True
            try:
                await story(world)
            finally:
                deaths.cancel()
                await asyncio.wait({deaths})
                await daemon.kill()
            died = manager.died.is_set() or agent.died.is_set()
            return Lives(manager=manager.writes, daemon=agent.writes, died=died)

    return run_virtual(main())


async def _deaths(world: LocalWorld, daemon: NodeDaemon, manager: Mortal, agent: Mortal) -> None:
    async def of_manager() -> None:
        await manager.died.wait()
        await world.kill_manager()
        await asyncio.sleep(REST)
        world.start_manager()

    async def of_daemon() -> None:
        await agent.died.wait()
        await daemon.kill()
        await asyncio.sleep(REST)
        daemon.start(InProcessTransport(world.cluster.core))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(of_manager())
        tasks.create_task(of_daemon())


def dies_at_every_write(story: Story, **options: Any) -> tuple[int, int]:
    """Plays the story once for each write of either process, which dies there: in turn before the API has seen it, and
    after. How many writes each of them has, undisturbed."""
    whole = play(story, **options)
    assert not whole.died
    for who, writes in (("manager", whole.manager), ("daemon", whole.daemon)):
        for at in range(writes):
            try:
                lives = play(story, who=who, at=at, heard=at % 2 == 0, **options)
            except AssertionError as error:
                raise AssertionError(f"the {who} died at its write {at}: {error}") from error
            assert lives.died, f"the {who} has no write {at}"
    return whole.manager, whole.daemon


def in_a_storm_of_both(
    story: Story, *, kinds: Collection[str], seed: int, gates: str = "", nodes: int = 3, rate: float = 0.06
) -> int:
    """Manager and daemon both lose answers, their watches are cut, their lists are stale. How many faults struck."""

    async def main() -> int:
        chosen = tuple(feature for feature in features() if feature.name in kinds)
        async with local_world(
            features=chosen, start=False, nodes=nodes, feature_gates=gates, seed=seed, node_daemon=False
        ) as world:
            inner = InProcessTransport(world.cluster.core)
            faulty = [FaultyTransport(inner, seed=seed + turn, clock=world.clock) for turn in (0, 1000)]
            daemon = NodeDaemon(world)
            world.start_manager(faulty[0])
            daemon.start(faulty[1])
            await asyncio.sleep(1)
            for transport in faulty:
                transport.add(*storm(rate))
            try:
                await story(world)
            finally:
                await daemon.kill()
            return sum(len(transport.log) for transport in faulty)

    return run_virtual(main())


async def insist(world: LocalWorld, write: Callable[[], Awaitable[Any]], within: float = 300.0) -> None:
    """A user tries again while nobody answers webhooks. What came through unheard is there already, or gone."""

    async def attempt() -> None:
        try:
            await write()
        except (AlreadyExistsError, NotFoundError):
            return
        except ApiError as error:
            if error.status.code >= 500:
                raise AssertionError(error.message) from error
            raise

    await world.until(attempt, within=within, every=0.3)
