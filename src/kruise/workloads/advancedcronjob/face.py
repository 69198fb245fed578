"""What verbs and status must know of an AdvancedCronJob."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import Progress
from kruise.machinery.documents import Json, name_of, value_at
from kruise.workloads.advancedcronjob import causes


def progress(document: Json) -> Progress:
    """It has nothing to complete: when it last ran, and what is active."""
    name, status = name_of(document), value_at(document, ("status",), {})
    is_paused = bool(value_at(document, ("spec", "paused"), False))
    seen = Progress(is_paused=is_paused)
    if not status.get("type"):
        return seen.waiting(f'Waiting for advanced cron job "{name}" to be observed...')
    last = status.get("lastScheduleTime")
    ran = f"the last run is that of {last}" if last else "it has not run yet"
    paused = "; it is paused" if is_paused else ""
    return seen.done(f'advanced cron job "{name}": {ran}, {len(status.get("active") or ())} active{paused}')


FACE = Face(
    resource=resource(GROUP, "v1beta1", "advancedcronjobs", "AdvancedCronJob"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("acj",),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    paused=("spec", "paused"),
    pods=Pods.NONE,
    progress=progress,
    settings="kruise.workloads.advancedcronjob.settings:settings",
    outlook="kruise.workloads.advancedcronjob.outlook:OUTLOOK",
    causes=causes.CAUSES,
)
