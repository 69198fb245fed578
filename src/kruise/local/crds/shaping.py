"""Pruning, nulls and defaults in one pass, as functions that are built once from a schema.

The order is a real server's: unknown fields go, then nulls where nothing may be null and no default stands in for them,
then defaults come in. A value that is right already is returned as it is; nothing is changed in place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from kruise.local.crds import embedded
from kruise.local.crds.nodes import META_FIELDS, MISSING, Node

Shape = Callable[[Any], Any]


def compile_shape(node: Node, *, root: bool = False, defaults: bool = True) -> Shape:
    """The function for a schema. At the root the fields that all objects have are not looked at.

    Without `defaults` it only prunes. It raises `embedded.MalformedError` for metadata of embedded objects that no
    server could read.
    """
    if root:
        node = dataclasses.replace(
            node, properties={name: child for name, child in node.properties.items() if name not in META_FIELDS}
        )
    return _shape(node, defaults, META_FIELDS if root else frozenset())


def _shape(node: Node, defaults: bool, passed: frozenset[str] = frozenset()) -> Shape:
    shape_dict = _dict_shape(node, defaults, passed)
    shape_list = _list_shape(node, defaults)

    def shape(value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            return shape_dict(value)
        if kind is list:
            return shape_list(value)
        return value

    return shape


def emptied(value: Any) -> Any:
    """Pruning without a schema: objects lose all their fields."""
    kind = type(value)
    if kind is dict:
        return {} if value else value
    if kind is list:
        return _each(emptied, value)
    return value


def _same(value: Any) -> Any:
    return value


def _each(shape: Shape, values: list[Any]) -> list[Any]:
    shaped = [shape(value) for value in values]
    for position, value in enumerate(values):
        if shaped[position] is not value:
            return shaped
    return values


def _list_shape(node: Node, defaults: bool) -> Callable[[list[Any]], list[Any]]:
    if node.items is None:
        return _same if node.preserve else (lambda values: _each(emptied, values))
    items = node.items
    if node.preserve and not items.preserve:
        # Below a list that preserves what it does not know, so do its elements.
        items = dataclasses.replace(items, preserve=True)
    shape = _shape(items, defaults)
    filler = _default_of(items, defaults)
    if filler is MISSING or items.nullable:
        return lambda values: _each(shape, values)

    def filled(value: Any) -> Any:
        return filler if value is None else shape(value)

    return lambda values: _each(filled, values)


def _default_of(node: Node, defaults: bool) -> Any:
    """The default with the defaults inside of it."""
    return MISSING if node.default is MISSING or not defaults else _shape(node, defaults)(node.default)


def _dict_shape(node: Node, defaults: bool, passed: frozenset[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    shapes: dict[str, Shape] = {}
    nulls: dict[str, Any] = {}
    """What takes the place of a null: None, a default, or MISSING for nothing."""
    fillers: list[tuple[str, Any]] = []
    for name, child in node.properties.items():
        if node.embedded and name in META_FIELDS:
            child = dataclasses.replace(child, preserve=True)
        shapes[name] = _shape(child, defaults)
        default = _default_of(child, defaults)
        nulls[name] = None if child.nullable else default
        if default is MISSING and child.default is not MISSING and not child.nullable:
            nulls[name] = None
        if default is not MISSING:
            fillers.append((name, default))
    if node.embedded:
        passed = META_FIELDS
    other, other_null = _other_shape(node, defaults)
    coerce = embedded.coerced if node.embedded else None
    known = shapes.get

    def shape(value: dict[str, Any]) -> dict[str, Any]:
        if coerce is not None:
            value = coerce(value)
        changed = False
        out: dict[str, Any] = {}
        for name, item in value.items():
            child = known(name)
            if child is None:
                if name in passed:
                    out[name] = item
                    continue
                child = other
                if child is None:
                    changed = True
                    continue
            kind = type(item)
            if kind is str or kind is int or kind is bool:
                out[name] = item
            elif item is None:
                replaced = nulls.get(name, other_null)
                if replaced is MISSING:
                    changed = True
                else:
                    changed = changed or replaced is not None
                    out[name] = replaced
            else:
                shaped = child(item)
                changed = changed or shaped is not item
                out[name] = shaped
        for name, default in fillers:
            if name not in out:
                out[name] = default
                changed = True
        return out if changed else value

    return shape


def _other_shape(node: Node, defaults: bool) -> tuple[Shape | None, Any]:
    """For fields that the schema does not name: their shape, and what takes the place of a null among them."""
    if isinstance(node.additional, Node):
        null = None if node.additional.nullable else _default_of(node.additional, defaults)
        return _shape(node.additional, defaults), null
    if node.additional is not None:
        return emptied, None
    return (_same, None) if node.preserve else (None, None)
