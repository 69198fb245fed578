"""What verbs, status, `why` and `plan` must know of an EphemeralJob."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import Progress, number, standing
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import plural
from kruise.workloads.ephemeraljob import causes


def progress(document: Json) -> Progress:
    """Done when the job has ended well. Ended pods are what a rollout calls updated."""
    name, phase = name_of(document), value_at(document, ("status", "phase"), "")
    match = number(document, "status", "match")
    succeeded, failed = number(document, "status", "succeeded"), number(document, "status", "failed")
    running, waiting = number(document, "status", "running"), number(document, "status", "waiting")
    wanted = number(document, "spec", "replicas", default=match)
    seen = Progress(
        wanted=wanted,
        expected=wanted,
        updated=succeeded,
        ready=succeeded,
        available=succeeded,
        total=match,
        is_paused=bool(value_at(document, ("spec", "paused"), False)),
    )
    counts = f"{succeeded} of {plural(wanted, 'pod')} succeeded, {running} running, {waiting} waiting, {failed} failed"
    ended = bool(value_at(document, ("status", "completionTime"), ""))
    if phase == "Succeeded" or (ended and standing(document, "JobSucceeded") is not None):
        return seen.done(f'ephemeral job "{name}" succeeded in {plural(succeeded, "pod")}')
    if phase == "Failed" or ended:
        told = standing(document, "JobFailed") or "all pods failed"
        return seen.failed(f'ephemeral job "{name}" failed: {told} ({counts})')
    if phase == "Error":
        return seen.failed(f'ephemeral job "{name}" cannot run: {standing(document, "JobError") or "see its spec"}')
    if not phase:
        return seen.waiting("Waiting for the ephemeral job to be observed...")
    if not match:
        return seen.waiting("Waiting for pods: none matches the selector, or all have a container of this name...")
    if match and succeeded + failed == wanted and failed:
        return seen.failed(f'ephemeral job "{name}" does not end: {counts}')
    paused = " (it is paused)" if seen.is_paused else ""
    return seen.waiting(f"Waiting for containers to end: {counts}{paused}...")


FACE = Face(
    resource=resource(GROUP, "v1alpha1", "ephemeraljobs", "EphemeralJob"),
    versions=("v1alpha1",),
    short_names=("ejob",),
    is_ours=True,
    template=None,
    paused=("spec", "paused"),
    pods=Pods.SELECTED,
    runs_to_end=True,
    progress=progress,
    settings="kruise.workloads.ephemeraljob.settings:settings",
    outlook="kruise.workloads.ephemeraljob.outlook:OUTLOOK",
    causes=causes.CAUSES,
)
