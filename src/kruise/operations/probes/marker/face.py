"""What others must know of a PodProbeMarker."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import Progress, is_observed, number
from kruise.machinery.documents import Json
from kruise.machinery.wording import plural
from kruise.operations.probes.marker import causes


def progress(document: Json) -> Progress:
    """Done when all nodes have been told of the newest spec."""
    matched = number(document, "status", "matchedPods")
    seen = Progress(wanted=matched, expected=matched, updated=matched, ready=matched, available=matched, total=matched)
    if not is_observed(document):
        return seen.waiting("Waiting for nodes to be told of the newest probes...")
    return seen.done(f"{plural(matched, 'pod', 'is', 'are')} probed as the newest spec says")


FACE = Face(
    resource=resource(GROUP, "v1alpha1", "podprobemarkers", "PodProbeMarker"),
    versions=("v1alpha1",),
    is_ours=True,
    template=None,
    replicas=None,
    pods=Pods.SELECTED,
    overlooks_changes=True,
    progress=progress,
    settings="kruise.operations.probes.marker.settings:settings",
    causes=causes.CAUSES,
)
