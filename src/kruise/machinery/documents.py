"""Whole objects as they are on the wire: reading a place in them, changing it, and the patch between two of them.

A change is made on a copy of the whole object, and only what differs is sent. So no field that we do not know is ever
dropped, and what somebody else has changed meanwhile elsewhere in the object stays.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kruise.machinery.patches.values import same

Json = dict[str, Any]
Path = tuple[str, ...]


def value_at(document: Mapping[str, Any], path: Path, default: Any = None) -> Any:
    """What stands at a place; the default where nothing stands there, or null."""
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
        if found is None:
            return default
    return found


def with_value(document: Json, path: Path, value: Any) -> Json:
    """A copy with another value at a place; objects on the way there are made where they are missing."""
    if not path:
        changed: Json = copy.deepcopy(value)
        return changed
    name, *rest = path
    below = document.get(name)
    inner = with_value(below if isinstance(below, dict) else {}, tuple(rest), value) if rest else copy.deepcopy(value)
    return {**document, name: inner}


def edited(document: Json, path: Path, edit: Callable[[Json], None]) -> Json:
    """A copy in which `edit` has changed the object at a place."""
    part = copy.deepcopy(value_at(document, path, {}))
    edit(part)
    return with_value(document, path, part)


def patch_between(before: Json, after: Json) -> list[Json]:
    """The JSON patch from one object to another; empty where they are the same.

    Values that are replaced, and entries of lists that are changed, are first tested for being what they were, entries
    by their names where they have one: a patch that meets another object than the one that was read is refused as a
    whole. So what was checked before the change still holds when it is made.
    """
    steps: list[Json] = []
    _compare(before, after, "", steps)
    uid = value_at(before, ("metadata", "uid"))
    if steps and uid:
        steps.insert(0, {"op": "test", "path": "/metadata/uid", "value": uid})
    return steps


def _compare(before: Any, after: Any, place: str, steps: list[Json]) -> None:
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        _compare_objects(before, after, place, steps)
    elif isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, place, steps)
    else:
        if not isinstance(before, dict | list):
            steps.append({"op": "test", "path": place, "value": before})
        steps.append({"op": "replace", "path": place, "value": after})


def _compare_objects(before: Json, after: Json, place: str, steps: list[Json]) -> None:
    for name in before:
        if name not in after:
            steps.append({"op": "remove", "path": f"{place}/{_escaped(name)}"})
    for name, value in after.items():
        if name not in before:
            steps.append({"op": "add", "path": f"{place}/{_escaped(name)}", "value": value})
        else:
            _compare(before[name], value, f"{place}/{_escaped(name)}", steps)


def _compare_lists(before: list[Any], after: list[Any], place: str, steps: list[Json]) -> None:
    names = _names(before)
    if names is not None and names == _names(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            if not same(old, new):
                steps.append({"op": "test", "path": f"{place}/{index}/name", "value": old["name"]})
                _compare(old, new, f"{place}/{index}", steps)
        return
    steps.append({"op": "test", "path": place, "value": before})
    steps.append({"op": "replace", "path": place, "value": after})


def _names(items: Sequence[Any]) -> list[str] | None:
    """The names of named entries; None where one has none, or two have the same."""
    names = [item["name"] for item in items if isinstance(item, dict) and isinstance(item.get("name"), str)]
    return names if names and len(set(names)) == len(items) else None


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def name_of(document: Mapping[str, Any]) -> str:
    return str(value_at(document, ("metadata", "name"), ""))


def namespace_of(document: Mapping[str, Any]) -> str:
    return str(value_at(document, ("metadata", "namespace"), ""))


def uid_of(document: Mapping[str, Any]) -> str:
    return str(value_at(document, ("metadata", "uid"), ""))


def is_controlled_by(document: Mapping[str, Any], uid: str) -> bool:
    owners = value_at(document, ("metadata", "ownerReferences"), ())
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)
