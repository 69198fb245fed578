"""Structural schemas (OpenAPI v3, as in a CustomResourceDefinition) made from the structs of the API.

A struct says what a field is called and of which type it is. What users read and what an API server checks beyond that
stands beside the type, in `Annotated`: it costs nothing when objects are decoded. A field that lacks a description, or
whose type has no form in a schema, is refused here and not found by a user later.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
import typing
from datetime import datetime
from typing import Annotated, Any, get_args, get_origin

from kruise.api.meta import LabelSelector
from kruise.machinery.codec import UNSET, Raw, Struct, struct_fields

Schema = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class About:
    """What the schema says of a field besides its type."""

    description: str
    required: bool = dataclasses.field(default=False, kw_only=True)
    """Also where the struct has a default: what is read must not fail, what is written must be whole."""
    default: Any = dataclasses.field(default=UNSET, kw_only=True)
    """Filled in by the API server. Structs have their own defaults, which it never sees."""
    shape: Any = dataclasses.field(default=None, kw_only=True)
    """The type to describe in place of the field's own, where a kind has fewer fields than the struct it shares. A
    `Literal` names the values that there are."""
    is_atomic: bool = dataclasses.field(default=False, kw_only=True)
    """The list or object is written as a whole: two who apply it do not share it."""
    has_atomic_items: bool = dataclasses.field(default=False, kw_only=True)
    """So is each item of the list."""
    minimum: int | None = dataclasses.field(default=None, kw_only=True)
    keyed_by: str = dataclasses.field(default="", kw_only=True)
    """The field by which the items of a list are told apart."""
    pattern: str = dataclasses.field(default="", kw_only=True)
    min_length: int | None = dataclasses.field(default=None, kw_only=True)
    is_embedded: bool = dataclasses.field(default=False, kw_only=True)
    """It holds a whole object of whatever kind: the API server wants its `apiVersion`, `kind` and metadata in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class Format:
    """The format of a number."""

    name: str


Int32 = Annotated[int, Format("int32")]
Int64 = Annotated[int, Format("int64")]

_SELECTOR: Schema = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "matchExpressions": {
            "type": "array",
            "x-kubernetes-list-type": "atomic",
            "description": "Requirements on labels. All of them must hold.",
            "items": {
                "type": "object",
                "description": "A requirement on the value of one label.",
                "required": ["key", "operator"],
                "properties": {
                    "key": {"type": "string", "description": "The label that the requirement is about."},
                    "operator": {
                        "type": "string",
                        "description": "How the label relates to the values: In, NotIn, Exists or DoesNotExist.",
                    },
                    "values": {
                        "type": "array",
                        "x-kubernetes-list-type": "atomic",
                        "description": "The values of In and NotIn, at least one. "
                        "Must be empty for Exists and DoesNotExist.",
                        "items": {"type": "string"},
                    },
                },
            },
        },
        "matchLabels": {
            "type": "object",
            "description": "Labels with the values that they must have. All of them must hold.",
            "additionalProperties": {"type": "string"},
        },
    },
}

_KNOWN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Raw: {"x-kubernetes-preserve-unknown-fields": True},
    LabelSelector: _SELECTOR,
}
_INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_ROOT: dict[str, Schema] = {
    "apiVersion": {
        "type": "string",
        "description": "Group and version of the API that the object is written in.",
    },
    "kind": {"type": "string", "description": "Kind of the object, in CamelCase. It cannot be changed."},
    "metadata": {"type": "object"},
}


ATOMIC = "is_atomic"
"""A struct with this set is written as a whole by whoever applies it."""


class SchemaError(TypeError):
    """A struct cannot be described; the text names the field."""


def object_schema(kind: type) -> Schema:
    """The schema of a whole object: a struct with `apiVersion`, `kind`, `metadata` and its own fields."""
    schema = _struct(kind, is_root=True)
    schema["properties"] = {**copy.deepcopy(_ROOT), **schema["properties"]}
    return schema


def _struct(kind: type, *, is_root: bool = False) -> Schema:
    hints = typing.get_type_hints(kind, include_extras=True)
    is_selector = issubclass(kind, LabelSelector)
    properties: dict[str, Schema] = copy.deepcopy(_SELECTOR["properties"]) if is_selector else {}
    required: list[str] = []
    for name, wire_name, has_default in struct_fields(kind):
        if (is_root and wire_name in _ROOT) or wire_name in properties:
            continue
        where = f"{kind.__name__}.{name}"
        schema, about = _field(hints[name], where)
        properties[wire_name] = schema
        if about.required or not has_default:
            required.append(wire_name)
    result: Schema = {"type": "object", "properties": dict(sorted(properties.items()))}
    if description := inspect.cleandoc(kind.__doc__ or ""):
        result = {"description": description, **result}
    if is_selector or getattr(kind, ATOMIC, False):
        result["x-kubernetes-map-type"] = "atomic"
    if required:
        result["required"] = sorted(required)
    return result


def _field(hint: Any, where: str) -> tuple[Schema, About]:
    about = next((mark for mark in get_args(hint)[1:] if isinstance(mark, About)), None)
    if get_origin(hint) is not Annotated or about is None:
        raise SchemaError(f"{where} has no description: write Annotated[..., About('...')]")
    schema = {**_value(about.shape or hint, where), "description": about.description}
    if about.default is not UNSET:
        schema["default"] = about.default
    if about.is_atomic:
        schema[f"x-kubernetes-{'list' if schema['type'] == 'array' else 'map'}-type"] = "atomic"
    if about.has_atomic_items:
        schema["items"]["x-kubernetes-map-type"] = "atomic"
    if about.is_embedded:
        schema.update({"type": "object", "x-kubernetes-embedded-resource": True})
    if about.minimum is not None:
        schema["minimum"] = about.minimum
    if about.keyed_by:
        schema.update({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [about.keyed_by]})
    if about.pattern:
        schema["pattern"] = about.pattern
    if about.min_length is not None:
        schema["minLength"] = about.min_length
    return schema, about


def _value(hint: Any, where: str) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        plain, *marks = arguments
        found = next((mark for mark in marks if isinstance(mark, Format)), None)
        if plain is int and found is not None:
            return {"type": "integer", "format": found.name}
        return _value(plain, where)
    if origin is typing.Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return _union([item for item in arguments if item is not type(None)], where)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        if arguments[0] is Raw:
            # Every item is somebody else's business, so the list is left open as a whole.
            return _value(Raw, where)
        return {"type": "array", "items": _value(arguments[0], where)}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _value(arguments[1], where)}
    if hint in _KNOWN:
        return copy.deepcopy(_KNOWN[hint])
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _struct(hint)
    if hint is int:
        raise SchemaError(f"{where} is a number without a format: say Int32 or Int64")
    raise SchemaError(f"{where} has a type without a form in a schema: {hint}")


def _union(members: list[Any], where: str) -> Schema:
    if len(members) == 1:
        return _value(members[0], where)
    if set(members) == {int, str}:
        return copy.deepcopy(_INT_OR_STRING)
    raise SchemaError(f"{where} may be several things ({', '.join(map(str, members))}): only a number or a text may be")
