"""The work queue: keys, each at most once, each in at most one worker, each wait with a reason.

An event only names a key. The first event of a quiet key opens a short window (20 ms); whatever else happens to that
key until the window closes is the same pass, so a burst of pod events costs one. The window does not slide: no key
waits longer than that. A key that is added while it is in work runs again once it is done.

Delayed adds carry the reason for the wait, and `waiting` tells them to whoever asks. A pass looks at everything, so it
settles all waits of its key: what must be waited for afterwards is said anew by the plan of that pass.

Fresh work goes before retries, so a few failing keys do not hold up the others; a retry that has been ready for some
seconds goes first, so the others do not hold it up for ever.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import heapq
from collections import deque

from kruise.api.meta import Key
from kruise.machinery.clock import Clock
from kruise.machinery.limiter import TokenBucket
from kruise.machinery.metrics import Metrics, QueueMetrics

EVENT = "event"
"""The reason of an add that gives none: something happened."""


class Priority(enum.IntEnum):
    """Lower goes first."""

    FRESH = 0
    RETRY = 1


class QueueShutDown(Exception):  # noqa: N818 - an end, not an error
    """The queue gives out no more keys."""


@dataclasses.dataclass(frozen=True, slots=True)
class DelayedKey:
    """A key that is not due yet, and what it waits for."""

    key: Key
    due_in: float
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Per key: `base` doubled with every retry, up to `maximum`; and the overall cap, where one is wanted."""

    base: float = 0.005
    maximum: float = 1000.0
    overall: TokenBucket | None = None

    def delay(self, retries: int) -> float:
        # 2 ** 60 is past any maximum; larger exponents overflow.
        own = min(self.maximum, self.base * 2.0 ** min(retries, 60))
        return own if self.overall is None else max(own, self.overall.reserve())


class _Entry:
    """What is known about a key that waits, is ready, or is in work."""

    __slots__ = ("began", "priority", "ready_since", "ticket", "waits")

    def __init__(self) -> None:
        self.waits: dict[str, tuple[float, Priority]] = {}
        """Reason -> due, and how urgent it is then."""
        self.priority = Priority.RETRY
        """Its line, while it is ready."""
        self.ticket = 0
        """The entry's only valid place in the heap or a line; older places are void."""
        self.ready_since: float | None = None
        self.began: float | None = None
        """Since when it is in work."""

    @property
    def due(self) -> float:
        return min((due for due, _ in self.waits.values()), default=float("inf"))


