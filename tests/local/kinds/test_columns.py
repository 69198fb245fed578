"""Durations, and properties of tables that hold for every kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.local.kinds import NATIVE_KINDS
from kruise.local.kinds.columns import human_duration

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


def test_every_kind_has_a_name_column() -> None:
    for kind in NATIVE_KINDS:
        columns = kind.table_columns
        assert [column.format for column in columns].count("name") == 1, kind.plural
        assert len({column.name for column in columns}) == len(columns), kind.plural
