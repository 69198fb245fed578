"""Schedules in Go's cron language: what is read, what is refused, and every moment of a century against an oracle."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery import cron
from kruise.machinery.cron import Calendar, ScheduleError, parse
from tests.support.examples import story_settings

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia")
"""With changes of an hour and of half an hour, at midnight, and over the date line."""
DAY = timedelta(days=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def after(schedule: str, moment: str, zone: str = "UTC") -> str:
    found = parse(schedule, zone).next(at(moment), anchor=at(moment))
    return found.isoformat().removesuffix("+00:00") if found is not None else "never"


@pytest.mark.parametrize(
    ("schedule", "zone", "moment", "expected"),
    [
        ("0 10 * * ?", "Asia/Shanghai", "2022-09-05T09:01", "2022-09-06T02:00:00"),  # ACJ-28
        ("0 10 * * ?", "Asia/Shanghai", "2022-09-06T01:01", "2022-09-06T02:00:00"),
        ("TZ=Asia/Shanghai 0 10 * * ?", "UTC", "2022-09-05T09:01", "2022-09-06T02:00:00"),
        ("CRON_TZ=Asia/Shanghai 0 10 * * ?", "UTC", "2022-09-05T09:01", "2022-09-06T02:00:00"),
        ("0 10 * * ?", "UTC", "2022-09-05T09:01", "2022-09-05T10:00:00"),
        ("0 10 * * ?", "UTC", "2022-09-05T11:01", "2022-09-06T10:00:00"),
        ("*/5 * * * *", "UTC", "2022-09-05T09:05", "2022-09-05T09:10:00"),  # strictly after (ACJ-25)
        ("1/20 * * * *", "UTC", "2022-09-05T09:05", "2022-09-05T09:21:00"),  # ACJ-21
        ("0 0 * jan-mar mon,wed", "UTC", "2022-09-05T09:05", "2023-01-02T00:00:00"),
        ("0 0 13 * fri", "UTC", "2022-09-01T00:00", "2022-09-02T00:00:00"),  # either (ACJ-22)
        ("0 0 13 * *", "UTC", "2022-09-01T00:00", "2022-09-13T00:00:00"),
        ("0 0 */2 * fri", "UTC", "2022-09-01T12:00", "2022-09-02T00:00:00"),  # */2 is no star
        ("0 0 */1 * fri", "UTC", "2022-09-03T12:00", "2022-09-09T00:00:00"),
        ("@yearly", "UTC", "2022-09-05T09:05", "2023-01-01T00:00:00"),  # ACJ-23
        ("@annually", "UTC", "2022-09-05T09:05", "2023-01-01T00:00:00"),
        ("@monthly", "UTC", "2022-09-05T09:05", "2022-10-01T00:00:00"),
        ("@weekly", "UTC", "2022-09-05T09:05", "2022-09-11T00:00:00"),
        ("@daily", "UTC", "2022-09-05T09:05", "2022-09-06T00:00:00"),
        ("@midnight", "UTC", "2022-09-05T09:05", "2022-09-06T00:00:00"),
        ("@hourly", "UTC", "2022-09-05T09:05", "2022-09-05T10:00:00"),
        ("@every 90s", "Asia/Shanghai", "2022-09-05T09:05", "2022-09-05T09:06:30"),  # ACJ-24
        ("@every 1.5h", "UTC", "2022-09-05T09:05", "2022-09-05T10:35:00"),
        ("@every 10ms", "UTC", "2022-09-05T09:05", "2022-09-05T09:05:01"),
        ("@every 1500ms", "UTC", "2022-09-05T09:05", "2022-09-05T09:05:01"),
        ("0 0 29 2 *", "UTC", "2022-09-05T09:05", "2024-02-29T00:00:00"),
        ("0 0 30 2 *", "UTC", "2022-09-05T09:05", "never"),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00", "never"),  # 2100 is no leap year: more than five years (ACJ-25)
        # What the change to summer time skips does not run that day; what is repeated runs twice (ACJ-26).
        ("30 2 * * *", "America/New_York", "2023-03-11T08:00", "2023-03-13T06:30:00"),
        ("30 1 * * *", "America/New_York", "2023-11-05T05:00", "2023-11-05T05:30:00"),
        ("30 1 * * *", "America/New_York", "2023-11-05T05:30", "2023-11-05T06:30:00"),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00", "2018-11-05T02:00:00"),  # no midnight that day
        ("0 0 30 12 *", "Pacific/Apia", "2011-01-01T00:00", "2012-12-29T10:00:00"),  # no such day that year
    ],
)
def test_the_next_moment(schedule: str, zone: str, moment: str, expected: str) -> None:
    assert after(schedule, moment, zone) == expected


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("", "empty spec string"),
        ("invalid-cron", "expected exactly 5 fields, found 1: [invalid-cron]"),
        ("* * * *", "expected exactly 5 fields, found 4"),
        ("* * * * * *", "expected exactly 5 fields, found 6"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("0 0 * * mon#1", "failed to parse int from mon#1"),
        ("0 0 L * *", "failed to parse int from L"),
        ("0 0 15W * *", "failed to parse int from 15W"),
        ("9" * 30 + " * * * *", "value out of range"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@reboot", "unrecognized descriptor: @reboot"),
        ("@Daily", "unrecognized descriptor: @Daily"),
        ("@every", "unrecognized descriptor: @every"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("TZ=Asia/Shanghai", "a schedule must follow the zone"),
        ("TZ=Nowhere/X 0 0 * * *", "provided bad location Nowhere/X: unknown time zone Nowhere/X"),
        ("TZ=../etc/passwd 0 0 * * *", "unknown time zone"),
        ("tz=UTC 0 0 * * *", "expected exactly 5 fields, found 6"),
    ],
)
def test_what_is_refused(schedule: str, said: str) -> None:  # ACJ-19 to ACJ-24
    with pytest.raises(ScheduleError) as raised:
        parse(schedule)
    assert said in str(raised.value)


def test_every_zone_is_there_without_the_system() -> None:  # ACJ-29
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '"tzdata' in project.partition("dependencies = [")[2].partition("]")[0]
    assert cron.zone_of("Asia/Shanghai") is not None
    assert cron.zone_of("nowhere") is None
    assert cron.zone_of("America") is None


# A century


def moments_of(rule: Calendar, first: date, last: date) -> Iterator[datetime]:
    """The oracle: every wall clock time of every day, both times that it may have come, if it came at all."""
    zone = rule.zone
    day = first
    found = set()
    while day <= last:
        by_day, by_weekday = day.day in rule.days.values, day.isoweekday() % 7 in rule.weekdays.values
        both = rule.days.is_star or rule.weekdays.is_star
        if day.month in rule.months and ((by_day and by_weekday) if both else (by_day or by_weekday)):
            for minute in rule.minutes:
                for fold in (0, 1):
                    wall = datetime(day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=zone, fold=fold)
                    moment = wall.astimezone(UTC)
                    if moment.astimezone(zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
                        found.add(moment)
        day += DAY
    yield from sorted(found)


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [
        ("30 2 * * *", "America/New_York"),
        ("1 0 * * *", "America/St_Johns"),
        *(("0 0 1,15 * 1", zone) for zone in ZONES),
        *(("59 23,0 */7 3-11 *", zone) for zone in ZONES),
    ],
)
def test_every_moment_of_a_century(schedule: str, zone: str) -> None:  # ACJ-22, ACJ-25, ACJ-26
    rule = parse(schedule, zone).rule
    assert isinstance(rule, Calendar)
    expected = list(moments_of(rule, date(1970, 1, 1), date(2069, 12, 31)))
    moment, found = expected[0], [expected[0]]
    for _ in range(len(expected) - 1):
        following = rule.next(moment)
        assert following is not None
        found.append(following)
        moment = following
    assert found == expected
    for earlier, later in itertools.islice(itertools.pairwise(expected), 0, None, 97):
        assert rule.last(later - timedelta(seconds=1), after=at("1960-01-01")) == earlier
        assert rule.last(later, after=at("1960-01-01")) == later
        assert rule.last(later, after=later) is None


def changes_of(zone: str) -> list[datetime]:
    """Hours in which the clocks were changed, of some years."""
    place = ZoneInfo(zone)
    hours = (at("2010-01-01") + timedelta(hours=count) for count in range(24 * 365 * 3))
    return [
        hour
        for hour in hours
        if hour.astimezone(place).utcoffset() != (hour + timedelta(hours=1)).astimezone(place).utcoffset()
    ]


@pytest.mark.parametrize("zone", ZONES[1:])
def test_every_minute_around_a_change_of_the_clocks(zone: str) -> None:  # ACJ-26
    """Minute by minute, as the clock on the wall shows it."""
    place = ZoneInfo(zone)
    for change in changes_of(zone)[:4]:
        begin = change - timedelta(hours=26)
        minutes = [begin + timedelta(minutes=count) for count in range(1, 52 * 60)]
        for minute, hour in ((30, 0), (30, 1), (15, 2), (45, 23), (0, 0)):
            expected = [
                moment
                for moment in minutes
                if (local := moment.astimezone(place)).hour == hour and local.minute == minute
            ]
            rule = parse(f"{minute} {hour} * * *", zone).rule
            assert isinstance(rule, Calendar)
            found, moment = [], rule.next(begin)
            while moment is not None and moment <= minutes[-1]:
                found.append(moment)
                moment = rule.next(moment)
            assert found == expected, f"{zone} {change} {hour}:{minute}"


FIELD = st.sampled_from(["*", "?", "*/7", "3", "1-5", "2,4", "1/3"])


@story_settings(60)
@given(fields=st.lists(FIELD, min_size=5, max_size=5), seed=st.integers(0, 10**6), zone=st.sampled_from(ZONES))
def test_next_and_last_are_each_others_mirror(fields: list[str], seed: int, zone: str) -> None:  # ACJ-53, ACJ-54
    random = Random(seed)
    rule = parse(" ".join(fields), zone).rule
    assert isinstance(rule, Calendar)
    moment = at("2000-01-01") + timedelta(seconds=random.randrange(60 * 365 * 86400))
    following = rule.next(moment)
    if following is not None:
        assert following > moment
        assert rule.last(following, after=moment) == following
        assert rule.last(following - timedelta(seconds=1), after=moment) is None


def test_a_period_is_a_grid_from_where_it_is_anchored() -> None:  # ACJ-24
    every, anchor = parse("@every 7s"), at("2022-09-05T09:05:00")
    assert every.last(anchor + timedelta(seconds=6.9), after=anchor, anchor=anchor) is None
    found = every.last(anchor + timedelta(seconds=100), after=anchor + timedelta(seconds=50), anchor=anchor)
    assert found == anchor + timedelta(seconds=98)
    assert every.is_more_than(100, after=anchor, until=anchor + timedelta(seconds=707), anchor=anchor)
    assert not every.is_more_than(100, after=anchor, until=anchor + timedelta(seconds=706), anchor=anchor)
    assert every.next(anchor - timedelta(days=1), anchor=anchor) == anchor + timedelta(seconds=7)
