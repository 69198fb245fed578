"""Match conditions of webhooks: a small part of CEL, pure.

What there is: `has()`, `in`, `==`, `!=`, `&&`, `||`, `!`, parentheses, field and index access, literals (texts, whole
numbers, booleans, null, lists), over the variables `object`, `oldObject` and `request`. That is what our own entries
need. `compiled` gives None for any other expression: the caller says so and lets the webhook be called.

Errors are values here, as in CEL: `&&` and `||` ask both sides and look over an error where the other side settles it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Variables = Mapping[str, Any]
Expression = Callable[[Variables], Any]

NAMES: Final = frozenset({"object", "oldObject", "request"})

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>r?'(?:[^'\\\n]|\\.)*'|r?"(?:[^"\\\n]|\\.)*")
  | (?P<number>-?\d+)(?![\w.])
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>&&|\|\||==|!=|[!().,\[\]])
  | (?P<end>$)
)""",
    re.VERBOSE,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?"}
_LITERALS: Final = {"true": True, "false": False, "null": None}
_MAX_DEPTH: Final = 50


class EvaluationError(Exception):
    """The expression has no value for this request."""


class _UnsupportedError(Exception):
    """The expression is beyond this part of CEL, or no CEL at all."""


def compiled(text: str) -> Callable[[Variables], bool] | None:
    """The condition as a function, which raises `EvaluationError`; None for what is not understood."""
    try:
        expression = _Parser(text).whole()
    except _UnsupportedError:
        return None

    def condition(variables: Variables) -> bool:
        value = expression(variables)
        if not isinstance(value, bool):
            raise EvaluationError("the expression is not a boolean")
        return value

    return condition


