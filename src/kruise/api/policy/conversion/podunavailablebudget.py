"""PodUnavailableBudget between `v1alpha1` and `v1beta1` (PUB-3, PUB-4).

| v1alpha1 | v1beta1 |
|---|---|
| annotation `kruise.io/pub-protect-operations: DELETE,EVICT` | `spec.protectOperations: [DELETE, EVICT]` |
| annotation `pub.kruise.io/protect-total-replicas: "5"` | `spec.protectTotalReplicas: 5` |

Annotations that cannot be read are left aside: admission names what is wrong with them. `kruise.api.versions` keeps
what `v1alpha1` has no place for.
"""

from __future__ import annotations

import re
from typing import Any

from kruise.api.policy.podunavailablebudget import OPERATIONS, PROTECT_OPERATIONS, PROTECT_TOTAL_REPLICAS
from kruise.api.policy.shared import GROUP
from kruise.api.versions import Json, TwoVersions, mapping, put

_INTEGER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_MOST = 2**31


def operations_in(text: str) -> tuple[str, ...]:
    """The operations that an annotation lists; blanks around them and empty items do not count."""
    return tuple(item for item in (part.strip() for part in text.split(",")) if item)


def replicas_in(text: str) -> int | None:
    """The number in an annotation; None where it holds none that fits into 32 bits."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -_MOST <= number < _MOST else None


def _annotations(obj: Json) -> Json:
    return mapping(mapping(obj.get("metadata")).get("annotations"))


def _to_beta(obj: Json) -> Json:
    spec = obj.get("spec")
    annotations = _annotations(obj)
    listed = operations_in(str(annotations.get(PROTECT_OPERATIONS, "")))
    told: dict[str, Any] = {}
    if listed and all(item in OPERATIONS for item in listed):
        told["protectOperations"] = list(listed)
    total = replicas_in(str(annotations.get(PROTECT_TOTAL_REPLICAS, "")))
    if total is not None and total >= 1:
        told["protectTotalReplicas"] = total
    if not told:
        return obj
    return {**obj, "spec": put(mapping(spec), **told)}


def _to_alpha(obj: Json) -> Json:
    spec = mapping(obj.get("spec"))
    operations, total = spec.get("protectOperations"), spec.get("protectTotalReplicas")
    annotations = {
        key: value
        for key, value in _annotations(obj).items()
        if key not in (PROTECT_OPERATIONS, PROTECT_TOTAL_REPLICAS)
    }
    if operations and isinstance(operations, list):
        annotations[PROTECT_OPERATIONS] = ",".join(str(item) for item in operations)
    if isinstance(total, int):
        annotations[PROTECT_TOTAL_REPLICAS] = str(total)
    result = obj
    if isinstance(obj.get("spec"), dict):
        lacking = put(spec, protectOperations=None, protectTotalReplicas=None, ignoredPodSelector=None)
        result = {**obj, "spec": lacking}
    if isinstance(obj.get("metadata"), dict) and annotations != _annotations(obj):
        result = {**result, "metadata": put(mapping(obj["metadata"]), annotations=annotations or None)}
    return result


convert = TwoVersions(group=GROUP, kind="PodUnavailableBudget", up=_to_beta, down=_to_alpha)
