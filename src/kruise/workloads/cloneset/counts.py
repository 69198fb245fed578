"""How many pods a CloneSet's partition keeps. Pure, and apart from the other numbers: the face needs no more."""

from __future__ import annotations

from kruise.machinery.intorpercent import IntOrPercent, absolute, is_percent


def partition_of(value: IntOrPercent | None, replicas: int) -> int:
    """Pods to keep at old revisions (CS-70). A percentage below 100 always leaves one pod to update, else a rollout
    by small percentages would not begin."""
    count = absolute(value, replicas, round_up=True)
    if is_percent(value) and value != "100%" and replicas > 1:
        count = min(count, replicas - 1)
    return max(0, min(count, replicas))
