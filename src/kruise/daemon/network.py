"""What a node reaches over the network: TCP connections and HTTP requests to pods."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

import aiohttp
from multidict import CIMultiDict

from kruise.daemon.runtime import HttpAnswer

BODY_BYTES = 10 * 1024
"""More of an answer is not read."""
MOST_REDIRECTS = 10
USER_AGENT = "kruise-daemon"
_REDIRECTS = (301, 302, 303, 307, 308)


class NodeNetwork:
    """Implements `kruise.daemon.runtime.Network`."""

    async def connect(self, host: str, port: int, seconds: float) -> None:
        async with asyncio.timeout(seconds or None):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()

    async def get(self, url: str, headers: Sequence[tuple[str, str]], seconds: float) -> HttpAnswer:
        given = CIMultiDict(headers)
        given.setdefault("User-Agent", USER_AGENT)
        given.setdefault("Accept", "*/*")
        connector = aiohttp.TCPConnector(ssl=False, force_close=True)
        no_limit = aiohttp.ClientTimeout(total=None)
        try:
            async with (
                asyncio.timeout(seconds or None),
                # What the pod sends is what is shown: nothing is packed on the way.
                aiohttp.ClientSession(
                    connector=connector, timeout=no_limit, skip_auto_headers=("Accept-Encoding",)
                ) as session,
            ):
                return await _followed(session, url, given)
        except (aiohttp.ClientError, ValueError) as error:
            raise OSError(str(error) or type(error).__name__) from error


async def _followed(session: aiohttp.ClientSession, url: str, headers: CIMultiDict[str]) -> HttpAnswer:
    """Redirects are followed within the host, as by the kubelet; one that leaves it is the answer (PRB-6)."""
    host = urlsplit(url).hostname
    for _ in range(MOST_REDIRECTS):
        async with session.get(url, headers=headers, allow_redirects=False) as answer:
            place = answer.headers.get("Location", "")
            target = urljoin(url, place)
            if answer.status not in _REDIRECTS or not place or urlsplit(target).hostname != host:
                return HttpAnswer(status=answer.status, body=await _body(answer))
        if urlsplit(place).netloc:
            headers.pop("Host", None)  # the redirect says whom it means
        url = target
    raise OSError(f'Get "{url}": stopped after {MOST_REDIRECTS} redirects')


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """The beginning of it, in however many pieces it comes."""
    body = b""
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) >= BODY_BYTES:
            break
    return body[:BODY_BYTES]
