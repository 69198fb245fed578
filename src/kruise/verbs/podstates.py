"""The pods of a workload: which belong to it, which template each has, and one word for how it is."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kruise.api.meta import controller_of
from kruise.api.native.container_reasons import GOING_WELL, NO_IMAGE, NO_START
from kruise.api.native.pod import ContainerStatus, Pod, condition, is_ready, ready_since
from kruise.faces.face import Face, History, Pods
from kruise.inplace import keys
from kruise.inplace.barriers import waits_for_turn
from kruise.machinery.documents import Json, name_of, uid_of, value_at
from kruise.machinery.revision_names import is_of, is_revision
from kruise.verbs.history import TEMPLATE_HASH, Revision

UPDATING = "Updating"
PREPARING_UPDATE = "PreparingUpdate"
_QUIET = ("", "Normal", "PreparingNormal", "Updated")


class Side(enum.StrEnum):
    """Where a pod stands in a rollout."""

    DONE = "done"
    """It has the new template and is ready."""
    MOVING = "moving"
    """It is on its way: being updated, started, or deleted."""
    OLD = "old"
    """It has an older template and nobody touches it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    name: str
    revision: int
    """Number of the revision of its template; 0 where that is not known."""
    is_new: bool
    is_ready: bool
    state: str
    """Ready, NotReady, Updating, PreparingDelete, Terminating, Pending, ImagePullBackOff, ..."""
    containers: str
    """How many of them are ready: `1/2`."""
    restarts: int
    node: str
    created: datetime | None
    ready_since: datetime | None = None
    message: str = ""

    def as_data(self) -> dict[str, Any]:
        """For programs."""
        data = dataclasses.asdict(self)
        del data["created"], data["ready_since"]
        return data | {"updated": data.pop("is_new"), "ready": data.pop("is_ready")}

    @property
    def side(self) -> Side:
        if self.is_new:
            return Side.DONE if self.is_ready and self.state == "Ready" else Side.MOVING
        return Side.OLD if self.state in ("Ready", "NotReady") or self.state in _STUCK else Side.MOVING


_STUCK = NO_IMAGE | NO_START | {"Failed", "Error", "Pending"}


def pods_of(kind: Face, document: Json, pods: Iterable[Pod], revisions: Sequence[Revision]) -> list[Pod]:
    """The pods that belong to a workload: its own, or those of its ReplicaSets."""
    if kind.contribution is not None:
        revision_of, name = kind.contribution.revision_of, name_of(document)
        return [pod for pod in pods if revision_of(pod.metadata.annotations, name)]
    if kind.history is not History.REPLICA_SETS:
        return [pod for pod in pods if is_member(kind, document, pod)]
    owners = {uid_of(revision.source) for revision in revisions}
    found = []
    for pod in pods:
        owner = controller_of(pod)
        if owner is not None and owner.uid in owners:
            found.append(pod)
    return found


def states(kind: Face, document: Json, pods: Iterable[Pod], revisions: Sequence[Revision]) -> list[PodState]:
    """Newest template first, then by name."""
    newest = newest_revision(kind, document, revisions)
    found = []
    for pod in pods_of(kind, document, pods, revisions):
        revision = _revision(kind, document, pod, revisions)
        if kind.contribution is not None:
            is_new = kind.contribution.is_current(pod.metadata.annotations, document)
        elif kind.history is None:
            is_new = is_revision(_label(kind, pod), value_at(document, kind.revision_field, ""))
        else:
            is_new = revision is not None and newest is not None and revision.number == newest.number
        found.append(_state(pod, revision.number if revision else 0, is_new))
    return sorted(found, key=lambda pod: (-pod.revision, pod.name))


def newest_revision(kind: Face, document: Json, revisions: Sequence[Revision]) -> Revision | None:
    """The revision of the present template: the one that the status names, or the last."""
    name = value_at(document, kind.revision_field, "")
    return next((one for one in revisions if name and one.name == name), revisions[-1] if revisions else None)


def _revision(kind: Face, document: Json, pod: Pod, revisions: Sequence[Revision]) -> Revision | None:
    if kind.contribution is not None:
        named = kind.contribution.revision_of(pod.metadata.annotations, name_of(document))
        return next((one for one in revisions if one.name == named), None)
    if kind.history is History.REPLICA_SETS:
        owner = controller_of(pod)
        return next((one for one in revisions if owner is not None and uid_of(one.source) == owner.uid), None)
    return next((one for one in revisions if is_revision(_label(kind, pod), one.name)), None)


def _label(kind: Face, pod: Pod) -> str:
    return pod.metadata.labels.get(kind.revision_label, "") or pod.metadata.labels.get(TEMPLATE_HASH, "")


def is_member(kind: Face, document: Json, pod: Pod) -> bool:
    """Whether a pod is one of a workload's own, or of the workloads that it makes: these name its revision."""
    if kind.is_ours and kind.pods is Pods.CHILDREN:
        return is_of(pod.metadata.labels.get(kind.revision_label, ""), name_of(document))
    owner = controller_of(pod)
    return owner is not None and owner.uid == uid_of(document)


def _state(pod: Pod, revision: int, is_new: bool) -> PodState:
    word, message = _word(pod)
    ready, since = ready_since(pod)
    statuses = pod.status.container_statuses
    return PodState(
        name=pod.metadata.name,
        revision=revision,
        is_new=is_new,
        is_ready=ready,
        state=word,
        containers=f"{sum(one.ready for one in statuses)}/{len(pod.spec.containers)}",
        restarts=sum(one.restart_count for one in statuses),
        node=pod.spec.node_name,
        created=pod.metadata.creation_timestamp,
        ready_since=since,
        message=message,
    )


def _word(pod: Pod) -> tuple[str, str]:
    if pod.metadata.deletion_timestamp is not None:
        return "Terminating", ""
    if pod.status.phase in ("Failed", "Succeeded"):
        return pod.status.reason or pod.status.phase, pod.status.message
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    trouble = _trouble(status for status in statuses if not waits_for_turn(pod, status))
    if trouble is not None:
        return trouble
    lifecycle = pod.metadata.labels.get(keys.STATE_LABEL, "")
    if lifecycle not in _QUIET:
        return lifecycle, ""
    in_place = condition(pod, keys.IN_PLACE_READY)
    if in_place is not None and in_place.status == "False":
        return UPDATING, ""
    if is_ready(pod):
        return "Ready", ""
    if not pod.spec.node_name:
        scheduled = condition(pod, "PodScheduled")
        return "Pending", scheduled.message if scheduled is not None else ""
    if pod.status.phase == "Pending":
        return "Starting", ""
    return "NotReady", ""


def _trouble(statuses: Iterable[ContainerStatus]) -> tuple[str, str] | None:
    for status in statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in GOING_WELL:
            return waiting.reason, waiting.message
        terminated = status.state.terminated
        if terminated is not None and terminated.exit_code != 0:
            return terminated.reason or "Error", terminated.message
    return None
