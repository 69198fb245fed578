"""Schemas as JSON: the words of Kubernetes' own extensions, and the way through the parts of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

SchemaJson = Mapping[str, Any]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
RULES: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"


def parts(schema: SchemaJson) -> Iterator[tuple[tuple[str, ...], SchemaJson]]:
    """The schemas right inside of one, with the way to them: a field, then a key or a position."""
    for name in ("properties", "patternProperties", "definitions"):
        for key, part in (schema.get(name) or {}).items():
            yield (name, key), part
    for name in ("items", "additionalProperties", "additionalItems", "not"):
        if isinstance(schema.get(name), Mapping):
            yield (name,), schema[name]
    for name in ("allOf", "oneOf", "anyOf"):
        for position, part in enumerate(schema.get(name) or ()):
            yield (name, str(position)), part


def walk(schema: SchemaJson) -> Iterator[SchemaJson]:
    """The schema and all that is in it."""
    yield schema
    for _, part in parts(schema):
        yield from walk(part)
    if isinstance(schema.get("items"), list):
        for part in schema["items"]:
            yield from walk(part)
