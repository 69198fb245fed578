"""What both controllers of probes watch, and whom a change concerns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kruise.api.apps.probes import (
    NODE_POD_PROBES,
    POD_PROBE_MARKERS,
    NodePodProbe,
    PodProbeMarker,
    split_name,
)
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.mapping import NODE_INDEX
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import Stores
from kruise.machinery.watched import Watched
from kruise.operations.probes.wanted import MARKERS_OF_PODS, is_probed, is_virtual, selects

OF_MARKER = "podprobemarker"
"""Index of the NodePodProbes by the markers that they have probes of."""
OF_POD = "podprobe-pod"
"""Index of the NodePodProbes by the uids of pods."""


def _markers_in(probes: NodePodProbe) -> Iterator[str]:
    for entry in probes.spec.pod_probes:
        for one in entry.probes:
            marker, _ = split_name(one.name)
            if marker:
                yield f"{entry.namespace}/{marker}"


def _by_marker(probes: NodePodProbe) -> Iterable[str]:
    return dict.fromkeys(_markers_in(probes))


def _by_pod(probes: NodePodProbe) -> Iterable[str]:
    return dict.fromkeys(entry.uid for entry in probes.spec.pod_probes)


WATCHED_MARKERS = Watched(POD_PROBE_MARKERS, selectors={MARKERS_OF_PODS: selects})
WATCHED_PODS = Watched(PODS, indexes=NODE_INDEX)
WATCHED_PROBES = Watched(NODE_POD_PROBES, indexes={OF_MARKER: _by_marker, OF_POD: _by_pod})


def markers_of(pod: Pod, stores: Stores) -> tuple[PodProbeMarker, ...]:
    """Those that select the pod. One that nobody selects costs a look into an index."""
    store = stores.store(POD_PROBE_MARKERS)
    return store.selecting(MARKERS_OF_PODS, pod.metadata.labels, pod.metadata.namespace)


def pods_of(marker: PodProbeMarker, stores: Stores) -> Iterator[Pod]:
    try:
        selector = from_label_selector(marker.spec.selector)
    except SelectorError:
        return
    if selector.is_empty:
        return
    for pod in stores.store(PODS).list(marker.metadata.namespace):
        if selector.matches(pod.metadata.labels):
            yield pod


def is_on_virtual_node(pod: Pod, stores: Stores) -> bool:
    node = stores.store(NODES).get("", pod.spec.node_name)
    return node is not None and is_virtual(node)


def node_of(pod: Pod, stores: Stores) -> Node | None:
    return stores.store(NODES).get("", pod.spec.node_name) if pod.spec.node_name else None


def probe_inputs(pod: Pod) -> tuple[object, ...]:
    """All of a pod that probes depend on, but for what they write themselves."""
    return is_probed(pod), pod.status.pod_ip, pod.metadata.labels, pod.spec.node_name


def node_keys_of(pods: Iterable[Pod]) -> Iterable[Key]:
    return dict.fromkeys(Key("", pod.spec.node_name) for pod in pods if pod.spec.node_name)
