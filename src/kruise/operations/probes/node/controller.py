"""How nodes, their NodePodProbes, pods and markers are watched, and what NodePodProbe brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.apps.definitions.probes import NODE_POD_PROBE
from kruise.api.apps.probes import NODE_POD_PROBES, POD_PROBE_MARKERS, NodePodProbe, PodProbeMarker, split_name
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.feature import Feature, Settings
from kruise.machinery.mapping import NODE
from kruise.machinery.spec import ControllerSpec, Source, Stores, View
from kruise.operations.probes.node.decide import Snapshot, conclude, decide, is_ready
from kruise.operations.probes.wanted import is_virtual
from kruise.operations.probes.watched import (
    OF_MARKER,
    OF_POD,
    WATCHED_MARKERS,
    WATCHED_PODS,
    WATCHED_PROBES,
    markers_of,
    node_keys_of,
    pods_of,
    probe_inputs,
)

NAME = "nodepodprobe-controller"
GATES = ("PodProbeMarkerGate", "KruiseDaemon")


def probes_keys(old: NodePodProbe | None, new: NodePodProbe | None, stores: Stores) -> Iterable[Key]:
    changed = new if new is not None else old
    return (Key("", changed.metadata.name),) if changed is not None else ()


def node_keys(old: Node | None, new: Node | None, stores: Stores) -> Iterable[Key]:
    """NPP-1: a node that is ready and has none, and one that goes. Heartbeats concern nobody."""
    changed = new if new is not None else old
    if changed is None:
        return ()
    name = changed.metadata.name
    has_one = stores.store(NODE_POD_PROBES).get("", name) is not None
    if new is None or new.metadata.deletion_timestamp is not None:
        return (Key("", name),) if has_one else ()
    return (Key("", name),) if not has_one and is_ready(new) and not is_virtual(new) else ()


def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    """A pod that no marker selects, and no node is probe_inputs of, costs a look into two indexes."""
    if old is not None and new is not None and probe_inputs(old) == probe_inputs(new):
        return ()
    seen = [pod for pod in (old, new) if pod is not None]
    if not any(markers_of(pod, stores) for pod in seen):
        uid = seen[0].metadata.uid
        return [Key("", one.metadata.name) for one in stores.store(NODE_POD_PROBES).by_index(OF_POD, uid)]
    return node_keys_of(seen)


def marker_keys(old: PodProbeMarker | None, new: PodProbeMarker | None, stores: Stores) -> Iterable[Key]:
    """The nodes of the pods that it selects, and those that are probe_inputs of it."""
    changed = new if new is not None else old
    if changed is None or (old is not None and new is not None and _wants(old) == _wants(new)):
        return ()
    full = f"{changed.metadata.namespace}/{changed.metadata.name}"
    known = stores.store(NODE_POD_PROBES).by_index(OF_MARKER, full)
    return dict.fromkeys((*(Key("", one.metadata.name) for one in known), *node_keys_of(pods_of(changed, stores))))


def _wants(marker: PodProbeMarker) -> tuple[object, ...]:
    return marker.spec, marker.metadata.uid, marker.metadata.deletion_timestamp is not None


def snapshot(view: View, key: Key) -> Snapshot | None:
    probes = view.store(NODE_POD_PROBES).get("", key.name)
    node = view.store(NODES).get("", key.name)
    if probes is None and node is None:
        return None
    pods, markers = _concerned(view, key.name, probes)
    return Snapshot(name=key.name, node=node, probes=probes, pods=pods, markers=markers, now=view.now)


def _concerned(
    view: View, name: str, probes: NodePodProbe | None
) -> tuple[tuple[Pod, ...], tuple[PodProbeMarker, ...]]:
    """The pods of the node that somebody probes, and whoever does. Others are not part of the decision."""
    store = view.store(PODS)
    known = {entry.uid for entry in probes.spec.pod_probes} if probes is not None else set()
    markers: dict[str, PodProbeMarker] = {}
    pods: list[Pod] = []
    for pod in store.by_index(NODE, name):
        selecting = markers_of(pod, view)
        if (selecting or pod.metadata.uid in known) and not store.is_terminating(pod):
            pods.append(pod)
            markers |= {marker.metadata.uid: marker for marker in selecting}
    for entry in probes.spec.pod_probes if probes is not None else ():
        for one in entry.probes:
            marker = view.store(POD_PROBE_MARKERS).get(entry.namespace, split_name(one.name)[0])
            if marker is not None:
                markers[marker.metadata.uid] = marker
    return tuple(pods), tuple(markers.values())


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    if not all(settings.gates.get(gate, True) for gate in GATES):
        return ()
    sources: tuple[Source[Any], ...] = (
        Source(WATCHED_PROBES, probes_keys),
        Source(NODES, node_keys),
        Source(WATCHED_PODS, pod_keys),
        Source(WATCHED_MARKERS, marker_keys),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=NODE_POD_PROBES,
            sources=sources,
            snapshot=snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            still_holds=lambda before, now: before.metadata.uid == now.metadata.uid,
            workers=settings.workers_of("nodepodprobe"),
        ),
    )


FEATURE = Feature(name="nodepodprobe", definitions=(NODE_POD_PROBE,), controllers=controllers)
