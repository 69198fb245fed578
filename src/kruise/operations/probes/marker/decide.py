"""What a PodProbeMarker needs: finalizer, status, marks of pods on virtual nodes; and who waits for a result
(PPM section 2.5, SLS-4). What nodes are told is decided node by node (`kruise.operations.probes.node`). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from kruise.api.apps.probes import (
    FAILED,
    FINALIZER,
    POD_PROBE_MARKERS,
    SUCCEEDED,
    UNKNOWN,
    ContainerProbeState,
    NodePodProbe,
    PodContainerProbe,
    PodProbe,
    PodProbeMarker,
    PodProbeMarkerStatus,
    split_name,
)
from kruise.api.native.pod import PODS, Pod, condition, is_active
from kruise.machinery import plan as plans
from kruise.machinery.causes import Cause
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct
from kruise.machinery.plan import (
    Action,
    Conclusion,
    Held,
    OnError,
    Outcomes,
    Phase,
    Plan,
    Result,
    StatusEffect,
    Target,
    single,
)
from kruise.operations.probes.marker import causes
from kruise.operations.probes.node.causes import remedy as daemon_remedy
from kruise.operations.probes.wanted import by_name, is_probed, probe_of, probes_of, with_port_number


class Snapshot(Struct):
    marker: PodProbeMarker
    pods: tuple[Pod, ...]
    """Those that it selects."""
    virtual: tuple[str, ...]
    """Names of those on virtual nodes."""
    probes: tuple[NodePodProbe, ...]
    """Of the nodes of its pods, and those that have probes of it."""
    now: datetime
    rivals: tuple[PodProbeMarker, ...] = ()
    """Others of its namespace that write one of its conditions."""
    marks_virtual: bool = False
    """The gate EnablePodProbeMarkerOnServerless."""


class Memo(Struct):
    status: PodProbeMarkerStatus


def decide(snapshot: Snapshot) -> Plan:
    marker = snapshot.marker
    if marker.metadata.deletion_timestamp is not None:
        return _going(snapshot)
    probed = [pod for pod in snapshot.pods if is_probed(pod)]
    first = () if FINALIZER in marker.metadata.finalizers else (single("finalizer", _hold_on(marker)),)
    marks = _virtual_marks(snapshot, probed)
    entries = _entries(snapshot)
    waiting = tuple(_waiting(snapshot, entries))
    is_told = not any(held.causes[0].meaning == causes.NODE_NOT_TOLD for held in waiting)
    before = marker.status.observed_generation
    status = PodProbeMarkerStatus(
        observed_generation=marker.metadata.generation if is_told and not _stale(snapshot) else before,
        matched_pods=len(probed),
    )
    return Plan(
        phases=(*first, *((marks,) if marks.chains else ())),
        held=waiting or _nothing(snapshot),
        memo=Memo(status=status),
    )


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    failed = next((outcome for outcome in outcomes if outcome.result is Result.FAILED), None)
    retry = failed.message if failed is not None else ""
    if plan.memo is None:
        return Conclusion(retry=retry)
    marker, status = snapshot.marker, plan.memo_as(Memo).status
    if status == marker.status:
        return Conclusion(retry=retry)
    document = {"observedGeneration": status.observed_generation}
    if status.matched_pods:
        document["matchedPods"] = status.matched_pods
    write = plans.status_patch(
        Target.of(POD_PROBE_MARKERS, marker), document, uid=marker.metadata.uid, reason="the status changed"
    )
    return Conclusion(status=write, retry=retry, effect=StatusEffect.INFORMS)


# The end


def _going(snapshot: Snapshot) -> Plan:
    """The finalizer stays until no node is told of the marker any more (PPM-23). Marks on pods stay."""
    marker = snapshot.marker
    if FINALIZER not in marker.metadata.finalizers or _stale(snapshot):
        return Plan()  # a node that forgets it brings us back
    kept = [name for name in marker.metadata.finalizers if name != FINALIZER]
    return Plan(phases=(single("finalizer", _finalizers(marker, kept, "no node knows it any more")),))


def _stale(snapshot: Snapshot) -> bool:
    """Whether a node has a probe of the marker that it should not have."""
    marker = snapshot.marker
    is_going = marker.metadata.deletion_timestamp is not None
    wanted = set() if is_going else {one.name for one in marker.spec.probes}
    for entry in _own_entries(snapshot):
        for one in entry.probes:
            name, probe = split_name(one.name)
            if name == marker.metadata.name and probe not in wanted:
                return True
    return False


def _own_entries(snapshot: Snapshot) -> Iterator[PodProbe]:
    namespace = snapshot.marker.metadata.namespace
    for probes in snapshot.probes:
        yield from (entry for entry in probes.spec.pod_probes if entry.namespace == namespace)


# Who waits


def _entries(snapshot: Snapshot) -> Mapping[str, PodProbe]:
    return {entry.uid: entry for entry in _own_entries(snapshot)}


def _waiting(snapshot: Snapshot, entries: Mapping[str, PodProbe]) -> Iterator[Held]:
    states = {
        (found.uid, state.name): state
        for probes in snapshot.probes
        for found in probes.status.pod_probe_statuses
        for state in found.probe_states
    }
    nodes = {probes.metadata.name for probes in snapshot.probes}
    for pod in snapshot.pods:
        if pod.metadata.name in snapshot.virtual or not is_active(pod):
            continue
        entry = entries.get(pod.metadata.uid)
        cause = _cause(snapshot.marker, pod, nodes, entry, states)
        if cause is None and entry is not None and snapshot.rivals:
            cause = _taken(snapshot, entry, states)
        if cause is not None:
            yield Held(target=Target.of(PODS, pod), causes=(cause,))


def _taken(snapshot: Snapshot, entry: PodProbe, states: Mapping[tuple[str, str], ContainerProbeState]) -> Cause | None:
    """Who comes first among the probes of the pod has the condition (NPP-11); the others show nothing."""
    marker = snapshot.marker
    markers = by_name((marker, *snapshot.rivals))
    holders: dict[str, str] = {}
    for one in entry.probes:
        probe = probe_of(one.name, entry.namespace, markers)
        if probe is None or not probe.pod_condition_type or (entry.uid, one.name) not in states:
            continue
        name, _ = split_name(one.name)
        kind = probe.pod_condition_type
        holder = holders.setdefault(kind, name)
        if name == marker.metadata.name != holder:
            words = f"condition {kind} tells what podprobemarker {holder} finds, not what probe {probe.name} does"
            remedy = "give one of them another podConditionType, or let them select other pods"
            return causes.CONDITION_TAKEN.cause(words, details={"marker": holder}, remedy=remedy)
    return None


def _cause(
    marker: PodProbeMarker,
    pod: Pod,
    nodes: set[str],
    entry: PodProbe | None,
    states: Mapping[tuple[str, str], ContainerProbeState],
) -> Cause | None:
    node = pod.spec.node_name
    if not is_probed(pod):
        return causes.NOT_INITIALIZED.cause("it is not initialized yet" if node else "it has no node yet")
    if node not in nodes:
        remedy = f"see whether node {node} is ready: kubectl get node {node}; the manager makes it then"
        return causes.NO_NODE_PROBE.cause(f"there is no NodePodProbe {node} yet", remedy=remedy)
    wanted = tuple(probes_of(marker, pod))
    known = {one.name: one for one in entry.probes} if entry is not None else {}
    if any(known.get(one.name) != one for one in wanted):
        return causes.NODE_NOT_TOLD.cause(f"node {node} is about to be told")
    if (cause := _misfit(marker, pod)) is not None:
        return cause
    silent = [one.name for one in wanted if (pod.metadata.uid, one.name) not in states]
    if silent:
        names = ", ".join(split_name(name)[1] for name in silent)
        words = f"the daemon of node {node} has reported nothing of probe {names}"
        return causes.NO_RESULT.cause(words, details={"node": node}, remedy=daemon_remedy(node))
    for one in wanted:
        state = states[pod.metadata.uid, one.name]
        if why_unknown(state):
            words = f"probe {split_name(one.name)[1]} of container {one.container_name}: {state.message}"
            remedy = "name a command that the image has, or ask the container by httpGet or tcpSocket"
            return causes.CANNOT_RUN.cause(words, remedy=remedy)
    return None


def why_unknown(state: ContainerProbeState) -> str:
    """Why there is no result; empty: there is one, or it is about to come."""
    return state.message if state.state == UNKNOWN else ""


def _misfit(marker: PodProbeMarker, pod: Pod) -> Cause | None:
    names = {one.name for one in (*pod.spec.containers, *pod.spec.init_containers)}
    for probe in marker.spec.probes:
        if probe.container_name not in names:
            words = f"probe {probe.name} is for container {probe.container_name}, and the pod has none"
            remedy = "name one of its containers in spec.probes[].containerName, or select other pods"
            return causes.NO_SUCH_CONTAINER.cause(words, remedy=remedy)
        if with_port_number(probe, pod) is None:
            words = f"container {probe.container_name} has no port of the name that probe {probe.name} asks for"
            remedy = "write the number of the port, or give the container's port this name"
            return causes.NO_SUCH_PORT.cause(words, remedy=remedy)
    return None


def _nothing(snapshot: Snapshot) -> tuple[Held, ...]:
    marker = snapshot.marker
    if any(is_active(pod) for pod in snapshot.pods):
        return ()
    flags = f" -n {marker.metadata.namespace}" if marker.metadata.namespace not in ("", "default") else ""
    remedy = f"compare spec.selector with the labels of pods: kubectl get pods --show-labels{flags}"
    cause = causes.NOTHING_TO_PROBE.cause("no running pod of the namespace matches spec.selector", remedy=remedy)
    return (Held(target=Target.of(POD_PROBE_MARKERS, marker), causes=(cause,)),)


# Pods on virtual nodes


def _virtual_marks(snapshot: Snapshot, pods: list[Pod]) -> Phase:
    """SLS-4: whoever provides the node writes the condition, and its status chooses the marks. Nothing is removed."""
    chains = []
    if snapshot.marks_virtual:
        for pod in pods:
            if pod.metadata.name in snapshot.virtual and (action := _marked(snapshot.marker, pod)) is not None:
                chains.append((action,))
    return Phase(name="marks", chains=tuple(chains), on_error=OnError.CONTINUE)


def _marked(marker: PodProbeMarker, pod: Pod) -> Action | None:
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    for probe in marker.spec.probes:
        state = _shown_state(probe, pod)
        for policy in probe.marker_policy if state else ():
            if policy.state == state:
                labels |= policy.labels
                annotations |= policy.annotations
    edits = {
        "labels": {key: value for key, value in labels.items() if pod.metadata.labels.get(key) != value},
        "annotations": {key: value for key, value in annotations.items() if pod.metadata.annotations.get(key) != value},
    }
    edits = {part: values for part, values in edits.items() if values}
    if not edits:
        return None
    return plans.patch(
        Target.of(PODS, pod),
        {"metadata": edits},
        uid=pod.metadata.uid,
        reason="the result of a probe",
        patch_type=PatchType.STRATEGIC,
    )


def _shown_state(probe: PodContainerProbe, pod: Pod) -> str:
    if not probe.pod_condition_type:
        return ""
    found = condition(pod, probe.pod_condition_type)
    return {"True": SUCCEEDED, "False": FAILED}.get(found.status, "") if found is not None else ""


# Finalizer


def _hold_on(marker: PodProbeMarker) -> Action:
    names = [*marker.metadata.finalizers, FINALIZER]
    return _finalizers(marker, names, "nodes have to forget it before it goes")


def _finalizers(marker: PodProbeMarker, names: list[str], reason: str) -> Action:
    return plans.patch(
        Target.of(POD_PROBE_MARKERS, marker),
        {"metadata": {"finalizers": names or None}},
        uid=marker.metadata.uid,
        resource_version=marker.metadata.resource_version,
        reason=reason,
    )
