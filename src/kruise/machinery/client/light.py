"""The transport of short commands: the standard library's HTTP, in threads.

Loading aiohttp takes longer than most commands take for all the rest. What a command rarely needs (watches, proxies,
sockets of this machine) is left to `HttpTransport`, which is loaded then.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import http.client
import select
import socket
import ssl
import threading
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Unpack
from urllib.parse import urlsplit

from kruise.machinery.client.config import ClusterConfig
from kruise.machinery.client.credentials import Identity
from kruise.machinery.client.exchanges import Exchanges, Headers, TransportOptions
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response

if TYPE_CHECKING:
    from kruise.machinery.client.http import HttpTransport

_GZIP = 31
_KEEP_SECONDS = 30.0
_FAILURES = (OSError, http.client.HTTPException, zlib.error, ValueError)  # ValueError: a header, a name


class LightTransport(Exchanges):
    """`Transport` to the API server of `config`, for programs that live a second or two."""

    def __init__(self, config: ClusterConfig, **options: Unpack[TransportOptions]) -> None:
        super().__init__(config, **options)
        self._options: TransportOptions = {**options, "clock": self._clock, "credentials": self._credentials}
        self._server = urlsplit(self._base)
        self._busy: set[_Connection] = set()
        self._idle: list[_Connection] = []
        self._whole: HttpTransport | None = None

    async def send(self, request: Request) -> Response:
        if self.config.proxy_url or self.config.unix_socket:
            return await self._other().send(request)
        return await super().send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._other().stream(request)

    async def close(self) -> None:
        for connection in self._busy:
            connection.abandon()
        while self._idle:
            self._idle.pop().close()
        if self._whole is not None:
            await self._whole.close()

    def _other(self) -> HttpTransport:
        if self._whole is None:
            from kruise.machinery.client.http import HttpTransport

            self._whole = HttpTransport(self.config, **self._options)
        return self._whole

    async def _exchange(self, request: Request, identity: Identity, timeout: float) -> Response:
        headers = self._headers(
            request.accept,
            "" if request.body is None else request.content_type,
            self._encoding(request),
            request.impersonate,
            request.user_agent,
            identity,
        )
        headers += request.headers
        connection = self._free(identity, timeout)
        target = self._server.path + self._target(request)
        work = functools.partial(connection.exchange, request.method, target, headers, request.body)
        self._busy.add(connection)
        connection.is_at_work = True
        try:
            async with asyncio.timeout(timeout):
                answer = await _in_thread(work)
        except BaseException as error:
            # Also where it was given up: the thread must not wait for an answer that nobody wants.
            connection.abandon()
            if isinstance(error, _FAILURES):
                self._failed(error, request, identity, sent=connection.is_ready)
            raise
        finally:
            self._busy.discard(connection)
        if connection.sock is not None:
            connection.used = self._clock.monotonic()
            self._idle.append(connection)
        return answer

    def _free(self, identity: Identity, timeout: float) -> _Connection:
        """A connection that waits for work, or a new one."""
        now = self._clock.monotonic()
        while self._idle:
            connection = self._idle.pop()
            if connection.context is identity.tls and now - connection.used < _KEEP_SECONDS and connection.is_quiet():
                return connection
            connection.close()
        return _Connection(
            self._server.hostname or "",
            self._server.port,
            identity.tls,
            self.config.tls_server_name or self._server.hostname or "",
            # A little less than the whole time, so that a timeout always tells whether anything was sent.
            timeout=min(self._connect_timeout, timeout * 0.9),
        )


class _Connection(http.client.HTTPConnection):
    """One connection, which one thread at a time works on."""

    def __init__(
        self, host: str, port: int | None, context: ssl.SSLContext | None, server_name: str, *, timeout: float
    ) -> None:
        self.default_port = http.client.HTTPS_PORT if context is not None else http.client.HTTP_PORT
        super().__init__(host, port or self.default_port, timeout=timeout)
        self.context = context
        self.is_ready = False
        """Whether a request may have reached the server."""
        self.used = 0.0
        self.is_at_work = False
        """Whether a thread has it."""
        self._server_name = server_name
        self._is_abandoned = False

    def connect(self) -> None:
        super().connect()
        if self.context is not None:
            self.sock = self.context.wrap_socket(self.sock, server_hostname=self._server_name)
        if self._is_abandoned:
            raise ConnectionAbortedError("given up while it was made")
        self.sock.settimeout(None)  # from here on the caller's own time counts
        self.is_ready = True

    def exchange(self, method: str, target: str, headers: Headers, body: bytes | None) -> Response:
        try:
            self.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers:
                self.putheader(name, value.encode())
            if body is not None:
                self.putheader("Content-Length", str(len(body)))
            self.endheaders(body)
            with self.getresponse() as answer:
                found = answer.read()
            told = {name.lower(): value for name, value in answer.getheaders()}
            if told.get("content-encoding") == "gzip":
                found = zlib.decompress(found, _GZIP)
            return Response(answer.status, found, told)
        except BaseException:
            self.close()
            raise
        finally:
            self.is_at_work = False
            if self._is_abandoned:  # while the answer was complete already: nobody else will close it
                self.close()

    def is_quiet(self) -> bool:
        """Whether the server has not ended it meanwhile: that would be something to read."""
        return not select.select([self.sock], [], [], 0)[0]

    def abandon(self) -> None:
        """From another thread: the one that works on it wakes up with an error, and closes it."""
        self._is_abandoned = True
        sock = self.sock
        if not self.is_at_work:
            self.close()
        elif sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


async def _in_thread(work: Callable[[], Response]) -> Response:
    """In a thread of its own, which nobody waits for at the end: it may hang in a name server or a far firewall."""
    done: concurrent.futures.Future[Response] = concurrent.futures.Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name="kruise-request").start()
    return await asyncio.wrap_future(done)
