"""The schedules of CronJobs: what is wrong with one, in the words of the parser that Kubernetes uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS: Final = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"},
)
_DURATION: Final = re.compile(
    r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?)(ns|us|µs|ms|s|m|h))*"
)
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")


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


class _BadScheduleError(ValueError):
    """Why a schedule cannot be understood."""


def problem(schedule: str) -> str:
    """What is wrong with a schedule; empty for a good one."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    try:
        if schedule.startswith("@"):
            _check_descriptor(schedule)
        else:
            _check_fields(schedule.split())
    except _BadScheduleError as error:
        return str(error)
    return ""


def _check_descriptor(descriptor: str) -> None:
    if descriptor.startswith("@every "):
        if not _DURATION.fullmatch(descriptor.removeprefix("@every ")):
            duration = descriptor.removeprefix("@every ")
            raise _BadScheduleError(f'failed to parse duration {descriptor}: time: invalid duration "{duration}"')
    elif descriptor not in _DESCRIPTORS:
        raise _BadScheduleError(f"unrecognized descriptor: {descriptor}")


def _check_fields(fields: list[str]) -> None:
    if len(fields) != len(_FIELDS):
        raise _BadScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if part:
                _check_range(part, bounds)


def _check_range(text: str, bounds: _Bounds) -> None:
    span, *steps = text.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        low, high = bounds.low, bounds.high
    else:
        low = _number(ends[0], bounds.names)
        if len(ends) > 2:
            raise _BadScheduleError(f"too many hyphens: {text}")
        high = _number(ends[1], bounds.names) if len(ends) == 2 else low
    step = 1
    if len(steps) > 1:
        raise _BadScheduleError(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0], {})
        if len(ends) == 1:
            high = bounds.high
    if low < bounds.low:
        raise _BadScheduleError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise _BadScheduleError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise _BadScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise _BadScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not _INTEGER.fullmatch(text):
        raise _BadScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise _BadScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
