"""Schedules in Go's cron language: what is read, and what is refused. `test_cron_century.py` goes through a century."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kruise.machinery import cron
from kruise.machinery.cron import ScheduleError, parse


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


def test_a_period_is_a_grid_from_where_it_is_anchored() -> None:  # ACJ-24
    every, anchor = parse("@every 7s"), at("2022-09-05T09:05:00")
    assert every.last(anchor + timedelta(seconds=6.9), after=anchor, anchor=anchor) is None
    found = every.last(anchor + timedelta(seconds=100), after=anchor + timedelta(seconds=50), anchor=anchor)
    assert found == anchor + timedelta(seconds=98)
    assert every.is_more_than(100, after=anchor, until=anchor + timedelta(seconds=707), anchor=anchor)
    assert not every.is_more_than(100, after=anchor, until=anchor + timedelta(seconds=706), anchor=anchor)
    assert every.next(anchor - timedelta(days=1), anchor=anchor) == anchor + timedelta(seconds=7)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize("text", ["*/5 * * * *", "0 0 31 2 *", "@every 90s", "@every 2562047h"])
def test_the_first_and_the_last_moment_of_all_are_no_trouble(text: str, zone: str) -> None:  # ACJ-69
    """An object may have any time on it."""
    schedule, now = parse(text, zone), at("2030-01-01T00:00:00")
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    for anchor in (first, last, now):
        for moment in (first, last, now):
            found = schedule.next(moment, anchor=anchor)
            assert found is None or moment == last or found > moment
            found = schedule.last(now, after=moment, anchor=anchor)
            assert found is None or moment < found <= now
            schedule.is_more_than(100, after=moment, until=now, anchor=anchor)
            list(schedule.upcoming(moment, 3, anchor=anchor))
