"""Strategic merge patches: merge patches that know which lists are merged, and by which key.

`apply` follows the API server, including what it does in odd cases: `$patch: delete` on an object leaves an empty
object, a new value that carries a directive is dropped. Where the server leaves null members or stray directives for
its typed decoder to drop, they are dropped here at once.

The order of a merged list comes from, in this order: `$setElementOrder`, the patch's list, the list in the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kruise.machinery import codec
from kruise.machinery.patches.errors import PatchError, refuse_deep_nesting
from kruise.machinery.patches.schema import MERGE, REPLACE, FieldRule, MergeSchema
from kruise.machinery.patches.strategic_diff import diff, three_way
from kruise.machinery.patches.values import same

__all__ = ["apply", "diff", "three_way"]

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList"
_PLAIN = FieldRule()


@refuse_deep_nesting
def apply(document: Any, patch: Any, schema: MergeSchema | None) -> Any:
    """The document with the patch applied. Neither is changed; unchanged parts are shared with the result.

    Without a schema no list is merged.
    """
    if not isinstance(patch, dict):
        raise PatchError("a strategic merge patch must be a JSON object")
    if document is not None and not isinstance(document, dict):
        raise PatchError("a strategic merge patch applies to a JSON object")
    return _merge_objects(document or {}, patch, schema)


def _rule(schema: MergeSchema | None, name: str) -> FieldRule:
    return (schema.field(name) if schema is not None else None) or _PLAIN


def _merge_objects(original: dict[str, Any], patch: dict[str, Any], schema: MergeSchema | None) -> dict[str, Any]:
    if _DIRECTIVE in patch:
        directive = patch[_DIRECTIVE]
        if directive == "replace":
            replaced: dict[str, Any] = _decoded(patch)
            return replaced
        if directive == "delete":
            return {}
        raise PatchError(f"unknown patch type: {directive} in map: {patch}")
    result = dict(original)
    fields = dict(patch)
    if _RETAIN_KEYS in fields:
        _retain_keys(result, fields, fields.pop(_RETAIN_KEYS))
    for key in [key for key in fields if key.startswith(_ORDER)]:
        _merge_ordered_list(result, fields, _listed_name(key, _ORDER), fields.pop(key), schema)
    for key in [key for key in fields if key.startswith(_DELETE_PRIMITIVES)]:
        _delete_primitives(result, _listed_name(key, _DELETE_PRIMITIVES), fields.pop(key))
    for name, value in fields.items():
        _merge_field(result, name, value, schema)
    return result


def _merge_field(result: dict[str, Any], name: str, value: Any, schema: MergeSchema | None) -> None:
    if value is None:
        result.pop(name, None)
        return
    existing = result.get(name)
    rule = _rule(schema, name)
    if isinstance(existing, dict) and isinstance(value, dict):
        if REPLACE in rule.strategies:
            result[name] = _decoded(value)
        else:
            result[name] = _merge_objects(existing, value, rule.child)
    elif isinstance(existing, list) and isinstance(value, list):
        result[name] = _merge_lists(name, existing, value, rule)
    elif _has_directive(value):
        result.pop(name, None)
    else:
        result[name] = _new(value)


def _retain_keys(result: dict[str, Any], fields: dict[str, Any], retained: Any) -> None:
    if not isinstance(retained, list):
        raise PatchError("invalid patch format of retainKeys")
    for name, value in fields.items():
        parallel = name.startswith((_ORDER, _DELETE_PRIMITIVES))
        if value is not None and not parallel and name not in retained:
            raise PatchError("invalid patch format of retainKeys")
    for name in [name for name in result if name not in retained]:
        del result[name]


def _listed_name(key: str, prefix: str) -> str:
    head, slash, name = key.partition("/")
    if head != prefix or not slash:
        kind = "primitive" if prefix == _DELETE_PRIMITIVES else "setElementOrder"
        raise PatchError(f"invalid patch format of {kind} list")
    return name


def _delete_primitives(result: dict[str, Any], name: str, unwanted: Any) -> None:
    existing = result.get(name)
    if unwanted is None:
        result.pop(name, None)
    elif isinstance(existing, list) and isinstance(unwanted, list) and existing and unwanted:
        if _element_type([*existing, *unwanted]) is dict:
            raise PatchError("invalid patch format of primitive list")
        gone = _places(unwanted, "")
        result[name] = [item for item in existing if _identity(item, "") not in gone]


def _merge_lists(name: str, original: list[Any], patch: list[Any], rule: FieldRule) -> list[Any]:
    if MERGE not in rule.strategies:
        return [_decoded(item) for item in patch]
    if not original and not patch:
        return original
    if _element_type([*original, *patch]) is not dict:
        everything = [*original, *patch]
        return _in_order([everything[place] for place in _places(everything, "").values()], patch, original, "")
    if not rule.merge_key:
        raise PatchError(f"cannot merge lists without merge key for {name}")
    original, patch = _carry_out_directives(original, patch, rule.merge_key)
    merged = list(original)
    places = _places(original, rule.merge_key)
    for element in patch:
        place = places.setdefault(_identity(element, rule.merge_key), len(merged))
        if place == len(merged):
            merged.append(_decoded(element))
        else:
            merged[place] = _merge_objects(merged[place], element, rule.child)
    return _in_order(merged, patch, original, rule.merge_key)


def _carry_out_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The list without the elements that the patch deletes, and the patch without the elements that are directives."""
    ordinary: list[Any] = []
    replace = False
    for element in patch:
        if _DIRECTIVE not in element:
            ordinary.append(element)
            continue
        directive = element[_DIRECTIVE]
        if directive == "delete":
            unwanted = _merge_value(element, merge_key)
            original = [item for item in original if not same(item.get(merge_key), unwanted)]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        else:
            raise PatchError(f"unknown patch type: {directive} in map: {element}")
    if replace:
        return [_decoded(element) for element in ordinary], []
    return original, ordinary


