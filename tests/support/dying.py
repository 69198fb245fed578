"""A manager in a local world that dies at one of its writes: before the server had it, or before it heard the answer.
The next one starts a moment later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import Any

from kruise.kinds import features
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import run_virtual
from tests.support.world import LocalWorld, local_world

ABSENT = 2.0
"""Seconds without a manager."""
_NOT_COUNTED = ("events", "leases")


class Mortal:
    """The way of a manager to the API. `dies_at`: the number of the write at which it dies; None: it lives."""

    def __init__(self, inner: InProcessTransport, dies_at: int | None, *, heard: bool) -> None:
        self._inner = inner
        self._dies_at = dies_at
        self._heard = heard
        self.writes = 0
        self.is_counted = False
        """What a manager writes when it starts is not what a story is about."""
        self.died = asyncio.Event()

    async def send(self, request: Request) -> Response:
        resource = request.resource
        if not (self.is_counted and request.verb.writes and resource and resource.plural not in _NOT_COUNTED):
            return await self._inner.send(request)
        number, self.writes = self.writes, self.writes + 1
        if number != self._dies_at:
            return await self._inner.send(request)
        if self._heard:
            await self._inner.send(request)
        self.died.set()
        forever: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        return await forever

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def play(
    story: Callable[[LocalWorld], Awaitable[None]],
    dies_at: int | None = None,
    *,
    kinds: Collection[str],
    heard: bool = True,
    **options: Any,
) -> int:
    """How many writes the first manager made. `heard`: the server had the write, and only the manager does not know."""

    async def main() -> int:
        chosen = tuple(feature for feature in features() if feature.name in kinds)
        async with local_world(features=chosen, start=False, nodes=3, **options) as world:
            transport = Mortal(InProcessTransport(world.cluster.core), dies_at, heard=heard)

            async def replace() -> None:
                await transport.died.wait()
                await world.kill_manager()
                await asyncio.sleep(ABSENT)
                world.start_manager()

            world.start_manager(transport)
            replacing = asyncio.create_task(replace())
            await asyncio.sleep(1)
            transport.is_counted = True
            try:
                await story(world)
            finally:
                replacing.cancel()
            assert transport.died.is_set() is (dies_at is not None)
            return transport.writes

    return run_virtual(main())
