"""Delays between tries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kruise.machinery.delays import Delay, next_delay, seconds_left

START = datetime(2030, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_they_double_up_to_a_bound_and_begin_anew() -> None:
    delay: Delay | None = None
    seconds = []
    for place in range(4):
        delay = next_delay(delay, after(place), first=1, most=5)
        seconds.append(delay.seconds)
    assert seconds == [1, 2, 4, 5]
    assert next_delay(delay, after(14), first=1, most=5).seconds == 1


def test_what_is_left() -> None:
    assert seconds_left(None, START) == 0
    delay = Delay(seconds=10, since=START)
    assert [seconds_left(delay, after(place)) for place in (0, 4, 10, 20)] == [10, 6, 0, 0]


def test_a_clock_that_was_set_back_keeps_nobody_waiting() -> None:
    assert seconds_left(Delay(seconds=10, since=START), after(-3600)) == 0
