"""What is wrong with a value, where, in a real server's words. Slow and exact; `checking` tells whether it is needed.

A real server's validator has habits that show in its answers, and this one has them, too: it reports of several
alternatives the one that matched most, says each text once, and on updates forgives what was wrong before and did not
change.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, go_quote
from kruise.local.crds import formats, lists
from kruise.local.crds.checking import equals
from kruise.local.crds.nodes import MISSING, Node
from kruise.local.crds.numbers import beyond, go_number, is_multiple, is_whole
from kruise.local.crds.regexes import compile_pattern
from kruise.machinery import codec
from kruise.machinery.patches.values import same

NO_FIELD: Final = "<nil>"
"""Where a real server names no field."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Fault:
    """One complaint. `kind` is the reason of the cause; alternatives that do not fit have none."""

    kind: str
    name: str
    text: str
    value: Any = ""
    detail: Any = None


class _Result:
    """Complaints, each text once, and how much was right: of several alternatives the best counts."""

    __slots__ = ("_texts", "faults", "matched")

    def __init__(self, *faults: _Fault) -> None:
        self.faults: list[_Fault] = []
        self.matched = 0
        self._texts: set[str] = set()
        for fault in faults:
            self.add(fault)

    def add(self, fault: _Fault) -> None:
        if fault.text not in self._texts:
            self._texts.add(fault.text)
            self.faults.append(fault)

    def merge(self, other: _Result | None) -> None:
        if other is not None:
            for fault in other.faults:
                self.add(fault)
            self.matched += other.matched

    def forgive(self) -> _Result:
        forgiven = _Result()
        forgiven.matched = self.matched
        return forgiven


def problems(node: Node, value: Any, *, old: Any = MISSING, field: str = "") -> list[FieldError]:
    """The complaints about a value that lives in `field` of its object; `old` is what it was before an update."""
    result = _validate(node, value, "", old)
    return [_field_error(fault, field) for fault in result.faults]


def _field_error(fault: _Fault, field: str) -> FieldError:
    if not fault.kind:
        return field_errors.invalid(field or NO_FIELD, "", fault.text)
    name = fault.name.removeprefix(".")
    path = f"{field}.{name}" if field and name else field or name or NO_FIELD
    if fault.kind == field_errors.REQUIRED:
        return field_errors.required(path)
    if fault.kind == field_errors.TOO_LONG:
        return field_errors.too_long(path, fault.detail)
    if fault.kind == field_errors.NOT_SUPPORTED:
        return field_errors.not_supported(path, _ordered(fault.value), fault.detail)
    if fault.kind == field_errors.TOO_MANY:
        return field_errors.too_many(path, fault.value, fault.detail)
    return FieldError(fault.kind, path, _ordered(fault.value), fault.text)


