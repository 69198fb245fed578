"""The transport of programs that must stay small: HTTP by `http1`, kept-alive connections, one connection per watch.

What they rarely need (proxies) is left to `HttpTransport`, which is loaded then.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Unpack
from urllib.parse import urlsplit

from kruise.machinery.client import http1
from kruise.machinery.client.config import ClusterConfig
from kruise.machinery.client.credentials import Identity
from kruise.machinery.client.errors import BadAnswerError, RequestTimeoutError, TransportError, from_response
from kruise.machinery.client.exchanges import Exchanges, TransportOptions, text_of
from kruise.machinery.client.http1 import Connection, Head
from kruise.machinery.client.lines import LineSplitter
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response

if TYPE_CHECKING:
    from kruise.machinery.client.http import HttpTransport

# The API server closes idle connections after 90 s: ours go first, so that no request meets a closing connection.
KEEP_SECONDS = 60.0
# A watch ends by itself after its timeoutSeconds; one that is silent for that long and then some is dead.
WATCH_GRACE = 30.0
_GZIP = 31
_FAILURES = (OSError, zlib.error, ValueError)  # ValueError: a header, a name


class SlimTransport(Exchanges):
    """`Transport` to the API server of `config`."""

    def __init__(self, config: ClusterConfig, **options: Unpack[TransportOptions]) -> None:
        super().__init__(config, **options)
        self._options: TransportOptions = {**options, "clock": self._clock, "credentials": self._credentials}
        self._server = urlsplit(self._base)
        self._idle: list[tuple[Identity, Connection]] = []
        self._busy: set[Connection] = set()
        self._whole: HttpTransport | None = None

    async def send(self, request: Request) -> Response:
        return await (self._other().send(request) if self.config.proxy_url else super().send(request))

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._other().stream(request) if self.config.proxy_url else self._stream(request)

    async def close(self) -> None:
        for connection in (*self._busy, *(one for _, one in self._idle)):
            connection.abort()
        self._idle.clear()
        await http1.settled()
        if self._whole is not None:
            await self._whole.close()

    def _other(self) -> HttpTransport:
        if self._whole is None:
            from kruise.machinery.client.http import HttpTransport

            self._whole = HttpTransport(self.config, **self._options)
        return self._whole

    # One request

    async def _exchange(self, request: Request, identity: Identity, timeout: float) -> Response:
        until = self._clock.monotonic() + timeout
        try:
            async with asyncio.timeout(timeout):
                connection = await self._connected(request, identity, min(self._connect_timeout, timeout * 0.9))
                with self._held(connection):
                    head = await self._asked(connection, request, identity, until)
                    body = await connection.body(head)
                    if head.headers.get("content-encoding") == "gzip":
                        body = zlib.decompress(body, _GZIP)
        except _FAILURES as error:
            self._failed(error, request, identity, sent=True)
        if connection.is_free:
            connection.used = self._clock.monotonic()
            self._idle.append((identity, connection))
        else:
            connection.abort()
        return Response(head.status, body, head.headers)

    @contextlib.contextmanager
    def _held(self, connection: Connection) -> Iterator[None]:
        """Who gives up in the middle leaves nothing behind."""
        self._busy.add(connection)
        try:
            yield
        except BaseException:
            connection.abort()
            raise
        finally:
            self._busy.discard(connection)

    async def _connected(self, request: Request, identity: Identity, timeout: float) -> Connection:
        """A connection that waits for work, or a new one. Nothing was sent where there is none."""
        now = self._clock.monotonic()
        while self._idle:
            whose, connection = self._idle.pop()
            if whose.tls is identity.tls and now - connection.used < KEEP_SECONDS and connection.is_open:
                return connection
            connection.abort()
        tls = identity.tls
        if tls is None and self._server.scheme == "https":
            tls = ssl.create_default_context()
        host = self._server.hostname or ""
        port = self._server.port or (443 if tls is not None else 80)
        try:
            async with asyncio.timeout(timeout):
                return await http1.connect(
                    host, port, tls=tls, server_name=self.config.tls_server_name, path=self.config.unix_socket
                )
        except _FAILURES as error:
            self._failed(error, request, identity, sent=False)

    async def _asked(self, connection: Connection, request: Request, identity: Identity, until: float) -> Head:
        if request.body is not None and self._clock.monotonic() >= until:
            # A process may be frozen while a connection is made; a leader of old would write after another took over.
            text = "its time was over before it could be sent"
            raise RequestTimeoutError(f"{self._where(request)}: {text}", sent=False)
        content_type = "" if request.body is None else request.content_type
        encoding = self._encoding(request)
        headers = self._headers(
            request.accept, content_type, encoding, request.impersonate, request.user_agent, identity
        )
        host = self._server.netloc.rpartition("@")[2]
        target = self._server.path + self._target(request)
        try:
            connection.send(request.method, target, [("Host", host), *headers, *request.headers], request.body)
        except ValueError as error:
            self._failed(error, request, identity, sent=False)
        return await connection.head()

    # A watch

    @contextlib.asynccontextmanager
    async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
        connection, head = await self._open(request)
        self._busy.add(connection)
        try:
            lines = self._lines(request, connection, head)
            try:
                yield lines
            finally:
                await lines.aclose()
        finally:
            self._busy.discard(connection)
            connection.abort()

    async def _open(self, request: Request) -> tuple[Connection, Head]:
        """The time to open it is bounded, the time that it stays open is not."""
        timeout = self._timeout if request.timeout is None else request.timeout
        deadline = asyncio.get_running_loop().time() + timeout
        identity = await self._within(deadline, request, self._credentials.current())
        connection, head = await self._within(deadline, request, self._begin(request, identity, timeout))
        if head.status == 401:
            connection.abort()
            fresh = await self._within(deadline, request, self._credentials.renew(identity))
            identity = fresh or identity
            connection, head = await self._within(deadline, request, self._begin(request, identity, timeout))
        kind = head.headers.get("content-type", "")
        if head.status < 300 and not kind.startswith("text/"):
            return connection, head
        try:
            body = await self._within(deadline, request, connection.body(head))
        except _FAILURES as error:
            self._failed(error, request, identity, sent=True)
        finally:
            connection.abort()
        if head.status < 400:
            text = body[:200].decode("utf-8", "replace").strip()
            plain = kind.partition(";")[0]
            raise BadAnswerError(f"{request}: the server answered {head.status} {plain}, which no watch does: {text}")
        if head.status == 401:
            self._explain_refusal(identity)
        raise from_response(head.status, body, head.headers)

    async def _begin(self, request: Request, identity: Identity, timeout: float) -> tuple[Connection, Head]:
        connection = await self._connected(request, identity, min(self._connect_timeout, timeout))
        with self._held(connection):
            try:
                until = self._clock.monotonic() + timeout
                return connection, await self._asked(connection, request, identity, until)
            except _FAILURES as error:
                self._failed(error, request, identity, sent=True)

    async def _lines(self, request: Request, connection: Connection, head: Head) -> AsyncGenerator[bytes, None]:
        seconds = request.parameter("timeoutSeconds")
        silence = float(seconds) + WATCH_GRACE if seconds.isdecimal() else None
        splitter = LineSplitter()
        pieces = connection.pieces(head)
        try:
            while True:
                async with asyncio.timeout(silence):
                    piece = await anext(pieces, b"")
                if not piece:
                    break
                for line in splitter.feed(piece):
                    yield line
        except OSError as error:
            raise TransportError(f"{request}: the watch tore: {text_of(error)}", sent=True) from error
        finally:
            await pieces.aclose()
        if splitter.rest:
            raise TransportError(f"{request}: the watch ended in the middle of a line", sent=True)
