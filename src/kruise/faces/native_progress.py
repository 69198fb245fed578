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
