"""Time as a parameter: a real clock, and an event loop on which time jumps instead of passing.

Code that waits uses `asyncio.sleep`, `asyncio.timeout` and `loop.call_later` as usual. Code that reads the time takes
a `Clock`. On a `VirtualLoop` the loop's own time jumps to the next timer as soon as nothing is left to run, and a
`VirtualClock` follows it, so an hour of waiting takes no time and gives the same result each time.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_HAS_BOOT_TIME = hasattr(time, "CLOCK_BOOTTIME")

VIRTUAL_EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, in UTC: for timestamps that people and other processes see. May jump."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back: for deadlines and durations."""


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # Counts on while the machine sleeps: a lease does not wait for a suspended laptop or a paused VM.
        return time.clock_gettime(time.CLOCK_BOOTTIME) if _HAS_BOOT_TIME else time.monotonic()


class VirtualClock:
    """Wall time of a virtual loop: `epoch` at the loop's time 0. `shift` makes wall time jump, as NTP does."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: datetime = VIRTUAL_EPOCH) -> None:
        self._loop = loop
        self._epoch = epoch

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return self._loop.time()

    def shift(self, seconds: float) -> None:
        self._epoch += timedelta(seconds=seconds)


class ManualClock:
    """A clock that stands still until it is moved: for pure tests."""

    def __init__(self, start: datetime = VIRTUAL_EPOCH) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds


class _JumpingSelector(selectors.BaseSelector):
    """Waits for no one: where a real selector would block until the next timer, it moves the time there."""

    def __init__(self) -> None:
        self._inner = selectors.DefaultSelector()
        self.now = 0.0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_map(self) -> Any:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            # Nothing is ready and no timer is set: on real time this would hang for ever.
            raise DeadlockError("every task waits and no timer is set: nothing can ever happen on this virtual loop")
        ready = self._inner.select(0)
        if not ready and timeout > 0:
            self.now += timeout
        return ready


class DeadlockError(RuntimeError):
    """All tasks of a virtual loop wait for each other."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps from timer to timer. It has no threads and no sockets to wait for."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
