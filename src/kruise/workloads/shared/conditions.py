"""Conditions of a workload's status: those that stand as long as something lasts, and how a set of them is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kruise.api.meta import Condition
from kruise.machinery.times import format_time
from kruise.machinery.wording import shortened

FAILURE_BUDGET = "FailureBudgetExceeded"

# A server's refusal may quote a whole object, and everybody who watches the workload gets its status.
LONGEST_MESSAGE = 1024


def lasting(kind: str, message: str, previous: Condition | None, now: datetime, *, reason: str = "") -> Condition:
    """The newest text is the useful one; the time is that of the first."""
    since = previous.last_transition_time if previous is not None and previous.status == "True" else None
    return Condition(
        type=kind,
        status="True",
        reason=reason,
        message=message,
        last_transition_time=since or now.replace(microsecond=0),
    )


def failure(kind: str, previous: Condition | None, text: str | None, now: datetime) -> Condition | None:
    """A failure is shown as long as it lasts (CS-25). An empty text ends it; None says that nobody tried, so that the
    condition stays as it is."""
    if text is None:
        return previous
    if not text:
        return None
    return lasting(kind, shortened(text, LONGEST_MESSAGE), previous, now)


def with_condition(previous: Condition | None, wanted: Condition, now: datetime) -> Condition:
    """Set a condition (CS-26): the same status and reason change nothing, the same status keeps its transition."""
    if previous is None or previous.status != wanted.status:
        changed = now
    elif previous.reason == wanted.reason:
        return previous
    else:
        changed = previous.last_transition_time or now
    return Condition(
        type=wanted.type,
        status=wanted.status,
        reason=wanted.reason,
        message=wanted.message,
        last_transition_time=changed.replace(microsecond=0),
        last_update_time=now.replace(microsecond=0),
    )


def changed(known: Iterable[Condition], changes: Mapping[str, Condition | None]) -> tuple[Condition, ...]:
    """Conditions keep their places; those of other types are left alone, and those that are None go."""
    conditions = {item.type: item for item in known}
    for kind, condition in changes.items():
        if condition is not None:
            conditions[kind] = condition
        else:
            conditions.pop(kind, None)
    return tuple(conditions.values())


def standing(conditions: Iterable[Condition]) -> set[tuple[str, str, str]]:
    """What of the conditions is worth a write. The text of a failure alone is not: refusals name the pod that was to be
    made, another one at each try."""
    return {(condition.type, condition.status, condition.reason) for condition in conditions}


def condition_form(condition: Condition) -> dict[str, str]:
    """A condition as it is written."""
    times = {
        "lastTransitionTime": condition.last_transition_time,
        "lastUpdateTime": condition.last_update_time,
        "lastProbeTime": condition.last_probe_time,
    }
    texts = {"reason": condition.reason, "message": condition.message}
    return {
        "type": condition.type,
        "status": condition.status,
        **{name: text for name, text in texts.items() if text},
        **{name: format_time(time) for name, time in times.items() if time is not None},
    }
