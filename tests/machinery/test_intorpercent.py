"""Numbers and percentages, with Kubernetes' rounding and words."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery import intorpercent
from kruise.machinery.intorpercent import IntOrPercentError


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (5, 3, 5, 5),
        (-1, 3, -1, -1),
        ("0%", 10, 0, 0),
        ("25%", 10, 3, 2),
        ("20%", 10, 2, 2),
        ("100%", 7, 7, 7),
        ("150%", 3, 5, 4),
        ("1%", 1, 1, 0),
        ("33%", 0, 0, 0),
        ("-10%", 15, -1, -2),
    ],
)
def test_percentages_are_rounded_as_told(value: int | str, total: int, up: int, down: int) -> None:
    assert intorpercent.scaled(value, total, round_up=True) == up
    assert intorpercent.scaled(value, total, round_up=False) == down


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nil value for IntOrString"),
        ("5", "invalid value for IntOrString: invalid type: string is not a percentage"),
        ("", "invalid value for IntOrString: invalid type: string is not a percentage"),
        (
            "abc%",
            'invalid value for IntOrString: invalid value "abc%": strconv.Atoi: parsing "abc": invalid syntax',
        ),
        ("1.5%", 'invalid value for IntOrString: invalid value "1.5%": strconv.Atoi: parsing "1.5": invalid syntax'),
        (
            "9999999999999999999%",
            'invalid value for IntOrString: invalid value "9999999999999999999%": '
            'strconv.Atoi: parsing "9999999999999999999": value out of range',
        ),
        (True, "invalid value for IntOrString: invalid type: neither int nor percentage"),
        (1.5, "invalid value for IntOrString: invalid type: neither int nor percentage"),
    ],
)
def test_errors_are_kubernetes_words(value: Any, words: str) -> None:
    with pytest.raises(IntOrPercentError) as caught:
        intorpercent.scaled(value, 10, round_up=True)
    assert str(caught.value) == words


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 10**6))
def test_rounding_is_that_of_the_real_numbers(percent: int, total: int) -> None:
    exact = percent * total / 100
    assert intorpercent.scaled(f"{percent}%", total, round_up=True) == math.ceil(exact)
    assert intorpercent.scaled(f"{percent}%", total, round_up=False) == math.floor(exact)


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (5, 3, 5, 5),
        ("25%", 10, 3, 2),
        ("0.5%", 1000, 5, 5),
        ("0.1%", 10, 1, 0),
        (".5%", 200, 1, 1),
        ("12.%", 100, 12, 12),
        ("1e1%", 100, 10, 10),
        ("33.333333333333333%", 3, 1, 0),
        ("-0.5%", 100, 0, -1),
    ],
)
def test_percentages_with_a_fraction(value: Any, total: int, up: int, down: int) -> None:
    """Exact, whatever binary fractions make of the number: 0.1% of 1000 is 1, not a little more."""
    assert intorpercent.scaled_fraction(value, total, round_up=True) == up
    assert intorpercent.scaled_fraction(value, total, round_up=False) == down


@pytest.mark.parametrize(
    "value", ["5", "", "%", "x%", "1.2.3%", "inf%", "nan%", "1_0%", " 1%", "1e999%", "٣%", "9" * 40 + "%"]
)
def test_what_is_no_percentage_with_a_fraction(value: str) -> None:
    with pytest.raises(IntOrPercentError, match="is not a percentage"):
        intorpercent.scaled_fraction(value, 10, round_up=True)


@pytest.mark.parametrize("value", [True, None, 1.5])
def test_a_fraction_must_be_written_as_text(value: Any) -> None:
    with pytest.raises(IntOrPercentError):
        intorpercent.scaled_fraction(value, 10, round_up=True)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 10**6), st.booleans())
def test_a_whole_percentage_means_the_same_with_and_without_a_fraction(percent: int, total: int, up: bool) -> None:
    wanted = intorpercent.scaled(f"{percent}%", total, round_up=up)
    assert intorpercent.scaled_fraction(f"{percent}%", total, round_up=up) == wanted
    assert intorpercent.scaled_fraction(f"{percent}.0%", total, round_up=up) == wanted


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, None),
        (7, None),
        ("0%", None),
        ("250%", None),
        (-1, "must be greater than or equal to 0"),
        ("7", "a valid percent string must be a numeric string followed by an ending '%'"),
        ("-1%", "a valid percent string must be a numeric string followed by an ending '%'"),
        ("a%", "a valid percent string must be a numeric string followed by an ending '%'"),
        (True, "must be an integer or percentage"),
        (None, "must be an integer or percentage"),
        ({}, "must be an integer or percentage"),
    ],
)
def test_validation(value: Any, words: str | None) -> None:
    found = intorpercent.problems(value)
    if words is None:
        assert found == []
        intorpercent.validate(value, field="spec.partition")
    else:
        assert len(found) == 1
        assert found[0].startswith(words)
        with pytest.raises(IntOrPercentError, match=r"^spec\.partition: "):
            intorpercent.validate(value, field="spec.partition")


def test_more_than_everything_can_be_refused() -> None:
    assert intorpercent.problems("101%", at_most_100_percent=True) == ["must not be greater than 100%"]
    assert intorpercent.problems("1" + "0" * 30 + "%", at_most_100_percent=True) == ["must not be greater than 100%"]
    assert intorpercent.problems("0100%", at_most_100_percent=True) == []
    assert intorpercent.problems(500, at_most_100_percent=True) == []


def test_values_are_taken_as_they_are() -> None:
    assert intorpercent.parse("20%") == "20%"
    assert intorpercent.parse(3) == 3
    with pytest.raises(IntOrPercentError):
        intorpercent.parse(1.5)
    assert intorpercent.is_percent("20%")
    assert not intorpercent.is_percent(20)
    assert not intorpercent.is_percent("20")
    assert not intorpercent.is_percent(None)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [(None, 0, 0), (3, 3, 3), (-1, 0, 0), ("15%", 2, 1), ("0.5%", 1, 0), ("many", 0, 0), ("-5%", 0, 0)],
)
def test_what_nobody_checked_counts_nothing_where_it_means_nothing(value: int | str | None, up: int, down: int) -> None:
    assert (intorpercent.absolute(value, 10, round_up=True), intorpercent.absolute(value, 10, round_up=False)) == (
        up,
        down,
    )