class Queue:
    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        window: float = 0.02,
        backoff: Backoff | None = None,
        patience: float = 5.0,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._window = window
        self._backoff = backoff or Backoff()
        self._patience = patience
        self._metrics = metrics or Metrics().queue(name)
        self._metrics.observe(lambda: float(len(self)), self._unfinished, self._longest)
        self._entries: dict[Key, _Entry] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._lines: dict[Priority, deque[tuple[int, Key]]] = {priority: deque() for priority in Priority}
        self._ready = 0
        self._tickets = 0
        self._retries: dict[Key, int] = {}
        self._paces: dict[Key, float] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._shut = False

    def __len__(self) -> int:
        """Keys that could be worked on right now."""
        return self._ready

    def add(
        self, key: Key, *, priority: Priority = Priority.FRESH, after: float | None = None, reason: str = ""
    ) -> None:
        """Ask for a pass over `key`: at the end of its window, or `after` some seconds.

        Of several adds for the same reason the earliest counts; the key runs at the earliest of all.
        """
        if self._shut:
            return
        self._metrics.adds.inc()
        wait = max(self._window, self._paces.get(key, 0.0)) if after is None else max(0.0, after)
        due = self._clock.monotonic() + wait
        reason = reason or EVENT
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        if entry.ready_since is not None:
            if priority < entry.priority:
                entry.priority = priority
                self._line_up(key, entry)
            return
        known_due, known_priority = entry.waits.get(reason, (float("inf"), priority))
        if known_due <= due and known_priority <= priority:
            return  # in a burst nearly every add: nothing is new
        before = entry.due
        entry.waits[reason] = (min(due, known_due), min(priority, known_priority))
        if entry.began is None and due < before:
            self._schedule(key, entry, due)

    def pace(self, key: Key, seconds: float) -> None:
        """How long a burst over this key may be gathered: a key whose passes are dear has fewer of them."""
        if seconds > self._window:
            self._paces[key] = seconds
        else:
            self._paces.pop(key, None)

    def retry(self, key: Key, reason: str) -> float:
        """Ask for another try with back-off; returns the delay."""
        count = self._retries.get(key, 0)
        self._retries[key] = count + 1
        delay = self._backoff.delay(count)
        self._metrics.retries.inc()
        self.add(key, priority=Priority.RETRY, after=delay, reason=reason)
        return delay

    def forget(self, key: Key) -> None:
        """The key did well: its next retry starts at the shortest delay again."""
        self._retries.pop(key, None)

    def retries(self, key: Key) -> int:
        return self._retries.get(key, 0)

    async def get(self) -> Key:
        """The next key; it is the caller's alone until `done`. Raises `QueueShutDown` at the end."""
        while True:
            if self._shut:
                raise QueueShutDown(self.name)
            self._advance()
            key = self._take()
            if key is not None:
                return key
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter in self._getters:
                    self._getters.remove(getter)
                elif not getter.cancelled():
                    self._wake()  # it was told of a key that it will not take
                raise

    def done(self, key: Key) -> None:
        """The pass over `key` is over. Runs it again if it was added meanwhile."""
        entry = self._entries.get(key)
        if entry is None or entry.began is None:
            raise ValueError(f"queue {self.name}: {key} is not in work; call done once per get")
        self._metrics.worked.observe(self._clock.monotonic() - entry.began)
        entry.began = None
        if entry.waits:
            self._schedule(key, entry, entry.due)
        else:
            del self._entries[key]

    def waiting(self) -> list[DelayedKey]:
        """Every wait, the earliest first; keys that are ready or due have none left."""
        now = self._clock.monotonic()
        waits = [
            DelayedKey(key, max(0.0, due - now), reason)
            for key, entry in self._entries.items()
            for reason, (due, _) in entry.waits.items()
        ]
        return sorted(waits, key=lambda wait: (wait.due_in, wait.key, wait.reason))

    def shut_down(self) -> None:
        """Give out no more keys. Whoever leads next lists everything anyway, so what is queued may be dropped."""
        self._shut = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._getters:
            self._wake()

    def _schedule(self, key: Key, entry: _Entry, due: float) -> None:
        self._tickets += 1
        entry.ticket = self._tickets
        if due <= self._clock.monotonic():
            self._make_ready(key, entry)
            return
        heapq.heappush(self._heap, (due, entry.ticket, key))
        self._arm()

    def _make_ready(self, key: Key, entry: _Entry) -> None:
        now = self._clock.monotonic()
        # An event that is still inside its window is part of this pass, and as urgent as ever.
        entry.priority = min(priority for due, priority in entry.waits.values() if due <= now + self._window)
        entry.waits.clear()
        entry.ready_since = now
        self._ready += 1
        self._line_up(key, entry)

    def _line_up(self, key: Key, entry: _Entry) -> None:
        self._tickets += 1
        entry.ticket = self._tickets
        self._lines[entry.priority].append((entry.ticket, key))
        self._wake()

    def _advance(self) -> None:
        """Move what is due from the heap to the lines, then set the timer for the next."""
        now = self._clock.monotonic()
        while self._heap:
            due, ticket, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is None or entry.ticket != ticket:
                heapq.heappop(self._heap)
            elif due <= now:
                heapq.heappop(self._heap)
                self._make_ready(key, entry)
            else:
                break
        self._arm()

    def _arm(self) -> None:
        if not self._heap or self._shut:
            return
        due = self._heap[0][0]
        if self._timer is not None:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # filled before the loop runs: the first `get` sets the timer
        self._timer_at = due
        self._timer = loop.call_later(max(0.0, due - self._clock.monotonic()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._advance()

    def _take(self) -> Key | None:
        now = self._clock.monotonic()
        heads = [head for line in self._lines.values() if (head := self._head(line)) is not None]
        if not heads:
            return None
        overdue = [head for head in heads if now - head[2] > self._patience]
        if overdue:
            key, entry, since = min(overdue, key=lambda head: head[2])
        else:
            key, entry, since = min(heads, key=lambda head: head[1].priority)
        self._lines[entry.priority].popleft()
        self._ready -= 1
        self._metrics.waited.observe(now - since)
        entry.ready_since = None
        entry.began = now
        entry.ticket = 0
        return key

    def _head(self, line: deque[tuple[int, Key]]) -> tuple[Key, _Entry, float] | None:
        while line:
            ticket, key = line[0]
            entry = self._entries.get(key)
            if entry is not None and entry.ticket == ticket and entry.ready_since is not None:
                return key, entry, entry.ready_since
            line.popleft()
        return None

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _unfinished(self) -> float:
        now = self._clock.monotonic()
        return sum(now - entry.began for entry in self._entries.values() if entry.began is not None)

    def _longest(self) -> float:
        now = self._clock.monotonic()
        return max((now - entry.began for entry in self._entries.values() if entry.began is not None), default=0.0)
