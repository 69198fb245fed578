"""What verbs, status and `why` must know of a ResourceDistribution."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import Progress, number
from kruise.machinery.documents import Json, name_of
from kruise.machinery.wording import plural
from kruise.operations.resourcedistribution import causes


def progress(document: Json) -> Progress:
    """Done when the controller has seen the newest spec, and every namespace has its copy."""
    name, wanted = name_of(document), number(document, "status", "desired")
    copied = number(document, "status", "succeeded")
    seen = Progress(
        wanted=wanted, expected=wanted, updated=copied, ready=copied, available=copied, total=copied, is_paused=False
    )
    if number(document, "status", "observedGeneration") < number(document, "metadata", "generation"):
        return seen.waiting("Waiting for ResourceDistribution spec update to be observed...")
    if copied < wanted:
        return seen.waiting(f"Waiting for distribution: {copied} of {plural(wanted, 'namespace')} have the copy...")
    return seen.done(f'resource distribution "{name}" successfully rolled out to {plural(wanted, "namespace")}')


FACE = Face(
    resource=resource(GROUP, "v1beta1", "resourcedistributions", "ResourceDistribution", namespaced=False),
    versions=("v1alpha1", "v1beta1"),
    short_names=("distributor",),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    progress=progress,
    causes=causes.CAUSES,
)
