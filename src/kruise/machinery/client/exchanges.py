"""What every way to speak HTTP with an API server shares: addresses, headers, who we are, and what a failure means."""

from __future__ import annotations

import abc
import asyncio
import errno
import functools
import re
import ssl
import sys
from collections.abc import Awaitable
from typing import NoReturn, TypedDict, TypeVar
from urllib.parse import quote, urlencode

from kruise.machinery.client import tls
from kruise.machinery.client.config import CertificateError, ClusterConfig
from kruise.machinery.client.credentials import Credentials, Identity
from kruise.machinery.client.errors import RequestTimeoutError, TransportError
from kruise.machinery.client.requests import Query, Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import Clock, RealClock

DEFAULT_USER_AGENT = f"kruise ({sys.platform})"
# The API server gives up after 60 s by itself, and its answer says more than ours would.
DEFAULT_TIMEOUT = 65.0
CONNECT_TIMEOUT = 10.0
_PATH_SAFE = "/:@!$&'()*+,;="
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._:-]*").fullmatch

T = TypeVar("T")
Headers = list[tuple[str, str]]


class TransportOptions(TypedDict, total=False):
    """Of every transport, besides the cluster."""

    clock: Clock | None
    user_agent: str
    timeout: float
    connect_timeout: float
    credentials: Credentials | None


class Exchanges(abc.ABC):
    """Sends requests to the API server of `config`; how one is carried out is for those who inherit.

    It never repeats a request by itself, except once with other credentials after a 401, which says that the server
    did nothing. `TransportError.sent` tells the layer above what else is safe.
    """

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

    @abc.abstractmethod
    async def _exchange(self, request: Request, identity: Identity, timeout: float) -> Response:
        """Carry out one request; raises `TransportError` without an answer."""

    async def _within(self, deadline: float, request: Request, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout_at(deadline):
                return await work
        except TimeoutError as error:
            raise RequestTimeoutError(f"{request} at {self._base}: not ready in time", sent=False) from error

    # What is written

    def _target(self, request: Request) -> str:
        """Path and query, behind the server's address."""
        if request.resource is None:
            return request.url
        path = request.path
        if not _PLAIN_PATH(path):
            path = quote(path, safe=_PATH_SAFE)
        return path + _query_text(request.query)

    def _encoding(self, request: Request) -> str:
        return "gzip" if request.verb is Verb.LIST and not self.config.disable_compression else "identity"

    def _headers(
        self, accept: str, content_type: str, encoding: str, impersonate: str, user_agent: str, identity: Identity
    ) -> Headers:
        headers = [("Accept", accept), ("Accept-Encoding", encoding), ("User-Agent", user_agent or self._user_agent)]
        if content_type:
            headers.append(("Content-Type", content_type))
        if identity.authorization:
            headers.append(("Authorization", identity.authorization))
        who = self.config.impersonation
        if impersonate:
            headers.append(("Impersonate-User", impersonate))
        elif who.user:
            headers.append(("Impersonate-User", who.user))
            if who.uid:
                headers.append(("Impersonate-Uid", who.uid))
            headers += [("Impersonate-Group", group) for group in who.groups]
            for name, values in who.extra:
                headers += [(f"Impersonate-Extra-{quote(name, safe='')}", value) for value in values]
        return headers

    # What went wrong

    def _failed(self, error: BaseException, request: Request, identity: Identity, *, sent: bool) -> NoReturn:
        where = self._where(request)
        distrust = _distrust(error)
        if distrust:
            raise CertificateError(f"{where}: {distrust} {self._expired(identity)}".rstrip()) from error
        if isinstance(error, TimeoutError):
            text = "no answer came in time" if sent else "no connection could be made in time"
            raise RequestTimeoutError(f"{where}: {text}", sent=sent) from error
        if self.config.is_local_cluster and _nobody_listens(error):
            text = "connection refused. The local cluster there does not run any more: kruise up starts one"
            raise TransportError(f"{where}: {text}", sent=sent) from error
        # TLS 1.3 may drop a client whose certificate has expired without a word that reaches us.
        raise TransportError(f"{where}: {text_of(error)} {self._expired(identity)}".rstrip(), sent=sent) from error

    def _where(self, request: Request) -> str:
        return f"{request} at {self._base}"

    def _expired(self, identity: Identity) -> str:
        return tls.expired(self.config, identity.certificate, self._clock.now())

    def _explain_refusal(self, identity: Identity) -> None:
        """Most API servers take an expired client certificate for no identity at all and say 401 without a reason."""
        if identity.certificate and not identity.authorization:
            expired = self._expired(identity)
            if expired:
                raise CertificateError(f"{self._base} refused us: {expired}")


@functools.lru_cache(maxsize=256)
def _query_text(query: Query) -> str:
    """Writes repeat the same few parameters; encoding them costs more than finding them again."""
    return f"?{urlencode(query)}" if query else ""


def _remaining(deadline: float) -> float:
    return max(deadline - asyncio.get_running_loop().time(), 0.001)


def _distrust(error: BaseException | None) -> str:
    """What TLS has against a certificate, ours or theirs; empty when the failure is another one."""
    while error is not None:
        error = getattr(error, "certificate_error", error)  # as aiohttp wraps it
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


def _nobody_listens(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.ECONNREFUSED  # aiohttp's own error has the number, too


def text_of(error: BaseException) -> str:
    return str(error) or type(error).__name__
