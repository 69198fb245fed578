"""Sets of fields, in the very form in which `managedFields` show them (`fieldsV1`).

A set is a tree of plain dictionaries. Keys say how to go down: `f:name` into a field, `k:{"name":"x"}` to the element
of a list with these keys, `v:"x"` to the element with this value. A node that is empty, or has the member `.`, is in
the set itself; a node with children only is on the way to fields that are. The empty dictionary as a whole is the
empty set. Sets are never changed after they were made, so they share what they have in common.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kruise.api.core.field_errors import go_quote
from kruise.machinery.codec import DecodeError, decode, encode

FieldSet = dict[str, Any]
Path = tuple[str, ...]

SELF: Final = "."
EMPTY: Final[FieldSet] = {}
_KINDS: Final = ("f:", "k:", "v:", "i:")


def field_element(name: str) -> str:
    return f"f:{name}"


def value_element(value: Any) -> str:
    return f"v:{_go_json(value)}"


def key_element(keys: Mapping[str, Any]) -> str:
    """The element of a list that is told apart by some of its fields."""
    members = (f"{_go_json(name)}:{_go_json(keys[name])}" for name in sorted(keys))
    return "k:{" + ",".join(members) + "}"


_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def _go_json(value: Any) -> str:
    return encode(value).decode().translate(_ESCAPES)


def is_member(node: FieldSet) -> bool:
    """Whether the field at this node is in the set, and not only some below it."""
    return not node or SELF in node


def children(node: FieldSet) -> FieldSet:
    return {key: child for key, child in node.items() if key != SELF} if SELF in node else node


def node(member: bool, below: FieldSet) -> FieldSet | None:
    """A node, None where it would hold nothing."""
    if not below:
        return {} if member else None
    return {SELF: {}, **below} if member else below


def of_paths(*paths: Path) -> FieldSet:
    """The set of these paths, each given by field names."""
    result: FieldSet = {}
    for path in paths:
        tree: FieldSet = {}
        for name in reversed(path):
            tree = {field_element(name): tree}
        result = union(result, tree)
    return result


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right or left is right:
        return left or right
    result = dict(left)
    for key, other in right.items():
        own = result.get(key)
        result[key] = other if own is None else _either(own, other)
    return result


def _either(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right:
        return left
    below = union(children(left), children(right))
    return node(is_member(left) or is_member(right), below) or {}


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right:
        return left
    result: FieldSet = {}
    for key, own in left.items():
        other = right.get(key)
        if other is not None:
            both = node(is_member(own) and is_member(other), intersection(children(own), children(other)))
            if both is not None:
                result[key] = both
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in `left` and not in `right`. To take away a field leaves the fields below it."""
    if not left or not right:
        return left
    result: FieldSet = {}
    for key, own in left.items():
        other = right.get(key)
        if other is None:
            result[key] = own
            continue
        rest = node(is_member(own) and not is_member(other), difference(children(own), children(other)))
        if rest is not None:
            result[key] = rest
    return result


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in `left` and neither in `right` nor below a field of `right`."""
    if not left or not right:
        return left
    result: FieldSet = {}
    for key, own in left.items():
        other = right.get(key)
        if other is None:
            result[key] = own
        elif not is_member(other):
            rest = node(is_member(own), recursive_difference(children(own), other))
            # A field on the way to what was taken away is no reason to keep the way.
            if rest is not None:
                result[key] = rest
    return result


def only(left: FieldSet, wanted: FieldSet) -> FieldSet:
    """What of `left` is on the way to a field of `wanted`, is one, or is below one; `f:*` in `wanted` is any child."""
    result: FieldSet = {}
    for key, own in left.items():
        pattern = wanted.get(key, wanted.get("f:*"))
        if pattern is None:
            continue
        if is_member(pattern):
            result[key] = own
            continue
        kept = node(is_member(own), only(children(own), pattern))
        if kept is not None:
            result[key] = kept
    return result


def paths(tree: FieldSet) -> Iterator[Path]:
    """All members: those of a level in order, then those below them."""
    return _paths(tree, ())


def _paths(tree: FieldSet, prefix: Path) -> Iterator[Path]:
    ordered = sorted((key for key in tree if key != SELF), key=_order)
    for key in ordered:
        if is_member(tree[key]):
            yield (*prefix, key)
    for key in ordered:
        if tree[key]:
            yield from _paths(tree[key], (*prefix, key))


def has(tree: FieldSet, path: Path) -> bool:
    place: FieldSet | None = tree
    for key in path:
        if place is None:
            return False
        place = place.get(key)
    return bool(path) and place is not None and is_member(place)


def path_text(path: Path) -> str:
    """A path as people read it: `.spec.containers[name="web"].image`."""
    return "".join(element_text(key) for key in path)


def element_text(key: str) -> str:
    kind, text = key[:2], key[2:]
    if kind == "k:":
        return "[" + ",".join(f"{name}={_go_text(value)}" for name, value in _value(text).items()) + "]"
    if kind == "v:":
        return f"[={_go_text(_value(text))}]"
    return f"[{text}]" if kind == "i:" else f".{text}"


def _go_text(value: Any) -> str:
    if isinstance(value, str):
        return go_quote(value)
    return (
        {True: "true", False: "false", None: "null"}[value]
        if value is None or value is True or value is False
        else str(value)
    )


def _value(text: str) -> Any:
    return decode(text.encode(), object)


@functools.lru_cache(maxsize=8192)
def _order(key: str) -> tuple[Any, ...]:
    kind, text = key[:2], key[2:]
    if kind == "k:":
        return (1, tuple((name, _rank(value)) for name, value in sorted(_value(text).items())))
    if kind == "v:":
        return (2, _rank(_value(text)))
    return (3, int(text)) if kind == "i:" else (0, text)


def _rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, "")


def to_json(tree: FieldSet) -> bytes:
    """`fieldsV1` as the server writes it: equal sets give equal bytes, and mostly the very same."""
    return _shared(encode(_ordered(tree)))


@functools.lru_cache(maxsize=4096)
def _shared(text: bytes) -> bytes:
    """Objects made from one template have equal sets: thousands of them need one text."""
    return text


def _ordered(tree: FieldSet) -> FieldSet:
    if not tree:
        return tree
    keys = sorted(tree)
    # Only keys and values may hold numbers, which are not ordered as texts are.
    if keys[-1] >= "k:":
        keys = [SELF] * (SELF in tree) + sorted((key for key in keys if key != SELF), key=_order)
    return {key: _ordered(tree[key]) for key in keys}


@functools.lru_cache(maxsize=4096)
def from_json(data: bytes) -> FieldSet:
    """The set that `fieldsV1` describes; `ValueError` where it describes none."""
    try:
        tree = decode(data, object)
    except DecodeError as error:
        raise ValueError(f"error decoding set: {error}") from error
    return _checked(tree)


def _checked(tree: Any) -> FieldSet:
    if not isinstance(tree, dict):
        raise ValueError("error decoding set: a set of fields is made of JSON objects")
    result: FieldSet = {}
    for key, child in tree.items():
        if key == SELF:
            result[key] = {}
        elif key[1:2] != ":":
            raise ValueError(f"error decoding set: missing colon: {key}")
        elif key[:2] in _KINDS:
            result[_canonical(key)] = _checked(child)
    return result


def _canonical(key: str) -> str:
    if key.startswith(("f:", "i:")):
        return key
    try:
        value = _value(key[2:])
    except DecodeError as error:
        raise ValueError(f"error decoding set: {key}: {error}") from error
    if key.startswith("v:"):
        return value_element(value)
    if not isinstance(value, dict):
        raise ValueError(f"error decoding set: {key} names no fields")
    return key_element(value)
