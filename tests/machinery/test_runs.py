"""What CronJobs and AdvancedCronJobs have in common."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kruise.machinery import cron, runs

START = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
EACH_MINUTE = cron.parse("*/1 * * * *")


def after(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def due(minutes: float, *, deadline: int | None = None, floor: float | None = None) -> runs.Due:
    moment = after(floor) if floor is not None else None
    return runs.due(EACH_MINUTE, anchor=START, deadline=deadline, now=after(minutes), floor=moment)


def test_the_latest_missed_run_is_due() -> None:  # ACJ-53, ACJ-54
    assert due(0.5) == runs.Due(next=after(1))
    assert due(7.5) == runs.Due(missed=after(7), next=after(8))
    assert due(-3) == runs.Due(next=after(-2), is_ahead=True)


@pytest.mark.parametrize(("seconds", "missed"), [(0, None), (20, None), (40, 7), (2**62, 7), (10**18, 7)])
def test_a_deadline_bounds_what_is_made_up_for(seconds: int, missed: float | None) -> None:  # ACJ-53, ACJ-68
    """Also one that no calendar reaches back to."""
    assert due(7.5, deadline=seconds).missed == (after(missed) if missed is not None else None)


def test_what_was_given_up_is_not_due() -> None:  # ACJ-55
    assert due(7.5, floor=7.2).missed is None
    assert due(8, floor=7.2).missed == after(8)


@pytest.mark.parametrize(("minutes", "deadline", "told"), [(100, None, False), (101, None, True), (101, 600, False)])
def test_too_many(minutes: float, deadline: int | None, told: bool) -> None:  # ACJ-55
    assert due(minutes, deadline=deadline).is_too_many is told


@pytest.mark.parametrize(
    ("limit", "gone"), [(None, []), (3, []), (2, ["never"]), (1, ["never", "old"]), (0, ["never", "old", "new"])]
)
def test_the_oldest_go(limit: int | None, gone: list[str]) -> None:  # ACJ-50
    begun = {"new": after(2), "old": after(1), "never": None}
    assert runs.surplus(begun, limit, lambda name: (begun[name], name)) == gone


def test_the_wait_is_until_the_next_run() -> None:  # ACJ-54
    assert runs.wakes_for(None, START) == ()
    assert [wake.after for wake in runs.wakes_for(after(1), START, later=0.1)] == [60.1]
    assert [wake.after for wake in runs.wakes_for(after(600), START)] == [36000]
    assert [wake.after for wake in runs.wakes_for(after(-1), START)] == [0]
