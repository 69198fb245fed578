"""Advanced DaemonSet between `v1alpha1` and `v1beta1` (DS-5).

| v1alpha1 | v1beta1 |
|---|---|
| `rollingUpdateType: Surging` | `Standard` |
| annotation `daemonset.kruise.io/progressive-create-pod: "true"` | `scaleStrategy.partitionedScaling: true` |
| `status.daemonSetHash` | `status.updateRevision` |

The annotation is never taken away, only written. `kruise.api.versions` keeps what it cannot say.
"""

from __future__ import annotations

from typing import Any

from kruise.api.apps.daemonset import STANDARD
from kruise.api.apps.daemonset_v1alpha1 import SURGING
from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions, mapping, put, with_annotations

PROGRESSIVE = "daemonset.kruise.io/progressive-create-pod"


def _to_beta(obj: Json) -> Json:
    result = _with_status(obj, "daemonSetHash", "updateRevision")
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return result
    annotations = mapping(mapping(obj.get("metadata")).get("annotations"))
    scale = {"partitionedScaling": True} if annotations.get(PROGRESSIVE) == "true" else None
    update = _without_surging(spec.get("updateStrategy"))
    return {**result, "spec": put(spec, scaleStrategy=scale, updateStrategy=update)}


def _without_surging(update: Any) -> Any:
    rolling = mapping(update).get("rollingUpdate")
    if mapping(rolling).get("rollingUpdateType") != SURGING:
        return update
    return {**update, "rollingUpdate": {**mapping(rolling), "rollingUpdateType": STANDARD}}


def _to_alpha(obj: Json) -> Json:
    result = _with_status(obj, "updateRevision", "daemonSetHash")
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return result
    is_partitioned = mapping(spec.get("scaleStrategy")).get("partitionedScaling") is True
    result = {**result, "spec": put(spec, scaleStrategy=None)}
    return with_annotations(result, {PROGRESSIVE: "true"} if is_partitioned else {})


def _with_status(obj: Json, known: str, called: str) -> Json:
    status = obj.get("status")
    if not isinstance(status, dict) or known not in status:
        return obj
    return {**obj, "status": put(status, **{known: None, called: status[known]})}


convert = TwoVersions(group=GROUP, kind="DaemonSet", up=_to_beta, down=_to_alpha)
