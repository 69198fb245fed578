"""How far a rollout has got, by kind, from the object alone (KK-1).

The texts of the native kinds are kubectl's. A CloneSet counts as done when the controller has seen its newest spec,
as many pods as the partition allows are updated, no surplus pod is left, and all are ready (and, with
minReadySeconds, available).
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any

from kruise.verbs.documents import Json, name_of, value_at
from kruise.workloads.cloneset.counts import partition_of
from kruise.workloads.conditions import FAILURE_BUDGET

DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
_NOT_ROLLING = "rollout status is only available for RollingUpdate strategy type"


class Phase(enum.StrEnum):
    PROGRESSING = "Progressing"
    DONE = "Done"
    FAILED = "Failed"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a rollout stands."""

    phase: Phase = Phase.PROGRESSING
    message: str = ""
    wanted: int = 0
    """Pods that there should be."""
    expected: int = 0
    """Pods that should get the new template."""
    updated: int = 0
    ready: int = 0
    available: int = 0
    total: int = 0
    is_paused: bool = False

    @property
    def is_over(self) -> bool:
        return self.phase is not Phase.PROGRESSING

    def as_data(self) -> dict[str, Any]:
        """For programs."""
        data = dataclasses.asdict(self)
        data["paused"] = data.pop("is_paused")
        return data | {"phase": self.phase.value}

    def waiting(self, message: str) -> Progress:
        return dataclasses.replace(self, message=message)

    def done(self, message: str) -> Progress:
        return dataclasses.replace(self, phase=Phase.DONE, message=message)

    def failed(self, message: str) -> Progress:
        return dataclasses.replace(self, phase=Phase.FAILED, message=message)


Reader = Callable[[Json], Progress]


def _number(document: Mapping[str, Any], *path: str, default: int = 0) -> int:
    found = value_at(document, path, default)
    return found if isinstance(found, int) else default


def _is_observed(document: Json) -> bool:
    return _number(document, "status", "observedGeneration") >= _number(document, "metadata", "generation")


def deployment(document: Json) -> Progress:
    name = name_of(document)
    wanted = _number(document, "spec", "replicas", default=1)
    updated, total = _number(document, "status", "updatedReplicas"), _number(document, "status", "replicas")
    available = _number(document, "status", "availableReplicas")
    seen = Progress(
        wanted=wanted,
        expected=wanted,
        updated=updated,
        ready=_number(document, "status", "readyReplicas"),
        available=available,
        total=total,
        is_paused=bool(value_at(document, ("spec", "paused"), False)),
    )
    if not _is_observed(document):
        return seen.waiting("Waiting for deployment spec update to be observed...")
    if _exceeded(document):
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
    wanted = _number(document, "status", "desiredNumberScheduled")
    updated = _number(document, "status", "updatedNumberScheduled")
    available = _number(document, "status", "numberAvailable")
    seen = Progress(
        wanted=wanted,
        expected=wanted,
        updated=updated,
        ready=_number(document, "status", "numberReady"),
        available=available,
        total=_number(document, "status", "currentNumberScheduled"),
    )
    if not _is_rolling(document):
        return seen.failed(_NOT_ROLLING)
    if not _is_observed(document):
        return seen.waiting("Waiting for daemon set spec update to be observed...")
    waiting = f'Waiting for daemon set "{name}" rollout to finish'
    if updated < wanted:
        return seen.waiting(f"{waiting}: {updated} out of {wanted} new pods have been updated...")
    if available < wanted:
        return seen.waiting(f"{waiting}: {available} of {wanted} updated pods are available...")
    return seen.done(f'daemon set "{name}" successfully rolled out')


