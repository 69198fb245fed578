"""Random objects that a definition's schema accepts, as far as its types go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.support.installed import DEFINITIONS

TEMPLATE = {"metadata": {"labels": {"app": "x"}, "odd": None}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
_WORDS = (
    *("", "a", "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete", "RollingUpdate"),
    *("Standard", "Surging", "Retain", "Delete", "Parallel"),
)
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(0, 2**31 - 1),
    "string": st.sampled_from(_WORDS),
    "boolean": st.booleans(),
}


def schema_of(kind: str, version: str, part: str = "spec") -> dict[str, Any]:
    definition = next(one for one in DEFINITIONS.values() if one["spec"]["names"]["kind"] == kind)
    found = next(one for one in definition["spec"]["versions"] if one["name"] == version)
    schema: dict[str, Any] = found["schema"]["openAPIV3Schema"]["properties"][part]
    return schema


def accepted(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema accepts."""
    if "properties" in schema:
        parts = {name: accepted(part) for name, part in schema["properties"].items()}
        needed = {name: parts.pop(name) for name in schema.get("required", ())}
        return st.fixed_dictionaries(needed, optional=parts)
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(0, 9) | st.sampled_from(["10%", "0%"])
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return st.just(TEMPLATE)
    if "additionalProperties" in schema:
        return st.dictionaries(st.sampled_from(["a", "b"]), accepted(schema["additionalProperties"]), max_size=2)
    if "items" in schema:
        return st.lists(accepted(schema["items"]), max_size=2)
    if schema.get("format") == "date-time":
        return st.just("2026-01-01T00:00:00Z")
    return _SCALARS[schema["type"]]


def unknown(value: Any, schema: Mapping[str, Any], path: str = "") -> list[str]:
    """Paths of a document that a schema does not know, and an API server cuts away."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        found = [f"{path}.{name}" for name in value if name not in known]
        return found + [
            one for name, part in value.items() if name in known for one in unknown(part, known[name], f"{path}.{name}")
        ]
    if isinstance(value, list) and "items" in schema:
        return [one for item in value for one in unknown(item, schema["items"], f"{path}[]")]
    return []
