"""How far the rollouts of Kubernetes' own kinds have got, in the words of kubectl (KK-1)."""

from __future__ import annotations

from kruise.faces.progress import (
    NOT_ROLLING,
    Progress,
    exceeded,
    is_observed,
    is_rolling,
    number,
    partition_complete,
    partitioned,
    standing,
)
from kruise.machinery.documents import Json, name_of, value_at


def deployment(document: Json) -> Progress:
    name = name_of(document)
    wanted = number(document, "spec", "replicas", default=1)
    updated, total = number(document, "status", "updatedReplicas"), number(document, "status", "replicas")
    available = number(document, "status", "availableReplicas")
    seen = Progress(
        wanted=wanted,
        expected=wanted,
        updated=updated,
        ready=number(document, "status", "readyReplicas"),
        available=available,
        total=total,
        is_paused=bool(value_at(document, ("spec", "paused"), False)),
    )
    if not is_observed(document):
        return seen.waiting("Waiting for deployment spec update to be observed...")
    if exceeded(document):
        return seen.failed(f'deployment "{name}" exceeded its progress deadline')
    waiting = f'Waiting for deployment "{name}" rollout to finish'
    if updated < wanted:
        return seen.waiting(f"{waiting}: {updated} out of {wanted} new replicas have been updated...")
    if total > updated:
        return seen.waiting(f"{waiting}: {total - updated} old replicas are pending termination...")
    if available < updated:
        return seen.waiting(f"{waiting}: {available} of {updated} updated replicas are available...")
    return seen.done(f'deployment "{name}" successfully rolled out')


def daemon_set(document: Json) -> Progress:
    name = name_of(document)
    wanted = number(document, "status", "desiredNumberScheduled")
    updated = number(document, "status", "updatedNumberScheduled")
    available = number(document, "status", "numberAvailable")
    seen = Progress(
        wanted=wanted,
        expected=wanted,
        updated=updated,
        ready=number(document, "status", "numberReady"),
        available=available,
        total=number(document, "status", "currentNumberScheduled"),
    )
    if not is_rolling(document):
        return seen.failed(NOT_ROLLING)
    if not is_observed(document):
        return seen.waiting("Waiting for daemon set spec update to be observed...")
    waiting = f'Waiting for daemon set "{name}" rollout to finish'
    if updated < wanted:
        return seen.waiting(f"{waiting}: {updated} out of {wanted} new pods have been updated...")
    if available < wanted:
        return seen.waiting(f"{waiting}: {available} of {wanted} updated pods are available...")
    return seen.done(f'daemon set "{name}" successfully rolled out')


def stateful_set(document: Json) -> Progress:
    wanted = number(document, "spec", "replicas", default=1)
    updated, ready = number(document, "status", "updatedReplicas"), number(document, "status", "readyReplicas")
    partition = number(document, "spec", "updateStrategy", "rollingUpdate", "partition")
    update_revision = value_at(document, ("status", "updateRevision"), "")
    seen = Progress(
        wanted=wanted,
        expected=max(wanted - partition, 0),
        updated=updated,
        ready=ready,
        available=number(document, "status", "availableReplicas"),
        total=number(document, "status", "replicas"),
    )
    if not is_rolling(document):
        return seen.failed(NOT_ROLLING)
    if not number(document, "status", "observedGeneration") or not is_observed(document):
        return seen.waiting("Waiting for statefulset spec update to be observed...")
    if ready < wanted:
        return seen.waiting(f"Waiting for {wanted - ready} pods to be ready...")
    if partition > 0:
        if updated < wanted - partition:
            return seen.waiting(partitioned(updated, wanted - partition))
        return seen.done(partition_complete(updated))
    # The revisions are the same at once where a rollout is taken back, and its pods still have the other one.
    if updated < wanted or update_revision != value_at(document, ("status", "currentRevision"), ""):
        message = f"waiting for statefulset rolling update to complete {updated} pods at revision {update_revision}..."
        return seen.waiting(message)
    current = number(document, "status", "currentReplicas")
    message = f"statefulset rolling update complete {current} pods at revision {update_revision}..."
    return seen.done(message)


def job(document: Json) -> Progress:
    """A Job, which kubectl tells nothing of here: in the words of its conditions."""
    name = name_of(document)
    wanted = number(document, "spec", "completions", default=1)
    succeeded, failed = number(document, "status", "succeeded"), number(document, "status", "failed")
    active = number(document, "status", "active")
    is_paused = bool(value_at(document, ("spec", "suspend"), False))
    seen = Progress(
        wanted=wanted,
        expected=wanted,
        updated=succeeded,
        ready=number(document, "status", "ready"),
        available=succeeded,
        total=active + succeeded + failed,
        is_paused=is_paused,
    )
    counts = f"{succeeded} of {wanted} succeeded, {failed} failed, {active} active"
    if standing(document, "Complete") is not None:
        return seen.done(f'job "{name}" completed: {counts}')
    if (said := standing(document, "Failed")) is not None:
        return seen.failed(f'job "{name}" failed: {said}')
    if is_paused:
        return seen.waiting(f'job "{name}" is suspended: {counts}...')
    return seen.waiting(f'Waiting for job "{name}" to complete: {counts}...')


def cron_job(document: Json) -> Progress:
    """A CronJob has nothing to complete: when it last ran, and what is active."""
    name, status = name_of(document), value_at(document, ("status",), {})
    active = len(status.get("active") or ())
    last = status.get("lastScheduleTime")
    is_paused = bool(value_at(document, ("spec", "suspend"), False))
    ran = f"the last run is that of {last}" if last else "it has not run yet"
    paused = "; it is suspended" if is_paused else ""
    return Progress(is_paused=is_paused).done(f'cron job "{name}": {ran}, {active} active{paused}')
