"""Lists in which nothing may occur twice: sets, and maps by some keys of their elements."""

from __future__ import annotations

from typing import Any

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, Path
from kruise.local.crds.nodes import Node
from kruise.machinery import codec

_TOP = Path()


def _identity(value: Any) -> Any:
    """Something hashable that tells JSON values apart as Go does."""
    if isinstance(value, dict | list):
        return codec.canonical(value)
    return (type(value), value)


def is_unique(values: list[Any]) -> bool:
    return len({_identity(value) for value in values}) == len(values)


def _second_ones(values: list[Any]) -> list[int]:
    """Where a value occurs for the second time."""
    seen: dict[Any, int] = {}
    found: list[int] = []
    for position, value in enumerate(values):
        identity = _identity(value)
        times = seen.get(identity, 0)
        if times == 1:
            found.append(position)
        seen[identity] = times + 1
    return found


def repeated(node: Node, values: list[Any]) -> bool:
    """Whether a set or map holds something twice, or a map something that is no object."""
    return bool(_list_problems(node, values, Path()))


def problems(node: Node, value: Any, path: Path = _TOP) -> list[FieldError]:
    """What occurs twice anywhere in a value."""
    found: list[FieldError] = []
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(node.additional, Node):
                found.extend(problems(node.additional, item, path.key(name)))
            if name in node.properties:
                found.extend(problems(node.properties[name], item, path.child(name)))
    elif isinstance(value, list):
        found.extend(_list_problems(node, value, path))
        if node.items is not None:
            for position, item in enumerate(value):
                found.extend(problems(node.items, item, path.at(position)))
    return found


def _list_problems(node: Node, values: list[Any], path: Path) -> list[FieldError]:
    if node.list_type == "set":
        return [field_errors.duplicate(path.at(position), values[position]) for position in _second_ones(values)]
    if node.list_type != "map":
        return []
    for position, value in enumerate(values):
        if value is not None and not isinstance(value, dict):
            return [field_errors.invalid(path.at(position), value, "must be an object for an array of list-type map")]
    keys = [
        {name: value[name] for name in sorted(node.list_keys) if name in value} if value else {} for value in values
    ]
    return [field_errors.duplicate(path.at(position), keys[position]) for position in _second_ones(keys)]
