"""`scale`, and `scaledown`, which names the pods that have to go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kruise import kinds
from kruise.faces.face import Face
from kruise.faces.progress import Phase, Progress
from kruise.machinery.documents import Json, name_of, value_at, with_value
from kruise.machinery.wording import with_article
from kruise.verbs.errors import UsageError, VerbError

_PODS_TO_DELETE = ("spec", "scaleStrategy", "podsToDelete")


def replicas_of(kind: Face, document: Json) -> int:
    """How many pods are asked for; an object that does not say asks for one."""
    return int(value_at(document, replicas_path(kind), 1))


def replicas_path(kind: Face) -> tuple[str, ...]:
    if kind.replicas is None:
        raise VerbError(f"{with_article(str(kind))} cannot be scaled: it has no replicas")
    return kind.replicas


def check_precondition(kind: Face, document: Json, *, current: int, resource_version: str) -> None:
    """Refuse where the object is not as the caller thinks."""
    named, found = kind.named(name_of(document)), replicas_of(kind, document)
    if current >= 0 and found != current:
        raise VerbError(f"{named}: expected replicas to be {current}, was {found}")
    version = value_at(document, ("metadata", "resourceVersion"), "")
    if resource_version and version != resource_version:
        raise VerbError(f"{named}: expected resource version to be {resource_version}, was {version}")


def scaled(kind: Face, document: Json, replicas: int) -> Json:
    return with_value(document, replicas_path(kind), replicas)


def must_follow(kind: Face, document: Json) -> None:
    """Refuse a number of replicas that no pods follow."""
    if why := kind.unscalable_why(document):
        raise VerbError(f"{kind.named(name_of(document))} cannot have {replicas_of(kind, document)} replicas: {why}")


def scaling_progress(progress: Progress) -> Progress:
    """How far it is, for whoever follows it: pods were added or taken away, and no template was rolled out."""
    if progress.phase is not Phase.DONE:
        return progress
    return progress.done(f"scaled: {progress.ready} of {progress.wanted} pods are ready")


def without_pods(kind: Face, document: Json, pods: Sequence[str], existing: Sequence[Any]) -> Json:
    """The object with so many replicas less, and the pods' names in `podsToDelete`.

    `existing` are the pods that it has: a name that is not among them would lower the replicas, and another pod would
    have to go instead.
    """
    named = kind.named(name_of(document))
    if not kind.can_scale_down_by_name:
        able = ", ".join(f"{face}s" for face in kinds.faces() if face.can_scale_down_by_name)
        one = with_article(str(kind))
        raise VerbError(f"{named}: scaledown works for {able}; {one} decides itself which of its pods go")
    wanted = list(dict.fromkeys(pods))
    if not wanted:
        raise UsageError("name the pods to delete: --pods NAME[,NAME...]")
    known = [name_of(pod) for pod in existing]
    strangers = [name for name in wanted if name not in known]
    if strangers:
        raise VerbError(f"{named} has no pod {', '.join(strangers)}; its pods are {', '.join(sorted(known)) or 'none'}")
    listed = list(value_at(document, _PODS_TO_DELETE, ()))
    fresh = [name for name in wanted if name not in listed]
    if not fresh:
        return document
    replicas = replicas_of(kind, document)
    if len(fresh) > replicas:
        raise VerbError(f"{named} asks for {replicas} pods and cannot lose {len(fresh)}")
    changed = scaled(kind, document, replicas - len(fresh))
    return with_value(changed, _PODS_TO_DELETE, [*listed, *fresh])
