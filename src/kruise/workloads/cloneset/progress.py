"""The condition `Progressing`: whether a rollout gets on, ended, waits on purpose, or takes too long (CS-115..119)."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from kruise.api.meta import Condition
from kruise.inplace.availability import latest_meaning
from kruise.workloads.shared.conditions import with_condition

PROGRESSING = "Progressing"

AVAILABLE = "CloneSetAvailable"
PAUSED = "CloneSetPaused"
PARTITION_AVAILABLE = "ProgressPartitionAvailable"
EXCEEDED = "ProgressDeadlineExceeded"
UPDATED = "CloneSetUpdated"

NO_DEADLINE = 2**31 - 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProgressFigures:
    """The figures that the condition depends on."""

    wanted: int
    """Pods as asked for."""
    existing: int
    updated: int
    updated_available: int
    expected_updated: int
    """Pods that the partition lets go to the update revision."""
    current_revision: str
    update_revision: str
    is_paused: bool


def progressing(
    previous: Condition | None, rollout: ProgressFigures, *, deadline_seconds: int | None, now: datetime
) -> Condition | None:
    """The condition as it is from now on; None: there is none, since no deadline is asked for (CS-115)."""
    if deadline_seconds is None or deadline_seconds == NO_DEADLINE:
        return None
    status, reason, message = _row(previous, rollout, deadline_seconds, now)
    wanted = Condition(type=PROGRESSING, status=status, reason=reason, message=message)
    return with_condition(previous, wanted, now)


def _row(
    previous: Condition | None, rollout: ProgressFigures, deadline_seconds: int, now: datetime
) -> tuple[str, str, str]:
    """The first row of CS-116 that matches."""
    wanted, expected = rollout.wanted, rollout.expected_updated
    everyone_available = wanted == rollout.existing == rollout.updated == rollout.updated_available
    if rollout.current_revision == rollout.update_revision and everyone_available:
        return "True", AVAILABLE, "CloneSet is available"
    if rollout.is_paused:
        return "True", PAUSED, "CloneSet is paused"
    if expected < wanted and expected <= rollout.updated_available:
        return "True", PARTITION_AVAILABLE, "CloneSet has been paused due to partition ready"
    if _is_exceeded(previous, deadline_seconds, now):
        return "False", EXCEEDED, f"CloneSet revision {rollout.update_revision} has timed out progressing"
    return "True", UPDATED, "CloneSet is progressing"


def _is_exceeded(previous: Condition | None, deadline_seconds: int, now: datetime) -> bool:
    """CS-117: sticky once exceeded; the clock runs only while the rollout is said to progress."""
    if previous is None:
        return False
    if previous.reason == EXCEEDED:
        return True
    ends = deadline_of(previous, deadline_seconds)
    return ends is not None and now >= ends


def deadline_of(condition: Condition | None, deadline_seconds: int | None) -> datetime | None:
    """The moment from which on the rollout has taken too long (CS-118); None: no clock is running."""
    if condition is None or condition.reason != UPDATED or deadline_seconds is None:
        return None
    began = condition.last_update_time or condition.last_transition_time
    return latest_meaning(began) + timedelta(seconds=deadline_seconds) if began is not None else None
