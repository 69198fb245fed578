"""Fields that Kubernetes' own types do not have: misspelt ones, mostly."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from kruise.api.core import schema

_NOTHING_INSIDE = ""


def unknown_fields(value: Any, wire_type: str, path: str = "") -> list[str]:
    """Paths of fields that a type of the table does not have, in the order of the document."""
    found = _unknown(value, _structured(wire_type))
    return [f"{path}{place}" for place in found] if path else [place.removeprefix(".") for place in found]


def _unknown(value: Any, wire_type: str) -> list[str]:
    """From here on. Places are put together on the way back: mostly there is nothing to tell."""
    found: list[str] = []
    if wire_type.startswith(schema.LIST):
        if isinstance(value, list):
            inner = wire_type[len(schema.LIST) :]
            for position, item in enumerate(value):
                found += [f"[{position}]{place}" for place in _unknown(item, inner)]
    elif not wire_type or not isinstance(value, dict):
        return found
    elif wire_type.startswith(schema.MAP):
        inner = wire_type[len(schema.MAP) :]
        for name, item in value.items():
            found += [f".{name}{place}" for place in _unknown(item, inner)]
    else:
        fields = _fields(wire_type)
        for name, item in value.items():
            known = fields.get(name)
            if known is None:
                found.append(f".{name}")
            elif known:
                found += [f".{name}{place}" for place in _unknown(item, known)]
    return found


@functools.cache
def _fields(struct: str) -> Mapping[str, str]:
    """The type of each field, as far as there are fields in it."""
    return {field.name: _structured(field.type) for field in schema.struct_type(struct).fields}


def _structured(wire_type: str) -> str:
    innermost = wire_type
    while innermost.startswith((schema.LIST, schema.MAP)):
        innermost = innermost[2:]
    return wire_type if schema.is_struct(innermost) else _NOTHING_INSIDE
