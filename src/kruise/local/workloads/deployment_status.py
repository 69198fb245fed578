"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure (pure)."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

from kruise.api.meta import Condition
from kruise.local.workloads import conditions as among
from kruise.local.workloads.conditions import Conditions, whole_second
from kruise.local.workloads.objects import Deployment, DeploymentStatus
from kruise.local.workloads.rollout import FOREVER, Group
from kruise.machinery.codec import evolve

AVAILABLE = "Available"
PROGRESSING = "Progressing"
REPLICA_FAILURE = "ReplicaFailure"
NEW_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a pass knows after its writes."""

    deployment: Deployment
    replicas: int
    fewest: int
    groups: list[Group]
    new: Group | None
    estimates_progress: bool
    created: bool
    """The new ReplicaSet was made in this pass."""
    creation_error: str
    collides: bool
    now: datetime


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, FOREVER)


def is_complete(deployment: Deployment, status: DeploymentStatus, replicas: int) -> bool:
    return (
        status.updated_replicas == replicas
        and status.replicas == replicas
        and status.available_replicas == replicas
        and status.observed_generation >= deployment.metadata.generation
    )


def work_out(facts: Facts) -> DeploymentStatus:
    deployment = facts.deployment
    known = _pause(facts, deployment.status.conditions)
    known = _creation(facts, known)
    status = _counts(facts, known)
    if not facts.estimates_progress:
        return status
    return evolve(status, conditions=_failures(facts, _progress(facts, status, known)))


def _counts(facts: Facts, known: Conditions) -> DeploymentStatus:
    deployment = facts.deployment
    present = [group.known.status for group in facts.groups if group.known is not None]
    available = sum(item.available_replicas for item in present)
    updated = facts.new.known.status.replicas if facts.new is not None and facts.new.known is not None else 0
    enough = available >= facts.fewest
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    collisions = deployment.status.collision_count
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(item.replicas for item in present),
        updated_replicas=updated,
        ready_replicas=sum(item.ready_replicas for item in present),
        available_replicas=available,
        unavailable_replicas=max(0, sum(group.size for group in facts.groups) - available),
        conditions=_put(known, AVAILABLE, "True" if enough else "False", reason, message, facts.now),
        collision_count=(collisions or 0) + 1 if facts.collides else collisions,
    )


def _put(known: Conditions, kind: str, status: str, reason: str, message: str, now: datetime) -> Conditions:
    """A condition with the same status and reason stays as it is; one with the same status keeps its transition."""
    current = among.find(known, kind)
    if current is not None and (current.status, current.reason) == (status, reason):
        return known
    moment = whole_second(now)
    same = current is not None and current.status == status
    transition = current.last_transition_time if same and current is not None else moment
    added = Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_update_time=moment,
        last_transition_time=transition,
    )
    return (*among.without(known, kind), added)


def _pause(facts: Facts, known: Conditions) -> Conditions:
    """A pause stops the clock of the deadline: it starts anew when the Deployment is resumed."""
    deployment = facts.deployment
    current = among.find(known, PROGRESSING)
    if not has_deadline(deployment) or deployment.metadata.deletion_timestamp is not None:
        return known
    if current is not None and current.reason == TIMED_OUT:
        return known
    shown = current is not None and current.reason == PAUSED
    if deployment.spec.paused and not shown:
        return _put(known, PROGRESSING, "Unknown", PAUSED, "Deployment is paused", facts.now)
    if not deployment.spec.paused and shown:
        return _put(known, PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", facts.now)
    return known


def _creation(facts: Facts, known: Conditions) -> Conditions:
    if not has_deadline(facts.deployment) or facts.new is None:
        return known
    name = facts.new.name
    if facts.created:
        message = f'Created new replica set "{name}"'
        return _put(known, PROGRESSING, "True", "NewReplicaSetCreated", message, facts.now)
    if facts.creation_error:
        message = f'Failed to create new replica set "{name}": {facts.creation_error}'
        return _put(known, PROGRESSING, "False", "ReplicaSetCreateError", message, facts.now)
    if facts.new.known is not None and among.find(known, PROGRESSING) is None:
        message = f'Found new replica set "{name}"'
        return _put(known, PROGRESSING, "True", "FoundNewReplicaSet", message, facts.now)
    return known


def _progress(facts: Facts, status: DeploymentStatus, known: Conditions) -> Conditions:
    deployment = facts.deployment
    conditions = status.conditions
    if not has_deadline(deployment):
        return among.without(conditions, PROGRESSING)
    current = among.find(known, PROGRESSING)
    if status.replicas == status.updated_replicas and current is not None and current.reason == NEW_AVAILABLE:
        return conditions
    subject = f'ReplicaSet "{facts.new.name}"' if facts.new is not None else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, status, facts.replicas):
        message = f"{subject} has successfully progressed."
        return _put(conditions, PROGRESSING, "True", NEW_AVAILABLE, message, facts.now)
    if _moved(deployment.status, status):
        moment = whole_second(facts.now)
        kept = current.last_transition_time if current is not None and current.status == "True" else moment
        progressing = Condition(
            type=PROGRESSING,
            status="True",
            reason="ReplicaSetUpdated",
            message=f"{subject} is progressing.",
            last_update_time=moment,
            last_transition_time=kept,
        )
        return (*among.without(conditions, PROGRESSING), progressing)
    if _timed_out(deployment, conditions, facts.now):
        message = f"{subject} has timed out progressing."
        return _put(conditions, PROGRESSING, "False", TIMED_OUT, message, facts.now)
    return conditions


def _moved(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    """Whether anything got better since the last status."""
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _timed_out(deployment: Deployment, known: Conditions, now: datetime) -> bool:
    current = among.find(known, PROGRESSING)
    deadline = deployment.spec.progress_deadline_seconds
    if current is None or deadline is None or current.reason == NEW_AVAILABLE:
        return False
    if current.reason == TIMED_OUT:
        return True
    since = current.last_update_time
    return since is not None and since + timedelta(seconds=deadline) < now


def _failures(facts: Facts, known: Conditions) -> Conditions:
    """A failure of the new ReplicaSet is shown before one of the old."""
    new_first = sorted(facts.groups, key=lambda group: group is not facts.new)
    for group in new_first:
        failure = among.find(group.known.status.conditions, REPLICA_FAILURE) if group.known is not None else None
        if failure is not None:
            current = among.find(known, REPLICA_FAILURE)
            if current is not None and (current.status, current.reason) == (failure.status, failure.reason):
                return known
            shown = evolve(failure, last_update_time=failure.last_transition_time)
            return (*among.without(known, REPLICA_FAILURE), shown)
    return among.without(known, REPLICA_FAILURE)


def next_progress_check(deployment: Deployment, status: DeploymentStatus, replicas: int, now: datetime) -> float | None:
    """Seconds until a Deployment that does not move has passed its deadline."""
    current = among.find(status.conditions, PROGRESSING)
    deadline = deployment.spec.progress_deadline_seconds
    if not has_deadline(deployment) or deadline is None or current is None or current.last_update_time is None:
        return None
    if is_complete(deployment, status, replicas) or current.reason == TIMED_OUT:
        return None
    left = (current.last_update_time + timedelta(seconds=deadline) - now).total_seconds()
    return max(0.0, left) + 1.0  # times on the wire have no fractions


def to_json(status: DeploymentStatus) -> dict[str, Any]:
    numbers = {
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas,
        "updatedReplicas": status.updated_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "unavailableReplicas": status.unavailable_replicas,
    }
    body: dict[str, Any] = {key: number for key, number in numbers.items() if number}
    if status.conditions:
        body["conditions"] = [among.to_json(item) for item in status.conditions]
    if status.collision_count is not None:
        body["collisionCount"] = status.collision_count
    return body
