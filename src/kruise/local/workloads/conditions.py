"""Conditions of workloads, changed as kube-controller-manager changes them (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kruise.api.meta import Condition
from kruise.machinery.times import format_time

Conditions = tuple[Condition, ...]


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    for item in conditions:
        if item.type == kind:
            return item
    return None


def without(conditions: Conditions, kind: str) -> Conditions:
    return tuple(item for item in conditions if item.type != kind)


def whole_second(now: datetime) -> datetime:
    """Times on the wire have no fractions; a status that is compared with the stored one must have none either."""
    return now.replace(microsecond=0)


def to_json(item: Condition) -> dict[str, Any]:
    body: dict[str, Any] = {"type": item.type, "status": item.status}
    times = (
        ("lastProbeTime", item.last_probe_time),
        ("lastUpdateTime", item.last_update_time),
        ("lastTransitionTime", item.last_transition_time),
    )
    body |= {key: format_time(time) for key, time in times if time is not None}
    return body | {key: text for key, text in (("reason", item.reason), ("message", item.message)) if text}
