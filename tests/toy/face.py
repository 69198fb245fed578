"""What verbs, status, plan and why must know of a Troupe."""

from __future__ import annotations

from kruise.faces.face import Face, Setting, resource
from kruise.faces.progress import Progress, is_observed, number
from kruise.machinery.documents import Json, value_at


def progress(document: Json) -> Progress:
    """Where the rollout stands, from the object alone."""
    wanted = number(document, "spec", "replicas", default=1)
    updated, ready = number(document, "status", "updated"), number(document, "status", "ready")
    seen = Progress(
        wanted=wanted,
        expected=wanted,
        updated=updated,
        ready=ready,
        available=ready,
        total=number(document, "status", "pods"),
        is_paused=bool(value_at(document, ("spec", "paused"), False)),
    )
    if not is_observed(document):
        return seen.waiting("Waiting for the troupe's spec to be observed...")
    if updated < wanted:
        return seen.waiting(f"{updated} of {wanted} pods have the new image...")
    if ready < wanted:
        return seen.waiting(f"{ready} of {wanted} pods are ready...")
    return seen.done(f"all {wanted} pods have the new image")


def settings(document: Json) -> list[Setting]:
    return [("Strategy", "all pods at once, in place")]


FACE = Face(
    resource=resource("toy.pykruise.dev", "v1", "troupes", "Troupe"),
    versions=("v1alpha1", "v1"),
    short_names=("tr",),
    is_ours=True,
    template=None,
    selector=None,
    paused=("spec", "paused"),
    progress=progress,
    settings=f"{__name__}:settings",
    forecast=f"{__package__}.forecast:FORECAST",
)
