"""Health, readiness and metrics over HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from kruise.machinery.metrics import Metrics
from kruise.manager import endpoints
from kruise.manager.endpoints import Detail, Endpoints, exposition, health_app, metrics_app


@pytest.fixture
async def served() -> AsyncIterator[Endpoints]:
    found = Endpoints()
    yield found
    await found.close()


async def get(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def fine() -> str:
    return ""


async def missing() -> str:
    return "waiting for the moon"


async def test_liveness_and_readiness(served: Endpoints) -> None:  # MGR-23, MGR-24
    details = [Detail("waiting for jobs: not served"), Detail("lease is held by x", is_met=True)]
    port = await served.serve(health_app([("a", fine)], lambda: details), "127.0.0.1:0")
    assert await get(port, "/healthz") == (200, "ok")
    assert await get(port, "/readyz") == (200, "[+]a ok\n[ ]waiting for jobs: not served\n[+]lease is held by x\n")


async def test_readiness_names_what_is_missing(served: Endpoints) -> None:  # PW-54
    port = await served.serve(health_app([("a", fine), ("b", missing)], list), "127.0.0.1:0")
    assert await get(port, "/readyz") == (503, "[+]a ok\n[-]b waiting for the moon\n")


async def test_a_check_that_hangs_counts_as_missing(served: Endpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "_CHECK_SECONDS", 0.01)

    async def hangs() -> str:
        await asyncio.Event().wait()
        return ""

    port = await served.serve(health_app([("a", hangs)], list), "127.0.0.1:0")
    assert await get(port, "/readyz") == (503, "[-]a no answer within 0.01 s\n")


async def test_a_taken_port_is_named(served: Endpoints) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match=f"cannot listen on {address}"):
            await served.serve(health_app([], list), address)


async def test_metrics_and_nothing_else(served: Endpoints) -> None:
    """Nobody is asked who they are here: nothing but names and numbers of objects may be shown."""
    registry = CollectorRegistry()
    Metrics(registry).is_leader.set(1)
    port = await served.serve(metrics_app(registry), "127.0.0.1:0")
    code, text = await get(port, "/metrics")
    assert code == 200
    assert "kruise_manager_is_leader 1.0" in text
    for path in ("/", "/journal", "/journal/cloneset-controller/default/web", "/waiting", "/debug"):
        assert (await get(port, path))[0] == 404


async def test_many_samples_are_written_in_pieces_and_read_as_one() -> None:
    """Somebody else gets a turn in between, and the text is that of the library."""
    registry = CollectorRegistry()
    Metrics(registry).queue("a").adds.inc(3)
    by_number = Histogram("times", "Has an age of its own.", ("number",), registry=registry)
    for number in range(200):
        by_number.labels(str(number)).observe(number)
    gauge = Gauge("many", "With a \\ in it.", ("number",), registry=registry)
    for number in range(1700):
        gauge.labels(f'"{number}"').set(number)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    found = await exposition(registry)
    counting.cancel()
    assert turns >= 4
    assert found == generate_latest(registry)
