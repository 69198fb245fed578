"""HTTP/1.1 over the streams of asyncio: as much as a program needs that asks a few servers, and must stay small.

aiohttp takes as much memory as Python with asyncio itself; where a process runs on every node, that counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping

READ_BUFFER = 256 * 1024
_PIECE = 64 * 1024
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
_WITHOUT_BODY = (204, 304)
_TURNS = 5
_IN_TARGET = re.compile(r"[!-~]+").fullmatch
_FORBIDDEN = frozenset("\r\n\0")


class ProtocolError(OSError):
    """The other side speaks something else, or ends in the middle of a word."""


@dataclasses.dataclass(frozen=True, slots=True)
class Head:
    """What an answer begins with."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; the values of repeated ones are joined."""
    keeps: bool
    """Whether the connection can be used again."""


class Connection:
    """One connection, for one exchange at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.is_free = False
        """Whether the last answer was read to its end, and another request may follow."""
        self.used = 0.0

    @property
    def is_open(self) -> bool:
        return not self._writer.is_closing() and not self._reader.at_eof()

    def send(self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> None:
        """Raises ValueError for what cannot be a request."""
        if not target.isascii() or not _IN_TARGET(target):
            raise ValueError(f"{target!r} cannot be asked for: it has blanks or control characters in it")
        lines = [f"{method} {target} HTTP/1.1"]
        for name, value in headers:
            if not name or not _FORBIDDEN.isdisjoint(name + value):
                raise ValueError(f"header {name!r} cannot be sent: it has line breaks in it")
            lines.append(f"{name}: {value}")
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.is_free = False
        self._writer.write("\r\n".join((*lines, "", "")).encode() + (body or b""))

    async def head(self) -> Head:
        """Raises OSError."""
        await self._writer.drain()
        while True:
            found = _head(await self._until(b"\r\n\r\n"))
            if found.status >= 200:  # before it, the server may say that it is at it
                return found

    async def pieces(self, head: Head) -> AsyncGenerator[bytes, None]:
        """The body, as it comes. Raises OSError."""
        if head.status in _WITHOUT_BODY:
            self.is_free = head.keeps
            return
        length = head.headers.get("content-length", "")
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            while size := _size(await self._until(b"\r\n")):
                async for piece in self._exactly(size):
                    yield piece
                if await self._until(b"\r\n"):
                    raise ProtocolError("a chunk is longer than it says")
            while await self._until(b"\r\n"):
                pass  # trailers
        elif length.isdecimal():
            async for piece in self._exactly(int(length)):
                yield piece
        else:
            while piece := await self._reader.read(_PIECE):
                yield piece
            return
        self.is_free = head.keeps

    async def body(self, head: Head) -> bytes:
        return b"".join([piece async for piece in self.pieces(head)])

    async def _until(self, end: bytes) -> bytes:
        """What comes before an end, without it."""
        try:
            found = await self._reader.readuntil(end)
        except asyncio.IncompleteReadError as error:
            text = "the server ended the connection" + (" in the middle of its answer" if error.partial else "")
            raise ProtocolError(text) from error
        except asyncio.LimitOverrunError as error:
            raise ProtocolError("the answer begins with too long a line") from error
        return found[: -len(end)]

    async def _exactly(self, size: int) -> AsyncGenerator[bytes, None]:
        while size:
            piece = await self._reader.read(min(size, _PIECE))
            if not piece:
                raise ProtocolError("the server ended the connection in the middle of its answer")
            size -= len(piece)
            yield piece

    def abort(self) -> None:
        """At once, without the words with which TLS ends."""
        self.is_free = False
        self._writer.transport.abort()


async def connect(
    host: str, port: int, *, tls: ssl.SSLContext | None = None, server_name: str = "", path: str = ""
) -> Connection:
    """`path`: a socket of this machine instead. Raises OSError."""
    if path:
        return Connection(*await asyncio.open_unix_connection(path, limit=READ_BUFFER))
    name = (server_name or host) if tls is not None else None
    reader, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname=name, limit=READ_BUFFER)
    made = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        # It finds out within a minute that the other side is gone: a quiet watch would wait for ever.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEP_ALIVE:
            if hasattr(socket, option):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return Connection(reader, writer)


async def settled() -> None:
    """Connections that were given up are closed within a few turns of the loop."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _head(raw: bytes) -> Head:
    first, *lines = raw.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest[:3]
    if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdecimal()):
        raise ProtocolError(f"the server does not speak HTTP: {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ProtocolError(f"the server sent a line that is no header: {line[:80]!r}")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    words = headers.get("connection", "").lower()
    keeps = "close" not in words if version == "HTTP/1.1" else "keep-alive" in words
    return Head(int(code), headers, keeps)


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    try:
        return int(digits, 16)
    except ValueError:
        raise ProtocolError(f"a chunk has no size: {line[:20]!r}") from None
