"""What the transport of short commands does besides what `test_http` asks of both."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from aiohttp import web

from kruise.api.native.pod import PODS
from kruise.machinery.client import light as light_module
from kruise.machinery.client.config import ClusterConfig, Impersonation
from kruise.machinery.client.errors import RequestTimeoutError, TransportError
from kruise.machinery.client.light import LightTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import ManualClock
from tests.support.stub_api import answers, stub_api

GET = Request(Verb.GET, PODS, "n", "a")
HEAVY = ("aiohttp", "yaml", "kruise.machinery.plan", "kruise.machinery.client.http")
"""What takes longest to load."""


def working() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "kruise-request"]


async def no_thread_is_left() -> None:
    async with asyncio.timeout(5):
        while working():  # noqa: ASYNC110 - threads wake nobody
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "modules",
    [
        "kruise.cli.work.why, kruise.cli.deciding, kruise.cli.journal_access, kruise.reasons.dump",
        "kruise.cli.work.scale",
    ],
)
def test_a_short_command_loads_nothing_heavy(modules: str) -> None:
    code = f"import sys, kruise.cli.main, kruise.cli.session, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "kruise.machinery.client.light" in loaded
    assert [name for name in HEAVY if name in loaded] == []


async def test_a_connection_that_the_server_ended_is_not_used_again() -> None:
    ended = asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        transport = request.transport
        assert transport is not None
        if not ended.is_set():
            asyncio.get_running_loop().call_later(0.05, lambda: (transport.close(), ended.set()))
        return web.json_response({})

    async with stub_api(handle) as api:
        light = LightTransport(ClusterConfig(server=api.url))
        await light.send(GET)
        await ended.wait()
        async with asyncio.timeout(5):
            while light._idle[0].is_quiet():  # noqa: ASYNC110 - a socket that nobody reads wakes nobody
                await asyncio.sleep(0.01)
        assert (await light.send(GET)).status == 200
        assert len({asked.connection for asked in api.asked}) == 2
        await light.close()


async def test_a_connection_that_was_idle_for_long_is_not_used_again() -> None:
    clock = ManualClock()
    async with stub_api(answers({})) as api:
        light = LightTransport(ClusterConfig(server=api.url), clock=clock)
        await light.send(GET)
        await light.send(GET)
        assert len({asked.connection for asked in api.asked}) == 1
        clock.advance(60)
        await light.send(GET)
        assert len({asked.connection for asked in api.asked}) == 2
        await light.close()


@pytest.mark.parametrize("way", ["cancelled", "late", "closed"])
async def test_nobody_waits_for_an_answer_that_is_not_wanted_any_more(way: str) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        raise AssertionError

    async with stub_api(handle) as api:
        light = LightTransport(ClusterConfig(server=api.url), timeout=0.3 if way == "late" else 30.0)
        sending = asyncio.create_task(light.send(GET))
        await asked.wait()
        if way == "cancelled":
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        elif way == "late":
            with pytest.raises(RequestTimeoutError, match="no answer came in time") as late:
                await sending
            assert late.value.sent
        else:
            await light.close()
            with pytest.raises(TransportError) as torn:
                await sending
            assert torn.value.sent
        async with asyncio.timeout(5):
            await gone.wait()
        await no_thread_is_left()
        await light.close()


async def test_a_request_that_is_cancelled_with_its_answer_there_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread has ended: it closes nothing any more. A socket left to the collector is a warning."""
    in_thread = light_module._in_thread

    async def cancelled(work: Callable[[], Response]) -> Response:
        await in_thread(work)
        raise asyncio.CancelledError

    monkeypatch.setattr(light_module, "_in_thread", cancelled)
    closed: list[object] = []
    close = light_module._Connection.close
    monkeypatch.setattr(light_module._Connection, "close", lambda self: (closed.append(self), close(self))[1])
    async with stub_api(answers({})) as api:
        light = LightTransport(ClusterConfig(server=api.url))
        with pytest.raises(asyncio.CancelledError):
            await light.send(GET)
        assert len(closed) == 1
        await light.close()


@pytest.mark.parametrize(("user", "is_sent"), [("jürgen", True), ("a\nb", False)])
async def test_strange_users(user: str, is_sent: bool) -> None:
    async with stub_api(answers({})) as api:
        light = LightTransport(ClusterConfig(server=api.url, impersonation=Impersonation(user=user)))
        if is_sent:
            await light.send(GET)
            assert api.asked[0].headers["Impersonate-User"] == user
        else:
            with pytest.raises(TransportError, match="Invalid header value") as refused:
                await light.send(GET)
            assert refused.value.sent is False
            assert api.asked == []
        await light.close()
