"""Numbers and percentages of a spec as counts of pods. Pure."""

from __future__ import annotations

from kruise.machinery.intorpercent import IntOrPercent, IntOrPercentError, scaled_fraction


def absolute(value: IntOrPercent | None, replicas: int, *, round_up: bool) -> int:
    """A count of pods; what is neither a number nor a percentage counts nothing."""
    if value is None:
        return 0
    try:
        return max(0, scaled_fraction(value, replicas, round_up=round_up))
    except IntOrPercentError:
        return 0
