"""What a node reaches over the network: TCP connections and HTTP requests to pods."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aiohttp

from kruise.daemon.runtime import HttpAnswer

BODY_BYTES = 10 * 1024
"""More of an answer is not read."""
USER_AGENT = "kruise-daemon"


class NodeNetwork:
    """Implements `kruise.daemon.runtime.Network`."""

    async def connect(self, host: str, port: int, seconds: float) -> None:
        async with asyncio.timeout(seconds or None):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()

    async def get(self, url: str, headers: Sequence[tuple[str, str]], seconds: float) -> HttpAnswer:
        timeout = aiohttp.ClientTimeout(total=seconds or None)
        given = {"User-Agent": USER_AGENT, "Accept": "*/*", **dict(headers)}
        connector = aiohttp.TCPConnector(ssl=False, force_close=True)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
                session.get(url, headers=given, allow_redirects=False) as answer,
            ):
                return HttpAnswer(status=answer.status, body=await answer.content.read(BODY_BYTES))
        except aiohttp.ClientError as error:
            raise OSError(str(error) or type(error).__name__) from error
