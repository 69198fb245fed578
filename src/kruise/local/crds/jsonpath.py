"""The JSON paths of printer columns, scale and selectable fields.

`.spec.x`, `.metadata.labels.a\\.b/c`, `['x']`, `[0]`, `[1:3]`, `[*]`, `.*` and `[?(@.type=="Ready")].status`.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

Step = Callable[[list[Any]], list[Any]]


class PathError(ValueError):
    """The path cannot be read, or leads into something of the wrong type."""


@functools.lru_cache(maxsize=4096)
def parse(path: str) -> Callable[[Any], list[Any]]:
    """All values that a path leads to, in order. Raises `PathError`, also when it is followed."""
    steps = _steps(path)

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = step(found)
        return found

    return find


_FIELD = re.compile(r"\.((?:\\.|[^.\[\]\\*@$(){}'\"\s])+)")
_INDEX = re.compile(r"\[(-?\d+)\]")
_SLICE = re.compile(r"\[(-?\d*):(-?\d*)\]")
_KEY = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\")\]")
_FILTER = re.compile(r"\[\?\(\s*@((?:[^!<>=)'\"]|\\.)+?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?))?\s*\)\]")


def _steps(path: str) -> Sequence[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(path):
        for pattern, make in _SYNTAX:
            found = pattern.match(path, position)
            if found is not None:
                step = make(found)
                if step is not None:
                    steps.append(step)
                position = found.end()
                break
        else:
            raise PathError(f"unrecognized path {path!r} at {path[position:]!r}")
    return tuple(steps)


def _field(name: str) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [value[name] for value in values if isinstance(value, dict) and name in value]

    return step


def _every(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value[name] for name in sorted(value))
        elif isinstance(value, list | str):
            found.extend(value)
    return found


def _elements(values: list[Any]) -> list[list[Any]]:
    for value in values:
        if value is not None and not isinstance(value, list):
            raise PathError(f"{type(value).__name__} is not array or slice")
    return [value for value in values if value is not None]


def _index(position: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in _elements(values):
            if not -len(value) <= position < len(value):
                raise PathError(f"array index out of bounds: index {position}, length {len(value)}")
            found.append(value[position])
        return found

    return step


def _slice(start: str, end: str) -> Step:
    part = slice(int(start) if start else None, int(end) if end else None)
    return lambda values: [item for value in _elements(values) for item in value[part]]


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _filter(left: str, symbol: str | None, right: str | None) -> Step:
    find = parse(left)
    compare = _COMPARE[symbol] if symbol else None
    wanted = _literal(right) if right else None

    def matches(item: Any) -> bool:
        found = find(item)
        if compare is None:
            return bool(found)
        if len(found) > 1:
            raise PathError("can only compare one element at a time")
        if not found:
            return False
        try:
            return compare(found[0], wanted)
        except TypeError as error:
            raise PathError("incompatible types for comparison") from error

    return lambda values: [item for value in _elements(values) for item in value if matches(item)]


def _literal(text: str) -> Any:
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise PathError(f"unrecognized value {text!r}") from None


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


_SYNTAX: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step | None]], ...] = (
    (re.compile(r"\[\*\]|\.\*"), lambda found: _every),
    (_FIELD, lambda found: _field(_unescaped(found[1]))),
    (_INDEX, lambda found: _index(int(found[1]))),
    (_SLICE, lambda found: _slice(found[1], found[2])),
    (_KEY, lambda found: _field(found[1] if found[1] is not None else found[2])),
    (_FILTER, lambda found: _filter(found[1], found[2], found[3])),
    (re.compile(r"\.(?=\[|$)"), lambda found: None),
)
