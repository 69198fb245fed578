"""What verbs, status and `why` must know of an ImageListPullJob."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, Setting, resource
from kruise.faces.progress import Progress, number
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import listed
from kruise.operations.images.listjob import causes


def progress(document: Json) -> Progress:
    """Done when every node has every image; a job that never ends is done as long as that is so."""
    name = name_of(document)
    desired, completed = number(document, "status", "desired"), number(document, "status", "completed")
    succeeded, active = number(document, "status", "succeeded"), number(document, "status", "active")
    failed = [str(one.get("name")) for one in value_at(document, ("status", "failedImageStatuses"), ())]
    seen = Progress(
        wanted=desired,
        expected=desired,
        updated=succeeded,
        ready=succeeded,
        available=succeeded,
        total=completed,
        is_paused=value_at(document, ("spec", "parallelism")) in (0, "0"),
    )
    if value_at(document, ("status", "startTime")) is None:
        return seen.waiting("Waiting for the job to begin...")
    is_over = value_at(document, ("status", "completionTime")) is not None
    never_ends = value_at(document, ("spec", "completionPolicy", "type")) == "Never"
    if not is_over and not (never_ends and completed >= desired):
        held = " (parallelism is 0: no further node begins)" if seen.is_paused else ""
        return seen.waiting(f"{succeeded} of {desired} images are on all nodes, {active} are pulled{held}...")
    if failed:
        return seen.failed(f'image list pull job "{name}": {len(failed)} of {desired} images failed: {listed(failed)}')
    return seen.done(f'image list pull job "{name}": all {desired} images are on all nodes')


def settings(document: Json) -> list[Setting]:
    images = [str(image) for image in value_at(document, ("spec", "images"), ())]
    return [
        ("Images", listed(images)),
        ("Parallelism", str(value_at(document, ("spec", "parallelism"), 1))),
        ("Completion", str(value_at(document, ("spec", "completionPolicy", "type"), "Always"))),
    ]


FACE = Face(
    resource=resource(GROUP, "v1beta1", "imagelistpulljobs", "ImageListPullJob"),
    versions=("v1alpha1", "v1beta1"),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    runs_to_end=True,
    progress=progress,
    settings=f"{__name__}:settings",
    causes=causes.CAUSES,
)
