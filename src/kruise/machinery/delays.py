"""Delays that double from one failure of a thing to its next (pure), and who keeps them between two passes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kruise.machinery.codec import Struct

LONGEST_WAIT: Final = 600.0
"""Seconds from a look at an object that waits for a moment to the next. A clock that is set meanwhile is noticed by
then; a look costs next to nothing."""


class Delay(Struct):
    """How long to wait after the last failure."""

    seconds: float
    since: datetime


def next_delay(before: Delay | None, now: datetime, *, first: float, most: float) -> Delay:
    """The delay after one more failure."""
    if before is None or is_over(before, now, most=most):
        return Delay(seconds=first, since=now)
    return Delay(seconds=min(before.seconds * 2, most), since=now)


def seconds_left(delay: Delay | None, now: datetime) -> float:
    """Nobody waits for a moment that has yet to come a second time: a clock that was set back ends the delay."""
    if delay is None or now < delay.since:
        return 0.0
    return max(0.0, delay.seconds - (now - delay.since).total_seconds())


def is_over(delay: Delay, now: datetime, *, most: float) -> bool:
    """It went well for so long that the next failure is a first one."""
    return (now - delay.since).total_seconds() > 2 * most


class KeptDelays:
    """The delays of the parts of some objects. Another key, such as a new generation of an object, begins anew."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._known: dict[tuple[str, int], dict[str, Delay]] = {}

    def of(self, key: tuple[str, int]) -> dict[str, Delay]:
        return dict(self._known.get(key, {}))

    def note(self, key: tuple[str, int], delays: dict[str, Delay], now: datetime) -> None:
        if not delays:
            return
        self._known.setdefault(key, {}).update(delays)
        for one, by_part in list(self._known.items()):
            current = {part: delay for part, delay in by_part.items() if not is_over(delay, now, most=self._most)}
            if current:
                self._known[one] = current
            else:
                del self._known[one]