def _ordered(value: Any) -> Any:
    """As Go writes a value into a text: keys sorted, whole numbers without a point."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


# One value


def _validate(node: Node, value: Any, path: str, old: Any) -> _Result:
    result = _plain(node, value, path, old)
    if result.faults and old is not MISSING and same(value, old):
        return result.forgive()
    return result


def _plain(node: Node, value: Any, path: str, old: Any) -> _Result:
    result = _Result()
    if value is None:
        result.merge(_type(node, value, path))
        result.merge(_enum(node, value, path))
        return result
    if node.types or node.format:
        result.merge(_type(node, value, path))
        result.matched += 1
    result.merge(_combined(node, value, path, old))
    result.matched += 1
    if isinstance(value, str):
        result.merge(_text(node, value, path))
        result.matched += 1
        if node.format:
            result.merge(_format(node, value, path))
            result.matched += 1
    elif isinstance(value, int | float) and not isinstance(value, bool):
        result.merge(_number(node, value, path))
        result.matched += 1
    elif isinstance(value, list):
        result.merge(_list(node, value, path, old))
        result.matched += 1
    result.merge(_enum(node, value, path))
    result.matched += 1
    if isinstance(value, dict):
        result.merge(_dict(node, value, path, old))
        result.matched += 1
    result.matched += 1
    return result


def _fault(path: str, text: str, value: Any) -> _Fault:
    return _Fault(field_errors.INVALID, path, f"{path} in body {text}", value)


def _wrong_type(path: str, wanted: str, found: str) -> _Result:
    text = f"{path} in body must be of type {wanted}: {go_quote(found)}"
    return _Result(_Fault(field_errors.TYPE_INVALID, path, text, found))


def _json_type(value: Any) -> tuple[str, str]:
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def _type(node: Node, value: Any, path: str) -> _Result:
    types = node.types
    fine = _Result()
    fine.matched = 1
    if value is None:
        return _wrong_type(path, ",".join(types), "null") if types and not node.nullable else fine
    found, detail = _json_type(value)
    fits = (
        found in types
        or (found == "number" and "integer" in types and is_whole(value))
        or (found == "integer" and "number" in types)
    )
    loose = isinstance(value, str | list)
    if node.format and not loose and not fits:
        return _wrong_type(path, node.format, detail)
    if node.format and loose and "number" not in types and "integer" not in types:
        return fine
    return fine if fits else _wrong_type(path, ",".join(types), found)


def _enum(node: Node, value: Any, path: str) -> _Result | None:
    if not node.enum or (value is not None and any(equals(value, item) for item in node.enum)):
        return None
    supported = [item if isinstance(item, str) else codec.encode(item).decode() for item in node.enum]
    text = f"{path} in body should be one of [{' '.join(supported)}]"
    return _Result(_Fault(field_errors.NOT_SUPPORTED, path, text, value, supported))


def _text(node: Node, value: str, path: str) -> _Result | None:
    if node.max_length is not None and len(value) > node.max_length:
        text = f"{path} in body should be at most {node.max_length} chars long"
        return _Result(_Fault(field_errors.TOO_LONG, path, text, value, node.max_length))
    if node.min_length is not None and len(value) < node.min_length:
        return _Result(_fault(path, f"should be at least {node.min_length} chars long", value))
    if node.pattern and compile_pattern(node.pattern).search(value) is None:
        return _Result(_fault(path, f"should match '{node.pattern}'", value))
    return None


def _format(node: Node, value: str, path: str) -> _Result | None:
    check = formats.known(node.format)
    return None if check is None or check(value) else _wrong_type(path, node.format, value)


def _number(node: Node, value: float, path: str) -> _Result:
    result = _Result()
    whole = isinstance(value, int)
    if node.multiple_of is not None and not is_multiple(value, node.multiple_of):
        factor = int(node.multiple_of) if whole else node.multiple_of
        shown = go_number(factor)
        if factor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {shown}"
            result.add(_Fault(field_errors.INVALID, path, text, factor))
        else:
            result.add(_fault(path, f"should be a multiple of {shown}", value))
    if node.minimum is not None and beyond(node.minimum, value, node.exclusive_minimum):
        words = "greater than" if node.exclusive_minimum else "greater than or equal to"
        result.add(_fault(path, f"should be {words} {_bound(node.minimum, whole)}", value))
    if node.maximum is not None and beyond(value, node.maximum, node.exclusive_maximum, bound_is_second=True):
        words = "less than" if node.exclusive_maximum else "less than or equal to"
        result.add(_fault(path, f"should be {words} {_bound(node.maximum, whole)}", value))
    result.matched += 1
    return result


def _bound(value: float, whole: bool) -> str:
    return go_number(int(value) if whole else float(value))


# What has parts


def _list(node: Node, value: list[Any], path: str, old: Any) -> _Result:
    result = _Result()
    if node.items is not None:
        former = _former_items(node, value, old)
        for position, item in enumerate(value):
            result.merge(_validate(node.items, item, f"{path}[{position}]", former[position]))
    size = len(value)
    if node.min_items is not None and size < node.min_items:
        result.add(_fault(path, f"should have at least {node.min_items} items", size))
    if node.max_items is not None and size > node.max_items:
        text = f"{path} in body should have at most {node.max_items} items"
        result.add(_Fault(field_errors.TOO_MANY, path, text, size, node.max_items))
    if node.unique_items and not lists.is_unique(value):
        result.add(_fault(path, "shouldn't contain duplicates", ""))
    result.matched += 1
    return result


def _former_items(node: Node, value: list[Any], old: Any) -> list[Any]:
    """The element that each one was before; only elements of maps can be told."""
    if node.list_type != "map" or not isinstance(old, list):
        return [MISSING] * len(value)
    known = {_key(node, item): item for item in reversed(old) if isinstance(item, dict)}
    return [known.get(_key(node, item), MISSING) if isinstance(item, dict) else MISSING for item in value]


def _key(node: Node, item: dict[str, Any]) -> bytes:
    return codec.canonical([item.get(name) for name in node.list_keys])


def _dict(node: Node, value: dict[str, Any], path: str, old: Any) -> _Result:
    result = _Result()
    size = len(value)
    if node.min_properties is not None and size < node.min_properties:
        result.add(_fault(path, f"should have at least {node.min_properties} properties", size))
    if node.max_properties is not None and size > node.max_properties:
        text = f"{path} in body should have at most {node.max_properties} properties"
        result.add(_Fault(field_errors.TOO_MANY, path, text, size, node.max_properties))
    for name, item in value.items():
        if name in node.properties:
            continue
        if node.additional is False:
            text = f"{path}.{name} in body is a forbidden property"
            result.add(_Fault(field_errors.INVALID, path, text, name))
        elif isinstance(node.additional, Node):
            result.merge(_validate(node.additional, item, f"{path}.{name}", _former(path, name, old)))
    for name, child in node.properties.items():
        if name in value:
            place = f"{path}.{name}" if path else name
            result.merge(_validate(child, value[name], place, _former(path, name, old)))
    for name in node.required:
        if name not in value:
            place = f"{path}.{name}"
            result.add(_Fault(field_errors.REQUIRED, place, f"{place} in body is required"))
    return result


def _former(path: str, name: str, old: Any) -> Any:
    if not isinstance(old, dict) or (not path and name in ("kind", "apiVersion")):
        return MISSING
    return old.get(name, MISSING)


# Alternatives


def _combined(node: Node, value: Any, path: str, old: Any) -> _Result:
    result = _Result()
    place = go_quote(path)
    if node.any_of:
        best: _Result | None = None
        for child in node.any_of:
            tried = _plain(child, value, path, old)
            if not tried.faults:
                best = tried
                break
            if best is None or tried.matched > best.matched:
                best = tried
        if best is not None and best.faults:
            result.add(_Fault("", path, f"{place} must validate at least one schema (anyOf)"))
        result.merge(best)
    if node.one_of:
        result.merge(_one_of(node, value, path, old))
    if node.all_of:
        tries = [_plain(child, value, path, old) for child in node.all_of]
        valid = sum(not tried.faults for tried in tries)
        for tried in tries:
            result.merge(tried)
        if valid != len(tries):
            more = "" if valid else ". None validated"
            result.add(_Fault("", path, f"{place} must validate all the schemas (allOf){more}"))
    if node.not_ is not None and not _plain(node.not_, value, path, old).faults:
        result.add(_Fault("", path, f"{place} must not validate the schema (not)"))
    result.matched += 1
    return result


def _one_of(node: Node, value: Any, path: str, old: Any) -> _Result:
    result = _Result()
    tries = [_plain(child, value, path, old) for child in node.one_of]
    valid = [tried for tried in tries if not tried.faults]
    if len(valid) == 1:
        result.merge(valid[0])
        return result
    found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    result.add(_Fault("", path, f"{go_quote(path)} must validate one and only one schema (oneOf). {found}"))
    best: _Result | None = None
    for tried in () if valid else tries:
        if best is None or tried.matched > best.matched:
            best = tried
    result.merge(best)
    return result
