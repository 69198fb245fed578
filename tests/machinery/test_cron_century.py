"""Every moment of a century, 1970 to 2069, against an oracle that shares nothing with what it checks but the database
of time zones.

The oracle reads a schedule by itself, from the words of the contract. Of a zone it asks how far it is from UTC at a
moment, and nothing else: it cuts the century where that changes, and between two cuts the clock on the wall runs like
any other. What is checked thinks the other way round, from days and times of the wall to moments.

- `test_every_moment_of_a_century`: all moments of chosen schedules, in zones with every sort of change.
- `test_any_schedule_in_any_zone`: random schedules in random zones of all that there are, some years of the century.
- `test_every_change_of_the_clocks`: every change of a century in chosen zones, minute by minute.

`KRUISE_EXAMPLES` asks for more of the random ones, and for every change in every zone.
"""

from __future__ import annotations

import functools
import re
import zoneinfo
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.cron import HORIZON_YEARS, Calendar, parse
from tests.support.examples import EXAMPLES, story_settings

BEGIN, END = datetime(1970, 1, 1, tzinfo=UTC), datetime(2070, 1, 1, tzinfo=UTC)
DAY, MINUTE, SECOND = timedelta(days=1), timedelta(minutes=1), timedelta(seconds=1)
"""Nowhere are clocks changed twice on a day, and half a day before a change is another time of that clock."""
ZONES = (
    "America/New_York",
    "America/St_Johns",  # a minute after midnight, and once by two hours
    "America/Sao_Paulo",  # at midnight, which does not exist then
    "Australia/Lord_Howe",  # by half an hour
    "Pacific/Apia",  # by a day, over the date line
    "Africa/Casablanca",  # four times a year
    "Africa/Monrovia",  # 44 minutes and 30 seconds behind UTC until 1972
    "Europe/Dublin",  # winter is the exception
)
EVERY_ZONE = sorted(zoneinfo.available_timezones() - {"localtime", "posixrules", "Factory"})


# The oracle

RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
NAMES = {name: number for names, low in ((MONTH_NAMES, 1), (DAY_NAMES, 0)) for number, name in enumerate(names, low)}


class Words(NamedTuple):
    """What the fields of a schedule allow."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    wants_both: bool
    """Day and weekday, since one of them is a star (ACJ-22)."""

    def allow(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        found = (day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays)
        return all(found) if self.wants_both else any(found)


def read(schedule: str) -> Words:
    fields = schedule.split()
    allowed = [frozenset(_allowed(field, *span)) for field, span in zip(fields, RANGES, strict=True)]
    stars = [re.fullmatch(r"[*?](/1)?", item) for field in (fields[2], fields[4]) for item in field.split(",")]
    return Words(*allowed, wants_both=any(stars))  # type: ignore[arg-type]


def _allowed(field: str, low: int, high: int) -> Iterator[int]:
    for item in filter(None, field.split(",")):
        base, _, step = item.partition("/")
        first, _, last = base.partition("-")
        if first in ("*", "?"):
            begin, end = low, high
        else:
            begin = _number(first)
            end = _number(last) if last else high if step else begin
        yield from (value for value in range(begin, end + 1) if (value - begin) % int(step or 1) == 0)


def _number(text: str) -> int:
    return NAMES[text] if text in NAMES else int(text)


class Stretch(NamedTuple):
    """A time over which a zone is as far from UTC, up to its end."""

    begin: datetime
    end: datetime
    offset: timedelta


@functools.cache
def stretches(zone: str) -> tuple[Stretch, ...]:
    place = zoneinfo.ZoneInfo(zone)

    def offset(moment: datetime) -> timedelta:
        found = moment.astimezone(place).utcoffset()
        assert found is not None
        return found

    found, begin, before, now = [], BEGIN, BEGIN, BEGIN
    while before < END:
        now = min(before + DAY, END)
        if offset(now) != offset(before):
            low, high = before, now
            while high - low > SECOND:
                middle = low + (high - low) // 2
                middle = middle.replace(microsecond=0) if middle.replace(microsecond=0) > low else low + SECOND
                low, high = (middle, high) if offset(middle) == offset(before) else (low, middle)
            found.append(Stretch(begin, high, offset(before)))
            begin = high
        before = now
    return (*found, Stretch(begin, END, offset(begin)))


def moments(schedule: str, zone: str, begin: datetime = BEGIN, end: datetime = END) -> Iterator[datetime]:
    words = read(schedule)
    times = [timedelta(hours=hour, minutes=minute) for hour in sorted(words.hours) for minute in sorted(words.minutes)]
    for stretch in stretches(zone):
        first, last = max(stretch.begin, begin), min(stretch.end, end)
        if first >= last:
            continue
        day = (first + stretch.offset).replace(hour=0, minute=0, second=0)
        while day - stretch.offset < last:
            if words.allow(day):
                for clock in times:
                    moment = day + clock - stretch.offset
                    if first <= moment < last:
                        yield moment
            day += DAY


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


MINUTES = st.sampled_from(["0", "30", "59", "7,44", "*/25", "10-50/20", "3/30"])
HOURS = st.sampled_from(["0", "1", "2", "3", "23", "0-3", "1,22-23", "*/9", "5/6"])
DAYS = st.sampled_from(["*", "?", "1", "31", "29,30", "*/1", "*/9", "10-16", "25/2"])
MONTHS = st.sampled_from(["*", "?", "2", "mar-apr", "oct,nov", "*/5", "9/1"])
WEEKDAYS = st.sampled_from(["*", "?", "sun", "mon-fri", "0,6", "*/1", "*/3", "5/1"])
SCHEDULES = st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join)


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
