"""Which constructs a schema may use wherever they stand: what servers understand, and lists with proper keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, Path
from kruise.local.crds.nodes import META_FIELDS
from kruise.local.crds.schema_parts import (
    EMBEDDED,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    RULES,
    SchemaJson,
    parts,
)

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where in the schema: what may stand here depends on it."""

    is_root: bool = False
    in_meta: bool = False
    no_defaults: str = ""


_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


def construct_problems(schema: SchemaJson, path: Path, place: Place) -> Iterator[FieldError]:
    yield from _own_problems(schema, path, place)
    inner = dataclasses.replace(place, is_root=False)
    for way, part in parts(schema):
        below, name = inner, way[-1]
        if way[0] == "additionalProperties" and place.in_meta:
            below = dataclasses.replace(inner, no_defaults="inside additionalProperties applying to object metadata")
        elif way[0] == "properties" and (place.is_root or schema.get(EMBEDDED)) and name in META_FIELDS:
            below = dataclasses.replace(inner, in_meta=True)
            if place.is_root:
                below = dataclasses.replace(below, no_defaults=f"in top-level {name}")
        elif way[0] in ("patternProperties", "additionalItems"):
            continue
        yield from construct_problems(part, _follow(path, way), below)
    if isinstance(schema.get("items"), list):
        for position, part in enumerate(schema["items"]):
            yield from construct_problems(part, path.child("items").at(position), inner)
    yield from _extension_problems(schema, path)
    yield from _rule_problems(schema, path)


def _follow(path: Path, way: tuple[str, ...]) -> Path:
    path = path.child(way[0])
    if len(way) == 1:
        return path
    return path.at(int(way[1])) if way[0] in ("allOf", "oneOf", "anyOf") else path.key(way[1])


def _own_problems(schema: SchemaJson, path: Path, place: Place) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        yield field_errors.not_supported(path.child("type"), kind, _TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield field_errors.forbidden(path.child("default"), f"must not be set {place.no_defaults}")
    for name in _UNSUPPORTED:
        if schema.get(name) or (name in ("additionalItems", "dependencies", "$ref") and schema.get(name) is not None):
            yield field_errors.forbidden(path.child(name), f"{name} is not supported")
    if kind == "null":
        words = "type cannot be set to null, use nullable as an alternative"
        yield field_errors.forbidden(path.child("type"), words)
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield field_errors.forbidden(path.child("items"), "items must be a schema object and not an array")
    if place.in_meta and schema.get(EMBEDDED):
        yield field_errors.forbidden(path.child(EMBEDDED), "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield field_errors.forbidden(path.child("uniqueItems"), words)
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        words = "additionalProperties and properties are mutual exclusive"
        yield field_errors.forbidden(path.child("additionalProperties"), words)


def _extension_problems(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if schema.get(PRESERVE) is False:
        yield field_errors.invalid(path.child(PRESERVE), False, "must be true or undefined")
    for extension, wanted, accepted in (
        (MAP_TYPE, "object", ("atomic", "granular")),
        (LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        given = schema.get(extension)
        if given is None:
            continue
        if kind != wanted:
            words = f"must be {wanted} if {extension} is specified"
            place = path.child("type")
            yield field_errors.invalid(place, kind, words) if kind else field_errors.required(place, words)
        elif extension == LIST_TYPE and given == "set":
            yield from _set_problems(schema, path)
        if given not in accepted:
            yield field_errors.not_supported(path.child(extension), given, accepted)
    yield from _list_map_problems(schema, path)
    yield from _key_problems(schema, path)


def _set_problems(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return
    words = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        yield field_errors.invalid(path.child("items", LIST_TYPE), items[LIST_TYPE], words)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield field_errors.invalid(path.child("items", MAP_TYPE), items.get(LIST_TYPE), words)


def _list_map_problems(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    keys: Sequence[str] = schema.get(LIST_KEYS) or ()
    list_type = schema.get(LIST_TYPE)
    if keys and list_type != "map":
        words = f"must be map if {LIST_KEYS} is non-empty"
        place = path.child(LIST_TYPE)
        yield (
            field_errors.required(place, words) if list_type is None else field_errors.invalid(place, list_type, words)
        )
    if list_type != "map":
        return
    if not keys:
        yield field_errors.required(path.child(LIST_KEYS), f"must not be empty if {LIST_TYPE} is map")
    items = schema.get("items")
    if items is None:
        yield field_errors.required(path.child("items"), f"must have a schema if {LIST_TYPE} is map")
    elif not isinstance(items, Mapping):
        yield field_errors.invalid(path.child("items"), items, f"must only have a single schema if {LIST_TYPE} is map")
    elif items.get("type", "") != "object":
        words = f"must be object if parent array's {LIST_TYPE} is map"
        yield field_errors.invalid(path.child("items", "type"), items.get("type", ""), words)
    else:
        yield from _list_key_problems(keys, items.get("properties") or {}, path)


def _list_key_problems(keys: Sequence[str], properties: SchemaJson, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for key in keys:
        if key not in properties:
            words = "entries must all be names of item properties"
            yield field_errors.invalid(path.child(LIST_KEYS), list(keys), words)
        elif properties[key].get("type") in ("array", "object"):
            place = path.child("items", "properties").key(key).child("type")
            words = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield field_errors.invalid(place, "object", words)
        if key in seen:
            words = "must not contain duplicate entries"
            yield field_errors.invalid(path.child(LIST_KEYS), list(keys), words)
        seen.add(key)


def _key_problems(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    """Elements of sets and maps cannot be null, and keys are always there."""
    items, list_type = schema.get("items"), schema.get(LIST_TYPE)
    if not isinstance(items, Mapping) or list_type not in ("set", "map"):
        return
    place = path.child("items")
    if items.get("nullable"):
        words = f"cannot be nullable when {LIST_TYPE} is {list_type}"
        yield field_errors.forbidden(place.child("nullable"), words)
    if list_type == "set":
        return
    properties = items.get("properties") or {}
    for key in schema.get(LIST_KEYS) or ():
        if key not in properties:
            continue
        at = place.child("properties").key(key)
        words = f"this property is in {LIST_KEYS}, so it "
        if key not in (items.get("required") or ()) and properties[key].get("default") is None:
            yield field_errors.required(at.child("default"), words + "must have a default or be a required property")
        if properties[key].get("nullable"):
            yield field_errors.forbidden(at.child("nullable"), words + "cannot be nullable")


def _rule_problems(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    """Rules are not evaluated, but they have to look like rules."""
    for position, rule in enumerate(schema.get(RULES) or ()):
        place = path.child(RULES).at(position)
        text, message = rule.get("rule", "").strip(), rule.get("message", "")
        if not text:
            yield field_errors.required(place.child("rule"), "rule is not specified")
        elif message and not message.strip():
            yield field_errors.invalid(place.child("message"), message, "must be non-empty if specified")
        elif "\n" in message.strip() or "\r" in message.strip():
            yield field_errors.invalid(place.child("message"), message, "must not contain line breaks")
        elif ("\n" in text or "\r" in text) and not message.strip():
            words = "message must be specified if rule contains line breaks"
            yield field_errors.required(place.child("message"), words)
        if rule.get("messageExpression") and not rule["messageExpression"].strip():
            words = "messageExpression must be non-empty if specified"
            yield field_errors.required(place.child("messageExpression"), words)
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield field_errors.not_supported(place.child("reason"), rule["reason"], _REASONS)
