"""Limits of an EphemeralJob, for the head of `describe rollout`."""

from __future__ import annotations

from kruise.faces.face import Setting
from kruise.machinery.documents import Json, value_at
from kruise.workloads.ephemeraljob.situation import USUAL_PARALLELISM, USUAL_TTL


def settings(document: Json) -> list[Setting]:
    spec = value_at(document, ("spec",), {})
    replicas, deadline = spec.get("replicas"), spec.get("activeDeadlineSeconds")
    template = value_at(spec, ("template", "ephemeralContainers"), [])
    names = (
        [str(one.get("name", "")) for one in template if isinstance(one, dict)] if isinstance(template, list) else []
    )
    return [
        ("Containers", ", ".join(names) or "none"),
        ("Pods", "all that match" if replicas is None else f"at most {replicas}"),
        ("Parallelism", str(spec.get("parallelism", USUAL_PARALLELISM))),
        ("Deadline", "none" if deadline is None else f"{deadline} s"),
        ("Removed", f"{spec.get('ttlSecondsAfterFinished', USUAL_TTL)} s after its end"),
    ]
