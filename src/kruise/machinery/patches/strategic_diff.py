"""Making strategic merge patches: from two documents, or from three as `kubectl apply` does.

Both are one algorithm: deletions come from what the *original* had and the *modified* document lacks, changes and
additions from what differs between *current* and *modified*. With original and current the same, that is a two-way
difference. What the current document has and neither of the others knows stays as it is.

Nothing is put into a patch that would not change the current document, so an empty patch means that there is nothing
to do. Merged lists whose elements share a merge key (ports 53/TCP and 53/UDP) cannot be merged; they are replaced.
"""

from __future__ import annotations

from typing import Any

from kruise.machinery.patches.errors import PatchError, refuse_deep_nesting
from kruise.machinery.patches.schema import MERGE, REPLACE, RETAIN_KEYS, FieldRule, MergeSchema
from kruise.machinery.patches.values import same

_PLAIN = FieldRule()


@refuse_deep_nesting
def diff(before: dict[str, Any], after: dict[str, Any], schema: MergeSchema | None) -> dict[str, Any]:
    """A patch that turns `before` into `after`; empty where they are the same. Null members count as absent."""
    return three_way(before, after, before, schema)


@refuse_deep_nesting
def three_way(
    original: dict[str, Any] | None, modified: dict[str, Any], current: dict[str, Any], schema: MergeSchema | None
) -> dict[str, Any]:
    """A patch for `current` that brings it to `modified`, and removes what `original` had and `modified` lacks."""
    for document in (original or {}, modified, current):
        if not isinstance(document, dict):
            raise PatchError("a strategic merge patch between documents needs JSON objects")
    return _objects(original or {}, modified, current, schema, retain_keys=False)


def _objects(
    original: dict[str, Any],
    modified: dict[str, Any],
    current: dict[str, Any],
    schema: MergeSchema | None,
    *,
    retain_keys: bool,
) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name, old in original.items():
        if old is not None and modified.get(name) is None and current.get(name) is not None:
            patch[name] = None
    for name, new in modified.items():
        if new is None:
            continue
        existing = current.get(name)
        rule = (schema.field(name) if schema is not None else None) or _PLAIN
        before = original.get(name)
        if isinstance(existing, dict) and isinstance(new, dict) and REPLACE not in rule.strategies:
            changes = _objects(
                before if isinstance(before, dict) else {},
                new,
                existing,
                rule.child,
                retain_keys=RETAIN_KEYS in rule.strategies,
            )
            if changes:
                patch[name] = changes
        elif isinstance(existing, list) and isinstance(new, list) and MERGE in rule.strategies:
            patch.update(_lists(name, before if isinstance(before, list) else [], new, existing, rule))
        elif not same(existing, new):
            patch[name] = new
    if retain_keys:
        # Members of a union exclude each other: all that the modified document does not name must go, whoever set it.
        retained = sorted(name for name, value in modified.items() if value is not None)
        surplus = any(value is not None and modified.get(name) is None for name, value in current.items())
        if retained and (patch or surplus):
            patch["$retainKeys"] = retained
    return patch


def _lists(name: str, original: list[Any], modified: list[Any], current: list[Any], rule: FieldRule) -> dict[str, Any]:
    if not current:
        return {name: modified} if modified else {}
    kinds = {type(element) for element in [*modified, *current]}
    if kinds == {dict}:
        return _lists_of_objects(name, original, modified, current, rule)
    if dict in kinds or list in kinds or len(kinds) > 1:
        raise PatchError(f"the elements of {name} are not all of one type")
    return _lists_of_primitives(name, original, modified, current)


def _lists_of_primitives(name: str, original: list[Any], modified: list[Any], current: list[Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    added = [value for value in modified if value not in current]
    removed = [value for value in original if value not in modified and value in current]
    if added:
        patch[name] = added
    if removed:
        patch[f"$deleteFromPrimitiveList/{name}"] = list(dict.fromkeys(removed))
    common = [value for value in current if value in modified]
    if modified and (patch or common != [value for value in modified if value in current]):
        patch[f"$setElementOrder/{name}"] = modified
    return patch


def _lists_of_objects(
    name: str, original: list[Any], modified: list[Any], current: list[Any], rule: FieldRule
) -> dict[str, Any]:
    key = rule.merge_key
    if not key:
        raise PatchError(f"cannot merge lists without merge key for {name}")
    wanted, existing = _by_key(modified, key), _by_key(current, key)
    if len(wanted) < len(modified) or len(existing) < len(current):
        return {} if same(modified, current) else {name: [{"$patch": "replace"}, *modified]}
    before = _by_key([element for element in original if isinstance(element, dict)], key)
    changes: list[dict[str, Any]] = []
    for value, element in wanted.items():
        if value not in existing:
            changes.append(element)
            continue
        difference = _objects(
            before.get(value, {}), element, existing[value], rule.child, retain_keys=RETAIN_KEYS in rule.strategies
        )
        if difference:
            changes.append({key: element[key], **difference})
    changes.extend(
        {key: element[key], "$patch": "delete"}
        for value, element in before.items()
        if value not in wanted and value in existing
    )
    patch: dict[str, Any] = {name: changes} if changes else {}
    common = [value for value in existing if value in wanted]
    if wanted and (changes or common != [value for value in wanted if value in existing]):
        patch[f"$setElementOrder/{name}"] = [{key: element[key]} for element in modified]
    return patch


def _by_key(elements: list[Any], key: str) -> dict[tuple[type, Any], dict[str, Any]]:
    """The elements by the value of their merge key, in order; of several with the same value the last."""
    found: dict[tuple[type, Any], dict[str, Any]] = {}
    for element in elements:
        if key not in element:
            raise PatchError(f"map: {element} does not contain declared merge key: {key}")
        # The type is part of the key because Python takes 1 and True for the same.
        found[(type(element[key]), element[key])] = element
    return found
