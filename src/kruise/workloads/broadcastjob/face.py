"""What verbs, status, forecasts and readiness must know of a BroadcastJob."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import Progress, number, standing
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import plural
from kruise.workloads.broadcastjob import causes


def progress(document: Json) -> Progress:
    """Done when every node is."""
    name, phase = name_of(document), str(value_at(document, ("status", "phase"), ""))
    desired, failed = number(document, "status", "desired"), number(document, "status", "failed")
    succeeded, active = number(document, "status", "succeeded"), number(document, "status", "active")
    is_paused = phase == "paused"
    seen = Progress(
        wanted=desired,
        expected=desired,
        updated=succeeded,
        ready=active,
        available=succeeded,
        total=active + succeeded + failed,
        is_paused=is_paused,
    )
    counts = f"{succeeded} succeeded, {failed} failed, {active} active of {plural(desired, 'node')}"
    if not phase:
        return seen.waiting(f'Waiting for broadcast job "{name}" to be observed...')
    if phase == "failed":
        why = standing(document, "Failed")
        return seen.failed(f'broadcast job "{name}" failed: {counts}{f" ({why})" if why else ""}')
    if phase == "completed":
        return seen.done(f'broadcast job "{name}" completed: {counts}')
    if is_paused:
        return seen.waiting(f'broadcast job "{name}" is paused: {counts}...')
    never = value_at(document, ("spec", "completionPolicy", "type"), "") == "Never"
    if never and desired and not active and succeeded + failed >= desired:
        return seen.done(f'broadcast job "{name}" is done on the nodes that there are: {counts}')
    return seen.waiting(f'Waiting for broadcast job "{name}" to complete: {counts}...')


FACE = Face(
    resource=resource(GROUP, "v1beta1", "broadcastjobs", "BroadcastJob"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("bcj",),
    is_ours=True,
    selector=None,
    replicas=None,
    paused=("spec", "paused"),
    pods=Pods.PER_NODE,
    runs_to_end=True,
    progress=progress,
    settings="kruise.workloads.broadcastjob.settings:settings",
    outlook="kruise.workloads.broadcastjob.outlook:OUTLOOK",
    causes=causes.CAUSES,
)
