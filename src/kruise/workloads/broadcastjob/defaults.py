"""What a BroadcastJob gets where its author was silent (BJ-12 to BJ-14), in both versions. Pure."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.broadcastjob import ALWAYS, FAIL_FAST
from kruise.workloads.broadcastjob.numbers import UNLIMITED
from kruise.workloads.shared.defaults import Gates, Json, default_templates, fill, fill_empty


def defaulted(job: Json, *, version: str, gates: Gates, old: Json | None = None) -> dict[str, Any]:
    """The BroadcastJob with its defaults. `old` is what it replaces; None for a new one.

    Raises TemplateTypeError where the template cannot be read.
    """
    spec = dict(job.get("spec") or {})
    # An empty template, for validation to say what it lacks.
    fill(spec, {"parallelism": UNLIMITED, "template": {}})
    for policy, default in (("completionPolicy", ALWAYS), ("failurePolicy", FAIL_FAST)):
        spec[policy] = dict(spec.get(policy) or {})
        fill_empty(spec[policy], {"type": default})
    default_templates(spec, old, gates)
    return {**job, "spec": spec}
