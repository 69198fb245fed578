"""Fields that Kubernetes' own types do not have: misspelt ones, mostly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.core import schema


def unknown_fields(value: Any, wire_type: str, path: str = "") -> list[str]:
    """Paths of fields that a type of the table does not have, in the order of the document."""
    found: list[str] = []
    _check(value, wire_type, path, found)
    return found


def _check(value: Any, wire_type: str, path: str, found: list[str]) -> None:
    if wire_type.startswith(schema.LIST):
        if isinstance(value, list):
            for position, item in enumerate(value):
                _check(item, wire_type[len(schema.LIST) :], f"{path}[{position}]", found)
    elif not isinstance(value, Mapping):
        return
    elif wire_type.startswith(schema.MAP):
        for name, item in value.items():
            _check(item, wire_type[len(schema.MAP) :], f"{path}.{name}", found)
    elif schema.is_struct(wire_type):
        fields = schema.struct_type(wire_type).by_name
        for name, item in value.items():
            place = f"{path}.{name}" if path else name
            field = fields.get(name)
            if field is None:
                found.append(place)
            else:
                _check(item, field.type, place, found)
