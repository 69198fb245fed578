"""What results of probes do to a pod: conditions, labels, annotations (NPP-10 to NPP-14). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.apps.probes import (
    SUCCEEDED,
    UNKNOWN,
    ContainerProbeState,
    PodContainerProbe,
    PodProbeMarker,
)
from kruise.api.native.pod import PODS, Pod, condition
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.plan import Action, Target
from kruise.machinery.times import format_time
from kruise.operations.probes.wanted import probe_of

Edits = dict[str, str | None]


def marking(
    pod: Pod, states: Iterable[ContainerProbeState], markers: Mapping[tuple[str, str], PodProbeMarker]
) -> Action | None:
    """One write with everything that the results ask for; None: the pod is as it should be."""
    conditions: dict[str, ContainerProbeState] = {}
    labels: Edits = {}
    annotations: Edits = {}
    for state in states:
        probe = probe_of(state.name, pod.metadata.namespace, markers)
        if probe is None or not state.state:
            continue
        if probe.pod_condition_type:
            conditions.setdefault(probe.pod_condition_type, state)
        _mark(probe, state.state, labels, annotations)
    changed = [_condition(kind, state) for kind, state in conditions.items() if _is_news(pod, kind, state)]
    metadata = {
        "labels": _differing(labels, pod.metadata.labels),
        "annotations": _differing(annotations, pod.metadata.annotations),
    }
    metadata = {part: edits for part, edits in metadata.items() if edits}
    if not changed and not metadata:
        return None
    body: dict[str, Any] = {}
    if metadata:
        body["metadata"] = metadata
    if changed:
        body["status"] = {"conditions": changed}
    return plans.patch(
        Target.of(PODS, pod),
        body,
        uid=pod.metadata.uid,
        reason="results of its probes",
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )


def _mark(probe: PodContainerProbe, state: str, labels: Edits, annotations: Edits) -> None:
    """NPP-13. As long as nothing is known, marks stay as they are."""
    if state == UNKNOWN:
        return
    for policy in probe.marker_policy:
        if policy.state != state:
            labels.update(dict.fromkeys(policy.labels))
            annotations.update(dict.fromkeys(policy.annotations))
    for policy in probe.marker_policy:
        if policy.state == state:
            labels.update(policy.labels)
            annotations.update(policy.annotations)


def _differing(wanted: Edits, present: Mapping[str, str]) -> Edits:
    return {key: value for key, value in wanted.items() if present.get(key) != value}


def _is_news(pod: Pod, kind: str, state: ContainerProbeState) -> bool:
    """NPP-12: a new time alone is none."""
    known = condition(pod, kind)
    return known is None or (known.status, known.message) != (_status(state), state.message)


def _status(state: ContainerProbeState) -> str:
    return "True" if state.state == SUCCEEDED else "False"


def _condition(kind: str, state: ContainerProbeState) -> dict[str, Any]:
    """NPP-11. A merge keeps what it does not name, so an empty message is named, too."""
    times = {"lastProbeTime": state.last_probe_time, "lastTransitionTime": state.last_transition_time}
    return {
        "type": kind,
        "status": _status(state),
        "message": state.message or None,
        **{name: format_time(time) for name, time in times.items() if time is not None},
    }
