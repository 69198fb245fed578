"""Values walked along their types: checked, turned into field sets, compared, merged, and freed of some fields.

The rules are those of Kubernetes' structured merge: a list or map that is owned whole counts as one field, elements of
other lists are known by their keys, and an empty list or map counts as one field, too, so that it can be told from no
list or map.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kruise.local.fields import sets
from kruise.local.fields.schema import ANY, BOOLEAN, NUMBER, TEXT, ListType, MapType, Shape, Type
from kruise.local.fields.sets import FieldSet
from kruise.machinery.patches.values import same


class TypedError(ValueError):
    """A value does not fit its type; the text is the server's."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems[0] if len(problems) == 1 else "\n".join(["errors:", *(f"  {p}" for p in problems)]))


class _Absent:
    """No value, which is not the same as null."""


ABSENT: Final = _Absent()


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# Elements of lists


def element_key(kind: ListType, value: Any) -> str:
    """How an element of a list is known; raises `TypedError` for elements that cannot be known."""
    if not kind.keys:
        if isinstance(value, dict):
            raise TypedError(["associative list without keys has an element that's a map type"])
        if isinstance(value, list):
            raise TypedError(["not supported: associative list with lists as elements"])
        if value is None:
            raise TypedError(["associative list without keys has an element that's an explicit null"])
        return sets.value_element(value)
    if value is None:
        raise TypedError(["associative list with keys may not have a null element"])
    if not isinstance(value, dict):
        raise TypedError(["associative list with keys may not have non-map elements"])
    shape = kind.element.map
    defaults: Mapping[str, Any] = {} if shape is None else shape.defaults
    found = {
        name: value[name] if name in value else defaults[name]
        for name in kind.keys
        if name in value or name in defaults
    }
    if not found:
        names = " ".join(f'"{name}"' for name in kind.keys)
        raise TypedError(
            [
                f"associative list with keys has an element that omits all key fields [{names}] (and doesn't have "
                "default values for any key fields)"
            ]
        )
    return sets.key_element(found)


def _keyed(kind: ListType, value: Any) -> list[tuple[str, Any]]:
    result: list[tuple[str, Any]] = []
    for position, item in enumerate(items(value)):
        try:
            result.append((element_key(kind, item), item))
        except TypedError as error:
            raise TypedError([f"element {position}: {error}"]) from error
    return result


# Checking


def check(value: Any, kind: Type, *, allow_repeats: bool) -> None:
    """Raises `TypedError` with all that is wrong."""
    problems: list[str] = []
    _check(value, kind, "", allow_repeats, problems)
    if problems:
        raise TypedError(problems)


def _at(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _check(value: Any, kind: Type, path: str, allow_repeats: bool, problems: list[str]) -> None:
    match kind.shape(value):
        case Shape.SCALAR:
            text = _scalar_problem(kind.scalar, value)
            if text:
                problems.append(_at(path, text))
        case Shape.LIST:
            assert kind.list is not None
            if value is not None and not isinstance(value, list):
                problems.append(_at(path, f"expected list, got {_go_value(value)}"))
                return
            _check_list(value, kind.list, path, allow_repeats, problems)
        case Shape.MAP:
            assert kind.map is not None
            if value is not None and not isinstance(value, dict):
                problems.append(_at(path, f"expected map, got {_go_value(value)}"))
                return
            for name, item in members(value).items():
                inner = kind.map.field(name)
                if inner is None:
                    problems.append(f"{path}.{name}: field not declared in schema")
                    return
                _check(item, inner, f"{path}.{name}", allow_repeats, problems)


def _check_list(value: Any, kind: ListType, path: str, allow_repeats: bool, problems: list[str]) -> None:
    seen: set[str] = set()
    for position, item in enumerate(items(value)):
        where = f"{path}[{position}]"
        if not kind.whole:
            try:
                key = element_key(kind, item)
            except TypedError as error:
                problems.append(_at(path, f"element {position}: {error}"))
                return
            where = path + sets.element_text(key)
            if key in seen and not allow_repeats:
                problems.append(_at(path, f"duplicate entries for key {sets.element_text(key)}"))
            seen.add(key)
        _check(item, kind.element, where, allow_repeats, problems)


_GO_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def _scalar_problem(scalar: str, value: Any) -> str:
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == NUMBER and not is_number:
        return f"expected numeric (int or float), got {_GO_TYPES.get(type(value), '')}"
    if scalar == TEXT and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    if scalar == BOOLEAN and not isinstance(value, bool):
        return f"expected boolean, got &{{{_go_print(value)}}}"
    if scalar == ANY and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{_go_print(value)}}}"
    return ""


