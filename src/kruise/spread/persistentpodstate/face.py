"""What others must know of a PersistentPodState."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.machinery.documents import Json, value_at
from kruise.machinery.wording import plural
from kruise.spread.persistentpodstate import causes, keys


def standing(document: Json) -> str:
    """Of whom it remembers how much."""
    reference = value_at(document, ("spec", "targetRef"), {})
    known = len(value_at(document, ("status", "podStates"), {}))
    return f"it remembers the nodes of {plural(known, 'pod')} of {reference.get('kind')} {reference.get('name')}"


def placement(annotations: Mapping[str, str], flags: str) -> str:
    """For whoever asks why a pod finds no node."""
    name = annotations.get(keys.INJECTED)
    return (
        f"{FACE.singular} {name} brings it back to its place: kruise why {FACE.singular}/{name}{flags}" if name else ""
    )


FACE = Face(
    resource=resource(GROUP, "v1beta1", "persistentpodstates", "PersistentPodState"),
    versions=("v1alpha1", "v1beta1"),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    standing=standing,
    placement="kruise.spread.persistentpodstate.face:placement",
    forecast="kruise.spread.persistentpodstate.forecast:FORECAST",
    causes=causes.CAUSES,
)
