"""What others must know of a NodePodProbe: next to nothing."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource

FACE = Face(
    resource=resource(GROUP, "v1alpha1", "nodepodprobes", "NodePodProbe", namespaced=False),
    versions=("v1alpha1",),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
)
