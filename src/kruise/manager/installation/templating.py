"""Manifests that depend on values: written once, read twice, as plain objects and as templates of a Helm chart. Pure.

`resolved` puts values in and gives plain objects: what `kruise install` applies. `as_template` gives the text that Helm
resolves to the same objects. Every value is written as JSON, which is YAML as well, so no indentation has to fit.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN_KEY = re.compile(r"(?!(?:on|off|yes|no|y|n|true|false|null)$)[A-Za-z][\w./-]*", re.IGNORECASE)

Values = Mapping[str, Any]


class MissingValueError(KeyError):
    """A manifest asks for a value that the chart does not have."""


class Condition(abc.ABC):
    """Whether a part of a manifest is there."""

    @abc.abstractmethod
    def holds(self, values: Values, gates: Mapping[str, bool]) -> bool: ...

    @abc.abstractmethod
    def expression(self) -> str:
        """The same in Helm's words, as an operand."""


@dataclasses.dataclass(frozen=True, slots=True)
class IsSet(Condition):
    """The value is neither empty, zero nor false: what Helm takes for true."""

    path: str

    def holds(self, values: Values, gates: Mapping[str, bool]) -> bool:
        return bool(_value(values, self.path))

    def expression(self) -> str:
        return f".Values.{self.path}"


@dataclasses.dataclass(frozen=True, slots=True)
class HasGate(Condition):
    """One of these gates is on, after all that gates force upon each other."""

    names: tuple[str, ...]

    def holds(self, values: Values, gates: Mapping[str, bool]) -> bool:
        return any(gates[name] for name in self.names)

    def expression(self) -> str:
        gates = '(include "kruise.gates" . | fromJson)'
        each = [f'(get {gates} "{name}")' for name in self.names]
        return each[0] if len(each) == 1 else f"(or {' '.join(each)})"


@dataclasses.dataclass(frozen=True, slots=True)
class Not(Condition):
    condition: Condition

    def holds(self, values: Values, gates: Mapping[str, bool]) -> bool:
        return not self.condition.holds(values, gates)

    def expression(self) -> str:
        return f"(not {self.condition.expression()})"


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """A value of the chart, of whatever type it has there."""

    path: str


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """Words and values, joined."""

    parts: tuple[str | Value, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class When:
    """A part that is there under a condition. As an item of a list, a list stands for all its items; so does a value,
    which must be a list."""

    condition: Condition
    then: Any
    otherwise: Any = None
    """None: nothing is there instead."""


def text(*parts: str | Value) -> Text:
    return Text(parts)


def gate(*names: str) -> HasGate:
    return HasGate(names)


def resolved(part: Any, values: Values, gates: Mapping[str, bool]) -> Any:
    """With the values in place, and without what is not there."""
    if isinstance(part, str):
        return part
    if isinstance(part, Value):
        return _value(values, part.path)
    if isinstance(part, Text):
        return "".join(item if isinstance(item, str) else _printed(_value(values, item.path)) for item in part.parts)
    if isinstance(part, When):
        return resolved(_chosen(part, values, gates), values, gates)
    if isinstance(part, Mapping):
        return {
            key: resolved(chosen, values, gates)
            for key, item in part.items()
            if (chosen := _chosen(item, values, gates)) is not None
        }
    if isinstance(part, Sequence):
        return [resolved(item, values, gates) for item in _items(part, values, gates)]
    return part


def _chosen(part: Any, values: Values, gates: Mapping[str, bool]) -> Any:
    while isinstance(part, When):
        part = part.then if part.condition.holds(values, gates) else part.otherwise
    return part


def _items(parts: Sequence[Any], values: Values, gates: Mapping[str, bool]) -> Iterator[Any]:
    for part in parts:
        chosen = _chosen(part, values, gates)
        if isinstance(part, When) and isinstance(chosen, Value):
            chosen = _value(values, chosen.path)
        if chosen is None:
            continue
        if isinstance(part, When) and isinstance(chosen, list):
            yield from chosen
        else:
            yield chosen


def _value(values: Values, path: str) -> Any:
    found: Any = values
    for step in path.split("."):
        if not isinstance(found, Mapping) or step not in found:
            raise MissingValueError(path)
        found = found[step]
    return found


def _printed(value: Any) -> str:
    """As Helm prints it into a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def as_template(manifest: Any) -> str:
    """The text of a chart's template."""
    return "\n".join(_lines(manifest, 0)) + "\n"


def _lines(part: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(part, Mapping):
        for key, item in part.items():
            yield from _entry(f"{indent}{_key(key)}:", item, depth)
    else:
        for item in part:
            yield from _item(item, depth)


def _entry(head: str, item: Any, depth: int) -> Iterator[str]:
    if isinstance(item, When):
        yield f"{{{{- if {item.condition.expression()} }}}}"
        yield from _entry(head, item.then, depth)
        if item.otherwise is not None:
            yield "{{- else }}"
            yield from _entry(head, item.otherwise, depth)
        yield "{{- end }}"
    elif _is_nested(item):
        if _may_be_empty(item):
            # A key without anything below it would be null.
            raise ValueError(f"{head} may have nothing below it: put the condition around the key itself")
        yield head
        yield from _lines(item, depth + 1)
    else:
        yield f"{head} {_scalar(item)}"


def _item(item: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(item, When):
        yield f"{{{{- if {item.condition.expression()} }}}}"
        yield from _several(item.then, depth)
        if item.otherwise is not None:
            yield "{{- else }}"
            yield from _several(item.otherwise, depth)
        yield "{{- end }}"
    elif _is_nested(item):
        yield f"{indent}-"
        yield from _lines(item, depth + 1)
    else:
        yield f"{indent}- {_scalar(item)}"


def _several(items: Any, depth: int) -> Iterator[str]:
    if isinstance(items, Value):
        # A value that is a list itself: its items, each as JSON.
        yield f"{{{{- range .Values.{items.path} }}}}"
        yield f"{'  ' * depth}- {{{{ . | toJson }}}}"
        yield "{{- end }}"
        return
    for item in items if isinstance(items, list) else [items]:
        yield from _item(item, depth)


def _is_nested(part: Any) -> bool:
    return isinstance(part, Mapping | list | tuple) and bool(part)


def _may_be_empty(part: Any) -> bool:
    items = part.values() if isinstance(part, Mapping) else part
    return all(isinstance(item, When) and item.otherwise is None for item in items)


def _key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else _scalar(name)


def _scalar(part: Any) -> str:
    if isinstance(part, Value):
        return f"{{{{ .Values.{part.path} | toJson }}}}"
    if isinstance(part, Text):
        words = "".join(item.replace("%", "%%") if isinstance(item, str) else "%v" for item in part.parts)
        arguments = " ".join(f".Values.{item.path}" for item in part.parts if isinstance(item, Value))
        return f"{{{{ printf {json.dumps(words)} {arguments} | toJson }}}}"
    # Words of ours that look like a template's are none.
    return json.dumps(part, ensure_ascii=False).replace("{{", '{{ "{{" }}')
