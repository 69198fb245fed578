"""Which schemas a definition may have: structural ones, with defaults that fit."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, Path
from kruise.local.crds import embedded, formats, nodes, validating
from kruise.local.crds.constructs import Place, construct_problems
from kruise.local.crds.regexes import PatternError, compile_pattern
from kruise.local.crds.schema_parts import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    RULES,
    SchemaJson,
    parts,
    walk,
)
from kruise.local.crds.shaping import compile_shape
from kruise.machinery.codec import decode, encode
from kruise.machinery.patches.values import same

_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_BOTH: Final = [{"type": "integer"}, {"type": "string"}]
_ROOT_FIELDS: Final = frozenset(
    {
        *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
        *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required"),
        *("items", "properties", "externalDocs", "example", PRESERVE, RULES),
    }
)
_ROOT_NAMES: Final = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations]"
)
_UNREADABLE: Final = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")


def schema_problems(schema: SchemaJson, path: Path, *, has_status: bool) -> list[FieldError]:
    """What is wrong with the `openAPIV3Schema` at `path`. Of equal ones the same, so it is looked for once."""
    return list(_problems_of(encode(schema), path, has_status))


@functools.lru_cache(maxsize=128)
def _problems_of(source: bytes, path: Path, has_status: bool) -> tuple[FieldError, ...]:
    return tuple(_schema_problems(decode(source, dict), path, has_status=has_status))


def _schema_problems(schema: SchemaJson, path: Path, *, has_status: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if has_status:
        found.extend(_root_problems(schema, path))
    if schema.get("nullable"):
        found.append(field_errors.forbidden(path.child("nullable"), "nullable cannot be true at the root"))
    unreadable = _unreadable(schema)
    if not unreadable:
        wrong = sorted(_structure(schema, path), key=str)
        if not wrong:
            wrong = list(_default_problems(schema, path))
        found.extend(wrong)
    found.extend(construct_problems(schema, path, Place(is_root=True)))
    if unreadable and not found:
        found.append(field_errors.invalid(path, "", unreadable))
    return found


def _root_problems(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    """With a status subresource only such fields may be at the root as do not reach into the status."""
    if schema.get("type", "object") != "object":
        words = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield field_errors.invalid(path.child("type"), schema["type"], words)
        return
    if any(name not in _ROOT_FIELDS for name in schema):
        words = f"only {_ROOT_NAMES} fields are allowed at the root of the schema if the status subresource is enabled"
        yield field_errors.invalid(path, dict(schema), words)


def _unreadable(schema: Any) -> str:
    """Why a schema cannot even be read as a structural one."""
    for name in _UNREADABLE:
        if schema.get(name):
            return f"OpenAPIV3Schema '{name.lstrip('$') if name == '$schema' else name}' is not supported"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if schema.get(PRESERVE) is False:
        return f"internal error: '{PRESERVE}' must be true or undefined"
    return next(filter(None, (_unreadable(part) for _, part in parts(schema))), "")


# Structure: types everywhere, and only value checks inside of allOf, anyOf, oneOf and not


def _structure(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    yield from _invariants(schema, _ROOT, path)
    yield from _completeness(schema, schema, path, path)


def _invariants(schema: SchemaJson, level: str, path: Path) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind == "array" and schema.get("items") is None:
        yield field_errors.required(path.child("items"), "must be specified")
    if isinstance(schema.get("items"), Mapping):
        yield from _invariants(schema["items"], _ITEM, path.child("items"))
    properties = schema.get("properties") or {}
    for name, part in properties.items():
        yield from _invariants(part, _FIELD, path.child("properties").key(name))
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == _ROOT:
            yield field_errors.forbidden(path.child("additionalProperties"), "must not be used at the root")
        if isinstance(additional, Mapping):
            yield from _invariants(additional, _FIELD, path.child("additionalProperties"))
    if schema.get(INT_OR_STRING):
        for name in (PRESERVE, EMBEDDED):
            if schema.get(name):
                words = f"must be false if {INT_OR_STRING} is true"
                yield field_errors.invalid(path.child(name), True, words)
    yield from _value_checks(schema, path, _is_int_or_string(schema), _is_int_or_string_in_all(schema))
    yield from _type_rules(schema, level, path, kind)
    yield from _meta_rules(schema, level, path)


def _is_int_or_string(schema: SchemaJson) -> bool:
    return schema.get("anyOf") == _BOTH


def _is_int_or_string_in_all(schema: SchemaJson) -> bool:
    every: Sequence[SchemaJson] = schema.get("allOf") or ()
    return bool(every) and every[0].get("anyOf") == _BOTH


def _type_rules(schema: SchemaJson, level: str, path: Path, kind: str) -> Iterator[FieldError]:
    place = path.child("type")
    is_embedded = bool(schema.get(EMBEDDED))
    if is_embedded and kind != "object":
        words = f"must be object if {EMBEDDED} is true"
        yield field_errors.invalid(place, kind, words) if kind else field_errors.required(place, words)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield field_errors.required(place, f"must not be empty {level}")
    if is_embedded and schema.get("additionalProperties") is not None:
        words = f"must not be used if {EMBEDDED} is set"
        yield field_errors.forbidden(path.child("additionalProperties"), words)
    if level == _ROOT and kind not in ("", "object"):
        yield field_errors.invalid(place, kind, "must be object at the root")


def _meta_rules(schema: SchemaJson, level: str, path: Path) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    is_object = level == _ROOT or bool(schema.get(EMBEDDED))
    for name in ("kind", "apiVersion"):
        if is_object and name in properties and properties[name].get("type", "") != "string":
            place = path.child("properties").key(name).child("type")
            yield field_errors.invalid(place, properties[name].get("type", ""), "must be string")
    about = properties.get("metadata")
    if about is not None:
        place = path.child("properties").key("metadata")
        if is_object and about.get("type", "") != "object":
            yield field_errors.invalid(place.child("type"), about.get("type", ""), "must be object")
        said = {*about} - {"type", "default", "properties", "example", "externalDocs"}
        if level == _ROOT and (said or not set(about.get("properties") or ()) <= {"name", "generateName"}):
            words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield field_errors.forbidden(place, words)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not properties:
        words = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield field_errors.required(path.child("properties"), words)


def _value_checks(schema: SchemaJson, path: Path, skip_any: bool, skip_all: bool) -> Iterator[FieldError]:
    for name in ("anyOf", "allOf", "oneOf"):
        if name == "anyOf" and skip_any:
            continue
        for position, part in enumerate(schema.get(name) or ()):
            skip = name == "allOf" and skip_all and position == 0
            yield from _nested(part, path.child(name).at(position), skip)
    if isinstance(schema.get("not"), Mapping):
        yield from _nested(schema["not"], path.child("not"))
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except PatternError as error:
            words = f"must be a valid regular expression, but isn't: {error}"
            yield field_errors.invalid(path.child("pattern"), schema["pattern"], words)


_NESTED_FORBIDDEN: Final = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (LIST_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)


def _nested(schema: SchemaJson, path: Path, skip_any: bool = False) -> Iterator[FieldError]:
    yield from _value_checks(schema, path, skip_any, False)
    if isinstance(schema.get("items"), Mapping):
        yield from _nested(schema["items"], path.child("items"))
    for name, part in (schema.get("properties") or {}).items():
        yield from _nested(part, path.child("properties").key(name))
    if schema.get("additionalProperties"):
        yield field_errors.forbidden(path.child("additionalProperties"), "must be undefined to be structural")
    for name, words in _NESTED_FORBIDDEN:
        if schema.get(name) if name != "default" else schema.get(name) is not None:
            yield field_errors.forbidden(path.child(name), words)
    if "metadata" in (schema.get("properties") or {}):
        place = path.child("properties").key("metadata")
        yield field_errors.forbidden(place, "must not be specified in a nested context")


def _completeness(checks: SchemaJson, schema: SchemaJson | None, where: Path, path: Path) -> Iterator[FieldError]:
    """Whatever a value check reaches must also stand in the structure."""
    for name in ("not", "allOf", "anyOf", "oneOf"):
        parts = checks.get(name)
        if isinstance(parts, Mapping):
            yield from _nested_completeness(parts, schema, where, path.child(name))
        for position, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _nested_completeness(part, schema, where, path.child(name).at(position))


def _nested_completeness(
    checks: SchemaJson, schema: SchemaJson | None, where: Path, path: Path
) -> Iterator[FieldError]:
    if schema is None:
        yield field_errors.required(where, f"because it is defined in {path}")
        return
    yield from _completeness(checks, schema, where, path)
    if isinstance(checks.get("items"), Mapping):
        inner = schema.get("items")
        yield from _nested_completeness(checks["items"], inner, where.child("items"), path.child("items"))
    properties = schema.get("properties") or {}
    for name, part in (checks.get("properties") or {}).items():
        place, source = where.child("properties").key(name), path.child("properties").key(name)
        if name in properties:
            yield from _nested_completeness(part, properties[name], place, source)
        else:
            yield field_errors.required(place, f"because it is defined in {source}")


# Defaults


def _default_problems(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    """Defaults must be pruned and valid."""
    if schema.get("default") is not None:
        yield from _one_default(schema, path.child("default"))
    if isinstance(schema.get("items"), Mapping):
        yield from _default_problems(schema["items"], path.child("items"))
    for name, part in (schema.get("properties") or {}).items():
        yield from _default_problems(part, path.child("properties").key(name))


def _one_default(schema: SchemaJson, path: Path) -> Iterator[FieldError]:
    node, default = nodes.read(schema), schema["default"]
    try:
        pruned = compile_shape(dataclasses.replace(node, embedded=False), root=node.embedded, defaults=False)(default)
    except embedded.MalformedError:
        pruned = default
    if not same(_without_nulls_of(pruned, default), default):
        yield field_errors.invalid(path, default, "must not have unknown fields")
    unreadable = embedded.locate(node, default, path)
    if unreadable is not None:
        yield unreadable
        return
    wrong = embedded.problems(node, default, path)
    yield from wrong or validating.problems(node, default, field=path)


def _without_nulls_of(pruned: Any, default: Any) -> Any:
    """Nulls are no unknown fields: put back those that pruning took away."""
    if isinstance(pruned, dict) and isinstance(default, dict):
        kept = {name: _without_nulls_of(pruned[name], default[name]) for name in default if name in pruned}
        nulls = {name: None for name, value in default.items() if value is None and name not in pruned}
        return {**kept, **nulls}
    if isinstance(pruned, list) and isinstance(default, list):
        return [_without_nulls_of(one, other) for one, other in zip(pruned, default, strict=True)]
    return pruned


def unrecognized_formats(schema: SchemaJson) -> list[str]:
    """Formats of strings that no server checks, which it warns about."""
    found = [part["format"] for part in walk(schema) if part.get("type") == "string" and part.get("format")]
    return [name for name in found if formats.known(name) is None]
