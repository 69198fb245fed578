"""Conditions that stand as long as something lasts, and are taken away when it is over."""

from __future__ import annotations

from datetime import datetime

from kruise.api.meta import Condition

FAILURE_BUDGET = "FailureBudgetExceeded"


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
