"""Each fault does what it says, is written down, and random ones repeat with their seed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pytest

from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.pod import PODS
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import (
    BadAnswerError,
    ConflictError,
    GoneError,
    InvalidError,
    RequestTimeoutError,
    TooManyRequestsError,
    TransportError,
)
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.retry import NEVER
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import VirtualClock, run_virtual
from tests.support.faults import (
    Answer,
    Cut,
    CutWatch,
    Delay,
    DropAfter,
    DropBefore,
    Duplicate,
    ExpireWatch,
    FaultyTransport,
    ReorderEvents,
    RepeatEvents,
    Rule,
    StaleList,
    storm,
)
from tests.support.scripted_transport import ScriptedTransport, answer

POD = {"kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}
GET = Request(Verb.GET, PODS, "n", "a")
CREATE = Request(Verb.CREATE, PODS, "n", body=b"{}")
LIST = Request(Verb.LIST, PODS, "n")
WATCH = Request(Verb.WATCH, PODS, "n")


class Counting(ScriptedTransport):
    """Answers each request with its number."""

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return answer({"number": len(self.requests)})


def number(response: Response) -> int:
    found: int = json.loads(response.body)["number"]
    return found


async def read(transport: FaultyTransport) -> tuple[list[bytes], Exception | None]:
    """All lines of a watch, and how it ended."""
    found: list[bytes] = []
    try:
        async with transport.stream(WATCH) as lines:
            async for line in lines:
                found.append(line)
    except (TransportError, GoneError) as error:
        return found, error
    return found, None


async def test_nothing_without_rules() -> None:
    inner = Counting(lines=[b"1"])
    transport = FaultyTransport(inner)
    assert number(await transport.send(GET)) == 1
    assert await read(transport) == ([b"1"], None)
    await transport.close()
    assert inner.closed
    assert transport.log == []


@pytest.mark.parametrize("sent", [False, True])
async def test_drop_before(sent: bool) -> None:
    inner = Counting()
    transport = FaultyTransport(inner, [Rule(DropBefore(sent=sent), times=1)])
    with pytest.raises(TransportError) as caught:
        await transport.send(CREATE)
    assert caught.value.sent is sent
    assert inner.requests == []
    assert number(await transport.send(CREATE)) == 1


async def test_drop_after() -> None:
    """The server acted, the client cannot know."""
    inner = Counting()
    transport = FaultyTransport(inner, [Rule(DropAfter(), calls={2})])
    await transport.send(CREATE)
    with pytest.raises(TransportError) as caught:
        await transport.send(CREATE)
    assert caught.value.sent is True
    assert len(inner.requests) == 2


def test_drop_after_a_timeout_and_delays_on_virtual_time() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        inner = Counting()
        rules = [Rule(Delay(2)), Rule(Delay(1, spread=1)), Rule(DropAfter(timeout=10))]
        transport = FaultyTransport(inner, rules, clock=VirtualClock(loop))
        with pytest.raises(RequestTimeoutError) as caught:
            await transport.send(CREATE)
        assert caught.value.sent is True
        assert len(inner.requests) == 1
        assert 13 <= loop.time() <= 14
        assert [entry.at for entry in transport.log] == [0, 2, pytest.approx(3.5, abs=0.5)]
        assert len(transport.injected(Delay)) == 2

    run_virtual(main())


@pytest.mark.parametrize(("first", "expected"), [(False, 2), (True, 1)])
async def test_duplicate(first: bool, expected: int) -> None:
    inner = Counting()
    transport = FaultyTransport(inner, [Rule(Duplicate(hear_first=first))])
    assert number(await transport.send(CREATE)) == expected
    assert inner.requests == [CREATE, CREATE]


async def test_answers_without_acting() -> None:
    """They look to a client like the server's own."""
    inner = Counting()
    rules = [
        Rule(Answer(409, "Conflict"), times=1),
        Rule(Answer(422, "Invalid"), times=1),
        Rule(Answer(429, "TooManyRequests", retry_after=3), times=1),
        Rule(Answer(200, body=b"<html>"), times=1),
    ]
    client = Client(FaultyTransport(inner, rules), retry=NEVER)
    with pytest.raises(ConflictError):
        await client.get(PODS, "a", "n")
    with pytest.raises(InvalidError):
        await client.get(PODS, "a", "n")
    with pytest.raises(TooManyRequestsError) as caught:
        await client.get(PODS, "a", "n")
    assert caught.value.retry_after == 3
    with pytest.raises(BadAnswerError):
        await client.get(PODS, "a", "n")
    assert inner.requests == []


