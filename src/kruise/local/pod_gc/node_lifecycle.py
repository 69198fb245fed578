"""Nodes in trouble: taints by their conditions, and eviction of the pods that do not tolerate them (decisions).

A node that is not ready, under pressure or cordoned is tainted, so that nothing is placed there. Where the taint has
the effect `NoExecute`, pods are deleted: at once, or after the time for which they tolerate it. That a node is not
ready is said by whoever watches its heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kruise.api.native.nodes import NODES, Node, Taint
from kruise.api.native.pod import PODS, Pod, condition
from kruise.api.native.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE_TAINT, tolerates
from kruise.local.pod_gc.collect import disruption, mark
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct, to_builtins
from kruise.machinery.plan import (
    Action,
    Chain,
    Conclusion,
    EventNote,
    EventType,
    OnError,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
    Wake,
    single,
)
from kruise.machinery.times import format_time

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_TAINTS: Mapping[tuple[str, str], str] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_MANAGED = frozenset({*_TAINTS.values(), UNSCHEDULABLE_TAINT})
_EVICT = "evict"
_NOT_READY_PHASE = "not ready"


class Snapshot(Struct):
    now: datetime
    node: Node
    pods: tuple[Pod, ...]
    """Those on the node that are not being deleted."""


def decide(snapshot: Snapshot) -> Plan:
    node = snapshot.node
    phases: list[Phase] = []
    wanted = _wanted_taints(node, snapshot.now)
    if _bare(wanted) != _bare(node.spec.taints):
        phases.append(single("taint", _taint(node, wanted)))
    if _is_down(node):
        marks = [_mark_not_ready(pod, snapshot.now) for pod in snapshot.pods if _shows_ready(pod)]
        if marks:
            phases.append(single(_NOT_READY_PHASE, *marks, on_error=OnError.CONTINUE))
    chains: list[Chain] = []
    wakes: list[Wake] = []
    deadly = [taint for taint in wanted if taint.effect == NO_EXECUTE]
    for pod in snapshot.pods if deadly else ():
        left = _time_left(pod, deadly, snapshot.now)
        if left is None:
            continue
        if left > 0:
            wakes.append(Wake(after=left, reason="pods tolerate the node's taints no longer"))
        else:
            chains.append(_evict(pod, snapshot.now))
    if chains:
        phases.append(Phase(name=_EVICT, chains=tuple(chains), on_error=OnError.CONTINUE))
    return Plan(phases=tuple(phases), wakes=tuple(wakes))


def _is_down(node: Node) -> bool:
    return any(item.type == "Ready" and item.status != "True" for item in node.status.conditions)


def _bare(taints: tuple[Taint, ...]) -> list[tuple[str, str, str]]:
    return sorted((taint.key, taint.value, taint.effect) for taint in taints)


def _wanted_taints(node: Node, now: datetime) -> tuple[Taint, ...]:
    """The taints of others as they are, and ours by the node's conditions; one that stays keeps its time."""
    keys = [key for item in node.status.conditions if (key := _TAINTS.get((item.type, item.status))) is not None]
    wanted = [(key, NO_SCHEDULE) for key in keys]
    wanted += [(key, NO_EXECUTE) for key in keys if key in (NOT_READY, UNREACHABLE)]
    if node.spec.unschedulable:
        wanted.append((UNSCHEDULABLE_TAINT, NO_SCHEDULE))
    known = {(taint.key, taint.effect): taint for taint in node.spec.taints}
    moment = now.replace(microsecond=0)
    ours = [known.get(pair) or Taint(key=pair[0], effect=pair[1], time_added=moment) for pair in wanted]
    return (*(taint for taint in node.spec.taints if taint.key not in _MANAGED), *ours)


def _taint(node: Node, taints: tuple[Taint, ...]) -> Action:
    return plans.patch(
        Target.of(NODES, node),
        {"spec": {"taints": [to_builtins(taint) for taint in taints] or None}},
        uid=node.metadata.uid,
        # The whole list is written, and others write to it.
        resource_version=node.metadata.resource_version,
        reason="taints follow the node's conditions",
    )


def _shows_ready(pod: Pod) -> bool:
    ready = condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def _mark_not_ready(pod: Pod, now: datetime) -> Action:
    shown: dict[str, Any] = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
    return mark(pod, {"conditions": [shown]}, "its node is not ready")


def _time_left(pod: Pod, taints: list[Taint], now: datetime) -> float | None:
    """Seconds until the pod has to go; None: it tolerates everything for ever."""
    shortest: float | None = None
    for taint in taints:
        matching = [item for item in pod.spec.tolerations if tolerates(item, taint)]
        if not matching:
            return 0.0
        limits = [item.toleration_seconds for item in matching if item.toleration_seconds is not None]
        if not limits:
            continue
        end = (taint.time_added or now) + timedelta(seconds=max(0, min(limits)))
        left = (end - now).total_seconds()
        shortest = left if shortest is None else min(shortest, left)
    return shortest


def _evict(pod: Pod, now: datetime) -> Chain:
    reason = "a NoExecute taint"
    shown = disruption(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now)
    delete = plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=reason)
    return (mark(pod, {"conditions": [shown]}, reason), delete)


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    notes: list[EventNote] = []
    for item in outcomes:
        action = item.action
        if item.result is not Result.DONE or action.target.resource is not PODS:
            continue
        if action.subresource == "status" and action.reason == "its node is not ready":
            notes.append(
                EventNote(
                    reason="NodeNotReady",
                    message="Node is not ready",
                    type=EventType.WARNING,
                    target=action.target,
                    uid=action.uid,
                )
            )
        elif not action.subresource:
            message = f"Marking for deletion Pod {action.target.key}"
            notes.append(
                EventNote(reason="TaintManagerEviction", message=message, target=action.target, uid=action.uid)
            )
    return Conclusion(events=tuple(notes))
