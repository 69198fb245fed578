"""What others must know of a NodePodProbe: how it stands."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import plural
from kruise.operations.probes.node import causes


def standing(document: Json) -> str:
    asked = [(pod, one) for pod in _listed(document, "spec", "podProbes") for one in pod.get("probes") or ()]
    known = {
        (pod.get("uid"), state.get("name"))
        for pod in _listed(document, "status", "podProbeStatuses")
        for state in pod.get("probeStates") or ()
    }
    pods = len({pod.get("uid") for pod, _ in asked})
    answered = sum((pod.get("uid"), one.get("name")) in known for pod, one in asked)
    node = name_of(document)
    if not asked:
        return f"nothing is probed on node {node}"
    return f"node {node}: {answered} of {plural(len(asked), 'probe')} of {plural(pods, 'pod')} have a result"


def _listed(document: Json, *path: str) -> list[Json]:
    found = value_at(document, path, None)
    return found if isinstance(found, list) else []


FACE = Face(
    resource=resource(GROUP, "v1alpha1", "nodepodprobes", "NodePodProbe", namespaced=False),
    versions=("v1alpha1",),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    tells_generation=False,
    standing=standing,
    causes=causes.CAUSES,
)
