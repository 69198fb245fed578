"""Schedules in the language of Go's robfig/cron, as CronJobs and AdvancedCronJobs have them. Pure.

    [TZ=<zone> | CRON_TZ=<zone>] <minute> <hour> <day of month> <month> <day of week>
    [TZ=<zone> | CRON_TZ=<zone>] @hourly | @daily | @midnight | @weekly | @monthly | @yearly | @annually
    @every <duration>

A schedule matches the wall clock of its zone: what a change to summer time skips does not run that day, what the change
back repeats runs twice. `@every` has no calendar: its moments are a grid that begins where it is anchored.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import re
import zoneinfo
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from kruise.machinery.times import TimeError, parse_go_duration_nanoseconds

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_PREFIXES: Final = ("TZ=", "CRON_TZ=")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_MAX_INT: Final = 2**63 - 1
_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)
_NANOSECONDS: Final = 10**9
_EARLIEST: Final = datetime(2, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
"""Days and years are counted from there, and the longest period has centuries."""

HORIZON_YEARS: Final = 5
"""Where a schedule matches nothing for so long, it has no next time."""


class ScheduleError(ValueError):
    """A schedule cannot be understood; the text says why, in the words of the parser that Kubernetes uses."""


class _Bounds(NamedTuple):
    low: int
    high: int
    names: Mapping[str, int]


_FIELDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    values: frozenset[int]
    is_star: bool
    """It has an unstepped star."""


@dataclasses.dataclass(frozen=True, slots=True)
class Calendar:
    """Minutes of the wall clock in a zone."""

    minutes: tuple[int, ...]
    """Of a day that matches, counted from midnight, in order."""
    days: _Field
    months: frozenset[int]
    weekdays: _Field
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """The first moment after that one; None where there is none within years."""
        local = after.astimezone(self.zone)
        # One day before: where clocks are set back over midnight, the day before comes again.
        day, last_year = local.date() - _DAY, local.year + HORIZON_YEARS
        while day.year <= last_year:
            if day.month not in self.months:
                day = _next_month(day)
                continue
            found = self._first(day, after)
            if found is not None:
                return found
            day += _DAY
        return None

    def last(self, until: datetime, *, after: datetime) -> datetime | None:
        """The last moment up to `until`, that one included, and after `after`."""
        day, first = until.astimezone(self.zone).date(), after.astimezone(self.zone).date() - _DAY
        found = self._last(day, until)
        while found is None and day >= first:
            day = day.replace(day=1) - _DAY if day.month not in self.months else day - _DAY
            found = self._last(day, until)
        return found if found is not None and found > after else None

    def _first(self, day: date, after: datetime) -> datetime | None:
        if not has_one_offset(self.zone, day):
            return min((moment for moment in self._irregular(day) if moment > after), default=None)
        if not self._matches(day):
            return None
        start = _start_of(day, self.zone)
        index = bisect.bisect_right(self.minutes, (after - start) / _MINUTE)
        return start + self.minutes[index] * _MINUTE if index < len(self.minutes) else None

    def _last(self, day: date, until: datetime) -> datetime | None:
        if not has_one_offset(self.zone, day):
            return max((moment for moment in self._irregular(day) if moment <= until), default=None)
        if not self._matches(day):
            return None
        start = _start_of(day, self.zone)
        index = bisect.bisect_right(self.minutes, (until - start) / _MINUTE)
        return start + self.minutes[index - 1] * _MINUTE if index > 0 else None

    def _irregular(self, day: date) -> Iterator[datetime]:
        """The moments of a day on which the clocks are changed, and those of the next, of which some may come before:
        clocks may be set back over midnight."""
        for one in (day, day + _DAY):
            if self._matches(one):
                yield from self._moments(one)

    def _moments(self, day: date) -> Iterator[datetime]:
        for minute in self.minutes:
            clock = time(*divmod(minute, 60))
            wall = datetime.combine(day, clock, self.zone)
            for moment in {wall.astimezone(UTC), wall.replace(fold=1).astimezone(UTC)}:
                if moment.astimezone(self.zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
                    yield moment

    def _matches(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day = day.day in self.days.values
        by_weekday = day.isoweekday() % 7 in self.weekdays.values
        if self.days.is_star or self.weekdays.is_star:
            return by_day and by_weekday
        return by_day or by_weekday


@dataclasses.dataclass(frozen=True, slots=True)
class Every:
    """A period, without a calendar."""

    seconds: int

    def grid(self, anchor: datetime, at: datetime) -> int:
        """How many periods are over since the anchor."""
        return int((at - anchor) // timedelta(seconds=self.seconds))

    def moment(self, anchor: datetime, number: int) -> datetime:
        return anchor + timedelta(seconds=self.seconds * number)


Rule = Calendar | Every


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """The moments of a schedule. `anchor` is where the grid of a period begins; a calendar needs none."""

    rule: Rule
    zone: str = "UTC"
    """Where its clock hangs, by name."""

    def next(self, after: datetime, *, anchor: datetime) -> datetime | None:
        """The first moment after that one; None where there is none within years."""
        after, start = within_calendar(after), whole_second(within_calendar(anchor))
        if isinstance(self.rule, Calendar):
            return self.rule.next(after)
        return self.rule.moment(start, max(self.rule.grid(start, after), 0) + 1)

    def last(self, until: datetime, *, after: datetime, anchor: datetime) -> datetime | None:
        """The last moment up to `until`, that one included, and after `after`; None where there is none."""
        until, after, start = within_calendar(until), within_calendar(after), whole_second(within_calendar(anchor))
        if isinstance(self.rule, Calendar):
            return self.rule.last(until, after=after)
        number = self.rule.grid(start, until)
        found = self.rule.moment(start, number)
        return found if number >= 1 and found > after else None

    def is_more_than(self, limit: int, *, after: datetime, until: datetime, anchor: datetime) -> bool:
        """Whether there are more than so many moments in between, the last one included."""
        until, after, start = within_calendar(until), within_calendar(after), whole_second(within_calendar(anchor))
        if isinstance(self.rule, Every):
            return self.rule.grid(start, until) - max(self.rule.grid(start, after), 0) > limit
        moment: datetime | None = after
        for _ in range(limit + 1):
            moment = self.rule.next(moment) if moment is not None else None
            if moment is None or moment > until:
                return False
        return True

    def upcoming(self, after: datetime, count: int, *, anchor: datetime) -> Iterator[datetime]:
        moment: datetime | None = after
        for _ in range(count):
            moment = self.next(moment, anchor=anchor) if moment is not None else None
            if moment is None:
                return
            yield moment


def within_calendar(moment: datetime) -> datetime:
    """A moment from which one can count: a time on an object may be any, the first or last of all among them."""
    return min(max(moment, _EARLIEST), _LATEST)


def whole_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def has_zone(text: str) -> bool:
    """Whether a schedule names a zone itself, or seems to."""
    return "TZ" in text


@functools.lru_cache(maxsize=512)
def zone_of(name: str) -> tzinfo | None:
    """A zone by its IANA name; None for one that nobody knows. What is no plain name never reaches the file system."""
    if name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


@functools.lru_cache(maxsize=4096)
def parse(text: str, zone: str = "UTC") -> Schedule:
    """Read a schedule. `zone` is where its wall clock hangs, unless it says that itself; one that nobody knows is
    UTC. Raises ScheduleError."""
    if not text:
        raise ScheduleError("empty spec string")
    if zone_of(zone) is None:
        zone = "UTC"
    if text.startswith(_PREFIXES):
        prefix, blank, rest = text.partition(" ")
        name = prefix.partition("=")[2]
        if not blank:
            raise ScheduleError(f"a schedule must follow the zone, after a space: {text}")
        if name != "Local":
            zone = name or "UTC"
        text = rest.strip()
    found = zone_of(zone)
    if found is None:
        raise ScheduleError(f"provided bad location {zone}: unknown time zone {zone}")
    if text.startswith("@"):
        return Schedule(_described(text, found), zone)
    return Schedule(_calendar(text.split(), found), zone)


def _described(text: str, zone: tzinfo) -> Rule:
    if text in _DESCRIPTORS:
        return _calendar(_DESCRIPTORS[text].split(), zone)
    if text.startswith(_EVERY):
        return Every(max(_period(text) // _NANOSECONDS, 1))
    raise ScheduleError(f"unrecognized descriptor: {text}")


def _period(text: str) -> int:
    """In nanoseconds, as it is written."""
    try:
        return parse_go_duration_nanoseconds(text.removeprefix(_EVERY))
    except TimeError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from error


def is_too_short(text: str) -> bool:
    """Whether it is a period below a second, which counts as one."""
    period = text.partition(" ")[2].strip() if text.startswith(_PREFIXES) else text
    return period.startswith(_EVERY) and _period(period) < _NANOSECONDS


def _calendar(fields: list[str], zone: tzinfo) -> Calendar:
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = (
        _field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    return Calendar(
        minutes=tuple(hour * 60 + minute for hour in sorted(hours.values) for minute in sorted(minutes.values)),
        days=days,
        months=months.values,
        weekdays=weekdays,
        zone=zone,
    )


def _field(text: str, bounds: _Bounds) -> _Field:
    """A field of nothing but commas matches nothing."""
    values: set[int] = set()
    is_star = False
    for part in text.split(","):
        if part:
            found, star = _range(part, bounds)
            values.update(found)
            is_star |= star
    return _Field(frozenset(values), is_star)


def _range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    span, *steps = text.split("/")
    ends = span.split("-")
    is_star = ends[0] in ("*", "?")
    if is_star:
        low, high = bounds.low, bounds.high
    else:
        low = _number(ends[0], bounds.names)
        if len(ends) > 2:
            raise ScheduleError(f"too many hyphens: {text}")
        high = _number(ends[1], bounds.names) if len(ends) == 2 else low
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0], {})
        if len(ends) == 1:
            high = bounds.high
        is_star = is_star and step <= 1
    if low < bounds.low:
        raise ScheduleError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise ScheduleError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(low, high + 1, step), is_star


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not _INTEGER.fullmatch(text):
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text) if len(text) <= 20 else _MAX_INT + 1
    if number > _MAX_INT:
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number


def _next_month(day: date) -> date:
    return date(day.year + 1, 1, 1) if day.month == 12 else date(day.year, day.month + 1, 1)


def _start_of(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


@functools.lru_cache(maxsize=8192)
def has_one_offset(zone: tzinfo, day: date) -> bool:
    """Whether the clocks of a zone are not changed on that day, midnight at either end included. No zone changes them
    twice on a day."""
    if zone is UTC:
        return True
    ends = (datetime.combine(day, time(), zone), datetime.combine(day + _DAY, time(), zone))
    return len({moment.replace(fold=fold).utcoffset() for moment in ends for fold in (0, 1)}) == 1
