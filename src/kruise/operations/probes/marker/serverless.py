"""Probes written into new pods, for nodes that have no daemon (SLS-2, PW-28 to PW-30). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Change
from kruise.api.apps.probes import (
    MARKERS_ANNOTATION,
    POD_PROBE_MARKERS,
    PROBES_ANNOTATION,
    PodContainerProbe,
    PodProbeMarker,
)
from kruise.machinery.codec import encode, to_builtins
from kruise.operations.probes.wanted import MARKERS_OF_PODS, in_order


def write_probes(pod: dict[str, Any], context: StepContext) -> Change | None:
    """The pod with the probes of its markers in an annotation. The node is not known yet, so every pod gets them."""
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict):
        return None
    taken = list(_taken(pod, _markers(metadata, context)))
    if not taken:
        return None
    names = sorted({marker.metadata.name for marker, _ in taken})
    annotations = {
        **(metadata.get("annotations") or {}),
        PROBES_ANNOTATION: encode([_form(probe) for _, probe in taken]).decode(),
        MARKERS_ANNOTATION: ",".join(names),
    }
    return Change(object={**pod, "metadata": {**metadata, "annotations": annotations}})


def _markers(metadata: dict[str, Any], context: StepContext) -> list[PodProbeMarker]:
    """Those that the pod names, or else those that select it."""
    store = context.view.store(POD_PROBE_MARKERS)
    named = (metadata.get("annotations") or {}).get(MARKERS_ANNOTATION)
    if isinstance(named, str) and named:
        found = (store.get(context.namespace, name.strip()) for name in named.split(","))
        return [marker for marker in found if marker is not None and marker.metadata.deletion_timestamp is None]
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        return []
    return in_order(store.selecting(MARKERS_OF_PODS, labels, context.namespace))


def _taken(
    pod: dict[str, Any], markers: Iterable[PodProbeMarker]
) -> Iterator[tuple[PodProbeMarker, PodContainerProbe]]:
    containers = frozenset(_probed_containers(pod))
    conditions: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for marker in markers:
        for probe in marker.spec.probes:
            kind, pair = probe.pod_condition_type, (probe.container_name, probe.name)
            if not kind or kind in conditions or pair in pairs or probe.container_name not in containers:
                continue
            conditions.add(kind)
            pairs.add(pair)
            yield marker, probe


def _probed_containers(pod: dict[str, Any]) -> Iterator[str]:
    spec = pod.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    for one in spec.get("containers") or ():
        yield str(one.get("name", ""))
    for one in spec.get("initContainers") or ():
        if one.get("restartPolicy") == "Always":
            yield str(one.get("name", ""))


def _form(probe: PodContainerProbe) -> dict[str, Any]:
    return {
        "name": probe.name,
        "containerName": probe.container_name,
        "probe": to_builtins(probe.probe),
        "podConditionType": probe.pod_condition_type,
    }
