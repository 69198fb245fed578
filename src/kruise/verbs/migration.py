"""`migrate` (KK-4): a CloneSet made from a Deployment, and pods moved from one to the other step by step.

Both have the same selector and template. That is safe: each counts only the pods that it owns.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kruise.faces.native import DEPLOYMENT
from kruise.machinery.documents import Json, name_of, namespace_of, value_at
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.scaling import replicas_of
from kruise.workloads.cloneset.face import FACE as CLONE_SET

# They tell about the Deployment, or would make the next `kubectl apply` of its file compare with the wrong kind.
_LEFT_BEHIND = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/last-applied-configuration")
_COPIED = ("selector", "template", "revisionHistoryLimit", "minReadySeconds")


def cloneset_from(deployment: Json, name: str, *, with_replicas: bool) -> Json:
    """The CloneSet that does what the Deployment does. Without its replicas it has no pods yet: they can then be moved
    one by one."""
    spec = deployment["spec"]
    metadata: Json = {"name": name, "namespace": namespace_of(deployment)}
    source = deployment["metadata"]
    annotations = {
        key: text for key, text in (source.get("annotations") or {}).items() if not key.startswith(_LEFT_BEHIND)
    }
    for field, value in (
        ("labels", source.get("labels")),
        ("annotations", annotations),
        ("finalizers", source.get("finalizers")),
    ):
        if value:
            metadata[field] = value
    rolling: Json = {"podUpdatePolicy": "ReCreate"}
    if spec.get("paused"):
        rolling["paused"] = True
    limits = value_at(deployment, ("spec", "strategy", "rollingUpdate"), {})
    rolling |= {field: limits[field] for field in ("maxUnavailable", "maxSurge") if field in limits}
    resource = CLONE_SET.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": {
            "replicas": replicas_of(DEPLOYMENT, deployment) if with_replicas else 0,
            **{field: spec[field] for field in _COPIED if field in spec},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        },
    }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """From where a migration starts, and how far it goes."""

    source: int
    """Replicas of the Deployment at the start."""
    destination: int
    """Replicas of the CloneSet at the start."""
    moving: int
    max_surge: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to do next. Nothing to set and not done: wait for the reason that is given."""

    message: str
    raise_to: int | None = None
    lower_to: int | None = None
    is_done: bool = False


def begin(deployment: Json, cloneset: Json, *, replicas: int, max_surge: int) -> Journey:
    if max_surge < 1:
        raise UsageError("--max-surge must be 1 or more: pods are made in the CloneSet before others go")
    source = replicas_of(DEPLOYMENT, deployment)
    if replicas > source:
        raise VerbError(
            f"deployment.apps/{name_of(deployment)} asks for {source} pods, so {replicas} cannot be moved from it"
        )
    return Journey(
        source=source,
        destination=replicas_of(CLONE_SET, cloneset),
        moving=source if replicas < 0 else replicas,
        max_surge=max_surge,
    )


def next_step(journey: Journey, deployment: Json, cloneset: Json) -> Step:
    source, destination = replicas_of(DEPLOYMENT, deployment), replicas_of(CLONE_SET, cloneset)
    lowered, raised = journey.source - source, destination - journey.destination
    if lowered < 0 or raised < 0 or lowered > raised or raised > journey.moving:
        raise VerbError(
            f"somebody else scales: the Deployment has {source} and the CloneSet {destination} replicas, "
            f"which this migration did not set. Find out who, and start again."
        )
    for title, one in (("the Deployment", deployment), ("the CloneSet", cloneset)):
        if not _is_observed(one):
            return Step(message=f"waiting for {title} to be looked at by its controller")
    available = int(value_at(cloneset, ("status", "availableReplicas"), 0))
    if available < destination:
        return Step(message=f"waiting for {destination - available} of {destination} CloneSet pods to be available")
    if raised > lowered:
        return Step(
            message=f"the Deployment goes from {source} to {source - (raised - lowered)}",
            lower_to=source - (raised - lowered),
        )
    if raised < journey.moving:
        target = journey.destination + min(journey.moving, lowered + journey.max_surge)
        return Step(message=f"the CloneSet goes from {destination} to {target}", raise_to=target)
    return Step(message=f"{journey.moving} pods moved", is_done=True)


def _is_observed(document: Json) -> bool:
    generation: Any = value_at(document, ("metadata", "generation"), 0)
    return bool(value_at(document, ("status", "observedGeneration"), 0) >= generation)