def _merge_ordered_list(
    result: dict[str, Any], fields: dict[str, Any], name: str, order: Any, schema: MergeSchema | None
) -> None:
    """Merge a list whose order the patch gives, and put it into that order."""
    if not isinstance(order, list):
        raise PatchError(f"expected a list in {_ORDER}/{name}, but received {_type_name(order)}")
    for holder in (result, fields):
        if name in holder and not isinstance(holder[name], list):
            raise PatchError(f"expected a list in {name}, but received {_type_name(holder[name])}")
    rule = _rule(schema, name)
    original: list[Any] | None = result.get(name)
    patch: list[Any] | None = fields.pop(name, None)
    if patch and order:
        _check_order(patch, order, rule.merge_key)
    if original is None and patch is None:
        return
    if not original and not patch:
        raise PatchError("no elements in any of the given slices")
    places = original or []
    if patch is None:
        merged = places
    elif original is None:
        merged = _new(patch)
    else:
        merged = _merge_lists(name, original, patch, rule)
        places = _places_after(original, patch, rule)
    result[name] = _in_order(merged, order, places, rule.merge_key)


def _places_after(original: list[Any], patch: list[Any], rule: FieldRule) -> list[Any]:
    """The list that elements outside of the order are placed by. On the server new elements take the room that deleted
    ones left behind in it, as far as there is any."""
    if not rule.merge_key or MERGE not in rule.strategies or any(_is(element, "replace") for element in patch):
        return original
    kept, ordinary = _carry_out_directives(original, patch, rule.merge_key)
    places = _places(kept, rule.merge_key)
    added = [element for element in ordinary if _identity(element, rule.merge_key) not in places]
    return [*kept, *added[: len(original) - len(kept)]]


def _check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """The elements of the patch must all be in the order list, in the same sequence. Deletions do not count; any other
    directive only passes while there is something left in the order list, which is the server's way."""
    if merge_key:
        for element in patch:
            _require_object(element)
    remaining = [element for element in patch if not _is(element, "delete")]
    for candidate in order:
        while remaining and _has_directive(remaining[0]):
            del remaining[0]
        if remaining and _identity(remaining[0], merge_key) == _identity(candidate, merge_key):
            del remaining[0]
    if remaining:
        raise PatchError(f"The order in patch list:\n{patch}\n doesn't match {_ORDER} list:\n{order}\n")


def _in_order(merged: list[Any], order: list[Any], original: Sequence[Any], merge_key: str) -> list[Any]:
    """Elements that the order names come in that order; the others keep their place among them as far as possible."""
    wanted, before = _places(order, merge_key), _places(original, merge_key)
    identified = [(_identity(element, merge_key), element) for element in merged]
    named = sorted((item for item in identified if item[0] in wanted), key=lambda item: wanted[item[0]])
    others = sorted(
        (item for item in identified if item[0] not in wanted), key=lambda item: before.get(item[0], len(original))
    )
    result: list[Any] = []
    left = 0
    for identity, element in named:
        place = before.get(identity, -1)
        while left < len(others) and before.get(others[left][0], place) < place:
            result.append(others[left][1])
            left += 1
        result.append(element)
    return [*result, *(element for _, element in others[left:])]


Identity = tuple[type, Any]


def _identity(element: Any, merge_key: str) -> Identity:
    """What tells an element of a list apart. The type belongs to it, since Python takes 1 and True for the same."""
    value = _merge_value(element, merge_key) if merge_key else element
    return type(value), codec.canonical(value) if isinstance(value, (dict, list)) else value


def _places(elements: Sequence[Any], merge_key: str) -> dict[Identity, int]:
    """Where each element comes first."""
    found: dict[Identity, int] = {}
    for index, element in enumerate(elements):
        found.setdefault(_identity(element, merge_key), index)
    return found


def _require_object(element: Any) -> None:
    if not isinstance(element, dict):
        raise PatchError(f"expected an object as list element, but received {_type_name(element)}")


def _merge_value(element: Any, merge_key: str) -> Any:
    _require_object(element)
    if merge_key not in element:
        raise PatchError(f"map: {element} does not contain declared merge key: {merge_key}")
    return element[merge_key]


def _element_type(elements: list[Any]) -> type:
    kind = type(elements[0])
    if any(type(element) is not kind for element in elements):
        raise PatchError(f"list element types are not identical: {elements}")
    if kind is list:
        raise PatchError("lists of lists are not supported")
    return kind


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _is(value: Any, directive: str) -> bool:
    return isinstance(value, dict) and value.get(_DIRECTIVE) == directive


def _type_name(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _is_directive_key(name: str) -> bool:
    return name in (_DIRECTIVE, _RETAIN_KEYS) or name.startswith((_ORDER, _DELETE_PRIMITIVES))


def _new(value: Any) -> Any:
    """A patch value that has no counterpart in the document: without nulls, and without all that are directives."""
    if isinstance(value, dict):
        return {
            name: _new(item)
            for name, item in value.items()
            if item is not None and not _has_directive(item) and not _is_directive_key(name)
        }
    if isinstance(value, list):
        return [_new(item) for item in value if not _has_directive(item)]
    return value


def _decoded(value: Any) -> Any:
    """A patch value that the server takes over as it stands: its decoder drops nulls and unknown members."""
    if isinstance(value, dict):
        return {
            name: _decoded(item) for name, item in value.items() if item is not None and not _is_directive_key(name)
        }
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value
