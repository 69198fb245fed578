"""What is done to a pod, as budgets see it, and which of that a budget guards (PUB-60, PUB-70, PUB-80)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.core.pod_resources import qos_class
from kruise.api.core.quantities import compare
from kruise.api.policy.conversion.podunavailablebudget import operations_in, replicas_in
from kruise.api.policy.podunavailablebudget import (
    DELETE,
    EVICT,
    PROTECT_OPERATIONS,
    PROTECT_TOTAL_REPLICAS,
    RESIZE,
    UPDATE,
    PodUnavailableBudget,
)
from kruise.protection.podunavailablebudget import keys

Json = Mapping[str, Any]

DEFAULTS = frozenset({DELETE, UPDATE, EVICT})
_RESIZABLE = ("cpu", "memory")


def guarded_operations(budget: PodUnavailableBudget, gates: Mapping[str, bool]) -> frozenset[str]:
    """PUB-60: the field, else the annotation, else the usual ones. On clusters that cannot resize in place, a resize is
    an update."""
    listed = budget.spec.protect_operations or operations_in(budget.metadata.annotations.get(PROTECT_OPERATIONS, ""))
    chosen = frozenset(listed) or DEFAULTS
    if UPDATE in chosen and not gates.get(keys.RESIZE_GATE, False):
        return chosen | {RESIZE}
    return chosen


_GATES = {DELETE: keys.DELETE_GATE, EVICT: keys.DELETE_GATE, UPDATE: keys.UPDATE_GATE, RESIZE: keys.UPDATE_GATE}


def unguarded_operations(budget: PodUnavailableBudget, gates: Mapping[str, bool]) -> Mapping[str, str]:
    """What a budget is meant to guard and nobody asks it about, each with the gate that is off."""
    return {
        operation: _GATES[operation]
        for operation in sorted(guarded_operations(budget, gates))
        if not gates.get(_GATES[operation], False)
    }


def total_replicas(budget: PodUnavailableBudget) -> int | None:
    """PUB-33, PUB-5: how many pods there should be, where the budget itself says it."""
    if budget.spec.protect_total_replicas is not None:
        return budget.spec.protect_total_replicas
    told = replicas_in(budget.metadata.annotations.get(PROTECT_TOTAL_REPLICAS, ""))
    return told if told is not None and told >= 1 else None  # as conversion takes it


def operation_of_update(old: Json, new: Json) -> str | None:
    """PUB-70: UPDATE, RESIZE, or None for a change that makes no pod unavailable. Both are pods as documents."""
    marks = keys.is_marked_unavailable(_labels(new)) and not keys.is_marked_unavailable(_labels(old))
    if old.get("spec") == new.get("spec"):
        return UPDATE if marks else None
    return RESIZE if not marks and is_resize(old, new) else UPDATE


def is_resize(old: Json, new: Json) -> bool:
    """PUB-80: nothing but amounts of cpu and memory, without a restart."""
    if any(_annotations(pod).get(keys.CONFIG_SOURCE, "api") != "api" for pod in (old, new)):
        return False  # a static pod
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if _without_resources(before) != _without_resources(after) or qos_class(before) != qos_class(after):
        return False
    pairs = zip(before.get("containers") or (), after.get("containers") or (), strict=True)
    return all(_resizes_without_restart(one, other) for one, other in pairs)


def _without_resources(spec: Json) -> dict[str, Any]:
    containers = [
        {name: value for name, value in container.items() if name != "resources"}
        for container in spec.get("containers") or ()
    ]
    return {**spec, "containers": containers}


def _resizes_without_restart(old: Json, new: Json) -> bool:
    policies = {item.get("resourceName"): item.get("restartPolicy") for item in new.get("resizePolicy") or ()}
    changed = set()
    for member in ("requests", "limits"):
        before = (old.get("resources") or {}).get(member) or {}
        after = (new.get("resources") or {}).get(member) or {}
        changed |= {name for name in {*before, *after} if not _same(before.get(name), after.get(name))}
    return all(name in _RESIZABLE and policies.get(name) in (None, "", "NotRequired") for name in changed)


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    try:
        return compare(one, other) == 0
    except ValueError:
        return bool(one == other)


def _labels(pod: Json) -> Mapping[str, str]:
    return (pod.get("metadata") or {}).get("labels") or {}


def _annotations(pod: Json) -> Mapping[str, str]:
    return (pod.get("metadata") or {}).get("annotations") or {}
