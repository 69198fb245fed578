"""A structural schema as a tree of nodes, read once from its JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from kruise.local.crds import formats

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Node:
    """What is said about one value. The names are those of the schema."""

    types: tuple[str, ...] = ()
    """The type; both of them for an int-or-string; none where everything goes."""
    nullable: bool = False
    default: Any = MISSING
    properties: Mapping[str, Node] = dataclasses.field(default_factory=dict)
    additional: Node | bool | None = None
    items: Node | None = None

    preserve: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""

    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    pattern: str = ""
    format: str = ""
    """Only where it is checked."""
    minimum: float | None = None
    exclusive_minimum: bool = False
    maximum: float | None = None
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    not_: Node | None = None


def read(schema: Mapping[str, Any]) -> Node:
    """The node for a schema that is structural; constructs that a definition may not use are not looked at."""
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    kind = schema.get("type", "")
    types = ("integer", "string") if int_or_string else (kind,) if kind else ()
    name = schema.get("format", "")
    default = schema.get("default")
    items, negated = schema.get("items"), schema.get("not")
    return Node(
        types=types,
        nullable=bool(schema.get("nullable")),
        default=MISSING if default is None else default,
        properties={key: read(value) for key, value in (schema.get("properties") or {}).items()},
        additional=_additional(schema.get("additionalProperties")),
        items=read(items) if isinstance(items, Mapping) else None,
        preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        int_or_string=int_or_string,
        list_type=schema.get("x-kubernetes-list-type") or "",
        list_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        map_type=schema.get("x-kubernetes-map-type") or "",
        required=tuple(schema.get("required") or ()),
        enum=tuple(schema.get("enum") or ()),
        pattern=schema.get("pattern", ""),
        format=name if name and formats.known(name) is not None else "",
        minimum=schema.get("minimum"),
        exclusive_minimum=bool(schema.get("exclusiveMinimum")),
        maximum=schema.get("maximum"),
        exclusive_maximum=bool(schema.get("exclusiveMaximum")),
        multiple_of=schema.get("multipleOf"),
        min_length=schema.get("minLength"),
        max_length=schema.get("maxLength"),
        min_items=schema.get("minItems"),
        max_items=schema.get("maxItems"),
        unique_items=bool(schema.get("uniqueItems")),
        min_properties=schema.get("minProperties"),
        max_properties=schema.get("maxProperties"),
        all_of=_several(schema.get("allOf")),
        any_of=_several(schema.get("anyOf")),
        one_of=_several(schema.get("oneOf")),
        not_=read(negated) if isinstance(negated, Mapping) else None,
    )


def _several(schemas: Any) -> tuple[Node, ...]:
    return tuple(read(schema) for schema in schemas or ())


def _additional(value: Any) -> Node | bool | None:
    return read(value) if isinstance(value, Mapping) else value
