"""Schedules of CronJobs."""

from __future__ import annotations

import pytest

from kruise.local.kinds.cron import problem


@pytest.mark.parametrize(
    "schedule", ["* * * * *", "*/5 0-3 1,15 */2 mon-fri", "? ? ? ? ?", "@every 1h30m", "@hourly", "TZ=UTC 0 0 * * *"]
)
def test_good_schedules(schedule: str) -> None:
    assert problem(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("* * * * * *", "expected exactly 5 fields, found 6"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("@every x", "failed to parse duration @every x"),
        ("@soon", "unrecognized descriptor: @soon"),
    ],
)
def test_bad_schedules(schedule: str, said: str) -> None:
    assert said in problem(schedule)
