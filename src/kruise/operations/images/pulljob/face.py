"""What verbs, status and `why` must know of an ImagePullJob."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import Progress, number
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import listed
from kruise.operations.images import causes as pulls
from kruise.operations.images.pulljob import causes


def progress(document: Json) -> Progress:
    """Done when every node has the image; a job that never ends is done as long as that is so."""
    name = name_of(document)
    desired, failed = number(document, "status", "desired"), number(document, "status", "failed")
    succeeded, active = number(document, "status", "succeeded"), number(document, "status", "active")
    nodes = [str(one) for one in value_at(document, ("status", "failedNodes"), ())]
    seen = Progress(
        wanted=desired,
        expected=desired,
        updated=succeeded,
        ready=succeeded,
        available=succeeded,
        total=succeeded + failed + active,
        is_paused=value_at(document, ("spec", "parallelism")) in (0, "0"),
    )
    if value_at(document, ("status", "startTime")) is None:
        return seen.waiting("Waiting for the job to begin...")
    is_over = value_at(document, ("status", "completionTime")) is not None
    never_ends = value_at(document, ("spec", "completionPolicy", "type")) == "Never"
    is_at_rest = never_ends and desired > 0 and succeeded + failed >= desired
    if not is_over and not is_at_rest:
        held = " (parallelism is 0: no further node begins)" if seen.is_paused else ""
        return seen.waiting(f"{succeeded} of {desired} nodes have the image, {active} are at it{held}...")
    if failed:
        return seen.failed(f'image pull job "{name}": {failed} of {desired} nodes failed: {listed(nodes)}')
    return seen.done(f'image pull job "{name}": all {desired} nodes have the image')


FACE = Face(
    resource=resource(GROUP, "v1beta1", "imagepulljobs", "ImagePullJob"),
    versions=("v1alpha1", "v1beta1"),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    runs_to_end=True,
    progress=progress,
    settings="kruise.operations.images.pulljob.settings:settings",
    outlook="kruise.operations.images.pulljob.outlook:OUTLOOK",
    causes=(*pulls.CAUSES, *causes.CAUSES),
)
