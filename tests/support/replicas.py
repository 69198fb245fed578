"""Several managers before one local cluster, as a Service has them: one leads, all answer webhooks. They can be killed
and frozen, and their answers get lost."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from random import Random
from typing import Any

from kruise.embedded import embedded_manager, embedded_options
from kruise.feature import Feature
from kruise.local.cluster import LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.local.webhooks.calling import CallError
from kruise.local.webhooks.inprocess import Handler, Site
from kruise.machinery.client.errors import TransportError
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import Clock
from kruise.manager.options import Options, Role
from tests.support.faults import FaultyTransport, Rule

WEBHOOK_TIMEOUT = 10.0
RENEW_DEADLINE = 10.0


class Balancer:
    """The Service in front of the managers. Answers get lost on their way to the API server."""

    def __init__(
        self,
        cluster: LocalCluster,
        random: Random,
        *,
        losing: Collection[str],
        delaying: Callable[[bytes], bool] = lambda asked: True,
        heard: Callable[[str, bytes, bytes], None] = lambda path, asked, said: None,
    ) -> None:
        """`losing`: the paths whose answers get lost, or come late: those that `delaying` picks. `heard` is told of
        every answer as it was given."""
        self._random = random
        self._losing = losing
        self._delaying = delaying
        self._heard = heard
        self.sites: list[Site] = []
        self.frozen: dict[int, asyncio.Event] = {}
        """By the identity of its site: what a frozen manager waits for."""
        self.loses = 0.0
        self.lost = 0
        self.delays = 0.0
        """How many answers come late, some so late that nobody waits for them any more."""
        mount = cluster.webhooks.mount

        def mounted(prefix: str, site: Any) -> None:
            self.sites.append(site)
            mount(prefix, self)

        cluster.webhooks.mount = mounted  # type: ignore[method-assign]
        cluster.webhooks.unmount = lambda prefix: None  # type: ignore[method-assign]

    def handler(self, path: str, timeout: float | None) -> Handler | None:
        if not self.sites:
            return None
        site = self._random.choice(self.sites)
        found = site.handler(path, timeout)
        if found is None:
            return None

        async def answer(body: bytes) -> bytes:
            said = await self._thawed(site, found(body), timeout or WEBHOOK_TIMEOUT)
            self._heard(path, body, said)
            if path in self._losing and self._random.random() < self.delays and self._delaying(body):
                await asyncio.sleep(self._random.uniform(0, WEBHOOK_TIMEOUT))
            if path in self._losing and self._random.random() < self.loses:
                self.lost += 1
                raise CallError("failed to call webhook: the answer got lost")
            return said

        return answer

    async def _thawed(self, site: Site, answering: Awaitable[bytes], timeout: float) -> bytes:
        """A frozen manager may have decided and written: its answer comes when it thaws, to nobody."""
        task = asyncio.ensure_future(answering)
        thawed = self.frozen.get(id(site))
        if thawed is None:
            return await task
        try:
            async with asyncio.timeout(timeout):
                await thawed.wait()
        except TimeoutError:
            raise CallError("failed to call webhook: context deadline exceeded") from None
        return await task


class Freezing:
    """The way of a manager to the API: nothing goes through while it is frozen."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.thawed: asyncio.Event | None = None
        self.is_fenced = False
        """The lease was lost meanwhile: nothing is sent any more."""

    async def send(self, request: Request) -> Response:
        if self.thawed is not None:
            await self.thawed.wait()
        if self.is_fenced:
            raise TransportError("the lease was lost", sent=False)
        return await self._inner.send(request)

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._inner.stream(request) as lines:
            yield self._lines(lines)

    async def _lines(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            if self.thawed is not None:
                await self.thawed.wait()
            yield line

    async def close(self) -> None:
        await self._inner.close()


class Replica:
    """A manager that can be killed."""

    def __init__(
        self,
        cluster: LocalCluster,
        balancer: Balancer,
        role: Role,
        random: Random,
        *,
        features: Sequence[Feature],
        faults: Sequence[Rule],
        options: Options | None = None,
        is_fenced: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """Where it is not fenced, it goes on for some seconds with all that it was about to send, although another
        leads: worse than ours, which ask the clock before they send. `clock`: its own, which may go wrong."""
        self._is_fenced = is_fenced
        self._clock = clock
        self._cluster = cluster
        self._balancer = balancer
        self._role = role
        self._random = random
        self._features = tuple(features)
        self._faults = tuple(faults)
        self._options = options or Options()
        self._site: Site | None = None
        self._running: asyncio.Task[None] | None = None
        self._transport: Freezing | None = None
        self._faulty: FaultyTransport | None = None
        self._changing = asyncio.Lock()
        self._is_disturbed = True
        self.disturbed = 0
        """How often a fault has struck it."""

    async def start(self) -> None:
        options = dataclasses.replace(embedded_options(self._options), role=self._role)
        inner = self._transport = Freezing(InProcessTransport(self._cluster.core))
        faults = self._faults if self._is_disturbed else ()
        self._faulty = FaultyTransport(inner, faults, seed=self._random.getrandbits(32), clock=self._cluster.clock)
        before = len(self._balancer.sites)
        manager = embedded_manager(
            self._cluster,
            self._features,
            options,
            random=Random(self._random.random()),
            transport=self._faulty,
            clock=self._clock,
        )
        self._running = asyncio.create_task(manager.run(asyncio.Event()), name="manager")
        await manager.serving.wait()
        self._site = self._balancer.sites[before] if len(self._balancer.sites) > before else None

    def calm(self) -> None:
        """No more faults."""
        self._is_disturbed = False
        if self._faulty is not None:
            self._faulty.clear()

    async def freeze(self, seconds: float) -> None:
        """It decides and writes nothing, and answers nobody; then it goes on as if no time had passed. A leader that
        could not renew its lease sends nothing more, and ends."""
        async with self._changing:
            if self._site is None or self._transport is None:
                return
            thawed = asyncio.Event()
            self._balancer.frozen[id(self._site)] = self._transport.thawed = thawed
            loses_lease = self._role is Role.ALL and seconds >= RENEW_DEADLINE
            if loses_lease and not self._is_fenced:
                await self._with_successor(seconds, thawed)
                return
            await asyncio.sleep(seconds)
            self._thaw(thawed, is_fenced=loses_lease)
            if loses_lease:
                await self.kill()
                await self.start()

    def _thaw(self, thawed: asyncio.Event, *, is_fenced: bool) -> None:
        assert self._transport is not None
        self._balancer.frozen.pop(id(self._site), None)
        self._transport.is_fenced = is_fenced
        self._transport.thawed = None
        thawed.set()

    async def _with_successor(self, seconds: float, thawed: asyncio.Event) -> None:
        """Another leader takes over, and this one does not notice for a while."""
        successor = Replica(
            self._cluster,
            self._balancer,
            Role.ALL,
            self._random,
            features=self._features,
            faults=self._faults,
            options=self._options,
            is_fenced=False,
            clock=self._clock,
        )
        successor._is_disturbed = self._is_disturbed
        await asyncio.sleep(RENEW_DEADLINE)
        await successor.start()
        await asyncio.sleep(seconds - RENEW_DEADLINE)
        self._thaw(thawed, is_fenced=False)
        await asyncio.sleep(self._random.uniform(1, 5))
        await self.kill()
        self._site, self._running = successor._site, successor._running
        self._transport, self._faulty = successor._transport, successor._faulty

    async def restart(self, pause: float) -> None:
        async with self._changing:
            await self.kill()
            await asyncio.sleep(pause)
            await self.start()

    async def kill(self) -> None:
        if self._site in self._balancer.sites:
            self._balancer.sites.remove(self._site)
        if self._faulty is not None:
            self.disturbed += len(self._faulty.log)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
