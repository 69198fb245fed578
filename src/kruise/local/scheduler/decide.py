"""The scheduler's decision: all pods that wait for a node, in one go.

One pass looks at the whole cluster: pods are placed in the order of their priority and age, each one seeing the places
that those before it have got. Bindings go through the binding subresource. A pod that fits nowhere gets the condition
`PodScheduled` with kube-scheduler's words, and an event whenever these words change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from kruise.api.meta import Key, key_of
from kruise.api.native.nodes import Namespace, Node
from kruise.api.native.pod import PODS, Pod, condition
from kruise.api.native.storage import SELECTED_NODE, StorageClass
from kruise.local.scheduler import causes
from kruise.local.storage_binding.objects import CLAIMS, Claim, Volume
from kruise.machinery import plan as plans
from kruise.machinery.causes import Meaning
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct
from kruise.machinery.plan import (
    Action,
    Conclusion,
    EventNote,
    EventType,
    Held,
    OnError,
    Outcomes,
    Plan,
    Result,
    Target,
    single,
)
from kruise.machinery.times import format_time
from kruise.scheduling.claims import Storage
from kruise.scheduling.messages import Unschedulable
from kruise.scheduling.placing import Cluster, Load, Placement

SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"
GATED = "SchedulingGated"
_GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_MESSAGE_LIMIT = 1024
_BEGINNING = datetime.min.replace(tzinfo=UTC)
_BIND, _CLAIMS, _CONDITIONS = "bind", "claims", "conditions"


class Snapshot(Struct):
    now: datetime
    pending: tuple[Pod, ...]
    """Pods of this scheduler without a node."""
    placed: tuple[Pod, ...]
    """Pods on nodes that have not ended, of whatever scheduler."""
    nodes: tuple[Node, ...]
    namespaces: tuple[Namespace, ...] = ()
    claims: tuple[Claim, ...] = ()
    """These and the next two only where a pending pod has claims."""
    volumes: tuple[Volume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()


class LoadMemory:
    """Remembers what each pod takes: it is asked of every pod at every pass. Keeps only the pods of the last pass."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, Load]] = {}
        self._next: dict[str, tuple[Any, Load]] = {}

    def load_of(self, pod: Pod) -> Load:
        uid = pod.metadata.uid
        known = self._known.get(uid)
        if known is None or known[0] is not pod:
            known = (pod, Load.of(pod))
        self._next[uid] = known
        return known[1]

    def turn(self) -> None:
        self._known, self._next = self._next, {}


def decider() -> Callable[[Snapshot], Plan]:
    """`decide` with a memory of what pods take; the decisions are the same with and without it."""
    memory = LoadMemory()

    def decide_with_memory(snapshot: Snapshot) -> Plan:
        plan = decide(snapshot, memory.load_of)
        memory.turn()
        return plan

    return decide_with_memory


def decide(snapshot: Snapshot, load_of: Callable[[Pod], Load] = Load.of) -> Plan:
    by_node: dict[str, list[Pod]] = {}
    for pod in snapshot.placed:
        by_node.setdefault(pod.spec.node_name, []).append(pod)
    storage = Storage(
        {key_of(claim): claim for claim in snapshot.claims},
        {volume.metadata.name: volume for volume in snapshot.volumes},
        {item.metadata.name: item for item in snapshot.storage_classes},
    )
    cluster = Cluster(
        snapshot.nodes,
        by_node,
        claims_of=storage.claims_of,
        namespaces={item.metadata.name: item.metadata.labels for item in snapshot.namespaces},
        load_of=load_of,
    )
    bindings: list[Action] = []
    choices: list[Action] = []
    conditions: list[Action] = []
    held: list[Held] = []
    for pod in sorted(snapshot.pending, key=_turn):
        if pod.spec.scheduling_gates:
            conditions += _condition(pod, GATED, _GATED_MESSAGE, snapshot.now)
            held.append(_held(pod, causes.GATES, _GATED_MESSAGE))
            continue
        place = cluster.place(pod)
        if isinstance(place, Unschedulable):
            conditions += _condition(pod, UNSCHEDULABLE, place.message, snapshot.now)
            held.append(_held(pod, causes.UNSCHEDULABLE, place.message))
            continue
        cluster.assume(pod, place.node)
        if place.waiting:
            choices += _choose(pod, place, storage.claims)
            held.append(_held(pod, causes.CLAIMS, f"claims are being bound for node {place.node}"))
        else:
            reason = f"the best of {len(snapshot.nodes)} nodes"
            bindings.append(plans.bind(Target.of(PODS, pod), place.node, uid=pod.metadata.uid, reason=reason))
    phases = (
        single(_BIND, *bindings, on_error=OnError.CONTINUE),
        single(_CLAIMS, *choices, on_error=OnError.CONTINUE),
        single(_CONDITIONS, *conditions, on_error=OnError.CONTINUE),
    )
    return Plan(phases=tuple(phase for phase in phases if phase.chains), held=tuple(held))


def _turn(pod: Pod) -> tuple[int, datetime, str, str]:
    metadata = pod.metadata
    return (-(pod.spec.priority or 0), metadata.creation_timestamp or _BEGINNING, metadata.namespace, metadata.name)


def _held(pod: Pod, why: Meaning, message: str) -> Held:
    return Held(target=Target.of(PODS, pod), causes=(why.cause(message),))


def _choose(pod: Pod, place: Placement, claims: Mapping[Key, Claim]) -> list[Action]:
    """Tell the claims that wait for their first consumer where it will be."""
    actions = []
    for name in place.waiting:
        claim = claims[Key(pod.metadata.namespace, name)]
        if claim.metadata.annotations.get(SELECTED_NODE) != place.node:
            body = {"metadata": {"annotations": {SELECTED_NODE: place.node}}}
            target = Target.of(CLAIMS, claim)
            actions.append(plans.patch(target, body, uid=claim.metadata.uid, reason="its first consumer goes there"))
    return actions


def _condition(pod: Pod, reason: str, message: str, now: datetime) -> list[Action]:
    """The condition of a pod without a place, unless it says so already."""
    current = condition(pod, SCHEDULED)
    if current is not None and (current.status, current.reason, current.message) == ("False", reason, message):
        return []
    moment = now
    if current is not None and current.status == "False" and current.last_transition_time is not None:
        moment = current.last_transition_time
    body: dict[str, Any] = {
        "type": SCHEDULED,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(moment),
    }
    if pod.metadata.generation:
        body["observedGeneration"] = pod.metadata.generation
    return [
        plans.patch(
            Target.of(PODS, pod),
            {"status": {"conditions": [body]}},
            uid=pod.metadata.uid,
            reason=reason,
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )
    ]


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    notes: list[EventNote] = []
    for item in outcomes:
        action = item.action
        if item.result is not Result.DONE:
            continue
        if action.subresource == "binding":
            message = f"Successfully assigned {action.target.key} to {action.body['node']}"
            notes.append(EventNote(reason="Scheduled", message=message, target=action.target, uid=action.uid))
        elif action.subresource == "status" and action.reason == UNSCHEDULABLE:
            text = action.body["status"]["conditions"][0]["message"]
            notes.append(
                EventNote(
                    reason="FailedScheduling",
                    message=text if len(text) <= _MESSAGE_LIMIT else f"{text[: _MESSAGE_LIMIT - 4]} ...",
                    type=EventType.WARNING,
                    target=action.target,
                    uid=action.uid,
                )
            )
    return Conclusion(events=tuple(notes))
