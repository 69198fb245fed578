"""Fields that a kind does not have, and fields that are given twice: what `fieldValidation` is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kruise.api.core import schema
from kruise.api.core import unknown_fields as struct_fields
from kruise.local.apicore.kinds import KindDescription

_METADATA = "meta.ObjectMeta"
_ALWAYS_KNOWN = frozenset({"apiVersion", "kind", "metadata"})


def unknown_fields(kind: KindDescription, version: str, obj: Mapping[str, Any]) -> list[str]:
    """Paths of fields that the kind does not have, in the order of the document."""
    found: list[str] = []
    if kind.custom:
        known = kind.schema(version) if kind.schema is not None else None
        if known is not None:
            _check_custom(obj, known, "", found, is_object=True)
        return found + struct_fields.unknown_fields(obj.get("metadata"), _METADATA, "metadata")
    struct = schema.kind_type(kind.api_version(version), kind.kind)
    if struct is None:
        return found
    return [path for path in struct_fields.unknown_fields(obj, struct) if path not in _ALWAYS_KNOWN]


def duplicate_fields(body: bytes) -> list[str]:
    """Paths of members that stand more than once in a JSON document. Empty for what is no JSON."""
    try:
        document = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    _check_pairs(document, "", found)
    return found


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object as they stand in the text."""


def _check_pairs(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, item in value:
            place = f"{path}.{name}" if path else name
            if name in seen and place not in found:
                found.append(place)
            seen.add(name)
            _check_pairs(item, place, found)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _check_pairs(item, f"{path}[{position}]", found)


def _check_custom(
    value: Any, known: Mapping[str, Any], path: str, found: list[str], *, is_object: bool = False
) -> None:
    embedded = is_object or bool(known.get("x-kubernetes-embedded-resource"))
    if isinstance(value, Mapping):
        properties = known.get("properties") or {}
        more = known.get("additionalProperties")
        for name, item in value.items():
            place = f"{path}.{name}" if path else name
            if embedded and name in _ALWAYS_KNOWN:
                if name == "metadata" and path:
                    found += struct_fields.unknown_fields(item, _METADATA, place)
            elif name in properties:
                _check_custom(item, properties[name], place, found)
            elif isinstance(more, Mapping):
                _check_custom(item, more, place, found)
            elif not more and not known.get("x-kubernetes-preserve-unknown-fields"):
                found.append(place)
    elif isinstance(value, list) and isinstance(known.get("items"), Mapping):
        for position, item in enumerate(value):
            _check_custom(item, known["items"], f"{path}[{position}]", found)
