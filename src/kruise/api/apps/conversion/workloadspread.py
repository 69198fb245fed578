"""WorkloadSpread between `v1alpha1` and `v1beta1` (WS-2).

| v1alpha1 | v1beta1 |
|---|---|
| `subsets[].requiredNodeSelectorTerm` | `subsets[].requiredNodeSelector` |
| `subsets[].preferredNodeSelectorTerms` | `subsets[].preferredNodeSelector` |
| conditions without reason, message or time | they have to be there |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions, mapping

_NEWER_NAMES = {
    "requiredNodeSelectorTerm": "requiredNodeSelector",
    "preferredNodeSelectorTerms": "preferredNodeSelector",
}
_OLDER_NAMES = {newer: older for older, newer in _NEWER_NAMES.items()}
_NO_REASON = "Unknown"
_LONG_AGO = "1970-01-01T00:00:00Z"


def _to_beta(obj: Json) -> Json:
    return _converted(obj, _NEWER_NAMES, _condition_to_beta)


def _to_alpha(obj: Json) -> Json:
    return _converted(obj, _OLDER_NAMES, _condition_to_alpha)


def _converted(obj: Json, names: dict[str, str], condition: Callable[[Json], Json]) -> Json:
    result = dict(obj)
    spec, status = obj.get("spec"), obj.get("status")
    if isinstance(spec, dict) and isinstance(spec.get("subsets"), list):
        result["spec"] = {**spec, "subsets": [_renamed(subset, names) for subset in spec["subsets"]]}
    if isinstance(status, dict):
        result["status"] = _status(status, condition)
    return result


def _renamed(subset: Any, names: dict[str, str]) -> Any:
    if not isinstance(subset, dict):
        return subset
    # A field that only the other version has is unknown here: it must not win over the one that is meant.
    return {names.get(name, name): value for name, value in subset.items() if name not in names.values()}


def _status(status: Json, condition: Callable[[Json], Json]) -> Json:
    result = dict(status)
    if isinstance(status.get("subsetStatuses"), list):
        result["subsetStatuses"] = _elements(status["subsetStatuses"], condition)
    if isinstance(status.get("versionedSubsetStatuses"), dict):
        versions = mapping(status["versionedSubsetStatuses"])
        result["versionedSubsetStatuses"] = {name: _elements(found, condition) for name, found in versions.items()}
    return result


def _elements(found: Any, condition: Callable[[Json], Json]) -> Any:
    if not isinstance(found, list):
        return found
    return [
        {**element, "conditions": [condition(item) for item in element["conditions"] if isinstance(item, dict)]}
        if isinstance(element, dict) and isinstance(element.get("conditions"), list)
        else element
        for element in found
    ]


def _condition_to_beta(item: Json) -> Json:
    return {
        **item,
        "reason": item.get("reason") or _NO_REASON,
        "message": item.get("message") or "",
        "lastTransitionTime": item.get("lastTransitionTime") or _LONG_AGO,
    }


def _condition_to_alpha(item: Json) -> Json:
    return {name: value for name, value in item.items() if name != "observedGeneration"}


convert = TwoVersions(group=GROUP, kind="WorkloadSpread", up=_to_beta, down=_to_alpha)
