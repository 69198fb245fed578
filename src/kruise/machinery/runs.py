"""What CronJobs and AdvancedCronJobs have in common: which run is due, which are kept, what one is made of. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from kruise.api.resource import Resource
from kruise.machinery import plan as plans
from kruise.machinery.cron import Schedule
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Target, Wake

T = TypeVar("T")
MOST_MISSED: Final = 100
"""More missed runs than these mean that something is wrong."""
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    missed: datetime | None = None
    """The latest run that is due and was not made."""
    next: datetime | None = None
    is_too_many: bool = False
    """So many were missed that it should be told."""
    is_ahead: bool = False
    """Runs are counted from a moment in the future."""


def due(
    schedule: Schedule, *, anchor: datetime, deadline: int | None, now: datetime, floor: datetime | None = None
) -> Due:
    """`anchor`: the run before, or where the first is counted from. `deadline`: seconds after which a missed run is not
    made any more. `floor`: what was missed until then is given up already."""
    upcoming = schedule.next(now, anchor=anchor)
    base = max(anchor, earliest(now, deadline), floor or _BEGINNING)
    if base > now:
        return Due(next=upcoming, is_ahead=anchor > now)
    return Due(
        missed=schedule.last(now, after=base, anchor=anchor),
        next=upcoming,
        is_too_many=schedule.is_more_than(MOST_MISSED, after=base, until=now, anchor=anchor),
    )


def earliest(now: datetime, seconds: int | None) -> datetime:
    """Runs that were due until then are too late for a deadline of so many seconds."""
    if seconds is None:
        return _BEGINNING
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return _BEGINNING


def wakes_for(upcoming: datetime | None, now: datetime, *, later: float = 0.0) -> tuple[Wake, ...]:
    """`later`: seconds to look after the moment itself."""
    if upcoming is None:
        return ()
    left = max((upcoming - now).total_seconds() + later, 0.0)
    return (Wake(after=left, reason="the next run is due then"),)


def surplus(ended: Iterable[T], limit: int | None, begin: Callable[[T], tuple[datetime | None, str]]) -> list[T]:
    """Those that a history of so many does not keep: the oldest. `begin` tells when one began, and its name; those that
    never did are the oldest."""
    found = sorted(ended, key=lambda one: (begin(one)[0] or _BEGINNING, begin(one)[1]))
    return [] if limit is None else found[: max(len(found) - max(limit, 0), 0)]


def deletion(resource: Resource[Any], namespace: str, name: str, *, uid: str, reason: str) -> Action:
    """Of a run: what it made goes with it."""
    return plans.delete(Target(resource, namespace, name), uid=uid, reason=reason, propagation="Background")


def creation(
    resource: Resource[Any],
    *,
    owner: Owner,
    namespace: str,
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    spec: Mapping[str, Any],
    reason: str,
) -> Action:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "annotations": dict(annotations),
        "ownerReferences": [owner.reference()],
    }
    if labels:
        metadata["labels"] = dict(labels)
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    return plans.create(resource, body, reason=reason, owner_uid=owner.uid)
