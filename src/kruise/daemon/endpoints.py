"""`/healthz` and `/metrics` of the daemon (DMN-90, DMN-91): a few lines of HTTP, since it runs on every node."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

Answer = tuple[int, str, bytes]
"""Status, content type, body."""
Handlers = dict[str, Callable[[], Answer]]

TEXT = "text/plain; charset=utf-8"
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}
_LINE_SECONDS = 5.0
_MOST_HEADERS = 100


class Endpoints:
    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._server: asyncio.Server | None = None

    async def listen(self, address: str) -> int:
        """Begin to listen; returns the port. Raises OSError."""
        host, _, port = address.rpartition(":")
        try:
            self._server = await asyncio.start_server(self._serve, host.strip("[]") or None, int(port), limit=8192)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_LINE_SECONDS):
                method, path = await _request(reader)
            status, kind, body = self._answer(method, path)
            head = (
                f"HTTP/1.1 {status} {_REASONS.get(status, '')}\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + (b"" if method == "HEAD" else body))
            await writer.drain()
        writer.close()

    def _answer(self, method: str, path: str) -> Answer:
        if method not in ("GET", "HEAD"):
            return 405, TEXT, b"only GET\n"
        handler = self._handlers.get(path.partition("?")[0])
        return handler() if handler is not None else (404, TEXT, b"not found\n")


async def _request(reader: asyncio.StreamReader) -> tuple[str, str]:
    method, path, _ = (await reader.readuntil(b"\n")).decode("latin-1").split()
    for _ in range(_MOST_HEADERS):
        if not (await reader.readuntil(b"\n")).strip():
            return method, path
    raise ValueError("too many headers")
