"""ContainerRecreateRequest between `v1alpha1` and `v1beta1` (CRR-4 to CRR-7).

| v1alpha1 annotation | v1beta1 |
|---|---|
| `crr.apps.kruise.io/sync-container-statuses`, JSON | `status.containerStatusSnapshot` |
| `crr.apps.kruise.io/unready-acquired`, a time | `status.conditions[type=PreRecreateGrace]`, True since then |

In `v1beta1` the annotations are not there. What of them cannot be read is dropped.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kruise.api.apps.containerrecreaterequest import GRACE_CONDITION, SyncedStatus
from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions, mapping, put, with_annotations
from kruise.machinery import codec
from kruise.machinery.times import TimeError, format_time, parse_time

STATUSES = "crr.apps.kruise.io/sync-container-statuses"
UNREADY = "crr.apps.kruise.io/unready-acquired"
GRACE_MESSAGE = (
    "traffic drains before containers are stopped: a pod with readiness gate KruisePodReady is held not ready meanwhile"
)
"""True of pods without the gate, too: what was written through `v1alpha1` does not tell which it was."""


def grace_condition(time: datetime) -> Json:
    """The grace of the pod runs since then (CRR-34)."""
    return {
        "type": GRACE_CONDITION,
        "status": "True",
        "reason": GRACE_CONDITION,
        "message": GRACE_MESSAGE,
        "lastTransitionTime": format_time(time),
    }


def _to_beta(obj: Json) -> Json:
    metadata = mapping(obj.get("metadata"))
    annotations = mapping(metadata.get("annotations"))
    if STATUSES not in annotations and UNREADY not in annotations:
        return obj
    left = {name: value for name, value in annotations.items() if name not in (STATUSES, UNREADY)}
    result = {**obj, "metadata": put(metadata, annotations=left or None)}
    status = dict(mapping(obj.get("status")))
    statuses = _statuses(annotations.get(STATUSES))
    if statuses is not None:
        status["containerStatusSnapshot"] = statuses
    since = _time(annotations.get(UNREADY))
    if since is not None:
        others = [item for item in status.get("conditions") or () if mapping(item).get("type") != GRACE_CONDITION]
        status["conditions"] = [*others, grace_condition(since)]
    return {**result, "status": status} if status else result


def _statuses(text: Any) -> list[Any] | None:
    if not isinstance(text, str):
        return None
    try:
        return [codec.to_builtins(item) | _explicit(item) for item in codec.decode(text, tuple[SyncedStatus, ...])]
    except codec.DecodeError:
        return None


def _explicit(item: SyncedStatus) -> Json:
    """Required fields are written even where they have their usual value."""
    return {"name": item.name, "ready": item.ready, "restartCount": item.restart_count}


def _time(text: Any) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except TimeError:
        return None


def _to_alpha(obj: Json) -> Json:
    status = obj.get("status")
    if not isinstance(status, dict):
        return obj
    told: dict[str, str] = {}
    snapshot = status.get("containerStatusSnapshot")
    if isinstance(snapshot, list):
        told[STATUSES] = codec.encode([_in_order(mapping(item)) for item in snapshot]).decode()
    for item in status.get("conditions") or ():
        facts = mapping(item)
        if facts.get("type") == GRACE_CONDITION and facts.get("status") == "True" and facts.get("lastTransitionTime"):
            told[UNREADY] = str(facts["lastTransitionTime"])
    result = {**obj, "status": put(status, containerStatusSnapshot=None, conditions=None)}
    return with_annotations(result, told)


def _in_order(item: Json) -> Json:
    order = ("name", "ready", "restartCount", "containerID")
    return {name: item[name] for name in order if name in item}


convert = TwoVersions(group=GROUP, kind="ContainerRecreateRequest", up=_to_beta, down=_to_alpha)
