"""A transport that breaks things on purpose: by script, or at random from a seed.

It stands between a client and any other transport. Each `Rule` says which requests it is about and what happens to
them; the log says what was done, so that a test can check that its faults took place, and a failure can be retold.

    FaultyTransport(inner, [
        Rule(DropAfter(), verbs={Verb.CREATE}, resource="pods", calls={2}),
        Rule(CutWatch(after=3, how=Cut.MID_LINE), resource="pods", times=1),
        Rule(Answer(429, retry_after=1), probability=0.05),
    ], seed=7)
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
import random
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence

from kruise.machinery.client.errors import RequestTimeoutError, Status, StatusDetails, TransportError, from_status
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.clock import Clock, RealClock
from kruise.machinery.codec import encode


@dataclasses.dataclass(frozen=True, slots=True)
class Delay:
    """The request waits before it goes out; other faults may follow. `spread` is added at random."""

    seconds: float
    spread: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class DropBefore:
    """The server never sees the request. `sent=True` is the case that a client cannot tell from `DropAfter`."""

    sent: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class DropAfter:
    """The server acts and its answer is lost. With `timeout` the client has waited in vain for that long."""

    timeout: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Duplicate:
    """The request reaches the server twice; the client hears the second answer, or the first."""

    hear_first: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The request is answered without reaching the server. `body` replaces the Status, for HTML pages and the like."""

    code: int
    reason: str = ""
    message: str = "injected fault"
    retry_after: int = 0
    body: bytes = b""


@dataclasses.dataclass(frozen=True, slots=True)
class StaleList:
    """The same list as it was `back` answers ago (or as long ago as is known): a server that lags behind."""

    back: int = 1


class Cut(enum.Enum):
    """How a watch ends."""

    ENDED = "ended"
    """In order: the iterator just stops."""
    TORN = "torn"
    """Between two lines."""
    MID_LINE = "in the middle of a line"
    """The line was under way and is lost."""


@dataclasses.dataclass(frozen=True, slots=True)
class CutWatch:
    after: int
    how: Cut = Cut.TORN


@dataclasses.dataclass(frozen=True, slots=True)
class ExpireWatch:
    """After so many lines the server says 410: the version is too old."""

    after: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class RepeatEvents:
    """A line comes twice, each with this probability."""

    probability: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class ReorderEvents:
    """A line is held back, each with this probability, until the next one has passed it or `hold` seconds are over."""

    probability: float = 1.0
    hold: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class LateEvents:
    """Every line comes late, by up to `seconds` and in order: a watch that lags behind."""

    seconds: float


RequestFault = Delay | DropBefore | DropAfter | Duplicate | Answer | StaleList
WatchFault = CutWatch | ExpireWatch | RepeatEvents | ReorderEvents | LateEvents
Fault = RequestFault | WatchFault


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """Which requests a fault is for. What is left out matches everything.

    `resource` is a plural (`pods`) or with its group (`deployments.apps`). `calls` picks matching requests by number,
    the first is 1. `times` is how often the fault happens at most. Faults of watches need no `verbs`.
    """

    fault: Fault = dataclasses.field(kw_only=False)
    verbs: Collection[Verb] = ()
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str | None = None
    calls: Collection[int] = ()
    times: int | None = None
    probability: float = 1.0

    def concerns(self, request: Request) -> bool:
        if isinstance(self.fault, StaleList) and request.verb is not Verb.LIST:
            return False
        if isinstance(self.fault, WatchFault) and request.verb is not Verb.WATCH:
            return False
        if isinstance(self.fault, Duplicate) and request.verb is Verb.WATCH:
            return False
        return (
            (not self.verbs or request.verb in self.verbs)
            and (not self.resource or _names(request, self.resource))
            and (not self.namespace or self.namespace == request.namespace)
            and (not self.name or self.name == request.name)
            and (self.subresource is None or self.subresource == request.subresource)
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Injected:
    """One line of the log."""

    at: float
    request: Request
    fault: Fault

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.request}: {self.fault}"


def storm(rate: float = 0.05, *, resource: str = "") -> tuple[Rule, ...]:
    """A bit of everything that a bad day brings, each at `rate`: for soak tests under many seeds."""
    writes = frozenset(verb for verb in Verb if verb.writes)
    return (
        Rule(Delay(0.0, spread=2.0), resource=resource, probability=rate),
        Rule(DropBefore(), resource=resource, probability=rate),
        Rule(DropBefore(sent=True), resource=resource, probability=rate),
        Rule(DropAfter(), verbs=writes, resource=resource, probability=rate),
        Rule(DropAfter(timeout=10.0), verbs=writes, resource=resource, probability=rate / 2),
        Rule(Duplicate(), verbs=writes, resource=resource, probability=rate / 2),
        Rule(Answer(409, "Conflict"), verbs={Verb.UPDATE, Verb.PATCH}, resource=resource, probability=rate),
        Rule(Answer(429, "TooManyRequests", retry_after=1), resource=resource, probability=rate),
        Rule(Answer(500, "InternalError"), resource=resource, probability=rate),
        Rule(StaleList(), resource=resource, probability=rate),
        Rule(CutWatch(after=5, how=Cut.TORN), resource=resource, probability=rate * 3),
        Rule(CutWatch(after=2, how=Cut.MID_LINE), resource=resource, probability=rate * 3),
        Rule(ExpireWatch(after=3), resource=resource, probability=rate),
        Rule(RepeatEvents(0.1), resource=resource, probability=rate * 3),
    )


