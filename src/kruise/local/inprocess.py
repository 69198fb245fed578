"""The transport that goes straight into an API core: no sockets, no threads, the same each time.

Requests and answers are bytes as over HTTP, so everything above the transport runs unchanged. Each request gives way
to other tasks once, as if it travelled. For tests the connection can be cut and the server can be taken down.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager

from kruise.local.apicore.core import ApiCore
from kruise.local.apicore.errors import StatusError
from kruise.local.apicore.serving import open_watch, refusal, respond
from kruise.local.apicore.watching import Watch
from kruise.machinery.client.errors import RequestTimeoutError, TransportError, from_response
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from kruise.machinery.codec import encode


class InProcessTransport:
    """`kruise.machinery.client.transport.Transport` over an `ApiCore`. Several may share one core."""

    def __init__(self, core: ApiCore, *, managed_fields: bool = False) -> None:
        """`managed_fields`: objects come with the owners of their fields, which our own clients never look at."""
        self.core = core
        self._with_owners = managed_fields
        self._watches: set[Watch] = set()
        self._down = ""

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(0)
        self._check_up()
        if request.raw_path in ("/api", "/apis"):
            return self._discovery(request.raw_path)
        if request.timeout is None:
            return await respond(self.core, request, with_owners=self._with_owners)
        try:
            async with asyncio.timeout(request.timeout):
                return await respond(self.core, request, with_owners=self._with_owners)
        except TimeoutError as error:
            raise RequestTimeoutError(f"{request}: no answer within {request.timeout} s", sent=True) from error

    def _discovery(self, path: str) -> Response:
        from kruise.local.server.discovery import Discovery  # few ask, and the server brings much with it

        return Response(200, encode(Discovery(self.core.registry, "").aggregated(core=path == "/api")))

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(request)

    @contextlib.asynccontextmanager
    async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes]]:
        await asyncio.sleep(0)
        self._check_up()
        try:
            watch = open_watch(self.core, request, with_owners=self._with_owners)
        except StatusError as error:
            answer = refusal(error)
            raise from_response(answer.status, answer.body, answer.headers) from error
        self._watches.add(watch)
        try:
            yield watch
        finally:
            self._watches.discard(watch)
            watch.close()

    async def close(self) -> None:
        self.cut_watches("the transport was closed")

    # For tests

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    def cut_watches(self, why: str = "the connection was reset") -> int:
        """Tear every open watch, as a broken connection does: lines that were not read yet are lost."""
        for watch in self._watches:
            watch.tear(TransportError(why, sent=True))
        return len(self._watches)

    def end_watches(self) -> None:
        """Close every open watch in order, as a server does that shuts down or has waited long enough."""
        for watch in self._watches:
            watch.end()

    def take_down(self, why: str = "connection refused") -> None:
        """The server is gone: watches tear, and nothing gets through until `bring_up`. What was stored stays."""
        self._down = why
        self.cut_watches(why)

    def bring_up(self) -> None:
        self._down = ""

    def _check_up(self) -> None:
        if self._down:
            raise TransportError(self._down, sent=False)
