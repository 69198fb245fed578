"""Times and durations as Kubernetes writes them.

`metav1.Time` has whole seconds, `metav1.MicroTime` always six digits, both in UTC. Durations in flags and in a few
fields are Go's: `1h2m3.5s`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

_TIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII
)


_EARLIEST, _LATEST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""Nothing is earlier or later; what is added to them for good measure still fits."""


class TimeError(ValueError):
    """The text is no time or no duration."""


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time with any offset and any fraction; the result is in UTC, to the microsecond."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise TimeError(f'"{text}" is not a time such as 2006-01-02T15:04:05Z')
    fraction = (match[7] or "")[:6].ljust(6, "0")
    try:
        offset = timedelta(hours=int(match[9]), minutes=int(match[10])) if match[8] else timedelta()
        zone = timezone(-offset if match[8] == "-" else offset)
        year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
        return datetime(year, month, day, hour, minute, second, int(fraction), tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise TimeError(f'"{text}" is not a time: {error}') from None


def later(time: datetime, seconds: float) -> datetime:
    """So many seconds later. Fields of 64 bits may say more than any calendar has: then the last year of it."""
    try:
        return max(_EARLIEST, min(time + timedelta(seconds=seconds), _LATEST))
    except OverflowError:
        return _LATEST if seconds > 0 else _EARLIEST


def next_second(time: datetime) -> datetime:
    """Times on objects have whole seconds: the next one, so that no wait that is counted from it ends early."""
    return time if time.microsecond == 0 else time.replace(microsecond=0) + timedelta(seconds=1)


def format_time(time: datetime) -> str:
    """Whole seconds in UTC: `2006-01-02T15:04:05Z`."""
    return f"{_utc(time):%Y-%m-%dT%H:%M:%SZ}".rjust(20, "0")


def format_micro_time(time: datetime) -> str:
    """Six digits in UTC: `2006-01-02T15:04:05.000000Z`."""
    return f"{_utc(time):%Y-%m-%dT%H:%M:%S.%fZ}".rjust(27, "0")


def _utc(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise TimeError(f"{time} has no time zone: give the time in UTC")
    return time.astimezone(UTC)


_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_SECOND = 10**9
_MAX_NANOSECONDS = 2**63 - 1
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)", re.ASCII)


def parse_go_duration(text: str) -> float:
    """Seconds of a Go duration: a sign, then numbers with units (`ns`, `us`, `ms`, `s`, `m`, `h`)."""
    return parse_go_duration_nanoseconds(text) / _SECOND


def parse_go_duration_nanoseconds(text: str) -> int:
    rest = text[1:] if text[:1] in ("-", "+") else text
    negative = text.startswith("-")
    if rest == "0":
        return 0
    if not rest:
        raise TimeError(f'time: invalid duration "{text}"')
    total = 0
    while rest:
        match = _PART.match(rest)
        if match is None or not (match[1] or match[2]):
            raise TimeError(f'time: invalid duration "{text}"')
        number, fraction, unit = match[1] or "0", match[2] or "", match[3]
        if not unit:
            raise TimeError(f'time: missing unit in duration "{text}"')
        if unit not in _UNITS:
            raise TimeError(f'time: unknown unit "{unit}" in duration "{text}"')
        if len(number) > 19:
            raise TimeError(f'time: invalid duration "{text}"')
        total += int(Fraction(int(number + fraction[:19]), 10 ** len(fraction[:19])) * _UNITS[unit])
        rest = rest[match.end() :]
    if total > _MAX_NANOSECONDS + (1 if negative else 0):
        raise TimeError(f'time: invalid duration "{text}"')
    return -total if negative else total


def format_go_duration(seconds: float) -> str:
    """The text that Go gives a duration: `1h2m3.5s`, `1.5ms`, `0s`."""
    nanoseconds = round(seconds * _SECOND)
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    amount = abs(nanoseconds)
    if amount < _SECOND:
        for unit, size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)):
            if amount >= size:
                return f"{sign}{_decimal(amount, size)}{unit}"
    minutes, rest = divmod(amount, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(amount: int, size: int) -> str:
    whole, rest = divmod(amount, size)
    fraction = str(rest).zfill(len(str(size)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
