"""Types as field ownership sees them: which lists are sets or maps of elements, and which values are owned whole.

Native kinds are described by `types.json`, which `hack/kubernetes/field_types.py` writes from the OpenAPI documents of
a Kubernetes API server; custom kinds by the schema of their definition. A kind without either is typed by what is in
its objects: maps are open, lists are owned whole.
"""

from __future__ import annotations

import enum
import functools
import importlib.resources
from collections.abc import Mapping
from typing import Any, Final

from kruise.machinery import codec

NUMBER, TEXT, BOOLEAN, ANY = "n", "s", "b", "u"


class Shape(enum.Enum):
    SCALAR = enum.auto()
    LIST = enum.auto()
    MAP = enum.auto()


class ListType:
    """A list: owned whole, a set of scalars (no keys), or elements known by the values of their keys."""

    __slots__ = ("_element", "keys", "whole")

    def __init__(self, element: Type | str, *, whole: bool = True, keys: tuple[str, ...] = ()) -> None:
        self._element = element
        self.whole = whole
        self.keys = keys

    @property
    def element(self) -> Type:
        if isinstance(self._element, str):
            self._element = reference(self._element)
        return self._element


class MapType:
    """A struct or a map: fields of their own types, and the type of any others (None: there are no others)."""

    __slots__ = ("_rest", "defaults", "fields", "whole")

    def __init__(
        self,
        fields: Mapping[str, Type | str],
        rest: Type | str | None = None,
        *,
        whole: bool = False,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.fields = dict(fields)
        self._rest = rest
        self.whole = whole
        self.defaults = defaults or {}
        """Of fields that can tell list elements apart."""

    @property
    def rest(self) -> Type | None:
        if isinstance(self._rest, str):
            self._rest = reference(self._rest)
        return self._rest

    def field(self, name: str) -> Type | None:
        """The type of a field, by its name or as one of the others."""
        found = self.fields.get(name)
        if found is None:
            return self.rest
        if isinstance(found, str):
            found = self.fields[name] = reference(found)
        return found

    def owned_whole(self) -> MapType:
        return MapType(self.fields, self._rest, whole=True, defaults=self.defaults)


class Type:
    """What a value may be; more than one of the three for values that are typed by their content."""

    __slots__ = ("list", "map", "scalar")

    def __init__(self, scalar: str = "", list: ListType | None = None, map: MapType | None = None) -> None:
        self.scalar = scalar
        self.list = list
        self.map = map

    def shape(self, value: Any) -> Shape:
        """As what a value is treated; a value that fits nothing is treated as the first thing that it could be."""
        if isinstance(value, dict):
            if self.map is not None:
                return Shape.MAP
        elif isinstance(value, list):
            if self.list is not None:
                return Shape.LIST
        elif value is not None and self.scalar:
            return Shape.SCALAR
        if self.map is not None:
            return Shape.MAP
        return Shape.SCALAR if self.scalar else Shape.LIST


def _untyped() -> tuple[Type, Type]:
    whole = Type(scalar=ANY)
    whole.list, whole.map = ListType(whole), MapType({}, whole, whole=True)
    deduced = Type(scalar=ANY, list=ListType(whole))
    deduced.map = MapType({}, deduced)
    return whole, deduced


WHOLE, DEDUCED = _untyped()
"""A value of any type that is owned whole, and one whose type is seen from its content."""

_WORDS: Final[Mapping[str, Type]] = {
    **{word: Type(scalar=word) for word in (NUMBER, TEXT, BOOLEAN, ANY)},
    "?": WHOLE,
    "*": DEDUCED,
}


@functools.cache
def _table() -> Mapping[str, Any]:
    text = importlib.resources.files(__package__).joinpath("types.json").read_bytes()
    return codec.decode(text, dict)


@functools.cache
def reference(text: str) -> Type:
    """The type that a word of the table stands for."""
    if text in _WORDS:
        return _WORDS[text]
    mark, rest = text[0], text[1:]
    if mark == "[":
        keys, _, element = rest.partition("]")
        if keys in ("", "="):
            return Type(list=ListType(element, whole=not keys))
        return Type(list=ListType(element, whole=False, keys=tuple(keys.split(","))))
    if mark == "{":
        sort, _, element = rest.partition("}")
        return Type(map=MapType({}, element, whole=sort == "!"))
    if rest.startswith("!"):
        named = reference(f"@{rest[1:]}")
        return Type(map=named.map.owned_whole()) if named.map is not None else named
    entry = _table()["types"][rest]
    if isinstance(entry, str):
        return reference(entry)
    shape = MapType(entry["fields"], whole=entry.get("whole", False), defaults=entry.get("defaults"))
    return Type(map=shape)


@functools.cache
def native(api_version: str, kind: str) -> Type | None:
    """The type of a native kind, None where the table lacks it."""
    name = _table()["kinds"].get(f"{api_version}/{kind}")
    return None if name is None else reference(f"@{name}")


OBJECT_META: Final = "@meta.v1.ObjectMeta"


def custom(schema: Mapping[str, Any] | None) -> Type:
    """The type of a custom kind, from the OpenAPI schema of one version of its definition."""
    if schema is None:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    result = _from_openapi(schema, preserve=False)
    shape = result.map or MapType({}, DEDUCED)
    fields = {**shape.fields, "apiVersion": "s", "kind": "s", "metadata": OBJECT_META}
    return Type(map=MapType(fields, shape.rest, whole=False))


def _from_openapi(schema: Mapping[str, Any], *, preserve: bool) -> Type:
    # An element that keeps unknown fields makes those inside it do so, too.
    preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
    match schema.get("type", ""):
        case "object":
            return Type(map=_open_map(schema, preserve))
        case "array":
            return Type(list=_open_list(schema, preserve))
        case "integer" | "number":
            return _WORDS[NUMBER]
        case "boolean":
            return _WORDS[BOOLEAN]
        case "string":
            return _WORDS[TEXT if schema.get("format", "") in ("", "byte") else ANY]
        case _:
            return Type(ANY, _open_list(schema, preserve), _open_map(schema, preserve))


def _open_map(schema: Mapping[str, Any], preserve: bool) -> MapType:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    fields: dict[str, Type | str] = {name: _from_openapi(item, preserve=preserve) for name, item in properties.items()}
    if schema.get("x-kubernetes-embedded-resource") is True:
        fields |= {"apiVersion": "s", "kind": "s", "metadata": OBJECT_META}
    more = schema.get("additionalProperties")
    rest: Type | None = None
    if isinstance(more, Mapping):
        rest = _from_openapi(more, preserve=preserve)
    elif more is True or (more is None and (preserve or not properties)):
        rest = DEDUCED
    whole = schema.get("x-kubernetes-map-type") == "atomic"
    defaults = {name: item["default"] for name, item in properties.items() if "default" in item}
    return MapType(fields, rest, whole=whole, defaults=defaults)


def _open_list(schema: Mapping[str, Any], preserve: bool) -> ListType:
    items = schema.get("items")
    element = _from_openapi(items, preserve=preserve) if isinstance(items, Mapping) else WHOLE
    kind = schema.get("x-kubernetes-list-type", "atomic")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
    return ListType(element, whole=kind == "atomic", keys=keys)
