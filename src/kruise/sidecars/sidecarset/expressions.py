"""Amounts of a resource as expressions: `max(cpu*50%, 50m)`, `memory*20% + 100Mi` (SCS-54).

Values are plain numbers or quantities, which are kept in whole thousandths. A text is bounded in its length and in the
depth of its parentheses, so no text can make anybody compute for long.

    sum     = product (("+" | "-") product)*
    product = signed (("*" | "/") signed)*
    signed  = "-" signed | atom
    atom    = number ["%" | unit] | "(" sum ")" | ("max" | "min") "(" sum "," sum ")" | variable
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

LONGEST = 1024
DEEPEST = 32
_GREATEST = 2**63 - 1
"""No amount is greater, in thousandths; the API server knows none either."""

_UNITS: Mapping[str, int] = {
    "m": 1,
    "k": 10**6,
    "M": 10**9,
    "G": 10**12,
    "T": 10**15,
    "P": 10**18,
    **{f"{prefix}i": 1000 << (10 * (power + 1)) for power, prefix in enumerate("KMGTP")},
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?P<suffix>%|[A-Za-z]+)?"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[-+*/(),]))",
    re.ASCII,
)


class ExpressionError(ValueError):
    """An expression that cannot be read, or that has no value."""


class Milli(NamedTuple):
    """A quantity, in thousandths."""

    amount: int


Value = float | Milli


@dataclasses.dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    value: Value = 0.0


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise ExpressionError(f"nobody can read {text[place:].strip()[:20]!r}")
        place = match.end()
        if match["number"] is not None:
            found.append(_number(match["number"], match["suffix"] or ""))
        elif match["name"] is not None:
            found.append(_Token("name", match["name"].lower()))
        else:
            found.append(_Token(match["sign"], match["sign"]))
    return found


def _number(digits: str, suffix: str) -> _Token:
    text, number = digits + suffix, float(digits)
    if not math.isfinite(number):
        raise ExpressionError(f"{text} is too large")
    if suffix == "":
        return _Token("value", text, number)
    if suffix == "%":
        return _Token("value", text, number / 100)
    if suffix not in _UNITS:
        raise ExpressionError(f"{text}: there is no unit {suffix}: the units are {' '.join(_UNITS)}")
    return _Token("value", text, _milli(number * _UNITS[suffix]))


def _milli(amount: float) -> Milli:
    if not math.isfinite(amount) or abs(amount) > _GREATEST:
        raise ExpressionError("an amount is too large")
    return Milli(math.trunc(amount))


def _as_quantity(value: Value) -> Milli:
    return value if isinstance(value, Milli) else _milli(value * 1000)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ExpressionError("an amount is too large")
    return value


def _add(left: Value, right: Value, sign: int) -> Value:
    if isinstance(left, Milli) or isinstance(right, Milli):
        return _milli(_as_quantity(left).amount + sign * _as_quantity(right).amount)
    return _finite(left + sign * right)


def _times(left: Value, right: Value) -> Value:
    if isinstance(left, Milli) and isinstance(right, Milli):
        raise ExpressionError("two quantities cannot be multiplied")
    if isinstance(left, Milli):
        return _milli(left.amount * _plain(right))
    if isinstance(right, Milli):
        return _milli(right.amount * left)
    return _finite(left * right)


def _plain(value: Value) -> float:
    assert not isinstance(value, Milli)
    return value


def _divided(left: Value, right: Value) -> Value:
    if isinstance(right, Milli):
        raise ExpressionError("nothing can be divided by a quantity")
    if right == 0:
        raise ExpressionError("nothing can be divided by 0")
    if isinstance(left, Milli):
        return _milli(left.amount / right)
    return _finite(left / right)


def _chosen(choose: Callable[..., Value]) -> Callable[[Value, Value], Value]:
    def function(left: Value, right: Value) -> Value:
        return choose((left, right), key=lambda value: _as_quantity(value).amount)

    return function


_FUNCTIONS: Mapping[str, Callable[[Value, Value], Value]] = {"max": _chosen(max), "min": _chosen(min)}


class _Reader:
    def __init__(self, tokens: list[_Token], variables: Mapping[str, Value]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0
        self._variables = variables

    def whole(self) -> Value:
        value = self._sum()
        if (rest := self._next()) is not None:
            raise ExpressionError(f"{rest.text} stands where nothing can")
        return value

    def _next(self) -> _Token | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _take(self, *kinds: str) -> _Token | None:
        token = self._next()
        if token is None or token.kind not in kinds:
            return None
        self._place += 1
        return token

    def _need(self, kind: str) -> None:
        if self._take(kind) is None:
            found = self._next()
            raise ExpressionError(f"{kind} is missing {'at the end' if found is None else 'before ' + found.text}")

    def _sum(self) -> Value:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(f"it is nested deeper than {DEEPEST} levels")
        value = self._product()
        while (sign := self._take("+", "-")) is not None:
            value = _add(value, self._product(), 1 if sign.kind == "+" else -1)
        self._depth -= 1
        return value

    def _product(self) -> Value:
        value = self._signed()
        while (sign := self._take("*", "/")) is not None:
            value = (_times if sign.kind == "*" else _divided)(value, self._signed())
        return value

    def _signed(self) -> Value:
        negative = False
        while self._take("-") is not None:
            negative = not negative
        value = self._atom()
        return _times(-1.0, value) if negative else value

    def _atom(self) -> Value:
        if (found := self._take("value")) is not None:
            return found.value
        if self._take("(") is not None:
            value = self._sum()
            self._need(")")
            return value
        if (name := self._take("name")) is not None:
            return self._named(name.text)
        token = self._next()
        raise ExpressionError("it ends too early" if token is None else f"{token.text} stands where a value should")

    def _named(self, name: str) -> Value:
        if self._take("(") is None:
            if name not in self._variables:
                known = " or ".join(self._variables)
                raise ExpressionError(f"there is no variable {name} here: use {known}")
            return self._variables[name]
        function = _FUNCTIONS.get(name)
        if function is None:
            raise ExpressionError(f"there is no function {name}: use max or min")
        first = self._sum()
        self._need(",")
        second = self._sum()
        self._need(")")
        return function(first, second)


def evaluate(text: str, variables: Mapping[str, Value]) -> int:
    """The value in whole thousandths, never negative. Raises ExpressionError."""
    if len(text) > LONGEST:
        raise ExpressionError(f"it is longer than {LONGEST} characters")
    tokens = _tokens(text)
    if not tokens:
        raise ExpressionError("it is empty")
    try:
        amount = _as_quantity(_Reader(tokens, variables).whole()).amount
    except OverflowError as error:
        raise ExpressionError("an amount is too large") from error
    if amount < 0:
        raise ExpressionError("its value is negative")
    return amount
