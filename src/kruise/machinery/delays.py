"""Delays that double from one failure of a thing to its next (pure): somebody else keeps them between two passes."""

from __future__ import annotations

from datetime import datetime

from kruise.machinery.codec import Struct


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
    return max(0.0, delay.seconds - (now - delay.since).total_seconds()) if delay is not None else 0.0


def is_over(delay: Delay, now: datetime, *, most: float) -> bool:
    """It went well for so long that the next failure is a first one."""
    return (now - delay.since).total_seconds() > 2 * most
