"""What a PersistentPodState needs, decided from a snapshot: itself, where annotations of a workload ask for it, and the
states of pods (PPS sections 5 and 6). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.apps.persistentpodstate import (
    PERSISTENT_POD_STATES,
    WHEN_DELETED,
    PersistentPodState,
    PersistentPodStateSpec,
    PersistentPodStateStatus,
    PodState,
)
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED
from kruise.api.apps.statefulset import StatefulSet
from kruise.api.meta import OwnerReference, controller_of
from kruise.api.native.apps import STATEFUL_SETS, Workload
from kruise.api.native.nodes import Node
from kruise.api.native.pod import PODS, Pod, condition, finds_no_node, is_active, is_ready
from kruise.api.resource import Resource, refers_to
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct
from kruise.machinery.plan import (
    Action,
    Conclusion,
    EventNote,
    EventType,
    Held,
    Outcomes,
    Plan,
    Result,
    Target,
    Wake,
    single,
)
from kruise.spread.persistentpodstate import causes, keys
from kruise.spread.persistentpodstate.situation import CustomWorkload
from kruise.spread.persistentpodstate.targets import is_supported
from kruise.workloads.shared.ordinals import ordinals, reserved_of

GENERATE = "generate"
_ORDINAL = re.compile(r".*-([0-9]{1,10})", re.ASCII | re.DOTALL)
_WEIGHT = 100
_ASKED_AGAIN = 60.0


AnyWorkload = Workload | StatefulSet | CustomWorkload


class Snapshot(Struct, kw_only=True):
    namespace: str
    name: str
    state: PersistentPodState | None = None
    native: Workload | None = None
    """The StatefulSet of that name."""
    advanced: StatefulSet | None = None
    """The advanced one."""
    native_target: Workload | None = None
    """What it remembers the pods of; or the next."""
    advanced_target: StatefulSet | None = None
    custom: CustomWorkload | None = None
    """One of a kind of others, of that name."""
    custom_target: CustomWorkload | None = None
    is_known: bool = True
    """False: the target is of a kind of others, and nobody has asked for it."""
    problem: str = ""
    """Why nobody could, in words."""
    pods: tuple[Pod, ...] = ()
    """Those of the target."""
    nodes: tuple[Node, ...] = ()
    """Those that pods are on."""

    @property
    def target(self) -> AnyWorkload | None:
        return next((one for one in (self.native_target, self.advanced_target, self.custom_target) if one), None)

    @property
    def named(self) -> Iterator[tuple[Resource[Any], AnyWorkload]]:
        """Workloads of that name, which may ask for it."""
        if self.native is not None:
            yield STATEFUL_SETS, self.native
        if self.advanced is not None:
            yield ADVANCED, self.advanced
        if self.custom is not None:
            yield self.custom.resource, self.custom


class Memo(Struct, kw_only=True):
    status: PersistentPodStateStatus | None = None


def decide(snapshot: Snapshot) -> Plan:
    generation = _generation(snapshot)
    status = None
    state = snapshot.state
    if state is not None and state.metadata.deletion_timestamp is None:
        status = PersistentPodStateStatus(
            observed_generation=state.metadata.generation, pod_states=_recorded(snapshot, state)
        )
    phases = (single(GENERATE, generation),) if generation is not None else ()
    return Plan(phases=phases, held=_held(snapshot), wakes=_asks_again(snapshot), memo=Memo(status=status))


def _held(snapshot: Snapshot) -> tuple[Held, ...]:
    """That the workload is not there, or that a place takes its pod no more. Where nobody has asked, nobody knows."""
    state = snapshot.state
    if state is None:
        return ()
    if snapshot.target is not None or not (snapshot.is_known or snapshot.problem):
        return tuple(_kept_out(snapshot, state))
    reference = state.spec.target_ref
    if snapshot.problem:
        cause = causes.NOTHING_TO_REMEMBER.cause(
            f"{reference.kind} {reference.name}: {snapshot.problem}",
            remedy="let the role of the manager get it, and see to the whitelist; or delete this PersistentPodState",
        )
    else:
        cause = causes.NOTHING_TO_REMEMBER.cause(
            f"there is no {reference.kind} {reference.name} ({reference.api_version}) in this namespace",
            remedy="create it, or correct spec.targetRef; or delete this PersistentPodState",
        )
    return (Held(target=Target.of(PERSISTENT_POD_STATES, state), causes=(cause,)),)


def _kept_out(snapshot: Snapshot, state: PersistentPodState) -> Iterator[Held]:
    """Pods that must come back to their place, and find no node there. What is only preferred keeps nobody out."""
    must = state.spec.required_persistent_topology
    for pod in snapshot.pods:
        known = state.status.pod_states.get(pod.metadata.name)
        words = words_of_waiting(pod)
        if (
            must is None
            or known is None
            or not words
            or pod.metadata.annotations.get(keys.INJECTED) != state.metadata.name
        ):
            continue
        labels = {key: known.node_topology_labels[key] for key in must.keys if key in known.node_topology_labels}
        if not labels:
            continue
        place = ", ".join(f"{key}={value}" for key, value in labels.items())
        cause = causes.REMEMBERED_PLACE.cause(
            f"pod {pod.metadata.name} has to come back to {place} (it was on node {known.node_name}), and no node"
            f" takes it: {words}",
            details={"pod": pod.metadata.name, "node": known.node_name},
            remedy=(
                f"let the node take pods again (kubectl uncordon {known.node_name}), or make room there; or let it go "
                f"elsewhere: name the keys in spec.preferredPersistentTopology instead, and delete pod "
                f"{pod.metadata.name}"
            ),
        )
        yield Held(target=Target.of(PODS, pod), causes=(cause,))


def words_of_waiting(pod: Pod) -> str:
    """What the scheduler says of a pod that was given its place and finds no node; empty: it does not wait for one."""
    if keys.INJECTED not in pod.metadata.annotations or pod.spec.node_name or not is_active(pod):
        return ""
    scheduled = condition(pod, "PodScheduled")
    if scheduled is None or not finds_no_node(pod):
        return ""
    return scheduled.message or "it does not say why"


def _asks_again(snapshot: Snapshot) -> tuple[Wake, ...]:
    """Nobody tells of workloads that are not watched."""
    state = snapshot.state
    if state is None or is_supported(state.spec.target_ref.group, state.spec.target_ref.kind):
        return ()
    return (Wake(after=_ASKED_AGAIN, reason=f"how {state.spec.target_ref.kind} {state.spec.target_ref.name} is"),)


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    state, status = snapshot.state, plan.memo_as(Memo).status
    write: Action | None = None
    if state is not None and status is not None and status != state.status:
        document = {"observedGeneration": 0, **codec.to_builtins(status)}
        target = Target.of(PERSISTENT_POD_STATES, state)
        write = plans.status_patch(target, document, uid=state.metadata.uid, reason="pods were recorded")
    return Conclusion(status=write, events=tuple(_events(snapshot, outcomes)))


def _events(snapshot: Snapshot, outcomes: Outcomes) -> list[EventNote]:
    """On the workload that asked for it: nobody else would hear of a refusal."""
    resource, workload = next(snapshot.named, (None, None))
    if resource is None or workload is None:
        return []
    return [
        EventNote(
            type=EventType.WARNING,
            reason="FailedGeneratePersistentPodState",
            message=outcome.message,
            target=Target.of(resource, workload),
            uid=workload.metadata.uid,
        )
        for outcome in outcomes.within(GENERATE)
        if outcome.result is Result.FAILED
    ]


# Made for annotations


def asks(annotations: Mapping[str, str]) -> str:
    """What annotations of a workload ask for, in one text; empty: for nothing. Which annotations of pods are recorded
    is no part of it: another choice alone must not undo what users changed in the object (PPS-12)."""
    if annotations.get(keys.AUTO) != "true":
        return ""
    wanted = {key: annotations[key] for key in (keys.REQUIRED, keys.PREFERRED) if annotations.get(key)}
    return codec.canonical(wanted).decode() if wanted else ""


def _generation(snapshot: Snapshot) -> Action | None:
    """PPS-12, PPS-13: by what was asked for when it was made, so that what users change in it stays."""
    state = snapshot.state
    if state is not None and state.metadata.deletion_timestamp is not None:
        return None
    for resource, workload in snapshot.named:
        if workload.metadata.deletion_timestamp is not None:
            continue
        wanted = asks(workload.metadata.annotations)
        if not wanted:
            continue
        spec = _generated(workload, resource)
        if state is None:
            return _create(snapshot, workload, spec, wanted)
        if state.metadata.annotations.get(keys.GENERATED_FROM) == wanted:
            return None
        body: dict[str, Any] = {
            "metadata": {"annotations": {keys.GENERATED_FROM: wanted}},
            "spec": {**dict.fromkeys(_FIELDS), **spec},
        }
        target = Target.of(PERSISTENT_POD_STATES, state)
        return plans.patch(target, body, uid=state.metadata.uid, reason="the annotations of its workload changed")
    return _deletion(snapshot)


_FIELDS = (
    "requiredPersistentTopology",
    "preferredPersistentTopology",
    "persistentPodAnnotations",
    "persistentPodStateRetentionPolicy",
)


def _deletion(snapshot: Snapshot) -> Action | None:
    """Of one that was made for annotations that are gone; both topologies empty leave it as it is."""
    state = snapshot.state
    if state is None or keys.GENERATED_FROM not in state.metadata.annotations:
        return None
    reference = state.spec.target_ref
    owner = controller_of(state) or OwnerReference(api_version=reference.api_version, kind=reference.kind)
    # One that users have made has no owner, and says itself whose pods it remembers.
    workload = next((one for resource, one in snapshot.named if refers_to(owner, resource)), None)
    if workload is None or workload.metadata.annotations.get(keys.AUTO) == "true":
        return None  # with its workload the garbage collector takes it
    target = Target.of(PERSISTENT_POD_STATES, state)
    return plans.delete(target, uid=state.metadata.uid, reason="its workload does not ask for it any more")


def _generated(workload: AnyWorkload, resource: Resource[Any]) -> dict[str, Any]:
    """PPS-14."""
    annotations = workload.metadata.annotations
    spec: dict[str, Any] = {
        "targetRef": {"apiVersion": resource.api_version, "kind": resource.kind, "name": workload.metadata.name}
    }
    if must := annotations.get(keys.REQUIRED):
        spec["requiredPersistentTopology"] = {"keys": must.split(",")}
    if should := annotations.get(keys.PREFERRED):
        spec["preferredPersistentTopology"] = [{"weight": _WEIGHT, "preference": {"keys": should.split(",")}}]
    if kept := annotations.get(keys.ANNOTATIONS):
        spec["persistentPodAnnotations"] = [{"key": key} for key in kept.split(",")]
    return spec


def _create(snapshot: Snapshot, workload: AnyWorkload, spec: dict[str, Any], wanted: str) -> Action:
    owner = {**spec["targetRef"], "uid": workload.metadata.uid, "controller": True}
    body = {
        "apiVersion": PERSISTENT_POD_STATES.api_version,
        "kind": PERSISTENT_POD_STATES.kind,
        "metadata": {
            "name": snapshot.name,
            "namespace": snapshot.namespace,
            "annotations": {keys.GENERATED_FROM: wanted},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }
    reason = "annotations of its workload ask for it"
    return plans.create(PERSISTENT_POD_STATES, body, reason=reason, owner_uid=workload.metadata.uid)


# Recording


def keys_of(spec: PersistentPodStateSpec) -> frozenset[str]:
    """The labels that are remembered (PPS-19)."""
    found = set(spec.required_persistent_topology.keys if spec.required_persistent_topology is not None else ())
    for term in spec.preferred_persistent_topology:
        found.update(term.preference.keys)
    return frozenset(found)


def _recorded(snapshot: Snapshot, state: PersistentPodState) -> dict[str, PodState]:
    """PPS-17 to PPS-25."""
    workload = snapshot.target
    if not snapshot.is_known:
        return _ready_ones(snapshot, state, dict(state.status.pod_states))
    if workload is None or workload.metadata.deletion_timestamp is not None:
        return {}
    replicas = _replicas(workload)
    states = dict(state.status.pod_states)
    active = {pod.metadata.name for pod in snapshot.pods if is_active(pod)}
    if replicas:
        states = _ready_ones(snapshot, state, states)
    if state.spec.persistent_pod_state_retention_policy == WHEN_DELETED:
        return states
    wanted = frozenset(_ordinals(workload, replicas))
    return {
        name: known
        for name, known in states.items()
        if (ordinal := _ordinal(name)) is None or ordinal in wanted or name in active
    }


def _ready_ones(snapshot: Snapshot, state: PersistentPodState, states: dict[str, PodState]) -> dict[str, PodState]:
    """With the places of pods that are ready (PPS-20 to PPS-22)."""
    wanted, kept = keys_of(state.spec), [one.key for one in state.spec.persistent_pod_annotations]
    nodes = {node.metadata.name: node for node in snapshot.nodes}
    for pod in snapshot.pods:
        if not is_active(pod) or not is_ready(pod) or not pod.spec.node_name:
            continue
        annotations = {key: pod.metadata.annotations[key] for key in kept if key in pod.metadata.annotations}
        known = states.get(pod.metadata.name)
        is_there = known is not None and known.node_name == pod.spec.node_name
        if known is not None and is_there and known.node_topology_labels.keys() == wanted:
            labels = known.node_topology_labels
        else:
            node = nodes.get(pod.spec.node_name)
            if node is None:
                continue  # it is looked at when the node is there
            labels = {key: node.metadata.labels[key] for key in sorted(wanted) if key in node.metadata.labels}
        states[pod.metadata.name] = PodState(
            node_name=pod.spec.node_name, node_topology_labels=dict(labels), annotations=annotations
        )
    return states


def _replicas(workload: AnyWorkload) -> int:
    if isinstance(workload, CustomWorkload):
        return workload.replicas
    return 1 if workload.spec.replicas is None else max(workload.spec.replicas, 0)


def _ordinals(workload: AnyWorkload, replicas: int) -> tuple[int, ...]:
    """PPS-23, with the first number that the workload begins with."""
    if isinstance(workload, CustomWorkload):
        return ordinals(replicas, 0, ())
    given = getattr(workload.spec, "ordinals", None)
    start = given.start if given is not None else 0
    reserved = getattr(workload.spec, "reserve_ordinals", ())
    return ordinals(replicas, max(start, 0), reserved_of(reserved))


def _ordinal(name: str) -> int | None:
    found = _ORDINAL.fullmatch(name)
    return int(found[1]) if found is not None else None
