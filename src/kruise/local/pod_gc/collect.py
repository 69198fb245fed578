"""Pods that nobody looks after any more (decisions).

Pods on a node that no longer exists are marked as failed and removed, after a while in which the node may come back.
Terminating pods are removed at once where no kubelet will: on nodes marked as out of service, and where they never had
a node. Of the pods that have ended only so many are kept, the oldest go first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.native.nodes import Node
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct
from kruise.machinery.plan import Action, Chain, Conclusion, OnError, Outcomes, Phase, Plan, Target, Wake
from kruise.machinery.times import format_time

QUARANTINE = 40.0
"""Seconds for which a node must be missing."""
THRESHOLD = 12_500
"""How many pods that have ended are kept."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_FINISHED = ("Succeeded", "Failed")
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class Snapshot(Struct):
    now: datetime
    pods: tuple[Pod, ...]
    """Those on the node, or those without any."""
    node_name: str = ""
    node: Node | None = None
    missing_since: datetime | None = None
    finished: tuple[Pod, ...] = ()
    """All pods that have ended, where there are too many."""
    threshold: int = THRESHOLD


def decide(snapshot: Snapshot) -> Plan:
    if not snapshot.node_name:
        return _removals([*_unplaced(snapshot), *_too_many(snapshot)])
    if snapshot.node is not None:
        return _removals(_out_of_service(snapshot, snapshot.node))
    if not snapshot.pods:
        return Plan()
    since = snapshot.missing_since or snapshot.now
    left = (since + timedelta(seconds=QUARANTINE) - snapshot.now).total_seconds()
    if left > 0:
        return Plan(wakes=(Wake(after=left, reason=f"node {snapshot.node_name} may come back"),))
    return _removals([_orphan(pod, snapshot.now) for pod in snapshot.pods])


def _removals(chains: list[Chain]) -> Plan:
    return Plan(phases=(Phase(name="remove", chains=tuple(chains), on_error=OnError.CONTINUE),) if chains else ())


def remove(pod: Pod, reason: str) -> Action:
    return plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=reason, grace_period_seconds=0)


def mark(pod: Pod, status: dict[str, Any], reason: str) -> Action:
    return plans.patch(
        Target.of(PODS, pod),
        {"status": status},
        uid=pod.metadata.uid,
        reason=reason,
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )


def disruption(pod: Pod, reason: str, message: str, now: datetime) -> dict[str, Any]:
    condition: dict[str, Any] = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
    }
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    return condition


def _orphan(pod: Pod, now: datetime) -> Chain:
    reason = f"node {pod.spec.node_name} is gone"
    if pod.status.phase in _FINISHED:
        return (remove(pod, reason),)
    condition = disruption(pod, "DeletionByPodGC", "PodGC: node no longer exists", now)
    return (mark(pod, {"phase": "Failed", "conditions": [condition]}, reason), remove(pod, reason))


def _failed(pod: Pod, reason: str) -> Chain:
    if pod.status.phase in _FINISHED:
        return (remove(pod, reason),)
    return (mark(pod, {"phase": "Failed"}, reason), remove(pod, reason))


def _unplaced(snapshot: Snapshot) -> list[Chain]:
    return [
        _failed(pod, "it is being deleted and never had a node")
        for pod in snapshot.pods
        if pod.metadata.deletion_timestamp is not None
    ]


def _out_of_service(snapshot: Snapshot, node: Node) -> list[Chain]:
    ready = any(item.type == "Ready" and item.status == "True" for item in node.status.conditions)
    if ready or all(taint.key != OUT_OF_SERVICE for taint in node.spec.taints):
        return []
    return [
        _failed(pod, "its node is out of service")
        for pod in snapshot.pods
        if pod.metadata.deletion_timestamp is not None
    ]


def _too_many(snapshot: Snapshot) -> list[Chain]:
    surplus = len(snapshot.finished) - snapshot.threshold
    if surplus <= 0:
        return []
    oldest = sorted(
        snapshot.finished,
        key=lambda pod: (
            pod.status.reason != "Evicted",
            pod.metadata.creation_timestamp or _BEGINNING,
            pod.metadata.namespace,
            pod.metadata.name,
        ),
    )
    return [(remove(pod, f"more than {snapshot.threshold} pods have ended"),) for pod in oldest[:surplus]]


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    return Conclusion()
