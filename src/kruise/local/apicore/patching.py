"""The patch types that the core understands, as functions from an object to the patched object.

Server-side apply needs to know who owns which field; until something provides that under its content type, it is
answered as a server answers that does not know the type (415).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import DecodeError, decode
from kruise.machinery.patches import json_patch, merge, strategic
from kruise.machinery.patches.errors import PatchError

Patcher = Callable[[Json], Any]
"""From the current object, in the version of the request, to the patched one."""
PatchReader = Callable[[KindDescription, str, bytes], Patcher]
"""From the kind, the version and the body of a request to its patcher; raises `StatusError`."""

MAX_OPERATIONS: Final = 10_000


def _decoded(body: bytes) -> Any:
    try:
        return decode(body, object)
    except DecodeError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from error


def _json(kind: KindDescription, version: str, body: bytes) -> Patcher:
    operations = _decoded(body)
    if not isinstance(operations, list) or not all(isinstance(item, dict) for item in operations):
        found = _go_type(operations)
        raise errors.bad_request(
            f"error decoding patch: json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise errors.failure(413, "RequestEntityTooLarge", f"Request entity too large: {text}")

    def apply(current: Json) -> Any:
        try:
            return json_patch.apply(current, operations)
        except PatchError as error:
            raise errors.unprocessable() from error

    return apply


def _merge(kind: KindDescription, version: str, body: bytes) -> Patcher:
    patch = _object_patch(body)
    return lambda current: merge.apply(current, patch)


def _strategic(kind: KindDescription, version: str, body: bytes) -> Patcher:
    patch = _object_patch(body)
    schema = None if kind.merge_schema is None else kind.merge_schema(version)

    def apply(current: Json) -> Any:
        try:
            return strategic.apply(current, patch, schema)
        except PatchError as error:
            raise errors.bad_request(str(error)) from error

    return apply


def _object_patch(body: bytes) -> Json:
    patch = _decoded(body)
    if not isinstance(patch, dict):
        raise errors.bad_request(
            f"error decoding patch: json: cannot unmarshal {_go_type(patch)} into Go value of type "
            "map[string]interface {}"
        )
    return patch


def without_nulls(value: Any) -> Any:
    """The value without null members at any depth; elements of lists stay."""
    if isinstance(value, dict):
        return {
            name: without_nulls(item) if isinstance(item, dict | list) else item
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [without_nulls(item) if isinstance(item, dict | list) else item for item in value]
    return value


def with_nulls_of(source: Any, target: Any) -> Any:
    """`target` with the null members that `source` has and `target` lacks."""
    if isinstance(source, dict) and isinstance(target, dict):
        changes: dict[str, Any] = {}
        for name, value in source.items():
            if value is None:
                if name not in target:
                    changes[name] = None
            elif name in target:
                inner = with_nulls_of(value, target[name])
                if inner is not target[name]:
                    changes[name] = inner
        return {**target, **changes} if changes else target
    if isinstance(source, list) and isinstance(target, list) and len(source) == len(target):
        items = [with_nulls_of(one, other) for one, other in zip(source, target, strict=True)]
        return items if any(new is not old for new, old in zip(items, target, strict=True)) else target
    return target


_GO_TYPES: Mapping[type, str] = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _go_type(value: object) -> str:
    return _GO_TYPES.get(type(value), "null")


READERS: Mapping[str, PatchReader] = {
    PatchType.JSON.value: _json,
    PatchType.MERGE.value: _merge,
    PatchType.STRATEGIC.value: _strategic,
}


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip()


def read(
    kind: KindDescription,
    version: str,
    content_type: str,
    body: bytes,
    readers: Mapping[str, PatchReader] = READERS,
    *,
    applies: bool = False,
) -> Patcher:
    """The patcher for a request's body; raises `StatusError` for unknown types and unreadable bodies.

    `applies`: server-side apply is understood too, though not here.
    """
    wanted = media_type(content_type)
    accepted = [name for name in readers if not (kind.custom and name == PatchType.STRATEGIC)]
    if wanted not in accepted:
        raise errors.unsupported_media_type([*accepted, PatchType.APPLY.value] if applies else accepted)
    apply = readers[wanted](kind, version, body)
    # Typed kinds know no null: a field that is set to it is absent. Only a patch that says null can bring one in.
    prune = not kind.custom and b"null" in body

    def patched(current: Json) -> Any:
        result = apply(current)
        return without_nulls(result) if prune else result

    return patched
