"""How many pods a subset takes, and of how many replicas its percentage is (WS-12, WS-29, WS-30)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.apps.shared import IntOrPercent
from kruise.api.apps.workloadspread import Subset, WorkloadSpreadSpec
from kruise.machinery import intorpercent
from kruise.machinery.intorpercent import IntOrPercentError


class PathError(ValueError):
    """A path does not lead to a number; the text says where it ends."""


def limit_of(subset: Subset, replicas: int | None) -> int | None:
    """None: there is none. A percentage of replicas that nobody knows is 0, as if the target were missing."""
    return scaled(subset.max_replicas, replicas)


def scaled(value: IntOrPercent | None, replicas: int | None) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, str) and not value.endswith("%"):
            return max(0, int(value))  # "5" is accepted, and means 5
        return max(0, intorpercent.scaled(value, replicas or 0, round_up=True))
    except (IntOrPercentError, ValueError):
        return 0  # admission refuses it; what got past takes no pods


def has_percentages(spec: WorkloadSpreadSpec) -> bool:
    return any(intorpercent.is_percent(subset.max_replicas) for subset in spec.subsets)


def is_single_unlimited(spec: WorkloadSpreadSpec) -> bool:
    """WS-20: nothing has to be counted."""
    return len(spec.subsets) == 1 and spec.subsets[0].max_replicas is None


def sum_at(document: Any, paths: Iterable[str]) -> int:
    """The sum of the numbers at these paths. Raises PathError."""
    return sum(number_at(document, path) for path in paths)


def number_at(document: Any, path: str) -> int:
    if not path:
        return 0
    found, walked = document, ""
    for step in path.split("."):
        where = f"at {walked!r}" if walked else "at the top"
        if isinstance(found, dict):
            if step not in found:
                raise PathError(f"path {path!r} leads nowhere: there is no {step!r} {where}")
            found = found[step]
        elif isinstance(found, list):
            if not step.isascii() or not step.isdigit() or int(step) >= len(found):
                raise PathError(f"path {path!r} leads nowhere: {step!r} is no index of the list {where}")
            found = found[int(step)]
        else:
            raise PathError(f"path {path!r} leads nowhere: there is neither an object nor a list {where}")
        walked = f"{walked}.{step}" if walked else step
    if isinstance(found, bool) or not isinstance(found, int):
        raise PathError(f"path {path!r} leads to no whole number")
    return found
