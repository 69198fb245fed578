"""What markers want of pods: who is probed, and with which probes (PPM-22, PPM-25). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kruise.api.apps.probes import (
    SEPARATOR,
    VIRTUAL_LABEL,
    ContainerProbe,
    PodContainerProbe,
    PodProbe,
    PodProbeMarker,
    Probe,
    split_name,
)
from kruise.api.meta import Object
from kruise.api.native.pod import Pod, condition, is_active
from kruise.machinery.codec import evolve
from kruise.machinery.selector_index import Selects
from kruise.machinery.selectors import NOTHING, SelectorError, from_label_selector

MARKERS_OF_PODS = "podprobemarkers"
"""Index of the markers by what they select."""


def selects(marker: PodProbeMarker) -> tuple[Selects, ...]:
    """An empty selector selects nothing (PPM-21)."""
    try:
        selector = from_label_selector(marker.spec.selector)
    except SelectorError:
        return ()
    return (Selects(NOTHING if selector.is_empty else selector, marker.metadata.namespace),)


def is_probed(pod: Pod) -> bool:
    """Whether the pod can be probed by now: bound, initialized, neither ended nor going."""
    ready = condition(pod, "Initialized")
    return bool(pod.spec.node_name) and is_active(pod) and ready is not None and ready.status == "True"


def is_virtual(node: Object) -> bool:
    key, value = VIRTUAL_LABEL
    return node.metadata.labels.get(key) == value


def full_name(marker: PodProbeMarker, probe: PodContainerProbe) -> str:
    return f"{marker.metadata.name}{SEPARATOR}{probe.name}"


def entry_of(pod: Pod, markers: Iterable[PodProbeMarker], kept: Iterable[ContainerProbe] = ()) -> PodProbe | None:
    """The pod with all that markers want of it; `kept` are probes of somebody else. None: nothing."""
    found = {one.name: one for one in kept}
    for marker in markers:
        found |= {one.name: one for one in probes_of(marker, pod)}
    if not found:
        return None
    return PodProbe(
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        uid=pod.metadata.uid,
        ip=pod.status.pod_ip,
        probes=tuple(found.values()),
    )


def probes_of(marker: PodProbeMarker, pod: Pod) -> Iterator[ContainerProbe]:
    """Those that can be run in the pod: one whose port has a name that the container does not know is left out."""
    for one in marker.spec.probes:
        probe = with_port_number(one, pod)
        if probe is not None:
            yield ContainerProbe(name=full_name(marker, one), container_name=one.container_name, probe=probe)


def with_port_number(wanted: PodContainerProbe, pod: Pod) -> Probe | None:
    probe = wanted.probe
    action = probe.http_get or probe.tcp_socket
    if action is None or isinstance(action.port, int):
        return probe
    number = _port(pod, wanted.container_name, action.port)
    if number is None:
        return None
    if probe.http_get is not None:
        return evolve(probe, http_get=evolve(probe.http_get, port=number))
    assert probe.tcp_socket is not None
    return evolve(probe, tcp_socket=evolve(probe.tcp_socket, port=number))


def _port(pod: Pod, container: str, name: str) -> int | None:
    for one in pod.spec.containers:
        if one.name == container:
            found = next((port.container_port for port in one.ports if port.name == name), None)
            return found if found is not None else _number(name)
    return None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def in_order(markers: Iterable[PodProbeMarker]) -> list[PodProbeMarker]:
    """Those that are not going, by name."""
    living = (marker for marker in markers if marker.metadata.deletion_timestamp is None)
    return sorted(living, key=lambda marker: marker.metadata.name)


def probe_of(name: str, namespace: str, markers: Mapping[tuple[str, str], PodProbeMarker]) -> PodContainerProbe | None:
    """The probe that a result, or an entry of a node, is about (NPP-10); None: nobody wants it any more."""
    marker_name, probe = split_name(name)
    marker = markers.get((namespace, marker_name))
    if marker is None or marker.metadata.deletion_timestamp is not None:
        return None
    return next((one for one in marker.spec.probes if one.name == probe), None)


def by_name(markers: Iterable[PodProbeMarker]) -> Mapping[tuple[str, str], PodProbeMarker]:
    return {(marker.metadata.namespace, marker.metadata.name): marker for marker in markers}
