"""Values that are a number or a percentage of something: `maxUnavailable: 2`, `partition: 20%`."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any, TypeGuard

IntOrPercent = int | str

_PERCENT = re.compile(r"[0-9]+%", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
_PERCENT_WORDS = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_MAX_DIGITS = 18


class IntOrPercentError(ValueError):
    """The value is neither a number nor a percentage."""


def parse(value: Any) -> IntOrPercent:
    """Take a JSON value as it is, refusing what can be neither a number nor a text."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise IntOrPercentError("must be an integer or percentage (e.g '5%')")
    return value


def is_percent(value: IntOrPercent | None) -> TypeGuard[str]:
    """Whether the value is written as a percentage (which may still be malformed)."""
    return isinstance(value, str) and value.endswith("%")


def percentage(value: str) -> int:
    """The number in front of the percent sign."""
    if not value.endswith("%"):
        raise IntOrPercentError("invalid value for IntOrString: invalid type: string is not a percentage")
    number = value[:-1]
    if _INTEGER.fullmatch(number) is None:
        reason = f'strconv.Atoi: parsing "{number}": invalid syntax'
    elif len(number) > _MAX_DIGITS:
        reason = f'strconv.Atoi: parsing "{number}": value out of range'
    else:
        return int(number)
    raise IntOrPercentError(f'invalid value for IntOrString: invalid value "{value}": {reason}')


def scaled(value: IntOrPercent | None, total: int, *, round_up: bool) -> int:
    """The number that is meant: itself, or the percentage of the total, rounded up or down."""
    if value is None:
        raise IntOrPercentError("nil value for IntOrString")
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise IntOrPercentError("invalid value for IntOrString: invalid type: neither int nor percentage")
    if isinstance(value, int):
        return value
    product = percentage(value) * total
    return -(-product // 100) if round_up else product // 100


def fractional_percentage(value: str) -> Fraction:
    """The number in front of the percent sign, which may have a fraction (`0.5%`)."""
    number = value[:-1]
    if not value.endswith("%") or len(number) > _MAX_DIGITS or _DECIMAL.fullmatch(number) is None:
        raise IntOrPercentError(f'"{value}" is not a percentage: write a number and a percent sign, such as 5% or 0.5%')
    return Fraction(number)


def scaled_fraction(value: IntOrPercent, total: int, *, round_up: bool) -> int:
    """Like `scaled`, for fields whose percentage may have a fraction."""
    if isinstance(value, bool) or not isinstance(value, str):
        return scaled(value, total, round_up=round_up)
    share = fractional_percentage(value) * total / 100
    return math.ceil(share) if round_up else math.floor(share)


def absolute(value: IntOrPercent | None, total: int, *, round_up: bool) -> int:
    """The same as a count, for values that nobody checked: what is neither a number nor a percentage counts nothing."""
    if value is None:
        return 0
    try:
        return max(0, scaled_fraction(value, total, round_up=round_up))
    except IntOrPercentError:
        return 0


def problems(value: Any, *, at_most_100_percent: bool = False) -> list[str]:
    """What is wrong with a value that must be a non-negative number or a percentage, in Kubernetes' words."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return ["must be an integer or percentage (e.g '5%%')"]
    if isinstance(value, int):
        return [] if value >= 0 else ["must be greater than or equal to 0"]
    if _PERCENT.fullmatch(value) is None:
        return [_PERCENT_WORDS]
    digits = value[:-1].lstrip("0")
    if at_most_100_percent and (len(digits) > 3 or int(digits or "0") > 100):
        return ["must not be greater than 100%"]
    return []


def validate(value: Any, *, field: str, at_most_100_percent: bool = False) -> None:
    """Raise an error that names the field unless the value is a non-negative number or a percentage."""
    if wrong := problems(value, at_most_100_percent=at_most_100_percent):
        raise IntOrPercentError(f"{field}: {wrong[0]}")
