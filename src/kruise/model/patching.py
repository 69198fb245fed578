"""Patches on typed objects: only the parts that a patch names are turned into JSON and back.

Objects of a store are slim, and so is what controllers need of them. A pod's spec stays the very same value while its
status changes, so that everybody can tell at a glance what is different.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from kruise.api.core.schema import merge_schema
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.client.requests import PatchType
from kruise.machinery.patches import json_patch, merge, strategic
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.patches.schema import MERGE, FieldRule, Fields, MergeSchema

T = TypeVar("T")

_OWNERS = FieldRule(strategies=frozenset({MERGE}), merge_key="uid", is_list=True)
_METADATA = Fields({"finalizers": FieldRule(strategies=frozenset({MERGE}), is_list=True), "ownerReferences": _OWNERS})
_COMMON = Fields({"metadata": FieldRule(child=_METADATA)})


@functools.cache
def _fields(kind: type) -> Mapping[str, tuple[str, Any]]:
    """The parts of an object by their name on the wire: the attribute, and its type."""
    hints = typing.get_type_hints(kind)
    return {wire: (name, hints[name]) for name, wire, _ in codec.struct_fields(kind)}


@functools.cache
def _schema(resource: Resource[Any]) -> MergeSchema:
    return merge_schema(resource.api_version, resource.kind) or _COMMON


def patched(resource: Resource[Any], obj: T, body: Any, patch_type: PatchType | None) -> T:
    """The object with the patch applied. Raises PatchError where the patch does not fit it."""
    fields = _fields(cast(Any, type(obj)))
    names = _named(body, patch_type)
    document: dict[str, Any] = {}
    for name in names:
        if name in fields:
            part = codec.decode(codec.encode(getattr(obj, fields[name][0])), object)
            if part not in ({}, None):
                document[name] = part
    match patch_type:
        case PatchType.JSON:
            after = json_patch.apply(document, body)
        case PatchType.STRATEGIC:
            after = strategic.apply(document, body, _schema(resource))
        case _:
            after = merge.apply(document, body)
    changes: dict[str, Any] = {}
    for name in names:
        if name in fields:
            attribute, kind = fields[name]
            changes[attribute] = _part(after.get(name), kind)
    return codec.evolve(obj, **changes)


def _named(body: Any, patch_type: PatchType | None) -> tuple[str, ...]:
    """The parts of the object that a patch may touch."""
    if patch_type is PatchType.JSON:
        return tuple(dict.fromkeys(str(operation["path"]).split("/", 2)[1] for operation in body))
    if not isinstance(body, Mapping):
        raise PatchError(f"a {patch_type} is an object")
    return tuple(str(name) for name in body)


def _part(value: Any, kind: Any) -> Any:
    if value is None:
        value = {} if codec.struct_fields(kind) else value
    return codec.decode(codec.encode(value), kind)
