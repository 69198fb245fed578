"""What the NodePodProbe of a node needs, and what its results do to pods (NPP section 3). Pure.

One place decides what the daemon of a node is told: whatever changes, a pod, a marker or the node, the whole of it is
worked out anew, and written once if it differs. So nothing of a pod or a marker that is gone can stay behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kruise.api.apps.probes import (
    NODE_POD_PROBES,
    ContainerProbe,
    NodePodProbe,
    PodProbe,
    PodProbeMarker,
    split_name,
)
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct, to_builtins
from kruise.machinery.plan import Conclusion, Held, OnError, Outcomes, Phase, Plan, Result, Target, single
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.wording import listed
from kruise.operations.probes.node import causes
from kruise.operations.probes.node.marks import marking
from kruise.operations.probes.wanted import by_name, entry_of, in_order, is_probed, is_virtual

SPEC = "spec"
MARKS = "marks"


class Snapshot(Struct):
    name: str
    node: Node | None
    """None: it is gone."""
    probes: NodePodProbe | None
    pods: tuple[Pod, ...]
    """Of the node: those that markers select, and those that are in the object."""
    markers: tuple[PodProbeMarker, ...]
    """Those that select one of them, or are named in the object."""
    now: datetime


def decide(snapshot: Snapshot) -> Plan:
    probes, node = snapshot.probes, snapshot.node
    if node is None or node.metadata.deletion_timestamp is not None:
        return _removed(probes) if probes is not None else Plan()
    if probes is None:
        return Plan() if is_virtual(node) or not is_ready(node) else _created(snapshot.name)
    if probes.metadata.deletion_timestamp is not None:
        return Plan()
    wanted = entries(snapshot)
    phases = []
    if wanted != probes.spec.pod_probes:
        phases.append(single(SPEC, _write(probes, wanted), on_error=OnError.CONTINUE))
    marks = _marks(snapshot, probes)
    if marks.chains:
        phases.append(marks)
    return Plan(phases=tuple(phases), held=_held(snapshot, probes, is_told=wanted == probes.spec.pod_probes))


def _held(snapshot: Snapshot, probes: NodePodProbe, *, is_told: bool) -> tuple[Held, ...]:
    """What the node has not answered."""
    target = Target.of(NODE_POD_PROBES, probes)
    if not is_told:
        return (Held(target=target, causes=(causes.NOT_TOLD.cause("the node is about to be told of other probes"),)),)
    known = {(found.uid, state.name) for found in probes.status.pod_probe_statuses for state in found.probe_states}
    silent = {
        f"{entry.namespace}/{entry.name}": [one.name for one in entry.probes if (entry.uid, one.name) not in known]
        for entry in probes.spec.pod_probes
    }
    waiting = [f"{pod} ({', '.join(names)})" for pod, names in silent.items() if names]
    if not waiting:
        return ()
    words = f"the daemon of node {snapshot.name} has reported nothing of {listed(waiting)}"
    cause = causes.SILENT.cause(words, details={"pods": waiting}, remedy=causes.remedy(snapshot.name))
    return (Held(target=target, causes=(cause,)),)


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    failed = next((outcome for outcome in outcomes if outcome.result is Result.FAILED), None)
    return Conclusion(retry=failed.message if failed is not None else "")


def is_ready(node: Node) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)


def entries(snapshot: Snapshot) -> tuple[PodProbe, ...]:
    """All that is to be probed on the node. Pods keep their places, new ones come last by age."""
    probes, markers = snapshot.probes, in_order(snapshot.markers)
    known: Mapping[str, PodProbe] = {one.uid: one for one in probes.spec.pod_probes} if probes is not None else {}
    places = {uid: place for place, uid in enumerate(known)}
    pods = [pod for pod in snapshot.pods if is_probed(pod) and pod.spec.node_name == snapshot.name]
    pods.sort(key=lambda pod: (places.get(pod.metadata.uid, len(places)), _age(pod)))
    found = []
    for pod in pods:
        before = known.get(pod.metadata.uid)
        of_others = _of_nobody_here(before) if before is not None else ()
        entry = entry_of(pod, (marker for marker in markers if _selects(marker, pod)), of_others)
        if entry is not None:
            found.append(_in_place(entry, before))
    return tuple(found)


def _of_nobody_here(entry: PodProbe) -> tuple[ContainerProbe, ...]:
    """Probes that no marker can have put there: somebody else's, which stay as long as the pod lives."""
    return tuple(one for one in entry.probes if not split_name(one.name)[0])


def _in_place(entry: PodProbe, before: PodProbe | None) -> PodProbe:
    """With the probes in the order that they have already: an order that changes would be a write for nothing."""
    if before is None:
        return entry
    places = {one.name: place for place, one in enumerate(before.probes)}
    ordered = sorted(entry.probes, key=lambda one: places.get(one.name, len(places)))
    return PodProbe(
        name=entry.name,
        namespace=entry.namespace,
        uid=entry.uid,
        ip=entry.ip or before.ip,
        probes=tuple(ordered),
    )


def _selects(marker: PodProbeMarker, pod: Pod) -> bool:
    if marker.metadata.namespace != pod.metadata.namespace:
        return False
    try:
        selector = from_label_selector(marker.spec.selector)
    except SelectorError:
        return False
    return not selector.is_empty and selector.matches(pod.metadata.labels)


def _age(pod: Pod) -> tuple[float, str, str]:
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0, pod.metadata.namespace, pod.metadata.name


def _marks(snapshot: Snapshot, probes: NodePodProbe) -> Phase:
    """Results count for the very pod that they are about (NPP-4)."""
    pods = {pod.metadata.uid: pod for pod in snapshot.pods if is_probed(pod)}
    told = {entry.uid for entry in probes.spec.pod_probes}
    markers = by_name(snapshot.markers)
    chains = []
    for found in probes.status.pod_probe_statuses:
        pod = pods.get(found.uid)
        if pod is None or found.uid not in told:
            continue
        action = marking(pod, found.probe_states, markers)
        if action is not None:
            chains.append((action,))
    return Phase(name=MARKS, chains=tuple(chains), on_error=OnError.CONTINUE, alongside=True)


# Writes


def _created(name: str) -> Plan:
    body = {
        "apiVersion": NODE_POD_PROBES.api_version,
        "kind": NODE_POD_PROBES.kind,
        "metadata": {"name": name},
        "spec": {},
    }
    return Plan(phases=(single("create", plans.create(NODE_POD_PROBES, body, reason="its node is ready")),))


def _removed(probes: NodePodProbe) -> Plan:
    if probes.metadata.deletion_timestamp is not None:
        return Plan()
    target = Target.of(NODE_POD_PROBES, probes)
    return Plan(phases=(single("remove", plans.delete(target, uid=probes.metadata.uid, reason="its node is gone")),))


def _write(probes: NodePodProbe, wanted: tuple[PodProbe, ...]) -> plans.Action:
    document = [{"IP": "", **to_builtins(entry)} for entry in wanted]
    return plans.patch(
        Target.of(NODE_POD_PROBES, probes),
        {"spec": {"podProbes": document or None}},
        uid=probes.metadata.uid,
        resource_version=probes.metadata.resource_version,
        reason="what is to be probed on the node",
    )