async def test_stale_list() -> None:
    """An answer from the past, per list; before there is a past, nothing happens."""
    inner = Counting()
    transport = FaultyTransport(inner, [Rule(StaleList(back=2), calls={1, 4})])
    seen = [number(await transport.send(LIST)) for _ in range(3)]
    assert seen == [1, 2, 3]
    assert number(await transport.send(LIST)) == 2
    assert number(await transport.send(Request(Verb.LIST, PODS, "other"))) == 4
    assert [entry.request for entry in transport.log] == [LIST]


async def test_rules_match() -> None:
    """By verb, resource with or without group, namespace, name, subresource."""
    cases: list[tuple[Rule, Request, bool]] = [
        (Rule(DropBefore(), verbs={Verb.GET}), GET, True),
        (Rule(DropBefore(), verbs={Verb.CREATE, Verb.PATCH}), GET, False),
        (Rule(DropBefore(), resource="pods"), GET, True),
        (Rule(DropBefore(), resource="deployments.apps"), Request(Verb.GET, DEPLOYMENTS, "n", "a"), True),
        (Rule(DropBefore(), resource="deployments"), GET, False),
        (Rule(DropBefore(), resource="pods"), Request(Verb.GET, None, raw_path="/version"), False),
        (Rule(DropBefore(), namespace="n"), GET, True),
        (Rule(DropBefore(), namespace="m"), GET, False),
        (Rule(DropBefore(), name="a"), GET, True),
        (Rule(DropBefore(), name="b"), GET, False),
        (Rule(DropBefore(), subresource=""), GET, True),
        (Rule(DropBefore(), subresource="status"), GET, False),
        (Rule(StaleList()), GET, False),
        (Rule(CutWatch(1)), GET, False),
        (Rule(CutWatch(1)), WATCH, True),
        (Rule(Duplicate()), WATCH, False),
    ]
    for rule, request, expected in cases:
        assert rule.concerns(request) is expected, (rule, request)


async def test_nth_call_and_times() -> None:
    """Calls are counted for each rule among the requests that it is about."""
    transport = FaultyTransport(Counting(), [Rule(Answer(500), verbs={Verb.CREATE}, calls={2, 3, 4}, times=2)])
    codes = []
    for _ in range(5):
        assert (await transport.send(GET)).status == 200
        codes.append((await transport.send(CREATE)).status)
    assert codes == [200, 500, 500, 200, 200]


async def test_add_and_clear() -> None:
    transport = FaultyTransport(Counting())
    transport.add(Rule(Answer(500)))
    assert (await transport.send(GET)).status == 500
    transport.clear()
    assert (await transport.send(GET)).status == 200
    assert [str(entry.fault.code) for entry in transport.log if isinstance(entry.fault, Answer)] == ["500"]
    assert "get /api/v1/namespaces/n/pods/a" in str(transport.log[0])


