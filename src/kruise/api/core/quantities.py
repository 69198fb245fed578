"""Amounts in templates: canonical text, comparison, sums. Templates keep quantities as text, so these take text."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.machinery.quantity import from_milli_value, parse_quantity

Amounts = Mapping[str, str]
ZERO = "0"


def canonical(value: str | int | float) -> str:
    """The text that Go writes for it: `0.5` is `500m`, `1000m` is `1`. Raises ValueError for what is no quantity."""
    return str(parse_quantity(value))


def compare(left: str, right: str) -> int:
    """Negative, zero or positive, as left is less than, equal to or greater than right."""
    one, other = parse_quantity(left), parse_quantity(right)
    return (one > other) - (one < other)


def sign(amount: str) -> int:
    return compare(amount, ZERO)


def whole(amount: str) -> int:
    """The amount rounded up to a whole number."""
    return parse_quantity(amount).value()


def is_whole(amount: str) -> bool:
    return parse_quantity(amount).milli_value() % 1000 == 0


def added(left: str, right: str) -> str:
    return str(parse_quantity(left) + parse_quantity(right))


def rounded_up_to_milli(amount: str) -> str:
    """Resource amounts finer than thousandths are rounded up; others keep the text they have."""
    quantity = parse_quantity(amount)
    rounded = from_milli_value(quantity.milli_value(), quantity.format)
    return amount if rounded == quantity else str(rounded)


def total(first: Amounts, second: Amounts) -> dict[str, str]:
    """Both together, name by name."""
    result = dict(first)
    for name, amount in second.items():
        result[name] = added(result[name], amount) if name in result else amount
    return result


def highest(first: Amounts, second: Amounts) -> dict[str, str]:
    """The greater amount of each name."""
    result = dict(first)
    for name, amount in second.items():
        if name not in result or compare(amount, result[name]) > 0:
            result[name] = amount
    return result
