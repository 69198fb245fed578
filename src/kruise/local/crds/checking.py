"""Whether a value satisfies a schema, as fast functions that answer yes or no and are built once.

Nearly every object is valid. The few that are not go through `validating`, which knows where and why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kruise.local.crds import embedded, formats, lists
from kruise.local.crds.nodes import Node
from kruise.local.crds.numbers import beyond, is_multiple, is_whole
from kruise.local.crds.regexes import compile_pattern
from kruise.machinery.patches.values import same

Check = Callable[[Any], bool]


def _yes(value: Any) -> bool:
    return True


def compile_check(node: Node, *, nested: bool = False) -> Check:
    """The function for a schema. `nested`: the value is looked at by an outer schema, too, which knows the lists and
    embedded objects."""
    by_type: dict[type, list[Check]] = {str: [], int: [], float: [], bool: [], list: [], dict: []}
    _allow_types(node, by_type)
    _limit(node, by_type, nested)
    general = _general(node)
    allowed = {kind: _all_of([*checks, *general]) for kind, checks in by_type.items()}
    null_is_valid = (not node.types or node.nullable) and not node.enum
    find = allowed.get

    def check(value: Any) -> bool:
        if value is None:
            return null_is_valid
        one = find(type(value))
        return one is not None and one(value)

    # Texts are most of what there is.
    if node.types == ("string",) and not node.nullable:
        only = allowed[str]
        if only is _yes:
            return lambda value: type(value) is str
    return check


def _all_of(checks: list[Check]) -> Check:
    if not checks:
        return _yes
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) and second(value)
    return lambda value: all(check(value) for check in checks)


_NO: list[Check] = [lambda value: False]
_TYPE_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def _allow_types(node: Node, by_type: dict[type, list[Check]]) -> None:
    if not node.types and not node.format:
        return
    numeric = "number" in node.types or "integer" in node.types
    for kind, name in _TYPE_NAMES.items():
        if name in node.types or (kind is int and "number" in node.types):
            continue
        if node.format and not numeric and kind in (str, list):
            continue
        by_type[kind] = [is_whole] if kind is float and "integer" in node.types else list(_NO)


def _limit(node: Node, by_type: dict[type, list[Check]], nested: bool) -> None:
    by_type[str].extend(_text_checks(node))
    numbers = _number_checks(node)
    by_type[int].extend(numbers)
    by_type[float].extend(numbers)
    by_type[list].extend(_list_checks(node, nested))
    by_type[dict].extend(_dict_checks(node, nested))


def _text_checks(node: Node) -> list[Check]:
    checks: list[Check] = []
    low, high = node.min_length, node.max_length
    if high is not None:
        checks.append(lambda value: len(value) <= high)
    if low is not None:
        checks.append(lambda value: len(value) >= low)
    if node.pattern:
        search = compile_pattern(node.pattern).search
        checks.append(lambda value: search(value) is not None)
    form = formats.known(node.format) if node.format else None
    if form is not None:
        checks.append(form)
    return checks


def _number_checks(node: Node) -> list[Check]:
    checks: list[Check] = []
    minimum, maximum, factor = node.minimum, node.maximum, node.multiple_of
    if minimum is not None:
        exclusive_minimum = node.exclusive_minimum
        checks.append(lambda value: not beyond(minimum, value, exclusive_minimum))
    if maximum is not None:
        exclusive_maximum = node.exclusive_maximum
        checks.append(lambda value: not beyond(value, maximum, exclusive_maximum, bound_is_second=True))
    if factor is not None:
        checks.append(lambda value: is_multiple(value, factor))
    return checks


def _list_checks(node: Node, nested: bool) -> list[Check]:
    checks: list[Check] = []
    low, high = node.min_items, node.max_items
    if high is not None:
        checks.append(lambda value: len(value) <= high)
    if low is not None:
        checks.append(lambda value: len(value) >= low)
    if node.items is not None:
        each = compile_check(node.items, nested=nested)
        checks.append(lambda value: all(map(each, value)))
    if node.list_type in ("set", "map") and not nested:
        checks.append(lambda value: (len(value) < 2 and node.list_type == "set") or not lists.repeated(node, value))
    if node.unique_items:
        checks.append(lists.is_unique)
    return checks


def _dict_checks(node: Node, nested: bool) -> list[Check]:
    checks: list[Check] = []
    low, high, required = node.min_properties, node.max_properties, node.required
    if high is not None:
        checks.append(lambda value: len(value) <= high)
    if low is not None:
        checks.append(lambda value: len(value) >= low)
    if required:
        if len(required) == 1:
            (only,) = required
            checks.append(lambda value: only in value)
        else:
            needed = frozenset(required)
            checks.append(lambda value: needed <= value.keys())
    members = {name: compile_check(child, nested=nested) for name, child in node.properties.items()}
    others = compile_check(node.additional, nested=nested) if isinstance(node.additional, Node) else None
    if node.additional is False:
        others = _NO[0]
    if members or others is not None:
        checks.append(_members_check(members, others))
    if node.embedded and not nested:
        checks.append(lambda value: not embedded.object_problems(value))
    return checks


def _members_check(members: dict[str, Check], others: Check | None) -> Check:
    find = members.get

    def check(value: dict[str, Any]) -> bool:
        for name, item in value.items():
            one = find(name, others)
            if one is not None and not one(item):
                return False
        return True

    return check


def _general(node: Node) -> list[Check]:
    """What does not depend on the value's type."""
    checks: list[Check] = []
    if node.enum:
        texts = frozenset(item for item in node.enum if type(item) is str)
        rest = tuple(item for item in node.enum if type(item) is not str and item is not None)
        if rest:
            checks.append(
                lambda value: (value in texts) if type(value) is str else any(equals(value, item) for item in rest)
            )
        else:
            checks.append(lambda value: type(value) is str and value in texts)
    if node.any_of and not (node.int_or_string and is_int_or_string(node.any_of)):
        any_of = [compile_check(child, nested=True) for child in node.any_of]
        checks.append(lambda value: any(check(value) for check in any_of))
    if node.one_of:
        one_of = [compile_check(child, nested=True) for child in node.one_of]
        checks.append(lambda value: sum(check(value) for check in one_of) == 1)
    if node.all_of:
        checks.extend(compile_check(child, nested=True) for child in node.all_of)
    if node.not_ is not None:
        negated = compile_check(node.not_, nested=True)
        checks.append(lambda value: not negated(value))
    return checks


def is_int_or_string(nodes: tuple[Node, ...]) -> bool:
    """Whether alternatives are just the two types of an int-or-string, which its own type says already."""
    plain = (Node(types=("integer",)), Node(types=("string",)))
    return len(nodes) == 2 and all(_plain(node) == _plain(wanted) for node, wanted in zip(nodes, plain, strict=True))


def _plain(node: Node) -> tuple[Any, ...]:
    return tuple(getattr(node, name) for name in Node.__slots__)


def equals(value: Any, item: Any) -> bool:
    """Numbers are equal whatever their type; a truth value is no number."""
    if isinstance(value, int | float) and isinstance(item, int | float):
        return isinstance(value, bool) is isinstance(item, bool) and value == item
    return same(value, item)