class TestWatch:
    LINES = (b"1", b"2", b"3", b"4")

    async def test_cuts(self) -> None:
        found, error = await read(self.transport(CutWatch(2, Cut.TORN)))
        assert found == [b"1", b"2"]
        assert isinstance(error, TransportError)
        found, error = await read(self.transport(CutWatch(2, Cut.ENDED)))
        assert (found, error) == ([b"1", b"2"], None)
        found, error = await read(self.transport(CutWatch(2, Cut.MID_LINE)))
        assert found == [b"1", b"2"]
        assert isinstance(error, TransportError)
        found, error = await read(self.transport(CutWatch(9, Cut.TORN)))
        assert (found, error) == ([*self.LINES], None)

    async def test_a_cut_does_not_wait_for_the_next_line(self) -> None:
        """A quiet watch is cut right after the line that was named; in the middle of a line needs that line."""
        transport = FaultyTransport(Quiet(b"1", b"2"), [Rule(CutWatch(2, Cut.TORN))])
        async with asyncio.timeout(5):
            found, error = await read(transport)
        assert found == [b"1", b"2"]
        assert isinstance(error, TransportError)

    async def test_the_next_watch_is_whole(self) -> None:
        transport = FaultyTransport(ScriptedTransport(lines=self.LINES), [Rule(CutWatch(0), times=1)])
        assert (await read(transport))[0] == []
        assert await read(transport) == ([*self.LINES], None)

    async def test_expire(self) -> None:
        lines = [json.dumps({"type": "ADDED", "object": POD}).encode()] * 3
        client = Client(FaultyTransport(ScriptedTransport(lines=lines), [Rule(ExpireWatch(after=1))]))
        seen = []

        async def watch() -> None:
            async with client.watch(PODS, "n", resource_version="1") as events:
                async for event in events:
                    seen.append(event.type)

        with pytest.raises(GoneError):
            await watch()
        assert seen == ["ADDED"]

    async def test_refused_to_open(self) -> None:
        with pytest.raises(GoneError):
            await Client(self.transport(Answer(410, "Expired"))).watch(PODS, resource_version="1").__aenter__()
        for fault, sent in ((DropBefore(), False), (DropAfter(), True)):
            transport = self.transport(fault)
            _, error = await read(transport)
            assert isinstance(error, TransportError)
            assert error.sent is sent

    async def test_repeat(self) -> None:
        assert await read(self.transport(RepeatEvents())) == ([b"1", b"1", b"2", b"2", b"3", b"3", b"4", b"4"], None)
        found, _ = await read(self.transport(RepeatEvents(0.5)))
        assert sorted(set(found)) == sorted(self.LINES)

    async def test_reorder(self) -> None:
        """Neighbours change places; nothing is lost."""
        assert await read(self.transport(ReorderEvents())) == ([b"2", b"1", b"4", b"3"], None)
        odd = FaultyTransport(ScriptedTransport(lines=self.LINES[:3]), [Rule(ReorderEvents())])
        assert await read(odd) == ([b"2", b"1", b"3"], None)

    def test_reorder_gives_up_on_a_quiet_stream(self) -> None:
        """A held line comes after a while even if nothing follows, and the stream goes on after that."""

        async def main() -> None:
            loop = asyncio.get_running_loop()
            quiet = Quiet(b"1", pause=30, then=(b"2", b"3"))
            transport = FaultyTransport(quiet, [Rule(ReorderEvents(hold=5))])
            seen = []
            async with transport.stream(WATCH) as lines:
                async for line in lines:
                    seen.append((line, loop.time()))
                    if len(seen) == 3:
                        break
            assert seen == [(b"1", 5), (b"3", 30), (b"2", 30)]
            assert quiet.open_streams == 0

        run_virtual(main())

    async def test_reorder_of_a_torn_stream(self) -> None:
        torn = ScriptedTransport(lines=self.LINES, ending=TransportError("torn", sent=True))
        found, error = await read(FaultyTransport(torn, [Rule(ReorderEvents())]))
        assert found == [b"2", b"1", b"4", b"3"]
        assert str(error) == "torn"

    async def test_faults_combine(self) -> None:
        transport = FaultyTransport(ScriptedTransport(lines=self.LINES), [Rule(RepeatEvents()), Rule(CutWatch(3))])
        found, error = await read(transport)
        assert found == [b"1", b"1", b"2"]
        assert isinstance(error, TransportError)
        assert len(transport.log) == 2

    async def test_leaving_early_closes_all(self) -> None:
        inner = ScriptedTransport(lines=self.LINES)
        transport = FaultyTransport(inner, [Rule(ReorderEvents(0.0)), Rule(RepeatEvents())])
        async with transport.stream(WATCH) as lines:
            assert await anext(lines) == b"1"
        assert inner.open_streams == 0

    def transport(self, fault: Any) -> FaultyTransport:
        return FaultyTransport(ScriptedTransport(lines=self.LINES), [Rule(fault)])


class Quiet(ScriptedTransport):
    """A watch that falls silent."""

    def __init__(self, *lines: bytes, pause: float = 3600, then: Sequence[bytes] = ()) -> None:
        super().__init__(lines=lines)
        self.pause, self.then = pause, then

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
        async def play() -> AsyncGenerator[bytes, None]:
            for line in self.lines:
                yield line
            await asyncio.sleep(self.pause)
            for line in self.then:
                yield line

        self.open_streams += 1
        async with contextlib.aclosing(play()) as lines:
            yield lines
        self.open_streams -= 1


def test_a_storm_repeats_with_its_seed() -> None:
    """The same seed breaks the same things; another seed breaks others; over time everything is broken."""

    async def main(seed: int) -> list[str]:
        loop = asyncio.get_running_loop()
        inner = Counting(lines=[b"1", b"2", b"3", b"4", b"5", b"6"])
        transport = FaultyTransport(inner, storm(0.1), seed=seed, clock=VirtualClock(loop))
        for _ in range(60):
            for request in (GET, CREATE, LIST, Request(Verb.PATCH, PODS, "n", "a", body=b"{}")):
                with contextlib.suppress(TransportError):
                    await transport.send(request)
            with contextlib.suppress(Exception):
                await read(transport)
        return [str(entry) for entry in transport.log]

    first, again, other = run_virtual(main(1)), run_virtual(main(1)), run_virtual(main(2))
    assert first == again
    assert first != other
    for fault in ("Delay", "DropBefore", "DropAfter", "Duplicate", "Answer", "StaleList", "CutWatch", "ExpireWatch"):
        assert any(fault in line for line in first + other), fault
