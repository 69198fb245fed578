"""The transport over HTTP: aiohttp, kept-alive connections, one connection per watch."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterator
from typing import NoReturn, Unpack

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from kruise.machinery.client.config import ClusterConfig
from kruise.machinery.client.credentials import Identity
from kruise.machinery.client.errors import BadAnswerError, RequestTimeoutError, TransportError, from_response
from kruise.machinery.client.exchanges import Exchanges, TransportOptions, text_of
from kruise.machinery.client.lines import LineSplitter
from kruise.machinery.client.requests import Request
from kruise.machinery.client.sockets import Sockets
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import Clock

# The API server closes idle connections after 90 s: ours go first, so that no request meets a closing connection.
KEEP_ALIVE = 60.0
# A watch ends by itself after its timeoutSeconds; one that is silent for that long and then some is dead.
WATCH_GRACE = 30.0
READ_BUFFER = 256 * 1024


class HttpTransport(Exchanges):
    """`Transport` to the API server of `config`."""

    def __init__(self, config: ClusterConfig, **options: Unpack[TransportOptions]) -> None:
        super().__init__(config, **options)
        self._proxy = URL(config.proxy_url) if config.proxy_url else None
        self._server_hostname = config.tls_server_name or None
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()
        self._known_headers: dict[tuple[str, str, str, str, str], CIMultiDict[str]] = {}
        self._headers_of: Identity | None = None

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
        response = await self._open(request)
        try:
            lines = self._lines(request, response)
            try:
                yield lines
            finally:
                await lines.aclose()
        finally:
            response.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            await self._sockets.close()

    async def _exchange(self, request: Request, identity: Identity, timeout: float) -> Response:
        try:
            async with self._connected().request(
                request.method,
                self._url(request),
                data=None if request.body is None else _Body(request.body, self._clock, within=timeout),
                headers=self._headers_for(request, identity),
                timeout=_timeouts(timeout, self._connect_timeout),
                ssl=identity.tls or True,
                server_hostname=self._server_hostname,
                proxy=self._proxy,
                allow_redirects=False,
            ) as response:
                return Response(response.status, await response.read(), response.headers)
        except (aiohttp.ClientError, OSError) as error:
            self._fail(error, request, identity)

    async def _open(self, request: Request) -> aiohttp.ClientResponse:
        """Open a watch: the time to open it is bounded, the time that it stays open is not."""
        timeout = self._timeout if request.timeout is None else request.timeout
        deadline = asyncio.get_running_loop().time() + timeout
        identity = await self._within(deadline, request, self._credentials.current())
        response = await self._within(deadline, request, self._begin(request, identity))
        if response.status == 401:
            response.release()
            fresh = await self._within(deadline, request, self._credentials.renew(identity))
            identity = fresh or identity
            response = await self._within(deadline, request, self._begin(request, identity))
        if response.status < 300 and not response.content_type.startswith("text/"):
            return response
        async with response:
            try:
                body = await self._within(deadline, request, response.read())
            except (aiohttp.ClientError, OSError) as error:
                self._fail(error, request, identity)
        if response.status < 400:
            text = body[:200].decode("utf-8", "replace").strip()
            raise BadAnswerError(
                f"{request}: the server answered {response.status} {response.content_type}, which no watch does: {text}"
            )
        if response.status == 401:
            self._explain_refusal(identity)
        raise from_response(response.status, body, response.headers)

    async def _begin(self, request: Request, identity: Identity) -> aiohttp.ClientResponse:
        seconds = request.parameter("timeoutSeconds")
        silence = float(seconds) + WATCH_GRACE if seconds.isdecimal() else None
        try:
            return await self._connected().request(
                request.method,
                self._url(request),
                headers=self._headers_for(request, identity),
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_timeout, sock_read=silence),
                read_bufsize=READ_BUFFER,
                ssl=identity.tls or True,
                server_hostname=self._server_hostname,
                proxy=self._proxy,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            self._fail(error, request, identity)

    async def _lines(self, request: Request, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        splitter = LineSplitter()
        feed, read = splitter.feed, response.content.readany
        try:
            while chunk := await read():
                for line in feed(chunk):
                    yield line
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(f"{request}: the watch tore: {text_of(error)}", sent=True) from error
        if splitter.rest:
            raise TransportError(f"{request}: the watch ended in the middle of a line", sent=True)

    def _connected(self) -> aiohttp.ClientSession:
        """Made on first use, because it belongs to the running loop."""
        if self._session is None:
            connector: aiohttp.BaseConnector
            if self.config.unix_socket:
                connector = aiohttp.UnixConnector(self.config.unix_socket, limit=0, keepalive_timeout=KEEP_ALIVE)
            else:
                connector = aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=KEEP_ALIVE, socket_factory=self._sockets.make
                )
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
            # aiohttp repeats PUT and DELETE by itself on a torn kept-alive connection. That would hide from the
            # caller that the first one may have been carried out.
            self._session._retry_connection = False
        return self._session

    def _url(self, request: Request) -> URL:
        return URL(self._base + self._target(request), encoded=True)

    def _headers_for(self, request: Request, identity: Identity) -> CIMultiDict[str]:
        if self._headers_of is not identity:
            self._known_headers, self._headers_of = {}, identity
        content_type = "" if request.body is None else request.content_type
        key = (request.accept, content_type, self._encoding(request), request.impersonate, request.user_agent)
        headers = self._known_headers.get(key)
        if headers is None:
            headers = self._known_headers[key] = CIMultiDict(self._headers(*key, identity))
        return CIMultiDict((*headers.items(), *request.headers)) if request.headers else headers

    def _fail(self, error: BaseException, request: Request, identity: Identity) -> NoReturn:
        where = self._where(request)
        if isinstance(error, _TooLateError):
            raise RequestTimeoutError(f"{where}: its time was over before it could be sent", sent=False) from error
        if isinstance(error, aiohttp.ClientHttpProxyError):
            text = f"the proxy {self._proxy_name()} refused: {error.status} {error.message}"
            raise TransportError(f"{where}: {text}", sent=False) from error
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            text = f"the proxy {self._proxy_name()} cannot be reached: {text_of(error.os_error)}"
            raise TransportError(f"{where}: {text}", sent=False) from error
        unsent = aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError | aiohttp.InvalidURL
        self._failed(error, request, identity, sent=not isinstance(error, unsent))

    def _proxy_name(self) -> str:
        return str(self._proxy.with_user(None)) if self._proxy is not None else ""


class _TooLateError(TimeoutError):
    pass


class _Body(aiohttp.BytesPayload):
    """A body that does not leave after its time.

    A process may be frozen while a connection is made. When it goes on, the connection may be ready before any timer is
    looked at, and a leader of old would write after another one took over.
    """

    def __init__(self, value: bytes, clock: Clock, *, within: float) -> None:
        super().__init__(value)
        self._clock = clock
        self._until = clock.monotonic() + within

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        if self._clock.monotonic() >= self._until:
            raise _TooLateError
        await super().write_with_length(writer, content_length)


@functools.lru_cache(maxsize=64)
def _timeouts(total: float, connect: float) -> aiohttp.ClientTimeout:
    # Connecting ends a little earlier than the whole, so that a timeout always tells whether anything was sent. No
    # rounding up to whole seconds: a leader counts on its deadlines.
    return aiohttp.ClientTimeout(total=total, connect=min(connect, total * 0.9), ceil_threshold=float("inf"))