class FaultyTransport:
    """`Transport` with faults. Rules are tried in order; delays add up, the first other fault decides."""

    def __init__(
        self,
        inner: Transport,
        rules: Sequence[Rule] = (),
        *,
        seed: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self.inner = inner
        self.log: list[Injected] = []
        self._rules = [_State(rule) for rule in rules]
        self._rng = random.Random(seed)
        self._clock = clock or RealClock()
        self._lists: dict[str, list[Response]] = {}

    def add(self, *rules: Rule) -> None:
        """More faults from now on."""
        self._rules.extend(_State(rule) for rule in rules)

    def clear(self) -> None:
        """No more faults: for the part of a test that shows that everything recovers."""
        self._rules.clear()

    def injected(self, kind: type[Fault] | None = None) -> list[Injected]:
        return [entry for entry in self.log if kind is None or isinstance(entry.fault, kind)]

    async def send(self, request: Request) -> Response:
        fault = await self._fault(request)
        match fault:
            case DropAfter(timeout):
                await self.inner.send(request)
                await self._lose(request, timeout)
            case Duplicate(hear_first):
                first = await self.inner.send(request)
                second = await self.inner.send(request)
                return first if hear_first else second
            case Answer():
                return _response(fault)
            case StaleList(back):
                known = self._lists[request.url]
                return known[-min(back, len(known))]
        answer = await self.inner.send(request)
        self._remember(request, answer)
        return answer

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
        faults = self._watch_faults(request)
        fault = await self._fault(request)
        if isinstance(fault, Answer):
            raise from_status(_status(fault))
        if isinstance(fault, DropAfter):
            await self._lose(request, fault.timeout)
        async with contextlib.AsyncExitStack() as stack:
            lines = await stack.enter_async_context(self.inner.stream(request))
            for watch_fault in faults:
                disturbed = self._disturbed(request, lines, watch_fault)
                lines = await stack.enter_async_context(contextlib.aclosing(disturbed))
            yield lines

    async def close(self) -> None:
        await self.inner.close()

    async def _fault(self, request: Request) -> RequestFault | None:
        """The fault that decides over a request, after all delays."""
        decided: RequestFault | None = None
        for state in self._rules:
            fault = state.rule.fault
            if isinstance(fault, WatchFault) or not state.strikes(request, self._rng):
                continue
            if isinstance(fault, StaleList) and not self._lists.get(request.url):
                continue  # there is no past to show yet
            if isinstance(fault, Delay):
                self._note(state, request)
                await asyncio.sleep(fault.seconds + fault.spread * self._rng.random())
            elif decided is None:
                self._note(state, request)
                decided = fault
        if isinstance(decided, DropBefore):
            raise TransportError(f"{request}: injected fault: dropped before the server", sent=decided.sent)
        return decided

    def _watch_faults(self, request: Request) -> list[WatchFault]:
        found: list[WatchFault] = []
        for state in self._rules:
            fault = state.rule.fault
            if isinstance(fault, WatchFault) and state.strikes(request, self._rng):
                self._note(state, request)
                found.append(fault)
        return found

    async def _lose(self, request: Request, timeout: float) -> None:
        if timeout:
            await asyncio.sleep(timeout)
            raise RequestTimeoutError(f"{request}: injected fault: the answer did not come in time", sent=True)
        raise TransportError(f"{request}: injected fault: the answer was lost", sent=True)

    def _remember(self, request: Request, answer: Response) -> None:
        """Keep answers to lists, as far back as some rule reaches."""
        if request.verb is not Verb.LIST or answer.status != 200:
            return
        depth = max((rule.back for rule in self._faults() if isinstance(rule, StaleList)), default=0)
        if depth:
            known = self._lists.setdefault(request.url, [])
            known.append(answer)
            del known[:-depth]

    def _faults(self) -> list[Fault]:
        return [state.rule.fault for state in self._rules]

    def _note(self, state: _State, request: Request) -> None:
        state.happened += 1
        self.log.append(Injected(self._clock.monotonic(), request, state.rule.fault))

    def _disturbed(
        self, request: Request, lines: AsyncIterator[bytes], fault: WatchFault
    ) -> AsyncGenerator[bytes, None]:
        match fault:
            case CutWatch():
                return _cut(request, lines, fault)
            case ExpireWatch():
                return _expired(lines, fault)
            case RepeatEvents():
                return _repeated(lines, fault, self._rng)
            case ReorderEvents():
                return _reordered(lines, fault, self._rng)
            case LateEvents():
                return _late(lines, fault, self._rng)


@dataclasses.dataclass(slots=True)
class _State:
    """How often a rule was asked and how often its fault happened."""

    rule: Rule
    asked: int = 0
    happened: int = 0

    def strikes(self, request: Request, rng: random.Random) -> bool:
        rule = self.rule
        if not rule.concerns(request):
            return False
        self.asked += 1
        if rule.calls and self.asked not in rule.calls:
            return False
        if rule.times is not None and self.happened >= rule.times:
            return False
        return rule.probability >= 1.0 or rng.random() < rule.probability


async def _cut(request: Request, lines: AsyncIterator[bytes], fault: CutWatch) -> AsyncGenerator[bytes, None]:
    left = fault.after
    # The cut comes where the last line has been handed out, not with the next one, which may be long in coming. Only
    # a cut in the middle of a line needs that line.
    while left > 0 or fault.how is Cut.MID_LINE:
        try:
            line = await anext(lines)
        except StopAsyncIteration:
            return
        if left == 0:
            break
        left -= 1
        yield line
    if fault.how is not Cut.ENDED:
        raise TransportError(f"{request}: injected fault: the watch was cut {fault.how.value}", sent=True)


async def _expired(lines: AsyncIterator[bytes], fault: ExpireWatch) -> AsyncGenerator[bytes, None]:
    left = fault.after
    while left > 0:
        try:
            line = await anext(lines)
        except StopAsyncIteration:
            return
        left -= 1
        yield line
    status = _status(Answer(410, "Expired", "too old resource version: injected fault"))
    yield encode({"type": "ERROR", "object": status})


async def _late(lines: AsyncIterator[bytes], fault: LateEvents, rng: random.Random) -> AsyncGenerator[bytes, None]:
    """Lines are taken as they come, so that a burst of them is not later than a single one."""
    waiting: asyncio.Queue[tuple[float, bytes | BaseException | None]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def read() -> None:
        ended: BaseException | None = None
        try:
            async for line in lines:
                waiting.put_nowait((loop.time() + fault.seconds * rng.random(), line))
        except Exception as error:  # noqa: BLE001
            ended = error
        waiting.put_nowait((loop.time(), ended))

    reading = asyncio.create_task(read(), name="late-watch")
    try:
        while True:
            due, line = await waiting.get()
            if not isinstance(line, bytes):
                if line is not None:
                    raise line
                return
            await asyncio.sleep(max(0.0, due - loop.time()))
            yield line
    finally:
        reading.cancel()
        await asyncio.wait({reading})


async def _repeated(
    lines: AsyncIterator[bytes], fault: RepeatEvents, rng: random.Random
) -> AsyncGenerator[bytes, None]:
    async for line in lines:
        yield line
        if rng.random() < fault.probability:
            yield line


async def _reordered(
    lines: AsyncIterator[bytes], fault: ReorderEvents, rng: random.Random
) -> AsyncGenerator[bytes, None]:
    """The next line is awaited in a task of its own: giving up on it after `hold` must not end the stream."""
    upcoming: asyncio.Task[bytes | None] | None = None
    held: bytes | None = None
    try:
        while True:
            if upcoming is None:
                upcoming = asyncio.ensure_future(_next(lines))
            await asyncio.wait({upcoming}, timeout=None if held is None else fault.hold)
            if not upcoming.done():
                assert held is not None
                yield held
                held = None
                continue
            line, upcoming = upcoming.result(), None
            if line is None:
                break
            if held is None and rng.random() < fault.probability:
                held = line
                continue
            yield line
            if held is not None:
                yield held
                held = None
        if held is not None:
            yield held
    finally:
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.wait({upcoming})


async def _next(lines: AsyncIterator[bytes]) -> bytes | None:
    return await anext(lines, None)


def _names(request: Request, resource: str) -> bool:
    found = request.resource
    return found is not None and resource in (found.plural, found.group_resource)


def _status(answer: Answer) -> Status:
    details = StatusDetails(retry_after_seconds=answer.retry_after)
    return Status(
        kind="Status",
        status="Failure",
        message=answer.message,
        reason=answer.reason,
        code=answer.code,
        details=details,
    )


def _response(answer: Answer) -> Response:
    headers = {"retry-after": str(answer.retry_after)} if answer.retry_after else {}
    return Response(answer.code, answer.body or encode(_status(answer)), headers)
