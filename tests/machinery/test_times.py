"""Times and durations as Kubernetes and Go write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery import times
from kruise.machinery.times import TimeError
from tests.support.examples import EXAMPLES


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2006-01-02T15:04:05Z", datetime(2006, 1, 2, 15, 4, 5, tzinfo=UTC)),
        ("2006-01-02T15:04:05.5Z", datetime(2006, 1, 2, 15, 4, 5, 500_000, tzinfo=UTC)),
        ("2006-01-02T15:04:05.123456789Z", datetime(2006, 1, 2, 15, 4, 5, 123_456, tzinfo=UTC)),
        ("2006-01-02T15:04:05+05:30", datetime(2006, 1, 2, 9, 34, 5, tzinfo=UTC)),
        ("2006-01-02T15:04:05.000001-08:00", datetime(2006, 1, 2, 23, 4, 5, 1, tzinfo=UTC)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_are_read_into_utc(text: str, time: datetime) -> None:
    found = times.parse_time(text)
    assert found == time
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2006-01-02",
        "2006-01-02 15:04:05Z",
        "2006-01-02T15:04:05",
        "2006-01-02T15:04:05z",
        "2006-13-02T15:04:05Z",
        "2023-02-29T15:04:05Z",
        "2006-01-02T15:04:60Z",
        "2006-01-02T24:00:00Z",
        "2006-01-02T15:04:05+99:00",
        "0001-01-01T00:00:00+01:00",
        "٢٠٠٦-01-02T15:04:05Z",
        "2006-01-02T15:04:05Z\n",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(TimeError, match="is not a time"):
        times.parse_time(text)


def test_times_are_written_in_utc_with_the_digits_of_their_type() -> None:
    time = datetime(2006, 1, 2, 15, 4, 5, 999_999, tzinfo=timezone(timedelta(hours=1)))
    assert times.format_time(time) == "2006-01-02T14:04:05Z"
    assert times.format_micro_time(time) == "2006-01-02T14:04:05.999999Z"
    assert times.format_micro_time(datetime(2006, 1, 2, tzinfo=UTC)) == "2006-01-02T00:00:00.000000Z"
    assert times.format_time(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(TimeError, match="no time zone"):
        times.format_time(datetime(2006, 1, 2))  # noqa: DTZ001


@settings(max_examples=100, deadline=None)
@given(st.datetimes(timezones=st.just(UTC)))
def test_micro_times_are_exact(time: datetime) -> None:
    assert times.parse_time(times.format_micro_time(time)) == time
    assert times.parse_time(times.format_time(time)) == time.replace(microsecond=0)


@pytest.mark.parametrize(
    ("text", "seconds", "canonical"),
    [
        ("0", 0, "0s"),
        ("-0", 0, "0s"),
        ("1h2m3.5s", 3723.5, "1h2m3.5s"),
        ("1.5h", 5400, "1h30m0s"),
        ("-3ms", -0.003, "-3ms"),
        ("+5us", 5e-6, "5µs"),
        ("5µs", 5e-6, "5µs"),
        ("5μs", 5e-6, "5µs"),
        ("1ns", 1e-9, "1ns"),
        (".5s", 0.5, "500ms"),
        ("1.s", 1, "1s"),
        ("90s", 90, "1m30s"),
        ("1500us", 0.0015, "1.5ms"),
        ("30s1h", 3630, "1h0m30s"),
        ("100ms", 0.1, "100ms"),
    ],
)
def test_go_durations(text: str, seconds: float, canonical: str) -> None:
    assert times.parse_go_duration(text) == pytest.approx(seconds, rel=1e-12)
    assert times.format_go_duration(seconds) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".", 'time: invalid duration "."'),
        ("1", 'time: missing unit in duration "1"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1h 3m", 'time: unknown unit "h " in duration "1h 3m"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
        ("1" * 5000 + "s", "time: invalid duration"),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, words: str) -> None:
    with pytest.raises(TimeError) as caught:
        times.parse_go_duration(text)
    assert str(caught.value).startswith(words)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(st.integers(-(10**14), 10**14))
def test_durations_are_exact_to_the_nanosecond_for_a_day(nanoseconds: int) -> None:
    assert times.parse_go_duration_nanoseconds(times.format_go_duration(nanoseconds / 10**9)) == nanoseconds


@pytest.mark.parametrize("seconds", [10**12, 2**63 - 1, -(10**12), -(2**63)])
def test_no_number_of_seconds_is_too_much(seconds: int) -> None:
    """And a little more still fits."""
    time = datetime(2026, 1, 2, tzinfo=UTC)
    found = times.later(time, seconds)
    assert (found > time) is (seconds > 0)
    assert abs((found + timedelta(minutes=10) - time).days) > 700_000
    assert times.later(time, 90) == time + timedelta(seconds=90)


@settings(max_examples=50 * EXAMPLES)
@given(micro=st.integers(0, 10**6 - 1), seconds=st.integers(0, 10**9))
def test_what_counts_from_a_whole_second_never_ends_early(micro: int, seconds: int) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=micro)
    found = times.next_second(moment)
    assert times.parse_time(times.format_time(found)) == found
    assert timedelta() <= found - moment < timedelta(seconds=1)
