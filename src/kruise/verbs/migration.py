"""`migrate` (KK-4) from one of Kubernetes' workloads to another kind that replaces it: an object made from it, and pods
moved from the one to the other step by step.

Both have the same selector and template. That is safe: each counts only the pods that it owns.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kruise.faces.face import Face
from kruise.machinery.documents import Json, name_of, namespace_of, value_at
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.scaling import replicas_of

# It would make the next `kubectl apply` of the source's file compare with the wrong kind.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    source: Face
    destination: Face


def route(source: Face, destination: Face) -> Route | None:
    """None where pods cannot be moved from the one to the other."""
    return Route(source, destination) if destination.replaces == source.group_kind else None


def made_from(route: Route, source: Json, name: str, *, with_replicas: bool) -> Json:
    """The object that does what the source does. Without its replicas it has no pods yet: they can then be moved one by
    one."""
    metadata: Json = {"name": name, "namespace": namespace_of(source)}
    given = source["metadata"]
    left_behind = (f"{route.source.singular}.kubernetes.io/", _LAST_APPLIED)
    annotations = {
        key: text for key, text in (given.get("annotations") or {}).items() if not key.startswith(left_behind)
    }
    for field, value in (
        ("labels", given.get("labels")),
        ("annotations", annotations),
        ("finalizers", given.get("finalizers")),
    ):
        if value:
            metadata[field] = value
    resource = route.destination.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": {
            "replicas": replicas_of(route.source, source) if with_replicas else 0,
            **route.destination.spec_in_place_of(source["spec"]),
        },
    }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """From where a migration starts, and how far it goes."""

    route: Route
    source: int
    """Replicas of the source at the start."""
    destination: int
    """Replicas of the destination at the start."""
    moving: int
    max_surge: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to do next. Nothing to set and not done: wait for the reason that is given."""

    message: str
    raise_to: int | None = None
    lower_to: int | None = None
    is_done: bool = False


def begin(route: Route, source: Json, destination: Json, *, replicas: int, max_surge: int) -> Journey:
    if max_surge < 1:
        raise UsageError(f"--max-surge must be 1 or more: pods are made in the {route.destination} before others go")
    count = replicas_of(route.source, source)
    if replicas > count:
        raise VerbError(
            f"{route.source.named(name_of(source))} asks for {count} pods, so {replicas} cannot be moved from it"
        )
    return Journey(
        route=route,
        source=count,
        destination=replicas_of(route.destination, destination),
        moving=count if replicas < 0 else replicas,
        max_surge=max_surge,
    )


def next_step(journey: Journey, source: Json, destination: Json) -> Step:
    losing, gaining = journey.route.source, journey.route.destination
    left, there = replicas_of(losing, source), replicas_of(gaining, destination)
    lowered, raised = journey.source - left, there - journey.destination
    if lowered < 0 or raised < 0 or lowered > raised or raised > journey.moving:
        raise VerbError(
            f"somebody else scales: the {losing} has {left} and the {gaining} {there} replicas, "
            f"which this migration did not set. Find out who, and start again."
        )
    for face, one in ((losing, source), (gaining, destination)):
        if not _is_observed(one):
            return Step(message=f"waiting for the {face} to be looked at by its controller")
    available = int(value_at(destination, ("status", "availableReplicas"), 0))
    if available < there:
        return Step(message=f"waiting for {there - available} of {there} {gaining} pods to be available")
    if raised > lowered:
        target = left - (raised - lowered)
        return Step(message=f"the {losing} goes from {left} to {target}", lower_to=target)
    if raised < journey.moving:
        target = journey.destination + min(journey.moving, lowered + journey.max_surge)
        return Step(message=f"the {gaining} goes from {there} to {target}", raise_to=target)
    return Step(message=f"{journey.moving} pods moved", is_done=True)


def _is_observed(document: Json) -> bool:
    generation: Any = value_at(document, ("metadata", "generation"), 0)
    return bool(value_at(document, ("status", "observedGeneration"), 0) >= generation)
