"""The transport over HTTP: aiohttp, kept-alive connections, one connection per watch.

It never repeats a request by itself, except once with other credentials after a 401, which says that the server did
nothing. `TransportError.sent` tells the layer above what else is safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import platform
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import NoReturn, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from kruise.machinery.client import tls
from kruise.machinery.client.config import CertificateError, ClusterConfig
from kruise.machinery.client.credentials import Credentials, Identity
from kruise.machinery.client.errors import BadAnswerError, RequestTimeoutError, TransportError, from_response
from kruise.machinery.client.lines import LineSplitter
from kruise.machinery.client.requests import Query, Request, Verb
from kruise.machinery.client.sockets import Sockets
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import Clock, RealClock

DEFAULT_USER_AGENT = f"kruise ({platform.system().lower()}/{platform.machine()})"
# The API server gives up after 60 s by itself, and its answer says more than ours would.
DEFAULT_TIMEOUT = 65.0
CONNECT_TIMEOUT = 10.0
# The API server closes idle connections after 90 s: ours go first, so that no request meets a closing connection.
KEEP_ALIVE = 60.0
# A watch ends by itself after its timeoutSeconds; one that is silent for that long and then some is dead.
WATCH_GRACE = 30.0
READ_BUFFER = 256 * 1024
_PATH_SAFE = "/:@!$&'()*+,;="
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._:-]*").fullmatch

T = TypeVar("T")


class HttpTransport:
    """`Transport` to the API server of `config`."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        clock: Clock | None = None,
        user_agent: str = DEFAULT_USER_AGENT,
        timeout: float = DEFAULT_TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
        credentials: Credentials | None = None,
    ) -> None:
        self.config = config
        self._clock = clock or RealClock()
        self._user_agent = user_agent
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._credentials = credentials or Credentials(config, clock=self._clock)
        self._base = "http://localhost" if config.unix_socket else config.url
        self._proxy = URL(config.proxy_url) if config.proxy_url else None
        self._server_hostname = config.tls_server_name or None
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()
        self._headers: dict[tuple[str, str, str], CIMultiDict[str]] = {}
        self._headers_of: Identity | None = None

    async def send(self, request: Request) -> Response:
        timeout = self._timeout if request.timeout is None else request.timeout
        # One deadline for all of it: a caller who stopped waiting counts on the request not going out later.
        deadline = asyncio.get_running_loop().time() + timeout
        identity = self._credentials.ready()
        if identity is None:
            identity = await self._within(deadline, request, self._credentials.current())
            timeout = _remaining(deadline)
        answer = await self._exchange(request, identity, timeout)
        if answer.status != 401:
            return answer
        fresh = await self._within(deadline, request, self._credentials.renew(identity))
        if fresh is not None:
            answer = await self._exchange(request, fresh, _remaining(deadline))
        if answer.status == 401:
            self._explain_refusal(fresh or identity)
        return answer

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
            raise TransportError(f"{request}: the watch tore: {_text(error)}", sent=True) from error
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
        if request.resource is None:
            return URL(self._base + request.url, encoded=True)
        path = request.path
        if not _PLAIN_PATH(path):
            path = quote(path, safe=_PATH_SAFE)
        return URL(self._base + path + _query_text(request.query), encoded=True)

    def _headers_for(self, request: Request, identity: Identity) -> CIMultiDict[str]:
        if self._headers_of is not identity:
            self._headers, self._headers_of = {}, identity
        encoding = "gzip" if request.verb is Verb.LIST and not self.config.disable_compression else "identity"
        key = (request.accept, "" if request.body is None else request.content_type, encoding)
        headers = self._headers.get(key)
        if headers is None:
            headers = self._headers[key] = self._make_headers(*key, identity)
        if request.impersonate:
            headers = headers.copy()
            for name in [name for name in headers if name.lower().startswith("impersonate-")]:
                headers.popall(name, None)
            headers["Impersonate-User"] = request.impersonate
        return headers

    def _make_headers(self, accept: str, content_type: str, encoding: str, identity: Identity) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept": accept, "Accept-Encoding": encoding, "User-Agent": self._user_agent})
        if content_type:
            headers["Content-Type"] = content_type
        if identity.authorization:
            headers["Authorization"] = identity.authorization
        who = self.config.impersonation
        if who.user:
            headers["Impersonate-User"] = who.user
            if who.uid:
                headers["Impersonate-Uid"] = who.uid
            for group in who.groups:
                headers.add("Impersonate-Group", group)
            for name, values in who.extra:
                for value in values:
                    headers.add(f"Impersonate-Extra-{quote(name, safe='')}", value)
        return headers

    def _fail(self, error: BaseException, request: Request, identity: Identity) -> NoReturn:
        where = f"{request} at {self._base}"
        distrust = _distrust(error)
        if distrust:
            raise CertificateError(f"{where}: {distrust} {self._expired(identity)}".rstrip()) from error
        if isinstance(error, _TooLateError):
            raise RequestTimeoutError(f"{where}: its time was over before it could be sent", sent=False) from error
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            raise RequestTimeoutError(f"{where}: no connection could be made in time", sent=False) from error
        if isinstance(error, TimeoutError):
            raise RequestTimeoutError(f"{where}: no answer came in time", sent=True) from error
        if isinstance(error, aiohttp.ClientHttpProxyError):
            text = f"the proxy {self._proxy_name()} refused: {error.status} {error.message}"
            raise TransportError(f"{where}: {text}", sent=False) from error
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            text = f"the proxy {self._proxy_name()} cannot be reached: {_text(error.os_error)}"
            raise TransportError(f"{where}: {text}", sent=False) from error
        sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL)
        # TLS 1.3 may drop a client whose certificate has expired without a word that reaches us.
        raise TransportError(f"{where}: {_text(error)} {self._expired(identity)}".rstrip(), sent=sent) from error

    def _expired(self, identity: Identity) -> str:
        return tls.expired(self.config, identity.certificate, self._clock.now())

    def _proxy_name(self) -> str:
        return str(self._proxy.with_user(None)) if self._proxy is not None else ""

    def _explain_refusal(self, identity: Identity) -> None:
        """Most API servers take an expired client certificate for no identity at all and say 401 without a reason."""
        if identity.certificate and not identity.authorization:
            expired = self._expired(identity)
            if expired:
                raise CertificateError(f"{self._base} refused us: {expired}")

    async def _within(self, deadline: float, request: Request, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout_at(deadline):
                return await work
        except TimeoutError as error:
            raise RequestTimeoutError(f"{request} at {self._base}: not ready in time", sent=False) from error


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


@functools.lru_cache(maxsize=256)
def _query_text(query: Query) -> str:
    """Writes repeat the same few parameters; encoding them costs more than finding them again."""
    return f"?{urlencode(query)}" if query else ""


@functools.lru_cache(maxsize=64)
def _timeouts(total: float, connect: float) -> aiohttp.ClientTimeout:
    # Connecting ends a little earlier than the whole, so that a timeout always tells whether anything was sent. No
    # rounding up to whole seconds: a leader counts on its deadlines.
    return aiohttp.ClientTimeout(total=total, connect=min(connect, total * 0.9), ceil_threshold=float("inf"))


def _remaining(deadline: float) -> float:
    return max(deadline - asyncio.get_running_loop().time(), 0.001)


def _distrust(error: BaseException | None) -> str:
    """What TLS has against a certificate, ours or theirs; empty when the failure is another one."""
    while error is not None:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            error = error.certificate_error
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"the server's certificate is not trusted: {error.verify_message} "
                "Check certificate-authority, tls-server-name and the server's certificate."
            )
        reason = getattr(error, "reason", None) if isinstance(error, ssl.SSLError) else None
        if reason and "ALERT" in reason and "CERT" in reason:
            # TLS 1.3 refuses a client's certificate after the handshake: it looks like an answer, but nothing was read.
            return f"the server refused the client certificate: {reason}."
        error = error.__cause__ or error.__context__
    return ""


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
