"""Health, readiness, metrics and journal over HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from kruise.api.meta import Key, ObjectMeta
from kruise.api.native.pod import Pod
from kruise.machinery.codec import decode
from kruise.machinery.journal import NOT_KEPT, Journal
from kruise.machinery.metrics import Metrics
from kruise.machinery.plan import Conclusion, Plan, Wake
from kruise.manager import endpoints
from kruise.manager.endpoints import Endpoints, Reports, health_app, metrics_app
from tests.toy.api import Troupe
from tests.toy.decide import Snapshot


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
    port = await served.serve(health_app([("a", fine)], lambda: ["lease is held by x"]), "127.0.0.1:0")
    assert await get(port, "/healthz") == (200, "ok")
    assert await get(port, "/readyz") == (200, "[+]a ok\n[ ]lease is held by x\n")


async def test_readiness_names_what_is_missing(served: Endpoints) -> None:
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


async def test_metrics_and_journal(served: Endpoints) -> None:
    registry = CollectorRegistry()
    Metrics(registry).is_leader.set(1)
    journal = Journal()
    now = datetime(2030, 1, 1, tzinfo=UTC)
    snapshot = Snapshot(troupe=Troupe(metadata=ObjectMeta(name="a", uid="u")), pods=(Pod(),), now=now)
    journal.record(
        controller="troupe-controller",
        key=Key("show", "a"),
        reconcile_id="7f",
        time=now,
        duration=0.5,
        snapshot=snapshot,
        plan=Plan(wakes=(Wake(after=3.0, reason="minReadySeconds of pod a-0"),)),
        outcomes=(),
        conclusion=Conclusion(),
        error="",
    )
    waits = [{"controller": "troupe-controller", "key": "show/a", "seconds": 3.0, "reason": "minReadySeconds"}]
    port = await served.serve(metrics_app(Reports(registry, journal, lambda: waits)), "127.0.0.1:0")
    code, text = await get(port, "/metrics")
    assert code == 200
    assert "kruise_manager_is_leader 1.0" in text
    [entry] = decode((await get(port, "/journal"))[1], list)
    assert "minReadySeconds of pod a-0" in str(entry)
    assert decode((await get(port, "/journal?controller=troupe-controller&key=show/a&limit=5"))[1], list) == [entry]
    assert (await get(port, "/journal?key=show/b"))[1] == "[]"
    assert await get(port, "/journal?limit=x") == (400, "limit=x: not a number\n")
    code, text = await get(port, "/journal/troupe-controller/show/a")
    assert code == 200
    assert decode(text, dict)["snapshot"]["troupe"]["metadata"]["name"] == "a"
    assert "causes" not in decode(text, dict)["plan"]
    assert "causes" in decode((await get(port, "/journal/troupe-controller/show/a?causes=once"))[1], dict)["plan"]
    code, text = await get(port, "/journal/troupe-controller/show/b")
    assert (code, decode(text, dict)["reason"]) == (404, NOT_KEPT)
    assert "no snapshot of show/b is kept" in text
    assert (await get(port, "/nothing"))[0] == 404
    assert decode((await get(port, "/waiting"))[1], list) == waits
