"""Every moment of a century, 1970 to 2069, against an oracle that shares nothing with what it checks but the database
of time zones (`tests.support.cron_oracle`).

- `test_every_moment_of_a_century`: all moments of chosen schedules, in zones with every sort of change.
- `test_any_schedule_in_any_zone`: random schedules in random zones of all that there are, some years of the century.
- `test_every_change_of_the_clocks`: every change of a century in chosen zones, minute by minute.

`KRUISE_EXAMPLES` asks for more of the random ones, and for every change in every zone.
"""

from __future__ import annotations

import zoneinfo
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.cron import HORIZON_YEARS, Calendar, parse
from tests.support.cron_oracle import (
    BEGIN,
    DAY,
    END,
    EVERY_ZONE,
    MINUTE,
    SCHEDULES,
    SECOND,
    ZONES,
    moments,
    read,
    stretches,
)
from tests.support.examples import EXAMPLES, story_settings

# Against it


def calendar(schedule: str, zone: str) -> Calendar:
    rule = parse(schedule, zone).rule
    assert isinstance(rule, Calendar)
    return rule


def forwards(rule: Calendar, begin: datetime, end: datetime) -> Iterator[datetime]:
    moment = rule.next(begin - SECOND)
    while moment is not None and moment < end:
        yield moment
        moment = rule.next(moment)


def test_the_oracle_itself() -> None:
    """By hand: summer time in New York ended on 5 November 2023 at 06:00 UTC, and Apia had no 30 December 2011."""
    assert [one.begin for one in stretches("America/New_York") if one.begin.year == 2023] == [
        datetime(2023, 3, 12, 7, tzinfo=UTC),
        datetime(2023, 11, 5, 6, tzinfo=UTC),
    ]
    assert len(stretches("UTC")) == 1
    found = list(moments("30 1 5 11 *", "America/New_York"))
    assert [one for one in found if one.year == 2023] == [
        datetime(2023, 11, 5, 5, 30, tzinfo=UTC),
        datetime(2023, 11, 5, 6, 30, tzinfo=UTC),
    ]
    assert not [one for one in moments("0 12 30 12 *", "Pacific/Apia") if one.year == 2011]
    words = read("5,10-20/5,50/3 ? */2 feb-apr,dec sun")
    assert words.minutes == {5, 10, 15, 20, 50, 53, 56, 59}
    assert (len(words.hours), words.months, words.weekdays) == (24, {2, 3, 4, 12}, {0})
    assert not words.wants_both


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [
        ("30 2 * * *", "America/New_York"),
        ("1 0 * * *", "America/St_Johns"),
        ("0 0 * * ?", "America/Sao_Paulo"),
        ("45 1 * 4,10 *", "Australia/Lord_Howe"),
        ("0 0 30,31 12 *", "Pacific/Apia"),
        ("30 2 * 3-11 sun", "Africa/Casablanca"),
        ("59 23,0 */7 jan-may *", "Africa/Monrovia"),
        ("15 1 */2 mar,oct sun", "Europe/Dublin"),
        ("0 0 29 2 *", "UTC"),
        ("0 0,2 1,15 * 1", "America/St_Johns"),
    ],
)
def test_every_moment_of_a_century(schedule: str, zone: str) -> None:  # ACJ-21, ACJ-22, ACJ-25, ACJ-26
    rule = calendar(schedule, zone)
    expected = list(moments(schedule, zone))
    assert list(forwards(rule, BEGIN, END)) == expected
    for place in range(1, len(expected), 97):
        earlier, later = expected[place - 1 : place + 1]
        assert rule.last(later - SECOND, after=BEGIN - DAY) == earlier
        assert rule.last(later, after=BEGIN - DAY) == later
        assert rule.last(later, after=later) is None


@story_settings(25)
@given(schedule=SCHEDULES, zone=st.sampled_from(EVERY_ZONE), year=st.integers(1970, 2060))
def test_any_schedule_in_any_zone(schedule: str, zone: str, year: int) -> None:  # ACJ-21, ACJ-22, ACJ-25, ACJ-26
    """And where there is none for years, there is no next one."""
    begin, end = datetime(year, 1, 2, tzinfo=UTC), datetime(year + 2, 1, 2, tzinfo=UTC)
    rule = calendar(schedule, zone)
    assert list(forwards(rule, begin, end)) == list(moments(schedule, zone, begin, end))
    far = datetime(year + HORIZON_YEARS, 12, 30, tzinfo=UTC)
    assert rule.next(begin - SECOND) == next(moments(schedule, zone, begin, far), None)


@pytest.mark.parametrize("zone", ZONES if EXAMPLES == 1 else EVERY_ZONE)
def test_every_change_of_the_clocks(zone: str) -> None:  # ACJ-26
    """Half a day before and after: what a watch on the wall shows, minute by minute."""
    place = zoneinfo.ZoneInfo(zone)
    found = stretches(zone)
    step = MINUTE if all(one.offset.seconds % 60 == 0 for one in found) else SECOND * 30
    for stretch in found[1:]:
        begin, end = stretch.begin - DAY / 2, stretch.begin + DAY / 2
        shown: dict[tuple[int, int], list[datetime]] = defaultdict(list)
        for count in range(int(DAY / step)):
            moment = begin + count * step
            wall = moment.astimezone(place)
            if wall.second == 0:
                shown[wall.hour, wall.minute].append(moment)
        change = stretch.begin.astimezone(place).replace(tzinfo=None)
        around = [change + minutes * MINUTE for minutes in (-61, -60, -31, -30, -1, 0, 1, 29, 30)]
        for hour, minute in {*((one.hour, one.minute) for one in around), (0, 0), (23, 59)}:
            rule = calendar(f"{minute} {hour} * * *", zone)
            assert list(forwards(rule, begin, end)) == shown[hour, minute], f"{zone} {change} {hour}:{minute}"


@story_settings(40)
@given(
    schedule=SCHEDULES, zone=st.sampled_from(ZONES), start=st.integers(0, 90 * 365 * 86400), limit=st.integers(0, 120)
)
def test_last_and_counting(schedule: str, zone: str, start: int, limit: int) -> None:  # ACJ-53, ACJ-55
    """The latest that was missed, and whether there were too many, from any second to any other."""
    after = BEGIN + timedelta(seconds=start)
    until = after + timedelta(days=200, seconds=start % 86400)
    found = list(moments(schedule, zone, after - DAY, until + DAY))
    between = found[bisect_right(found, after) : bisect_right(found, until)]
    rule = parse(schedule, zone)
    assert rule.last(until, after=after, anchor=after) == (between[-1] if between else None)
    assert rule.is_more_than(limit, after=after, until=until, anchor=after) == (len(between) > limit)
    following = found[bisect_left(found, until + SECOND) :]
    assert not following or rule.next(until, anchor=after) == following[0]
