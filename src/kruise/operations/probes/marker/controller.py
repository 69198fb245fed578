"""How a PodProbeMarker is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kruise.admission.chain import PodStep
from kruise.api.apps.definitions.probes import POD_PROBE_MARKER
from kruise.api.apps.probes import (
    LIVENESS_GATE,
    NODE_POD_PROBES,
    POD_PROBE_MARKERS,
    NodePodProbe,
    PodProbeMarker,
    split_name,
)
from kruise.api.meta import Key, key_of
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.feature import Feature, PodMutation, Settings
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, no_keys
from kruise.operations.probes.marker.admission import webhooks
from kruise.operations.probes.marker.decide import Snapshot, conclude, decide, why_unknown
from kruise.operations.probes.marker.liveness import move_liveness_probes
from kruise.operations.probes.marker.serverless import write_probes
from kruise.operations.probes.watched import (
    OF_MARKER,
    WATCHED_MARKERS,
    WATCHED_PODS,
    WATCHED_PROBES,
    is_on_virtual_node,
    markers_of,
    pods_of,
    probe_inputs,
)

NAME = "podprobemarker-controller"
GATE = "PodProbeMarkerGate"
SERVERLESS_GATE = "EnablePodProbeMarkerOnServerless"


class _Keys:
    def __init__(self, *, marks_virtual: bool) -> None:
        self._marks_virtual = marks_virtual

    def of_pod(self, old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        """PPM-21. A pod that nobody selects costs a look into an index."""
        is_same = old is not None and new is not None and probe_inputs(old) == probe_inputs(new)
        if is_same and not self._is_virtual_news(old, new, stores):
            return ()
        seen = [pod for pod in (old, new) if pod is not None]
        return dict.fromkeys(key_of(marker) for pod in seen for marker in markers_of(pod, stores))

    def _is_virtual_news(self, old: Pod | None, new: Pod | None, stores: Stores) -> bool:
        if not self._marks_virtual or old is None or new is None or old.status.conditions == new.status.conditions:
            return False
        before = {one.type: one.status for one in old.status.conditions}
        changed = any(before.get(one.type) != one.status for one in new.status.conditions)
        return changed and is_on_virtual_node(new, stores)


def marker_keys(old: PodProbeMarker | None, new: PodProbeMarker | None, stores: Stores) -> Iterable[Key]:
    """The marker, and those with whom it shares, or shared, a condition."""
    found = [key_of(one) for one in (old, new) if one is not None]
    if old is None or new is None or old.spec.probes != new.spec.probes:
        for one in (old, new):
            found += [key_of(rival) for rival in rivals_of(one, stores)] if one is not None else []
    return dict.fromkeys(found)


def rivals_of(marker: PodProbeMarker, stores: Stores) -> tuple[PodProbeMarker, ...]:
    """Others of the namespace that write one of its conditions, if to other pods or to the same ones."""
    wanted = _conditions(marker)
    if not wanted:
        return ()
    others = stores.store(POD_PROBE_MARKERS).list(marker.metadata.namespace)
    return tuple(
        one for one in others if one.metadata.name != marker.metadata.name and not wanted.isdisjoint(_conditions(one))
    )


def _conditions(marker: PodProbeMarker) -> set[str]:
    return {one.pod_condition_type for one in marker.spec.probes if one.pod_condition_type}


def probes_keys(old: NodePodProbe | None, new: NodePodProbe | None, stores: Stores) -> Iterable[Key]:
    """What a node is probe_inputs, and who has a first result: results themselves come far more often."""
    if old is not None and new is not None and old.spec == new.spec and _reported(old) == _reported(new):
        return ()
    return dict.fromkeys(key for one in (old, new) if one is not None for key in _markers_in(one))


def _reported(probes: NodePodProbe) -> set[tuple[str, str, str]]:
    """Which results there are, and why there are none."""
    return {
        (found.uid, state.name, why_unknown(state))
        for found in probes.status.pod_probe_statuses
        for state in found.probe_states
    }


def _markers_in(probes: NodePodProbe) -> Iterator[Key]:
    for entry in probes.spec.pod_probes:
        for one in entry.probes:
            marker, _ = split_name(one.name)
            if marker:
                yield Key(entry.namespace, marker)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    if not settings.gates.get(GATE, True):
        return ()
    marks_virtual = settings.gates.get(SERVERLESS_GATE, False)

    def snapshot(view: View, key: Key) -> Snapshot | None:
        marker = view.store(POD_PROBE_MARKERS).get(*key)
        if marker is None:
            return None
        store = view.store(PODS)
        pods = tuple(pod for pod in pods_of(marker, view) if not store.is_terminating(pod))
        probes = {one.metadata.name: one for one in view.store(NODE_POD_PROBES).by_index(OF_MARKER, str(key))}
        for pod in pods:
            name = pod.spec.node_name
            if name and name not in probes and (one := view.store(NODE_POD_PROBES).get("", name)) is not None:
                probes[name] = one
        return Snapshot(
            marker=marker,
            pods=pods,
            virtual=tuple(pod.metadata.name for pod in pods if is_on_virtual_node(pod, view)),
            probes=tuple(probes.values()),
            now=view.now,
            rivals=rivals_of(marker, view),
            marks_virtual=marks_virtual,
        )

    keys = _Keys(marks_virtual=marks_virtual)
    sources: tuple[Source[Any], ...] = (
        Source(WATCHED_MARKERS, marker_keys),
        Source(WATCHED_PODS, keys.of_pod),
        Source(WATCHED_PROBES, probes_keys),
        Source(NODES, no_keys),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=POD_PROBE_MARKERS,
            sources=sources,
            snapshot=snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            looks_at_siblings=True,
            workers=settings.workers_of("podprobemarker"),
            pace=lambda seen: min(len(seen.pods) * 160e-6, 0.1),
        ),
    )


def pod_mutations(settings: Settings) -> tuple[PodMutation, ...]:
    found: list[PodMutation] = []
    if settings.gates.get(LIVENESS_GATE, False):
        found.append(PodMutation(PodStep.LIVENESS_PROBE, move_liveness_probes))
    if settings.gates.get(SERVERLESS_GATE, False):
        found.append(PodMutation(PodStep.PROBE_MARKER, write_probes, needs=(WATCHED_MARKERS,)))
    return tuple(found)


FEATURE = Feature(
    name="podprobemarker",
    definitions=(POD_PROBE_MARKER,),
    controllers=controllers,
    webhooks=webhooks,
    pod_mutations=pod_mutations,
)
