"""How far a rollout has got, and what readers of an object's status share (KK-1)."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import plural

DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
NOT_ROLLING = "rollout status is only available for RollingUpdate strategy type"


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


# Workloads of ours, from their begin to their end


def of_replicas(document: Json, *, kept: int, is_paused: bool) -> Progress:
    """What the status of a workload with replicas counts. `kept` stay at an old template."""
    wanted = number(document, "spec", "replicas", default=1)
    return Progress(
        wanted=wanted,
        expected=wanted - kept,
        updated=number(document, "status", "updatedReplicas"),
        ready=number(document, "status", "readyReplicas"),
        available=number(document, "status", "availableReplicas"),
        total=number(document, "status", "replicas"),
        is_paused=is_paused,
    )


def under_way(seen: Progress, document: Json, kind: str, *, failure_budget: str) -> Progress | None:
    """Where a workload stands whose pods are not updated as far as they should be; None: they are.

    With OnDelete a pod gets the new template when somebody deletes it, and that cannot be waited for. Where no pod has
    an older one, as at the first creation, only pods that are missing are waited for. `failure_budget` is the condition
    that tells of too many failures.
    """
    name, is_by_hand = name_of(document), not is_rolling(document)
    if not is_observed(document):
        return seen.waiting(f"Waiting for {kind} spec update to be observed...")
    if is_by_hand and seen.updated < seen.total:
        older = f"{seen.total - seen.updated} of {seen.total}"
        return seen.failed(f"{NOT_ROLLING}; pods that keep an older template until somebody deletes them: {older}")
    if exceeded(document):
        return seen.failed(f'{kind.lower()} "{name}" exceeded its progress deadline')
    if (stop := standing(document, failure_budget)) is not None:
        return seen.failed(f'{kind.lower()} "{name}" exceeded its failure budget: {stop}')
    if seen.updated < seen.expected and not is_by_hand:
        paused = f" (the {kind} is paused: kruise rollout resume lets it go on)" if seen.is_paused else ""
        return seen.waiting(f"{partitioned(seen.updated, seen.expected)}{paused}")
    return None


def incomplete(seen: Progress, *, min_ready_seconds: int) -> Progress | None:
    """Where a workload stands that has too many pods, or some that do not serve yet; None: it is complete."""
    if seen.total > seen.wanted:
        return seen.waiting(f"Waiting for {plural(seen.total - seen.wanted, 'surplus pod')} to be deleted...")
    if seen.ready < seen.wanted:
        return seen.waiting(f"Waiting for {plural(seen.wanted - seen.ready, 'pod')} to be ready...")
    if seen.available < seen.wanted and min_ready_seconds:
        return seen.waiting(unavailable(seen))
    return None


def unavailable(seen: Progress) -> str:
    return f"Waiting for {plural(seen.wanted - seen.available, 'pod')} to be available..."


def finished(seen: Progress, document: Json, message: str) -> Progress:
    """The end, in the words of the kind where the workload rolled by itself."""
    if is_rolling(document):
        return seen.done(message)
    return seen.done(f"all {seen.wanted} pods are ready and have the newest template")


# What is read from objects, and texts that others have, too


def number(document: Mapping[str, Any], *path: str, default: int = 0) -> int:
    """A whole number of an object; the default where none stands there."""
    found = value_at(document, path, default)
    return found if isinstance(found, int) else default


def is_observed(document: Json) -> bool:
    """Whether the controller has seen the newest spec."""
    return number(document, "status", "observedGeneration") >= number(document, "metadata", "generation")


def is_rolling(document: Json) -> bool:
    """By itself; with OnDelete somebody has to delete pods."""
    return bool(value_at(document, ("spec", "updateStrategy", "type"), "RollingUpdate") != "OnDelete")


def partitioned(updated: int, expected: int) -> str:
    return f"Waiting for partitioned roll out to finish: {updated} out of {expected} new pods have been updated..."


def partition_complete(updated: int) -> str:
    return f"partitioned roll out complete: {updated} new pods have been updated..."


def exceeded(document: Json) -> bool:
    """Whether the progress deadline is over."""
    conditions = value_at(document, ("status", "conditions"), ())
    return any(
        one.get("type") == "Progressing" and one.get("reason") == DEADLINE_EXCEEDED and one.get("status") == "False"
        for one in conditions
    )


def standing(document: Json, kind: str) -> str | None:
    """The message of a condition that is true; None where there is none."""
    conditions = value_at(document, ("status", "conditions"), ())
    return next(
        (str(one.get("message", "")) for one in conditions if one.get("type") == kind and one.get("status") == "True"),
        None,
    )
