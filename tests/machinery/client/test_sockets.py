"""Nothing of a transport is open once it is closed, however slow the server is to say goodbye."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator

import pytest
import trustme

from kruise.api.native.pod import PODS
from kruise.machinery.client.config import ClusterConfig, Pem
from kruise.machinery.client.errors import RequestTimeoutError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import Request, Verb
from tests.support.stub_api import pem_of, server_context

GET = Request(Verb.GET, PODS, "n", "a", timeout=0.2)
WATCH = Request(Verb.WATCH, PODS, "n", query=(("watch", "true"),))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextlib.contextmanager
def silent_server(authority: trustme.CA, *said: bytes) -> Iterator[str]:
    """A server over TLS that hears a request, says this, and then neither reads nor speaks; gives its address."""
    over = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        plain, _ = listening.accept()
        with server_context(authority).wrap_socket(plain, server_side=True) as talking:
            talking.recv(65536)
            for part in said:
                talking.sendall(part)
            over.wait()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        over.set()
        thread.join()
        listening.close()


async def _leaves_a_watch(transport: HttpTransport) -> None:
    async with transport.stream(WATCH) as lines:
        assert await anext(lines) == b"one"


async def _gives_up_a_request(transport: HttpTransport) -> None:
    with pytest.raises(RequestTimeoutError):
        await transport.send(GET)


@pytest.mark.parametrize(
    ("said", "story"),
    [((HEAD, b"4\r\none\n\r\n"), _leaves_a_watch), ((), _gives_up_a_request)],
    ids=["watch", "request"],
)
def test_a_closed_transport_has_no_open_socket(
    said: tuple[bytes, ...], story: Callable[[HttpTransport], Coroutine[None, None, None]]
) -> None:
    """A loop that ends right after it finds nothing unclosed."""
    authority = trustme.CA()

    async def main(url: str) -> None:
        transport = HttpTransport(ClusterConfig(server=url, ca=Pem(data=pem_of(authority))))
        await story(transport)
        await transport.close()

    gc.collect()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        with silent_server(authority, *said) as url:
            asyncio.run(main(url))
            gc.collect()
    assert [str(each.message) for each in warned] == []
