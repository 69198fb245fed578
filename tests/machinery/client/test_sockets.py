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
import uvloop

from kruise.api.native.pod import PODS
from kruise.local.webhooks.calling import CallError, Target
from kruise.local.webhooks.https import HttpsCaller
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
    listening.settimeout(10)  # a client that never comes fails the test, and does not hold it up

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


def _transport(url: str, authority: trustme.CA) -> HttpTransport:
    return HttpTransport(ClusterConfig(server=url, ca=Pem(data=pem_of(authority))))


async def leaves_a_watch(url: str, authority: trustme.CA) -> None:
    transport = _transport(url, authority)
    async with transport.stream(WATCH) as lines:
        assert await anext(lines) == b"one"
    await transport.close()


async def gives_up_a_request(url: str, authority: trustme.CA) -> None:
    transport = _transport(url, authority)
    with pytest.raises(RequestTimeoutError):
        await transport.send(GET)
    await transport.close()


async def gives_up_a_webhook(url: str, authority: trustme.CA) -> None:
    caller = HttpsCaller()
    with pytest.raises(CallError, match="deadline exceeded"):
        await caller.post(Target(url, "/", pem_of(authority)), b"{}", 0.2)
    await caller.close()


Story = Callable[[str, trustme.CA], Coroutine[None, None, None]]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("story", "said"),
    [(leaves_a_watch, (HEAD, b"4\r\none\n\r\n")), (gives_up_a_request, ()), (gives_up_a_webhook, ())],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_nothing_is_open_once_it_is_closed(
    story: Story, said: tuple[bytes, ...], loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """A loop that ends right after it finds nothing unclosed."""
    authority = trustme.CA()
    gc.collect()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        with silent_server(authority, *said) as url:
            with asyncio.Runner(loop_factory=loop) as runner:
                runner.run(story(url, authority))
            gc.collect()
    assert [str(each.message) for each in warned] == []
