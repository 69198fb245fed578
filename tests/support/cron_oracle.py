"""When a schedule runs, found by another way than ours, from 1970 to 2069. For tests.

The oracle reads a schedule by itself, from the words of the contract. Of a zone it asks how far it is from UTC at a
moment, and nothing else: it cuts the century where that changes, and between two cuts the clock on the wall runs like
any other. What it checks thinks the other way round, from days and times of the wall to moments.
"""

from __future__ import annotations

import functools
import re
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import strategies as st

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


# Schedules to try

MINUTES = st.sampled_from(["0", "30", "59", "7,44", "*/25", "10-50/20", "3/30"])
HOURS = st.sampled_from(["0", "1", "2", "3", "23", "0-3", "1,22-23", "*/9", "5/6"])
DAYS = st.sampled_from(["*", "?", "1", "31", "29,30", "*/1", "*/9", "10-16", "25/2"])
MONTHS = st.sampled_from(["*", "?", "2", "mar-apr", "oct,nov", "*/5", "9/1"])
WEEKDAYS = st.sampled_from(["*", "?", "sun", "mon-fri", "0,6", "*/1", "*/3", "5/1"])
SCHEDULES = st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join)