def _go_value(value: Any) -> str:
    return f"&{{{_go_print(value)}}}"


def _go_print(value: Any) -> str:
    """As Go's `%v`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + " ".join(_go_print(item) for item in value) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_go_print(value[name])}" for name in sorted(value)) + "]"
    return "<nil>" if value is None else str(value)


def _go_syntax(value: Any) -> str:
    """As Go's `%#v`."""
    if isinstance(value, str):
        return sets.element_text(sets.value_element(value))[2:-1]
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go_syntax(item) for item in value) + "}"
    if isinstance(value, dict):
        inner = ", ".join(f"{_go_syntax(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    return "interface {}(nil)" if value is None else _go_print(value)


# Field sets


def field_set(value: Any, kind: Type) -> FieldSet:
    """All fields that a value mentions: leaves, elements of lists, and members of maps (not of structs)."""
    return sets.children(_mentioned(value, kind) or {})


def _mentioned(value: Any, kind: Type) -> FieldSet | None:
    match kind.shape(value):
        case Shape.SCALAR:
            return {}
        case Shape.LIST:
            assert kind.list is not None
            return {} if kind.list.whole else sets.node(False, _mentioned_elements(value, kind.list))
        case Shape.MAP:
            assert kind.map is not None
            if kind.map.whole:
                return {}
            below: FieldSet = {}
            for name, item in members(value).items():
                inner = kind.map.field(name)
                found = None if inner is None else _mentioned(item, inner)
                if item is None or item == {} or name not in kind.map.fields:
                    found = sets.node(True, sets.children(found or {}))
                if found is not None:
                    below[sets.field_element(name)] = found
            return sets.node(False, below)


def _mentioned_elements(value: Any, kind: ListType) -> FieldSet:
    below: FieldSet = {}
    repeated: set[str] = set()
    for key, item in _keyed(kind, value):
        if key in below:
            repeated.add(key)
        else:
            below[key] = sets.node(True, sets.children(_mentioned(item, kind.element) or {}))
    return below | {key: {} for key in repeated}


# Comparing


class Comparison(NamedTuple):
    """The fields that differ between two values. No field is in two of the sets."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    def without(self, fields: FieldSet) -> Comparison:
        return Comparison(*(sets.recursive_difference(part, fields) for part in self))

    def only(self, fields: FieldSet) -> Comparison:
        return Comparison(*(sets.only(part, fields) for part in self))

    @property
    def is_same(self) -> bool:
        return not (self.removed or self.modified or self.added)


_Nodes = tuple[FieldSet | None, FieldSet | None, FieldSet | None]
_NOTHING: Final[_Nodes] = (None, None, None)


def compare(before: Any, after: Any, kind: Type) -> Comparison:
    """Raises `TypedError` for elements of lists that cannot be known."""
    removed, modified, added = _compare(before, after, kind)
    return Comparison(*(sets.children(part or {}) for part in (removed, modified, added)))


def _compare(before: Any, after: Any, kind: Type) -> _Nodes:
    if before is ABSENT:
        return None, None, _all_of(after, kind)
    if after is ABSENT:
        return _all_of(before, kind), None, None
    # Most of two objects is the same, which is seen much faster than by this walk.
    if same(before, after):
        return _NOTHING
    shape, other = kind.shape(after), kind.shape(before)
    result = _compare_as(shape, before, after, kind)
    return result if shape is other else _joined(_compare_as(other, before, after, kind), result)


def _compare_as(shape: Shape, before: Any, after: Any, kind: Type) -> _Nodes:
    if shape is Shape.MAP:
        assert kind.map is not None
        left, right = members(before), members(after)
        if not kind.map.whole and (left or right):
            return _compare_maps(left, right, kind.map)
    elif shape is Shape.LIST:
        assert kind.list is not None
        if not kind.list.whole and (items(before) or items(after)):
            return _compare_lists(before, after, kind.list)
    return None, {}, None


def _joined(left: _Nodes, right: _Nodes) -> _Nodes:
    return tuple(  # type: ignore[return-value]
        one if two is None else two if one is None else sets.union({"f:": one}, {"f:": two})["f:"]
        for one, two in zip(left, right, strict=True)
    )


def _compare_maps(left: dict[str, Any], right: dict[str, Any], kind: MapType) -> _Nodes:
    found: tuple[FieldSet, FieldSet, FieldSet] = ({}, {}, {})
    for name in left.keys() | right.keys():
        before, after = left.get(name, ABSENT), right.get(name, ABSENT)
        if before is after:
            continue
        inner = kind.field(name)
        if inner is None:
            raise TypedError([f".{name}: field not declared in schema"])
        _collect(found, sets.field_element(name), _compare(before, after, inner))
    return found[0] or None, found[1] or None, found[2] or None


def _compare_lists(before: Any, after: Any, kind: ListType) -> _Nodes:
    left, right = _grouped(before, kind), _grouped(after, kind)
    found: tuple[FieldSet, FieldSet, FieldSet] = ({}, {}, {})
    for key in {**left, **right}:
        old, new = left.get(key, []), right.get(key, [])
        if len(old) <= 1 and len(new) <= 1:
            nodes = _compare(old[0] if old else ABSENT, new[0] if new else ABSENT, kind.element)
        elif len(old) >= 2 and len(new) >= 2:
            # Repeated elements cannot be told apart: together they count as one field.
            nodes = _NOTHING if same(old, new) else (None, {}, None)
        elif len(old) >= 2:
            nodes = ({}, None, _all_of(new[0], kind.element) if new else None)
        else:
            nodes = (_all_of(old[0], kind.element) if old else None, None, {})
        _collect(found, key, nodes)
    return found[0] or None, found[1] or None, found[2] or None


def _grouped(value: Any, kind: ListType) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for key, item in _keyed(kind, value):
        groups.setdefault(key, []).append(item)
    return groups


def _collect(found: tuple[FieldSet, FieldSet, FieldSet], key: str, nodes: _Nodes) -> None:
    for part, below in zip(found, nodes, strict=True):
        if below is not None:
            part[key] = below


def _all_of(value: Any, kind: Type) -> FieldSet:
    """A value that stands on one side only: it, and everything below it."""
    shape = kind.shape(value)
    below: FieldSet = {}
    if shape is Shape.MAP:
        assert kind.map is not None
        if not kind.map.whole:
            for name, item in members(value).items():
                inner = kind.map.field(name)
                if inner is None:
                    raise TypedError([f".{name}: field not declared in schema"])
                below[sets.field_element(name)] = _all_of(item, inner)
    elif shape is Shape.LIST:
        assert kind.list is not None
        if not kind.list.whole:
            for key, group in _grouped(value, kind.list).items():
                below[key] = {} if len(group) > 1 else _all_of(group[0], kind.list.element)
    return sets.node(True, below) or {}


# Merging


def merge(current: Any, applied: Any, kind: Type) -> Any:
    """`current` with everything that `applied` says. Nothing is removed; order follows `applied` where it says some."""
    if applied is ABSENT:
        return current
    if current is ABSENT:
        return applied
    match kind.shape(applied):
        case Shape.MAP:
            assert kind.map is not None
            left, right = members(current), members(applied)
            if kind.map.whole or not (left or right):
                return applied
            return _merged_maps(left, right, kind.map)
        case Shape.LIST:
            assert kind.list is not None
            if kind.list.whole or not (items(current) or items(applied)):
                return applied
            return _merged_lists(current, applied, kind.list)
        case Shape.SCALAR:
            return applied


def _merged_maps(left: dict[str, Any], right: dict[str, Any], kind: MapType) -> Any:
    result = dict(left)
    for name, value in right.items():
        inner = kind.field(name)
        if inner is None:
            raise TypedError([f".{name}: field not declared in schema"])
        merged = merge(left.get(name, ABSENT), value, inner)
        if merged is ABSENT:
            result.pop(name, None)
        else:
            result[name] = merged
    return result or ABSENT


def _merged_lists(current: Any, applied: Any, kind: ListType) -> Any:
    """Elements that only one side has keep their place next to their neighbours; the rest is as in `applied`."""
    left, right = _keyed(kind, current), _keyed(kind, applied)
    repeated = {key for key, group in _grouped(current, kind).items() if len(group) > 1}
    ours = dict(left)
    theirs = dict(right)

    def merged(key: str) -> Any:
        # Repeated elements are replaced, not merged.
        return merge(None if key in repeated else ours.get(key, ABSENT), theirs[key], kind.element)

    shared = [key for key, _ in right if key in ours]
    following = iter(shared)
    awaited = next(following, None)
    done: set[str] = set()
    result: list[Any] = []
    at, to = 0, 0
    while at < len(left) or to < len(right):
        if at < len(left) and to < len(right):
            key = left[at][0]
            if key == right[to][0]:
                done.add(key)
                result.append(merged(key))
                at, to = at + 1, to + 1
                awaited = next(following, None)
                continue
            if key in theirs and awaited is not None and awaited != key:
                at += 1
                continue
        if at < len(left):
            key, value = left[at]
            if key not in theirs:
                result.append(value)
                at += 1
                continue
            if key in done:
                at += 1
        if to < len(right):
            key = right[to][0]
            done.add(key)
            result.append(merged(key))
            to += 1
            if awaited == key:
                awaited = next(following, None)
    return [item for item in result if item is not ABSENT] or ABSENT


# Removing


def remove(value: Any, fields: FieldSet, kind: Type) -> Any:
    """The value without these fields; null where nothing is left of it."""
    match kind.shape(value):
        case Shape.SCALAR:
            return value
        case Shape.LIST:
            assert kind.list is not None
            if kind.list.whole:
                return None
            return _kept_elements(value, fields, kind.list) or None
        case Shape.MAP:
            assert kind.map is not None
            if kind.map.whole:
                return None
            result: dict[str, Any] = {}
            for name, item in members(value).items():
                place = fields.get(sets.field_element(name))
                if place is None:
                    result[name] = item
                elif not sets.is_member(place):
                    inner = kind.map.field(name)
                    result[name] = item if inner is None else remove(item, place, inner)
            return result or None


def _kept_elements(value: Any, fields: FieldSet, kind: ListType) -> list[Any]:
    result: list[Any] = []
    for key, item in _keyed(kind, value):
        place = fields.get(key)
        if place is None:
            result.append(item)
        elif not sets.is_member(place):
            result.append(remove(item, place, kind.element))
    return result


# Sets along types


def with_named_fields(tree: FieldSet, kind: Type | None) -> FieldSet:
    """The set with the fields of structs that lie on its paths: to remove all below such a field removes it, too."""
    result: FieldSet = {}
    shape = None if kind is None else kind.map
    for key, below in tree.items():
        if key == sets.SELF:
            result[key] = below
            continue
        inner: Type | None = None
        named = False
        if key.startswith("f:") and shape is not None:
            inner = shape.field(key[2:])
            named = key[2:] in shape.fields
        elif key.startswith("k:") and kind is not None and kind.list is not None:
            inner = kind.list.element
        deeper = with_named_fields(sets.children(below), inner)
        result[key] = sets.node(named or sets.is_member(below), deeper) or {}
    return result


def fitted(tree: FieldSet, kind: Type) -> FieldSet:
    """The set by a schema that may have changed since it was made: what is owned whole now has no fields below it."""
    result: FieldSet = {}
    for key, below in tree.items():
        inner: Type | None = None
        if key.startswith("f:") and kind.map is not None:
            inner = kind.map.field(key[2:])
        elif key[:2] in ("k:", "v:") and kind.map is None and kind.list is not None:
            inner = kind.list.element
        result[key] = below if inner is None else _fitted_node(below, inner)
    return result


def _fitted_node(below: FieldSet, kind: Type) -> FieldSet:
    if not below or (kind.map is None and kind.scalar):
        return below
    if kind.map is not None:
        if not kind.map.fields and kind.map.rest is not None and kind.map.rest.scalar == ANY:
            return below
        whole = kind.map.whole
    else:
        whole = kind.list is not None and kind.list.whole
    if whole:
        return {}
    return sets.node(sets.is_member(below), fitted(sets.children(below), kind)) or {}