class _Parser:
    """Recursive descent over the tokens; every method returns a closure."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        expression = self._any()
        if self._peek() != ("end", ""):
            raise _UnsupportedError(str(self._peek()))
        return expression

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at]

    def _take(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _accept(self, *tokens: tuple[str, str]) -> str:
        if self._peek() in tokens:
            return self._take()[1]
        return ""

    def _expect(self, sign: str) -> None:
        if not self._accept(("sign", sign)):
            raise _UnsupportedError(f"{sign} is missing")

    def _any(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _UnsupportedError("nested too deeply")
        sides = [self._all()]
        while self._accept(("sign", "||")):
            sides.append(self._all())
        self._depth -= 1
        return _joined(sides, settled_by=True)

    def _all(self) -> Expression:
        sides = [self._relation()]
        while self._accept(("sign", "&&")):
            sides.append(self._relation())
        return _joined(sides, settled_by=False)

    def _relation(self) -> Expression:
        left = self._unary()
        operator = self._accept(("sign", "=="), ("sign", "!="), ("word", "in"))
        return _RELATIONS[operator](left, self._unary()) if operator else left

    def _unary(self) -> Expression:
        if self._accept(("sign", "!")):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise _UnsupportedError("nested too deeply")
            expression = _negated(self._unary())
            self._depth -= 1
            return expression
        return self._member()

    def _member(self) -> Expression:
        expression = self._primary()
        while True:
            if self._accept(("sign", ".")):
                expression = _field(expression, self._field_name())
            elif self._accept(("sign", "[")):
                expression = _index(expression, self._any())
                self._expect("]")
            else:
                return expression

    def _field_name(self) -> str:
        kind, name = self._take()
        if kind != "word" or self._peek() == ("sign", "("):
            raise _UnsupportedError(f"{name}: functions of values are not known")
        return name

    def _primary(self) -> Expression:
        kind, text = self._take()
        match kind, text:
            case "text", _:
                return _constant(_unquoted(text))
            case "number", _:
                return _constant(int(text))
            case "sign", "(":
                expression = self._any()
                self._expect(")")
                return expression
            case "sign", "[":
                return self._list()
            case "word", "has":
                return self._has()
            case "word", _ if text in _LITERALS:
                return _constant(_LITERALS[text])
            case "word", _ if text in NAMES:
                return lambda variables: variables[text]
        raise _UnsupportedError(text or kind)

    def _list(self) -> Expression:
        items: list[Expression] = []
        while not self._accept(("sign", "]")):
            if items:
                self._expect(",")
            items.append(self._any())
        return lambda variables: [item(variables) for item in items]

    def _has(self) -> Expression:
        """`has(a.b.c)`: everything but the last field must be there."""
        self._expect("(")
        expression = self._primary()
        names: list[str] = []
        while self._accept(("sign", ".")):
            names.append(self._field_name())
        self._expect(")")
        if not names:
            raise _UnsupportedError("has() needs a field")
        for name in names[:-1]:
            expression = _field(expression, name)
        return _present(expression, names[-1])


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while not tokens or tokens[-1][0] != "end":
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            raise _UnsupportedError(text[position : position + 20])
        tokens.append((found.lastgroup, found[found.lastgroup]))
        position = found.end()
    return tokens


def _unquoted(text: str) -> str:
    if text[0] == "r":
        return text[2:-1]
    parts: list[str] = []
    characters = iter(text[1:-1])
    for character in characters:
        if character == "\\":
            escaped = next(characters)
            if escaped not in _ESCAPES:
                raise _UnsupportedError(f"escape \\{escaped}")
            character = _ESCAPES[escaped]
        parts.append(character)
    return "".join(parts)


def _constant(value: Any) -> Expression:
    return lambda variables: value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise EvaluationError("no such overload")
    return value


def _joined(sides: list[Expression], *, settled_by: bool) -> Expression:
    """`||` is settled by a true side, `&&` by a false one, whatever becomes of the others."""
    if len(sides) == 1:
        return sides[0]

    def evaluate(variables: Variables) -> bool:
        trouble: EvaluationError | None = None
        for side in sides:
            try:
                if _truth(side(variables)) is settled_by:
                    return settled_by
            except EvaluationError as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble
        return not settled_by

    return evaluate


def _negated(inner: Expression) -> Expression:
    return lambda variables: not _truth(inner(variables))


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(value, right[name]) for name, value in left.items())
    return bool(left == right)


def _equals(left: Expression, right: Expression) -> Expression:
    return lambda variables: _equal(left(variables), right(variables))


def _differs(left: Expression, right: Expression) -> Expression:
    return lambda variables: not _equal(left(variables), right(variables))


def _contained(left: Expression, right: Expression) -> Expression:
    def evaluate(variables: Variables) -> bool:
        item, container = left(variables), right(variables)
        if isinstance(container, Mapping):
            return isinstance(item, str) and item in container
        if isinstance(container, list):
            return any(_equal(item, other) for other in container)
        raise EvaluationError("no such overload")

    return evaluate


_RELATIONS: Mapping[str, Callable[[Expression, Expression], Expression]] = {
    "==": _equals,
    "!=": _differs,
    "in": _contained,
}


def _field(inner: Expression, name: str) -> Expression:
    def evaluate(variables: Variables) -> Any:
        value = inner(variables)
        if not isinstance(value, Mapping):
            raise EvaluationError(f"no such key: {name}" if value is None else "no such overload")
        if name not in value:
            raise EvaluationError(f"no such key: {name}")
        return value[name]

    return evaluate


def _index(inner: Expression, position: Expression) -> Expression:
    def evaluate(variables: Variables) -> Any:
        value, at = inner(variables), position(variables)
        if isinstance(value, Mapping) and isinstance(at, str):
            if at not in value:
                raise EvaluationError(f"no such key: {at}")
            return value[at]
        if isinstance(value, list) and isinstance(at, int) and not isinstance(at, bool):
            if not 0 <= at < len(value):
                raise EvaluationError(f"index out of bounds: {at}")
            return value[at]
        raise EvaluationError("no such overload")

    return evaluate


def _present(inner: Expression, name: str) -> Expression:
    def evaluate(variables: Variables) -> bool:
        value = inner(variables)
        if not isinstance(value, Mapping):
            raise EvaluationError(f"no such key: {name}" if value is None else "no such overload")
        return name in value

    return evaluate
