"""The status of a DaemonSet: counters, the hash of its template, and whether it has to be written (DS section 3)."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.daemonset import DaemonSetStatus
from kruise.inplace.availability import is_ready_for, readiness_of, seconds_until_available
from kruise.machinery.codec import Struct, evolve
from kruise.machinery.plan import StatusEffect
from kruise.machinery.revision_names import short_hash
from kruise.workloads.daemonset.situation import Situation
from kruise.workloads.shared import statuses


class Figures(Struct):
    """What a pass counted."""

    desired: int
    current: int
    misscheduled: int
    ready: int
    available: int
    updated: int
    hash: str
    collision_count: int | None
    next_available: str = ""
    """The pod that is the next to become available, where only time is missing."""
    next_available_after: float | None = None


def figures(situation: Situation) -> Figures:
    """One pod stands for its node (DS-9). Others become available as well: a new one beside the old one, whose turn it
    is to go then (DS-103)."""
    seen = {fact.name: fact for fact in situation.observed}
    desired = current = misscheduled = ready = available = updated = 0
    seconds, now = situation.daemon_set.spec.min_ready_seconds, situation.now
    waits = [
        (left, fact.name) for fact in situation.observed if (left := seconds_until_available(fact.pod, seconds, now))
    ]
    for node in situation.nodes:
        if not node.verdict.should_run:
            misscheduled += node.exists and node.has_pods
            continue
        desired += 1
        current += node.has_pods
        chosen = node.representative
        if chosen is None:
            continue
        fact = seen.get(chosen.name, chosen)
        ready += fact.is_ready
        available += is_ready_for(readiness_of(fact.pod), seconds, now)
        updated += fact.is_new
    after, name = min(waits, default=(None, ""))
    count = situation.choice.collision_count
    return Figures(
        desired=desired,
        current=current,
        misscheduled=misscheduled,
        ready=ready,
        available=available,
        updated=updated,
        hash=short_hash(situation.update.metadata.name),
        collision_count=count if count or situation.daemon_set.status.collision_count is not None else None,
        next_available=name,
        next_available_after=after,
    )


def status_of(before: DaemonSetStatus, counted: Figures, **changes: Any) -> DaemonSetStatus:
    return evolve(
        before,
        desired_number_scheduled=counted.desired,
        current_number_scheduled=counted.current,
        number_misscheduled=counted.misscheduled,
        number_ready=counted.ready,
        number_available=counted.available,
        number_unavailable=counted.desired - counted.available,
        updated_number_scheduled=counted.updated,
        update_revision=counted.hash,
        collision_count=counted.collision_count,
        **changes,
    )


_ALWAYS = (
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberMisscheduled",
    "numberReady",
    "updatedNumberScheduled",
)


def wire_form(status: DaemonSetStatus) -> dict[str, Any]:
    """The counters that the schema requires are there even when 0; others are left out (DS-10)."""
    return statuses.wire_form(status, always=_ALWAYS)


def effect_of(old: DaemonSetStatus, new: DaemonSetStatus) -> StatusEffect:
    """Pods are counted anew at every pass, so counts decide nothing. That too many had failed cannot be worked out
    again."""
    if (old.collision_count, old.failure_budget) != (new.collision_count, new.failure_budget):
        return StatusEffect.BLOCKS
    return StatusEffect.INFORMS
