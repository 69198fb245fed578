"""Numbers and percentages of a spec as counts of pods. Pure."""

from __future__ import annotations

from kruise.machinery.intorpercent import IntOrPercent, IntOrPercentError, is_percent, scaled_fraction


def absolute(value: IntOrPercent | None, replicas: int, *, round_up: bool) -> int:
    """A count of pods; what is neither a number nor a percentage counts nothing."""
    if value is None:
        return 0
    try:
        return max(0, scaled_fraction(value, replicas, round_up=round_up))
    except IntOrPercentError:
        return 0


def partition_of(value: IntOrPercent | None, replicas: int) -> int:
    """Pods to keep at old revisions (CS-70). A percentage below 100 always leaves one pod to update, else a rollout
    by small percentages would not begin."""
    count = absolute(value, replicas, round_up=True)
    if is_percent(value) and value != "100%" and replicas > 1:
        count = min(count, replicas - 1)
    return max(0, min(count, replicas))
