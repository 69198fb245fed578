"""What a node reaches over the network: TCP connections and HTTP requests to pods."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Sequence
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from kruise.daemon.runtime import HttpAnswer
from kruise.machinery.client import http1

BODY_BYTES = 10 * 1024
"""More of an answer is not read."""
MOST_REDIRECTS = 10
USER_AGENT = "kruise-daemon"
_AS_IT_IS = "/%:@!$&'()*+,;=~-._?"
_REDIRECTS = (301, 302, 303, 307, 308)

Headers = list[tuple[str, str]]


class NodeNetwork:
    """Implements `kruise.daemon.runtime.Network`."""

    async def connect(self, host: str, port: int, seconds: float) -> None:
        async with asyncio.timeout(seconds or None):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()

    async def get(self, url: str, headers: Sequence[tuple[str, str]], seconds: float) -> HttpAnswer:
        names = {name.lower() for name, _ in headers}
        usual = (("User-Agent", USER_AGENT), ("Accept", "*/*"))
        given = [*headers, *((name, value) for name, value in usual if name.lower() not in names)]
        try:
            async with asyncio.timeout(seconds or None):
                return await _followed(url, given)
        except ValueError as error:  # of a header, a name or a port
            raise OSError(str(error)) from error


async def _followed(url: str, headers: Headers) -> HttpAnswer:
    """Redirects are followed within the host, as by the kubelet; one that leaves it is the answer (PRB-6)."""
    host = urlsplit(url).hostname
    for _ in range(MOST_REDIRECTS):
        status, place, body = await _asked(urlsplit(url), headers)
        target = urljoin(url, place)
        if status not in _REDIRECTS or not place or urlsplit(target).hostname != host:
            return HttpAnswer(status=status, body=body)
        if urlsplit(place).netloc:
            headers = [(name, value) for name, value in headers if name.lower() != "host"]  # it says whom it means
        url = target
    raise OSError(f'Get "{url}": stopped after {MOST_REDIRECTS} redirects')


async def _asked(url: SplitResult, headers: Headers) -> tuple[int, str, bytes]:
    """Status, where a redirect leads to, and the beginning of the body."""
    is_safe = url.scheme == "https"
    connection = await http1.connect(
        url.hostname or "", url.port or (443 if is_safe else 80), tls=_trusting() if is_safe else None
    )
    try:
        query = f"?{quote(url.query, safe=_AS_IT_IS)}" if url.query else ""
        target = f"{quote(url.path, safe=_AS_IT_IS) or '/'}{query}"
        is_named = any(name.lower() == "host" for name, _ in headers)
        host = [] if is_named else [("Host", url.netloc.rpartition("@")[2])]
        connection.send("GET", target, [*host, *headers, ("Connection", "close")])
        head = await connection.head()
        body = b""
        async for piece in connection.pieces(head):
            body += piece
            if len(body) >= BODY_BYTES:
                break
        return head.status, head.headers.get("location", ""), body[:BODY_BYTES]
    finally:
        connection.abort()


@functools.cache
def _trusting() -> ssl.SSLContext:
    """Pods have whatever certificates they like."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