def stateful_set(document: Json) -> Progress:
    wanted = _number(document, "spec", "replicas", default=1)
    updated, ready = _number(document, "status", "updatedReplicas"), _number(document, "status", "readyReplicas")
    partition = _number(document, "spec", "updateStrategy", "rollingUpdate", "partition")
    update_revision = value_at(document, ("status", "updateRevision"), "")
    seen = Progress(
        wanted=wanted,
        expected=max(wanted - partition, 0),
        updated=updated,
        ready=ready,
        available=_number(document, "status", "availableReplicas"),
        total=_number(document, "status", "replicas"),
    )
    if not _is_rolling(document):
        return seen.failed(_NOT_ROLLING)
    if not _number(document, "status", "observedGeneration") or not _is_observed(document):
        return seen.waiting("Waiting for statefulset spec update to be observed...")
    if ready < wanted:
        return seen.waiting(f"Waiting for {wanted - ready} pods to be ready...")
    if partition > 0:
        if updated < wanted - partition:
            return seen.waiting(_partitioned(updated, wanted - partition))
        return seen.done(_partition_complete(updated))
    if update_revision != value_at(document, ("status", "currentRevision"), ""):
        message = f"waiting for statefulset rolling update to complete {updated} pods at revision {update_revision}..."
        return seen.waiting(message)
    current = _number(document, "status", "currentReplicas")
    message = f"statefulset rolling update complete {current} pods at revision {update_revision}..."
    return seen.done(message)


def cloneset(document: Json) -> Progress:
    """KK-1, waiting for more than its letter asks: see the head of this module."""
    name = name_of(document)
    wanted = _number(document, "spec", "replicas", default=1)
    rolling = value_at(document, ("spec", "updateStrategy", "rollingUpdate"), {})
    kept = partition_of(rolling.get("partition"), wanted)
    expected = wanted - kept
    updated, total = _number(document, "status", "updatedReplicas"), _number(document, "status", "replicas")
    ready, available = _number(document, "status", "readyReplicas"), _number(document, "status", "availableReplicas")
    is_paused = bool(rolling.get("paused"))
    seen = Progress(
        wanted=wanted,
        expected=expected,
        updated=updated,
        ready=ready,
        available=available,
        total=total,
        is_paused=is_paused,
    )
    if not _is_rolling(document):
        return seen.failed(_NOT_ROLLING)
    if not _is_observed(document):
        return seen.waiting("Waiting for CloneSet spec update to be observed...")
    if _exceeded(document):
        return seen.failed(f'cloneset "{name}" exceeded its progress deadline')
    if (stop := _stopped(document)) is not None:
        return seen.failed(f'cloneset "{name}" exceeded its failure budget: {stop}')
    if updated < expected:
        paused = " (the CloneSet is paused: kruise rollout resume lets it go on)" if is_paused else ""
        return seen.waiting(f"{_partitioned(updated, expected)}{paused}")
    if total > wanted:
        return seen.waiting(f"Waiting for {total - wanted} surplus pods to be deleted...")
    if ready < wanted:
        return seen.waiting(f"Waiting for {wanted - ready} pods to be ready...")
    if available < wanted and _number(document, "spec", "minReadySeconds"):
        return seen.waiting(f"Waiting for {wanted - available} pods to be available...")
    in_place = str(rolling.get("podUpdatePolicy", "")).startswith("InPlace")
    if in_place or kept:
        return seen.done(_partition_complete(updated))
    revision = value_at(document, ("status", "updateRevision"), "")
    message = f"CloneSet rolling update complete {updated} pods at revision {revision}..."
    return seen.done(message)


def _partitioned(updated: int, expected: int) -> str:
    return f"Waiting for partitioned roll out to finish: {updated} out of {expected} new pods have been updated..."


def _partition_complete(updated: int) -> str:
    return f"partitioned roll out complete: {updated} new pods have been updated..."


def _is_rolling(document: Json) -> bool:
    return value_at(document, ("spec", "updateStrategy", "type"), "RollingUpdate") in ("", "RollingUpdate")


def _stopped(document: Json) -> str | None:
    """Why the rollout stopped by itself."""
    conditions = value_at(document, ("status", "conditions"), ())
    return next(
        (
            str(one.get("message", ""))
            for one in conditions
            if one.get("type") == FAILURE_BUDGET and one.get("status") == "True"
        ),
        None,
    )


def _exceeded(document: Json) -> bool:
    conditions = value_at(document, ("status", "conditions"), ())
    return any(
        one.get("type") == "Progressing" and one.get("reason") == DEADLINE_EXCEEDED and one.get("status") == "False"
        for one in conditions
    )
