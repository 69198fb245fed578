from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.foresight.rendering.words import Bar, bar, duration, names_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.4, "0s"),
        (0.6, "1s"),
        (59.4, "59s"),
        (59.6, "1m"),
        (80, "1m20s"),
        (3600, "1h"),
        (3661, "1h1m"),
        (3605, "1h"),
        (90000, "1d1h"),
        (-1, "0s"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_names_beyond_the_bound_are_counted() -> None:
    assert names_text(["a", "b"], shown=2) == "a, b"
    assert names_text(["a", "b", "c", "d"], shown=2) == "a, b and 2 more"
    assert names_text(["a", "b", "c"], shown=None) == "a, b, c"


@pytest.mark.parametrize(
    ("count", "total", "limit", "drawn"),
    [
        (8, 10, 8, Bar(8, 10, 7)),
        (7, 10, 8, Bar(7, 10, 7)),
        (10, 10, None, Bar(10, 10, -1)),
        (0, 0, 0, Bar(0, 10, -1)),
        (1999, 2000, 2000, Bar(9, 10, 9)),
    ],
)
def test_bar(count: int, total: int, limit: int | None, drawn: Bar) -> None:
    assert bar(count, total, limit, 10) == drawn


@given(count=st.integers(0, 3000), total=st.integers(0, 3000), limit=st.integers(1, 3000), width=st.integers(1, 40))
def test_a_bar_reaches_its_mark_just_where_the_limit_is_kept(count: int, total: int, limit: int, width: int) -> None:
    """So a breach is seen, however many pods a cell stands for."""
    limit = min(limit, max(total, count, 1))
    drawn = bar(count, total, limit, width)
    assert 0 <= drawn.filled <= width
    assert 0 <= drawn.limit < width
    if count >= limit:
        assert drawn.filled > drawn.limit
    elif limit == max(total, count, 1):
        assert drawn.filled <= drawn.limit
