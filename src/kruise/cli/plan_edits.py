"""Changes that are planned and not made: what `kubectl apply` would make of a manifest, and `--set path=value`.

Pure, like the code behind the other verbs.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from kruise.machinery.documents import Json, value_at
from kruise.machinery.patches.values import without_nulls
from kruise.verbs.errors import UsageError

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_BY_SERVER = ("managedFields", "creationTimestamp", "resourceVersion", "uid", "generation", "selfLink")
_CHANGEABLE = (("spec",), ("metadata", "labels"), ("metadata", "annotations"))

Segment = str | int
"""The name of a field, or the position in a list."""


# Manifests


def applied(live: Json | None, manifest: Json, *, namespace: str) -> Json:
    """The object after `kubectl apply -f`: what was applied last, the manifest and the live object, merged.

    Fields that somebody else set stay. Fields that were applied last and are not in the manifest any more go. Lists
    are replaced as a whole, as kubectl does for kinds that are defined by a CustomResourceDefinition.
    """
    wanted = {name: copy.deepcopy(value) for name, value in manifest.items() if name != "status"}
    metadata = {name: value for name, value in (wanted.get("metadata") or {}).items() if name not in _BY_SERVER}
    # As an API server does: an object of a kind that is in no namespace loses the one that a manifest gives it.
    metadata = {name: value for name, value in metadata.items() if name != "namespace"}
    wanted["metadata"] = {**metadata, "namespace": namespace} if namespace else metadata
    if live is None:
        return wanted
    # kubectl itself writes an annotation, so a manifest never drops all of them.
    wanted["metadata"]["annotations"] = metadata.get("annotations") or {}
    merged: Json = _merged(live, _last_applied(live), wanted)
    return merged


def _last_applied(live: Json) -> Json:
    text = value_at(live, ("metadata", "annotations"), {}).get(LAST_APPLIED, "")
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = {}  # somebody else's writing: then nothing is known to have been applied
    return found if isinstance(found, dict) else {}


def _merged(live: Any, before: Any, wanted: Any) -> Any:
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return without_nulls(wanted)
    last = before if isinstance(before, dict) else {}
    result = {name: value for name, value in live.items() if name in wanted or name not in last}
    for name, value in wanted.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(live.get(name), last.get(name), value)
    return result


# --set


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    path: tuple[Segment, ...]
    text: str
    value: Any
    """The text read as JSON, if it can be; None: the field goes."""

    def __str__(self) -> str:
        return path_text(self.path)


def parse_assignment(text: str) -> Assignment:
    """`spec.replicas=3`, `spec.template.spec.containers[0].image=nginx`, `metadata.annotations["a.b/c"]=x`.

    A value is JSON if it can be read so, else a string; null removes. A backslash takes a dot for a part of a name.
    """
    path, rest = _parse_path(text)
    if not rest.startswith("="):
        raise UsageError(f'--set: "{text}" is no PATH=VALUE, for example spec.minReadySeconds=10')
    if not any(path[: len(root)] == root for root in _CHANGEABLE):
        raise UsageError(f"--set: {path_text(path)} cannot be planned; spec, metadata.labels and annotations can")
    return Assignment(path=path, text=rest[1:], value=_parse_value(path, rest[1:]))


def _parse_path(text: str) -> tuple[tuple[Segment, ...], str]:
    path: list[Segment] = []
    position = 0
    while position < len(text) and text[position] != "=":
        if text[position] == "[":
            segment, position = _bracket(text, position)
        else:
            if path:
                if text[position] != ".":
                    raise UsageError(f'--set: "{text}": a dot is missing before "{text[position:]}"')
                position += 1
            segment, position = _word(text, position)
        path.append(segment)
    if not path:
        raise UsageError(f'--set: "{text}" names no field, for example spec.minReadySeconds=10')
    return tuple(path), text[position:]


def _word(text: str, position: int) -> tuple[str, int]:
    word = ""
    while position < len(text) and text[position] not in ".[=":
        if text[position] == "\\":
            position += 1
        word += text[position : position + 1]
        position += 1
    if not word:
        raise UsageError(f'--set: "{text}" holds an empty name')
    return word, position


def _bracket(text: str, position: int) -> tuple[Segment, int]:
    inside = position + 1
    if text[inside : inside + 1] in ("'", '"'):
        quote = text[inside]
        end = text.find(f"{quote}]", inside + 1)
        if end > inside + 1:
            return text[inside + 1 : end], end + 2
    end = text.find("]", inside)
    word = text[inside:end] if end > 0 else ""
    if not word.isdecimal():
        raise UsageError(f'--set: "{text}": write [0] for an entry of a list, or ["name"] for a name with dots in it')
    return int(word), end + 1


def _parse_value(path: Sequence[Segment], text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        if text[:1] in ("{", "[", '"'):
            raise UsageError(f"--set: the value of {path_text(path)} is no valid JSON: {text}") from None
        return text


def path_text(path: Sequence[Segment]) -> str:
    text = ""
    for segment in path:
        if isinstance(segment, int):
            text += f"[{segment}]"
        elif "." in segment:
            text += f'["{segment}"]'
        else:
            text += f".{segment}" if text else segment
    return text


def with_assignment(document: Json, assignment: Assignment) -> Json:
    """A copy with the value at its place. On the way, objects are made where they are missing, entries of lists not."""
    root = copy.deepcopy(document)
    place: Any = root
    path = assignment.path
    for depth, segment in enumerate(path[:-1]):
        _check_place(place, path, depth)
        if isinstance(segment, str) and place.get(segment) is None:
            place[segment] = [] if isinstance(path[depth + 1], int) else {}
        place = place[segment]
    _check_place(place, path, len(path) - 1)
    if assignment.value is not None:
        place[path[-1]] = assignment.value
    elif isinstance(place, list):
        del place[path[-1]]  # type: ignore[arg-type]  # checked above: a position
    else:
        place.pop(path[-1], None)
    return root


def _check_place(place: Any, path: Sequence[Segment], depth: int) -> None:
    """Whether the segment can be taken from the place; an error that says what stands there if not."""
    segment, where = path[depth], path_text(path[:depth])
    if isinstance(segment, int):
        if not isinstance(place, list):
            raise UsageError(f"--set: {where} is no list, so it has no entry [{segment}]")
        if segment >= len(place):
            entries = ", ".join(_entry_text(index, entry) for index, entry in enumerate(place)) or "none"
            raise UsageError(f"--set: {where} has no entry [{segment}]; its entries are {entries}")
    elif isinstance(place, list):
        entries = ", ".join(_entry_text(index, entry) for index, entry in enumerate(place)) or "none"
        raise UsageError(f"--set: {where} is a list: choose one of its entries, {entries}")
    elif not isinstance(place, dict):
        raise UsageError(f"--set: {where} is {json.dumps(place)}, so it has no field {segment}")


def _entry_text(index: int, entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"[{index}] ({name})" if name else f"[{index}]"
