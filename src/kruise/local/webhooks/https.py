"""Webhooks over HTTPS, as an API server calls them: by URL or by service, trusting only the entry's own CA bundle."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Callable, Mapping
from typing import Final

import aiohttp

from kruise.api.core.field_errors import go_quote
from kruise.local.webhooks.calling import DEADLINE, CallError, Target, failed_to_call, refused
from kruise.machinery.client.sockets import Sockets

MAX_ANSWER: Final = 256 * 1024 * 1024
_KEEP_ALIVE: Final = 90.0
_CONTEXTS: Final = 64

Addresses = Mapping[str, str] | Callable[[str, str, int], str | None]
"""Where services are: by `namespace/name` as `host:port`, or a function of namespace, name and port."""


class HttpsCaller:
    """Connections are kept open between calls. Close it at the end."""

    def __init__(self, services: Addresses | None = None) -> None:
        self._services: Addresses = services if services is not None else {}
        self._contexts: dict[bytes, ssl.SSLContext] = {}
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()

    async def post(self, target: Target, body: bytes, timeout: float | None) -> bytes:
        address = self._address(target, timeout)
        query = target.url(timeout).removeprefix(target.base)
        headers = {"Content-Type": "application/json", "Accept": "application/json, */*", "User-Agent": "kruise-local"}
        if target.service is not None:
            headers["Host"] = f"{target.service.host}:{target.service.port}"
        try:
            async with (
                asyncio.timeout(timeout),
                self._opened().post(
                    f"{address}{query}",
                    data=body,
                    headers=headers,
                    ssl=self._context(target.bundle),
                    server_hostname=target.service.host if target.service is not None else None,
                    allow_redirects=False,
                ) as answer,
            ):
                said = await answer.read()
                status = answer.status
        except TimeoutError as error:
            raise failed_to_call(target, timeout, DEADLINE) from error
        except (aiohttp.ClientError, OSError) as error:
            raise failed_to_call(target, timeout, _why(error, address)) from error
        if not 200 <= status <= 206:
            raise refused(status, said)
        return said

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
            await self._sockets.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE, socket_factory=self._sockets.make)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=True
            )
        return self._session

    def _address(self, target: Target, timeout: float | None) -> str:
        service = target.service
        if service is None:
            return target.base
        if callable(self._services):
            found = self._services(service.namespace, service.name, service.port)
        else:
            found = self._services.get(str(service))
        if found is None:
            raise failed_to_call(target, timeout, f"service {go_quote(service.name)} not found")
        return f"https://{found}"

    def _context(self, bundle: bytes) -> ssl.SSLContext:
        known = self._contexts.get(bundle)
        if known is not None:
            return known
        try:
            context = ssl.create_default_context(cadata=bundle.decode("ascii") if bundle else None)
        except (ssl.SSLError, ValueError) as error:
            text = "unable to load root certificates: unable to parse bytes as PEM block"
            raise CallError(f"could not get REST client: {text}") from error
        if len(self._contexts) >= _CONTEXTS:
            # Bundles change when certificates are renewed; old ones are of no more use.
            self._contexts.clear()
        self._contexts[bundle] = context
        return context


def _why(error: Exception, address: str) -> str:
    """What happened, in the words of Go's HTTP client where it is one of the usual things."""
    place = address.partition("://")[2]
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate_trouble(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno in (errno.ECONNREFUSED, None):
        return f"dial tcp {place}: connect: connection refused"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error)


def _certificate_trouble(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        known = {
            10: "x509: certificate has expired or is not yet valid",
            18: "x509: certificate signed by unknown authority",
            19: "x509: certificate signed by unknown authority",
            20: "x509: certificate signed by unknown authority",
        }
        return f"tls: failed to verify certificate: {known.get(error.verify_code, f'x509: {error.verify_message}')}"
    return f"tls: failed to verify certificate: {error}"
