"""The published Kubernetes types as one table: fields in struct order, their wire types, and how they are patched.

`table.json` is written by `hack/kubernetes/podmodel` from the Go types. It is read at the first lookup, not at import,
and each type becomes an object when it is first asked for.

A wire type is a word: `string`, `bool`, `int32`, `int64`, `float`, `quantity`, `intorstring`, `time`, `microtime`,
`duration`, `bytes`, `raw`; `[]T` is a list and `{}T` a map of strings to `T`; everything with a dot in it, such as
`core.Container`, names a struct of the table.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping
from typing import Any, NamedTuple

from kruise.machinery import codec
from kruise.machinery.patches.schema import FieldRule, MergeSchema

POD = "core.Pod"
POD_TEMPLATE_SPEC = "core.PodTemplateSpec"
POD_SPEC = "core.PodSpec"
CONTAINER = "core.Container"
CLAIM = "core.PersistentVolumeClaim"

LIST = "[]"
MAP = "{}"


class Field(NamedTuple):
    """One field of a struct, as its Go tags describe it."""

    name: str
    type: str
    pointer: bool
    omit_empty: bool
    omit_zero: bool
    strategies: frozenset[str]
    merge_key: str

    @property
    def element(self) -> str:
        """The type of a list's or map's elements."""
        return self.type[2:]

    @property
    def is_never_empty(self) -> bool:
        """Go's `omitempty` has no effect on structs, and some leaves are structs to Go."""
        return not self.pointer and (self.type in _STRUCTS_TO_GO or is_struct(self.type))

    @property
    def is_written_unset(self) -> bool:
        """Whether Go writes the field when it was not set."""
        return not self.omit_empty or self.is_never_empty


_STRUCTS_TO_GO = frozenset({"quantity", "intorstring", "time", "microtime", "duration"})


class StructType(NamedTuple):
    """One struct: its fields in the order in which Go writes them."""

    name: str
    fields: tuple[Field, ...]
    by_name: Mapping[str, Field]
    positions: Mapping[str, int]
    written_unset: frozenset[int]
    """Positions of the fields that are written in any case. There are few, which makes reading fast."""


def is_struct(wire_type: str) -> bool:
    return "." in wire_type and not wire_type.startswith((LIST, MAP))


@functools.cache
def table() -> Mapping[str, Any]:
    """The table as it is on disk."""
    text = importlib.resources.files(__package__).joinpath("table.json").read_bytes()
    return codec.decode(text, dict)


@functools.cache
def struct_type(name: str) -> StructType:
    """The struct with that name; KeyError for a name that the table lacks."""
    fields = tuple(_field(row) for row in table()["types"][name])
    by_name = {field.name: field for field in fields}
    positions = {field.name: position for position, field in enumerate(fields)}
    written_unset = frozenset(position for position, field in enumerate(fields) if field.is_written_unset)
    return StructType(name, fields, by_name, positions, written_unset)


def _field(row: list[str]) -> Field:
    name, wire_type, flags, strategy, merge_key = (*row, "", "", "")[:5]
    strategies = frozenset(part for part in strategy.split(",") if part)
    return Field(name, wire_type, "p" in flags, "o" in flags, "z" in flags, strategies, merge_key)


def kind_type(api_version: str, kind: str) -> str | None:
    """The struct of a native kind, None for a kind that is not in the table."""
    found: str | None = table()["kinds"].get(f"{api_version}/{kind}")
    return found


def defaults(form: str) -> Mapping[str, Mapping[str, Any]]:
    """The defaults that the API server gives, by struct and field. `form` is `template`, `pod` or `claim`."""
    found: Mapping[str, Mapping[str, Any]] = table()["defaults"][form]
    return found


class _StructMerge:
    """How the fields of a struct are patched."""

    __slots__ = ("_name", "_rules")

    def __init__(self, name: str) -> None:
        self._name = name
        self._rules: dict[str, FieldRule | None] = {}

    def field(self, name: str) -> FieldRule | None:
        if name not in self._rules:
            known = struct_type(self._name).by_name.get(name)
            self._rules[name] = None if known is None else _rule(known)
        return self._rules[name]

    def __repr__(self) -> str:
        return f"<merge schema of {self._name}>"


class _MapMerge:
    """How the values of a map are patched: whatever the key, the same way."""

    __slots__ = ("_rule",)

    def __init__(self, element: str) -> None:
        self._rule = FieldRule(child=_child(element), is_list=element.startswith(LIST))

    def field(self, name: str) -> FieldRule | None:
        return self._rule


def _rule(field: Field) -> FieldRule:
    is_list = field.type.startswith(LIST)
    child = _child(field.element if is_list else field.type)
    return FieldRule(strategies=field.strategies, merge_key=field.merge_key, child=child, is_list=is_list)


@functools.cache
def _child(wire_type: str) -> MergeSchema | None:
    if is_struct(wire_type):
        return _StructMerge(wire_type)
    if wire_type.startswith(MAP) and (is_struct(wire_type[2:]) or wire_type[2:].startswith((LIST, MAP))):
        return _MapMerge(wire_type[2:])
    return None


def merge_schema(api_version: str, kind: str) -> MergeSchema | None:
    """How objects of a native kind are patched strategically; None for kinds without a published Go type."""
    name = kind_type(api_version, kind)
    return None if name is None else _child(name)


def struct_merge_schema(name: str) -> MergeSchema:
    """The same for a struct of the table, such as `core.PodTemplateSpec`."""
    found = _child(struct_type(name).name)
    assert found is not None
    return found
