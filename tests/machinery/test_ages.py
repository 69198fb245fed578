"""Durations and ages as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.ages import age, human_duration

_DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-3, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 60, "5h1m"),
        (8 * 3600, "8h"),
        (2 * _DAY - 1, "47h"),
        (2 * _DAY, "2d"),
        (3 * _DAY + 3600, "3d1h"),
        (8 * _DAY, "8d"),
        (2 * 365 * _DAY - 1, "729d"),
        (2 * 365 * _DAY, "2y"),
        (3 * 365 * _DAY + _DAY, "3y1d"),
        (8 * 365 * _DAY, "8y"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


@given(st.floats(min_value=0, max_value=20 * 365 * _DAY))
def test_a_duration_is_short(seconds: float) -> None:
    assert len(human_duration(seconds)) <= 6


@pytest.mark.parametrize(("seconds", "shown"), [(130, "2m10s"), (-30, "0s")])
def test_an_age_is_never_below_zero(seconds: int, shown: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert age(now - timedelta(seconds=seconds), now) == shown
    assert age(None, now) == "<unknown>"
