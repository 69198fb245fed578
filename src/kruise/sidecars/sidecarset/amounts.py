"""What numbers and percentages of an update strategy come to, in pods (SCS-93, SCS-94)."""

from __future__ import annotations

from kruise.machinery import intorpercent


def partition_of(given: int | str | None, matched: int) -> int:
    """The pods that keep the content that they have."""
    if given is None:
        return 0
    kept = pods_of(given, matched, default=0)
    if isinstance(given, str) and given != "100%" and matched > 1 and kept == matched:
        kept -= 1  # at least one pod goes forward
    return max(0, min(kept, matched))


def pods_of(given: int | str, matched: int, *, default: int) -> int:
    try:
        return max(intorpercent.scaled(given, matched, round_up=True), 0)
    except intorpercent.IntOrPercentError:
        return default  # admission refuses it; an object from before gets what one without it has
