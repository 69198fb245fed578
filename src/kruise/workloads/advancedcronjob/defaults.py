"""What an AdvancedCronJob gets where its author was silent (ACJ-13 to ACJ-16), in both versions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.apps.advancedcronjob import ALLOW, REPLACE
from kruise.api.core.field_errors import Path
from kruise.api.versions import KEPT, annotation_of, read_kept
from kruise.workloads.shared.defaults import Gates, Json, default_templates, fill, fill_empty, spec_of

IMAGES = "imageListPullJobTemplate"
WITH_PODS = ("jobTemplate", "broadcastJobTemplate")
"""Templates that have a pod template."""
TEMPLATE = Path("spec").child("template")


def defaulted(job: Json, *, version: str, gates: Gates, old: Json | None = None) -> dict[str, Any]:
    """The AdvancedCronJob with its defaults. `old` is what it replaces; None for a new one.

    Raises TemplateTypeError where a template cannot be read.
    """
    spec = dict(job.get("spec") or {})
    given = spec.get("template")
    template = dict(given) if isinstance(given, Mapping) else {}
    has_images = template.get(IMAGES) is not None or _keeps_images(job)
    fill_empty(spec, {"concurrencyPolicy": REPLACE if has_images else ALLOW})
    fill(spec, {"schedule": "", "paused": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})
    known = spec_of(old).get("template") if old is not None else None
    for name in WITH_PODS:
        if isinstance(template.get(name), Mapping):
            template[name] = _with_pods(template[name], _part(known, name), gates)
    if isinstance(template.get(IMAGES), Mapping):
        template[IMAGES] = _with_images(template[IMAGES])
    spec["template"] = template
    return {**job, "spec": spec}


def _keeps_images(job: Json) -> bool:
    """In the older version the template is in an annotation."""
    kept = read_kept(annotation_of(job)) if annotation_of(job) is not None else {}
    return IMAGES in ((kept.get("spec") or {}).get("template") or {}) if KEPT else False


def _part(template: Any, name: str) -> Json | None:
    """A template that is stored, as an object with a spec."""
    part = template.get(name) if isinstance(template, Mapping) else None
    return part if isinstance(part, Mapping) else None


def _with_pods(template: Json, old: Json | None, gates: Gates) -> dict[str, Any]:
    """ACJ-14: the pods' template alone; what a run is made of is defaulted when it is made."""
    spec = dict(template.get("spec") or {})
    default_templates(spec, old, gates)
    return {**template, "spec": spec}


def _with_images(template: Json) -> dict[str, Any]:
    """ACJ-15: only where no type of completion is given."""
    spec = dict(template.get("spec") or {})
    completion = dict(spec.get("completionPolicy") or {})
    if not completion.get("type"):
        completion["type"] = "Always"
        spec["completionPolicy"] = completion
        policy = dict(spec.get("pullPolicy") or {})
        fill(policy, {"timeoutSeconds": 600, "backoffLimit": 3})
        spec["pullPolicy"] = policy
        fill_empty(spec, {"imagePullPolicy": "IfNotPresent"})
    return {**template, "spec": spec}
