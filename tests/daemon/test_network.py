"""HTTP requests of probes and hooks, against a server that answers as it is told (PRB-6, PRB-8)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from kruise.daemon.network import BODY_BYTES, MOST_REDIRECTS, NodeNetwork

Pieces = Sequence[bytes]


class Server:
    def __init__(self, answers: Mapping[str, Pieces]) -> None:
        self.answers = answers
        self.requests: list[str] = []
        self.url = ""
        self._answers: set[asyncio.Task[None] | None] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._answers.add(asyncio.current_task())
        # Who asks may have heard enough, or ask for nothing at all.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(request)
            for piece in self.answers[request.split()[1]]:
                writer.write(piece.replace(b"PORT", self.url.rpartition(":")[2].encode()))
                await writer.drain()
                await asyncio.sleep(0.01)  # so that the pieces arrive one by one
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def end(self) -> None:
        await asyncio.gather(*(task for task in self._answers if task is not None))

    @property
    def paths(self) -> list[str]:
        return [request.split()[1] for request in self.requests]


@contextlib.asynccontextmanager
async def serving(answers: Mapping[str, Pieces]) -> AsyncIterator[Server]:
    server = Server(answers)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield server
        await server.end()


def moved(place: str) -> Pieces:
    return (f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode(),)


OK = (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",)
BROKEN = (b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",)


@pytest.mark.parametrize("place", ["/sick", "sick", "http://127.0.0.1:PORT/sick"])
async def test_a_redirect_within_the_host_is_followed(place: str) -> None:  # PRB-6
    async with serving({"/": moved(place), "/sick": BROKEN}) as server:
        assert (await NodeNetwork().get(f"{server.url}/", [], 5)).status == 500
        assert server.paths == ["/", "/sick"]


async def test_a_redirect_to_another_host_is_the_answer() -> None:  # PRB-6
    async with serving({"/": moved("http://elsewhere.invalid/")}) as server:
        assert (await NodeNetwork().get(f"{server.url}/", [], 5)).status == 302


async def test_redirects_come_to_an_end() -> None:  # PRB-6
    async with serving({"/": moved("/")}) as server:
        with pytest.raises(OSError, match="stopped after 10 redirects"):
            await NodeNetwork().get(f"{server.url}/", [], 5)
        assert len(server.paths) == MOST_REDIRECTS


async def test_an_answer_in_pieces_is_read_as_one() -> None:  # PRB-8
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    async with serving({"/": (head, b"all ", b"is ", b"well"), "/long": (head, *[b"x" * 4000] * 4)}) as server:
        assert (await NodeNetwork().get(f"{server.url}/", [], 5)).body == b"all is well"
        assert (await NodeNetwork().get(f"{server.url}/long", [], 5)).body == b"x" * BODY_BYTES


async def test_headers_are_sent_as_they_are_given() -> None:  # PRB-6
    async with serving({"/": OK}) as server:
        given = [("X-Part", "a"), ("X-Part", "b"), ("Host", "shop.example"), ("user-agent", "mine")]
        assert (await NodeNetwork().get(f"{server.url}/", given, 5)).body == b"ok"
        lines = server.requests[0].splitlines()
        assert [line for line in lines if line.startswith("X-Part")] == ["X-Part: a", "X-Part: b"]
        assert "Host: shop.example" in lines
        assert [line for line in lines if line.lower().startswith("user-agent")] == ["user-agent: mine"]
        assert not any(line.startswith("Accept-Encoding") for line in lines)


async def test_an_odd_path_is_one_request() -> None:
    """Hooks and probes are written by people: blanks, and whoever means harm."""
    async with serving({"/a%20b?c=d%20e": OK}) as server:
        assert (await NodeNetwork().get(f"{server.url}/a b?c=d e", [], 5)).status == 200
        with pytest.raises(OSError, match="line breaks"):
            await NodeNetwork().get(f"{server.url}/", [("X", "a\r\nY: b")], 5)
        assert server.paths == ["/a%20b?c=d%20e"]


async def test_no_answer_and_no_server_are_errors() -> None:
    async with serving({"/": ()}) as server:
        with pytest.raises(OSError, match="the server ended the connection"):
            await NodeNetwork().get(f"{server.url}/", [], 5)
        url = server.url
    with pytest.raises(OSError, match="onnect"):
        await NodeNetwork().get(url, [], 5)
