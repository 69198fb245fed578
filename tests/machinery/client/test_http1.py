"""HTTP/1.1 by hand: answers in every shape that the protocol knows, and in some that it does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.client.http1 import Connection, ProtocolError


class Silent:
    """A writer that nobody reads."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None: ...

    def is_closing(self) -> bool:
        return False


def connection(raw: bytes, *, ends: bool = True) -> tuple[Connection, Silent]:
    reader, writer = asyncio.StreamReader(), Silent()
    reader.feed_data(raw)
    if ends:
        reader.feed_eof()
    anything: Any = writer
    return Connection(reader, anything), writer


async def read(raw: bytes) -> tuple[int, bytes, bool]:
    made, _ = connection(raw)
    head = await made.head()
    return head.status, await made.body(head), made.is_free


@pytest.mark.parametrize(("raw", "expected"), [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", (200, b"ok", True)),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", (200, b"ok", False)),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", (200, b"ok", False)),
    (b"HTTP/1.1 200\r\n\r\nto the end", (200, b"to the end", False)),
    (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", True)),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", (201, b"", True)),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
        (200, b"abc0123456789", True),
    ),
])  # fmt: skip
async def test_an_answer_is_read_as_it_says(raw: bytes, expected: tuple[int, bytes, bool]) -> None:
    assert await read(raw) == expected


@pytest.mark.parametrize(("raw", "problem"), [
    (b"", "the server ended the connection$"),
    (b"HTTP/1.1 200 OK\r\nContent-", "in the middle of its answer"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", "in the middle of its answer"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "in the middle of its answer"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "a chunk has no size"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "longer than it says"),
    (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
    (b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", "no header"),
])  # fmt: skip
async def test_what_is_no_answer_is_an_error(raw: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        await read(raw)


async def test_a_line_without_end_is_an_error() -> None:
    made, _ = connection(b"x" * 200_000, ends=False)
    with pytest.raises(ProtocolError, match="too long a line"):
        await made.head()


@given(raw=st.binary(max_size=200))
def test_no_bytes_do_harm(raw: bytes) -> None:
    async def main() -> None:
        try:
            await read(b"HTTP/1.1 200 OK\r\n" + raw)
        except ProtocolError:
            return

    asyncio.run(main())


def test_a_request_is_one_request() -> None:
    async def main() -> None:
        made, writer = connection(b"")
        made.send("POST", "/a?b=c", [("Host", "h"), ("X", "\u00fc")], b"{}")
        assert writer.written == "POST /a?b=c HTTP/1.1\r\nHost: h\r\nX: \u00fc\r\nContent-Length: 2\r\n\r\n{}".encode()
        for target, headers in (("/a b", []), ("/a\r\n", []), ("/", [("X", "a\nb")]), ("/", [("", "a")])):
            with pytest.raises(ValueError, match="cannot be"):
                made.send("GET", target, headers)

    asyncio.run(main())
