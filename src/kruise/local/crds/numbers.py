"""Comparisons of numbers as Go makes them: a bound counts as a whole number where the value is one."""

from __future__ import annotations

import math
import operator
from typing import Any


def beyond(low: float, high: float, exclusive: bool, *, bound_is_second: bool = False) -> bool:
    """Whether `low` lies above `high` (or on it, where that is excluded); one of them is the bound."""
    value = low if bound_is_second else high
    if isinstance(value, int):
        low, high = int(low), int(high)
    return low >= high if exclusive else low > high


def is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int):
        whole = int(factor)
        return whole > 0 and value % whole == 0
    if factor <= 0:
        return False
    ratio = 1 / factor * value if factor < 1 else value / factor
    return is_whole(ratio)


def is_whole(value: float) -> bool:
    """Whole within what a float can tell, and within the whole numbers that JSON can carry."""
    if not -(2.0**53) < value < 2.0**53:
        return False
    nearest = math.trunc(value)
    distance = abs(value - nearest)
    if value == nearest:
        return True
    if value == 0 or nearest == 0:
        return distance < 1e-9 * 5e-324
    return distance / min(abs(value) + abs(nearest), 1.7976931348623157e308) < 1e-9


def whole(value: Any) -> Any:
    """The value as it comes back from a storage of JSON written by Go: `2.0` is written as `2`."""
    kind = type(value)
    if kind is dict:
        changes = {
            name: made for name, item in value.items() if type(item) in _COMPOSED and (made := whole(item)) is not item
        }
        return {**value, **changes} if changes else value
    if kind is list:
        made = [whole(item) for item in value]
        return value if all(map(operator.is_, made, value)) else made
    if kind is float and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


_COMPOSED = frozenset({dict, list, float})


def go_value(value: Any) -> str:
    """Any JSON value as `%v` writes it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return go_number(value)
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_value(value[name])}' for name in sorted(value))}]"
    return f"[{' '.join(go_value(item) for item in value)}]" if isinstance(value, list) else str(value)


def go_number(value: float) -> str:
    """A number as `%v` writes it."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    mantissa, found, exponent = text.partition("e")
    if not found:
        return text
    mantissa = mantissa.removesuffix(".0")
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa}e{sign}{exponent.lstrip('+-').zfill(2)}"
