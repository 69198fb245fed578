"""How many writes may be in flight, found out by watching how the server takes them.

There is no fixed rate: the API server is the limit, and it says so. The limit starts at 8 and grows by one with every
answer (doubling per round trip) until the first sign of trouble, from then on by one per round trip. It halves when
the server refuses or gives up (429, 503, time-outs), and shrinks by a tenth when writes become slow because of us.

Why these numbers: a real API server on two cores is busy with about 40 writes in flight, and the default of
`--max-mutating-requests-inflight` is 200, so 64 is enough to keep a server busy and leaves two thirds for everybody
else. From 8 the limit is past 40 after three round trips, so the slow start costs nothing one could measure.

Latency counts as rising only past 0.12 seconds *and* three times the best latency seen lately. Below that more writes
in flight fill the server's own queue, which is where throughput comes from (etcd commits in groups); beyond it they
only wait there, and with them the next pods of a rollout. Comparing with the best latency keeps a slow webhook, which
delays every write however few there are, from choking us.
"""

from __future__ import annotations

import asyncio
from collections import deque

from kruise.machinery.clock import Clock
from kruise.machinery.guards import Load
from kruise.machinery.plan import Urgency


class TokenBucket:
    """A cap of `rate` per second with bursts of `burst`; callers are told how long to wait for their turn."""

    def __init__(self, *, rate: float, burst: int, clock: Clock) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs a rate above 0 and a burst of at least 1, got {rate} and {burst}")
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._at = clock.monotonic()

    def reserve(self) -> float:
        """Take a token, if need be one of the future; the seconds until it may be used."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1.0
        self._at = now
        return max(0.0, -self._tokens / self._rate)


Waiters = deque[asyncio.Future[bool]]

_PATIENCE = {Urgency.SOON: 3, Urgency.USUAL: 3, Urgency.LATER: 7}
"""How often others may go before a line that has somebody in it. What was begun (`NOW`) goes before all. With more
patience, the room that a ready pod makes would be used a dozen writes later; with less, pods would be out of service
for longer."""


class WriteLimiter:
    """Bounded, adaptive concurrency. `acquire` before a write, `release` with what its answer said after it."""

    def __init__(
        self,
        *,
        clock: Clock,
        initial: int = 8,
        minimum: int = 1,
        maximum: int = 64,
        bucket: TokenBucket | None = None,
        slow_after: float = 0.12,
        slow_factor: float = 3.0,
        memory: float = 30.0,
    ) -> None:
        if not 1 <= minimum <= initial <= maximum:
            raise ValueError(f"need 1 <= minimum <= initial <= maximum, got {minimum}, {initial} and {maximum}")
        self.maximum = maximum
        self._clock = clock
        self._minimum = minimum
        # With so few in flight, slowness is not our doing.
        self._latency_floor = initial
        self._limit = float(initial)
        self._slow_start = True
        self._bucket = bucket
        self._slow_after = slow_after
        self._slow_factor = slow_factor
        self._memory = memory
        self._in_flight = 0
        self._lines: dict[Urgency, Waiters] = {urgency: deque() for urgency in Urgency}
        self._left_behind = dict.fromkeys(Urgency, 0)
        """How often others went before each line since it had its turn."""
        self._lowered_at = float("-inf")
        self._smoothed = 0.0
        self._best = float("inf")
        self._best_before = float("inf")
        self._best_since = clock.monotonic()

    @property
    def limit(self) -> int:
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    async def acquire(self, *, until: float | None = None, urgency: Urgency = Urgency.USUAL) -> float | None:
        """Wait for a slot; the moment to hand back to `release`, or None where there was no slot `until` then."""
        if self._bucket is not None:
            wait = self._bucket.reserve()
            if wait > 0:
                await asyncio.sleep(wait)
        if self._in_flight < self.limit and not any(self._lines.values()):
            self._in_flight += 1
            return self._clock.monotonic()
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        self._lines[urgency].append(turn)
        timer = None
        if until is not None:
            timer = loop.call_later(max(0.0, until - self._clock.monotonic()), _too_late, turn)
        try:
            has_slot = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                # The slot was ours already when we were cancelled: pass it on.
                self._in_flight -= 1
                self._hand_out()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return self._clock.monotonic() if has_slot else None

    def release(self, began: float, load: Load) -> None:
        now = self._clock.monotonic()
        if load is Load.OVERLOADED:
            self._lower(began, now, 0.5, self._minimum)
            self._slow_start = False
        elif load is Load.FINE:
            self._learn(began, now)
        self._in_flight -= 1
        self._hand_out()

    def _learn(self, began: float, now: float) -> None:
        latency = now - began
        if now - self._best_since > self._memory:
            self._best_before, self._best, self._best_since = self._best, float("inf"), now
        self._best = min(self._best, latency)
        self._smoothed += (latency - self._smoothed) * 0.1
        if self._smoothed > max(self._slow_after, self._slow_factor * min(self._best, self._best_before)):
            self._slow_start = False
            self._lower(began, now, 0.9, self._latency_floor)
        elif self._in_flight >= self.limit:
            # A limit that nobody reaches has proved nothing and stays where it is.
            step = 1.0 if self._slow_start else 1.0 / self._limit
            self._limit = min(float(self.maximum), self._limit + step)

    def _lower(self, began: float, now: float, factor: float, floor: int) -> None:
        # Answers to writes that began before the last cut tell of the old limit: one cut per round trip.
        if began < self._lowered_at or self._limit <= floor:
            return
        self._limit = max(float(floor), self._limit * factor)
        self._lowered_at = now

    def _hand_out(self) -> None:
        while self._in_flight < self.limit and (line := self._next_line()):
            turn = line.popleft()
            if not turn.done():  # those who gave up stay in the line until their turn comes
                self._in_flight += 1
                turn.set_result(True)

    def _next_line(self) -> Waiters | None:
        waiting = [urgency for urgency in Urgency if self._lines[urgency]]
        if not waiting:
            return None
        chosen = waiting[0]
        for urgency in waiting[1:]:
            self._left_behind[urgency] += 1
            if self._left_behind[urgency] > _PATIENCE[urgency]:
                chosen = urgency
        self._left_behind[chosen] = 0
        return self._lines[chosen]


def _too_late(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)
