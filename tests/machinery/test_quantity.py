"""Quantities: texts and values that Kubernetes' own code gave, and the arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery.quantity import (
    ZERO,
    Format,
    Quantity,
    QuantityError,
    from_milli_value,
    from_value,
    parse_quantity,
)
from tests.support.examples import EXAMPLES

# Text, canonical text, whole value, milli value; as Kubernetes' own code gives them.
TABLE = [
    ("0", "0", 0, 0),
    ("0.5", "500m", 1, 500),
    (".5", "500m", 1, 500),
    ("100m", "100m", 1, 100),
    ("1000m", "1", 1, 1000),
    ("1500m", "1500m", 2, 1500),
    ("1.5", "1500m", 2, 1500),
    ("1", "1", 1, 1000),
    ("1024", "1024", 1024, 1024000),
    ("1000", "1k", 1000, 1000000),
    ("1000k", "1M", 1000000, 1000000000),
    ("100k", "100k", 100000, 100000000),
    ("1024Ki", "1Mi", 1048576, 1048576000),
    ("1023Ki", "1023Ki", 1047552, 1047552000),
    ("2048Mi", "2Gi", 2147483648, 2147483648000),
    ("1.5Gi", "1536Mi", 1610612736, 1610612736000),
    ("0.1Ki", "102400m", 103, 102400),
    ("1.1Ki", "1126400m", 1127, 1126400),
    ("0.0001Gi", "107374182400u", 107375, 107374183),
    ("8Ki", "8Ki", 8192, 8192000),
    ("512", "512", 512, 512000),
    ("8Ei", "9223372036854775807", 2**63 - 1, (2**63 - 1) * 1000),
    ("1n", "1n", 1, 1),
    ("0.1n", "1n", 1, 1),
    ("1u", "1u", 1, 1),
    ("12e6", "12e6", 12000000, 12000000000),
    ("1e-20", "1e-9", 1, 1),
    ("1.2e3", "1200", 1200, 1200000),
    ("-1.5", "-1500m", -2, -1500),
    ("-1Ki", "-1Ki", -1024, -1024000),
    ("1G", "1G", 10**9, 10**12),
    ("5E", "5E", 5 * 10**18, 5 * 10**21),
    # Texts that the server takes for canonical and keeps.
    ("1.500", "1.500", 2, 1500),
    ("1E3", "1E3", 1000, 1000000),
    ("+5", "+5", 5, 5000),
    ("01", "01", 1, 1000),
    ("1.", "1.", 1, 1000),
]


@pytest.mark.parametrize(("text", "canonical", "value", "milli"), TABLE)
def test_as_kubernetes_reads_and_writes_it(text: str, canonical: str, value: int, milli: int) -> None:
    quantity = parse_quantity(text)
    assert str(quantity) == canonical
    assert quantity.value() == value
    assert quantity.milli_value() == milli


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "quantities must match the regular expression"),
        ("abc", "quantities must match the regular expression"),
        ("1.2.3", "quantities must match the regular expression"),
        ("1 Gi", "quantities must match the regular expression"),
        ("1e", "unable to parse quantity's suffix"),
        ("1KiB", "quantities must match the regular expression"),
        ("1Kii", "unable to parse quantity's suffix"),
        ("1e9999999999999999999999", "unable to parse quantity's suffix"),
        ("1" * 5000, "unable to parse quantity's suffix"),
    ],
)
def test_what_is_no_quantity_is_refused_in_kubernetes_words(text: str, words: str) -> None:
    with pytest.raises(QuantityError, match=words):
        parse_quantity(text)


def test_the_error_names_the_field() -> None:
    with pytest.raises(QuantityError, match=r"^spec\.containers\[0\]\.resources: quantities must"):
        parse_quantity("x", field="spec.containers[0].resources")


@pytest.mark.parametrize("value", [True, None, [1]])
def test_other_json_values_are_refused(value: object) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(value)  # type: ignore[arg-type]


def test_numbers_are_read_like_their_text() -> None:
    assert str(parse_quantity(2)) == "2"
    assert str(parse_quantity(0.1)) == "100m"
    assert str(parse_quantity(" 1Gi ")) == "1Gi"


def test_the_sum_is_written_like_the_first_summand() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1024Mi")) == "2Gi"
    assert str(parse_quantity("1") + parse_quantity("500m")) == "1500m"
    assert str(parse_quantity("0") + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("1Gi") - parse_quantity("1Mi")) == "1023Mi"
    assert str(parse_quantity("1Gi") * 3) == "3Gi"
    assert str(-parse_quantity("1.500")) == "-1500m"


def test_equal_amounts_are_equal_however_they_are_written() -> None:
    assert parse_quantity("1") == parse_quantity("1000m")
    assert hash(parse_quantity("1Ki")) == hash(parse_quantity("1024"))
    assert parse_quantity("1") != 1
    assert parse_quantity("999m") < parse_quantity("1") <= parse_quantity("1e0")
    assert max(map(parse_quantity, ["1Gi", "1G", "900M"])) == parse_quantity("1073741824")


def test_numbers_become_quantities() -> None:
    assert str(from_value(2048, Format.BINARY)) == "2Ki"
    assert str(from_value(1023, Format.BINARY)) == "1023"
    assert str(from_milli_value(1500)) == "1500m"
    assert str(ZERO) == "0"
    assert ZERO.is_zero


AMOUNTS = st.builds(Quantity, st.integers(-(10**24), 10**24), st.sampled_from(Format))


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(AMOUNTS)
def test_the_text_gives_the_same_amount_and_the_same_text(quantity: Quantity) -> None:
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@settings(max_examples=100, deadline=None)
@given(AMOUNTS, AMOUNTS)
def test_arithmetic_is_exact(one: Quantity, other: Quantity) -> None:
    assert (one + other) - other == one
    assert (one < other) == (one.nanos < other.nanos)
    assert 0 <= abs(one.value()) * 10**9 - abs(one.nanos) < 10**9
    assert 0 <= abs(one.milli_value()) * 10**6 - abs(one.nanos) < 10**6


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(st.text(alphabet="0123456789.eEinumkKMGTP+-", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert Quantity.parse(str(quantity)) == quantity
