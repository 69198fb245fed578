"""What others must know of a PersistentPodState."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource

FACE = Face(
    resource=resource(GROUP, "v1beta1", "persistentpodstates", "PersistentPodState"),
    versions=("v1alpha1", "v1beta1"),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
)
