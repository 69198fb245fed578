"""The status of a CloneSet: counters, revisions, conditions, and whether it has to be written (CS section 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kruise.api.apps.cloneset import CloneSet, CloneSetStatus
from kruise.api.apps.shared import FailureBudgetStatus
from kruise.api.meta import Condition
from kruise.machinery.plan import StatusEffect, Wake
from kruise.machinery.selectors import from_label_selector
from kruise.workloads.cloneset.progress import PROGRESSING, ProgressFigures, progressing
from kruise.workloads.cloneset.situation import Situation
from kruise.workloads.shared import conditions, statuses
from kruise.workloads.shared.pod_facts import next_available

FAILED_SCALE = "FailedScale"
FAILED_UPDATE = "FailedUpdate"
NO_CONDITIONS: Mapping[str, Condition | None] = {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures(ProgressFigures):
    """What a pass counted. The plan carries it, so that the status is not counted a second time."""

    ready: int
    available: int
    updated_ready: int
    collision_count: int
    label_selector: str
    next_available: Wake | None = None
    """When the next pod becomes available for which only time is missing."""


def figures(situation: Situation, *, current_revision: str | None = None) -> Figures:
    """Count the pods that the CloneSet keeps. Those that are about to be deleted count as long as they are active.

    `current_revision`: what a failure budget makes of it; None: the rule without one.
    """
    spec, replicas = situation.cloneset.spec, situation.replicas
    ready = available = updated = updated_ready = updated_available = 0
    for fact in situation.observed:
        ready += fact.is_ready
        available += fact.is_available
        if fact.is_new:
            updated += 1
            updated_ready += fact.is_ready
            updated_available += fact.is_available
    existing = len(situation.observed)
    update_revision = situation.update.metadata.name
    if current_revision is None:
        everyone_updated = updated == existing == replicas
        current_revision = update_revision if everyone_updated else situation.current.metadata.name
    return Figures(
        wanted=replicas,
        existing=existing,
        ready=ready,
        available=available,
        updated=updated,
        updated_ready=updated_ready,
        updated_available=updated_available,
        expected_updated=replicas - situation.limits.partition,
        update_revision=update_revision,
        current_revision=current_revision,
        is_paused=situation.limits.is_paused,
        collision_count=situation.choice.collision_count,
        label_selector=str(from_label_selector(spec.selector)),
        next_available=next_available(situation.observed, spec.min_ready_seconds, situation.now),
    )


def status_of(
    cloneset: CloneSet,
    figures: Figures,
    *,
    now: datetime,
    failed_scale: str | None = "",
    failed_update: str | None = "",
    standing: Mapping[str, Condition | None] = NO_CONDITIONS,
    failure_budget: FailureBudgetStatus | None = None,
) -> CloneSetStatus:
    """The status from now on.

    A failure is told by its text. An empty one means that the phase worked out, which clears the condition. None means
    that this pass cannot tell, so the condition stays as it is. `standing` are further conditions, None for those that
    are not to be there. `failure_budget` is what is remembered of a rollout that stopped by itself.
    """
    failures = {FAILED_SCALE: failed_scale, FAILED_UPDATE: failed_update}
    return CloneSetStatus(
        observed_generation=cloneset.metadata.generation,
        replicas=figures.existing,
        ready_replicas=figures.ready,
        available_replicas=figures.available,
        updated_replicas=figures.updated,
        updated_ready_replicas=figures.updated_ready,
        updated_available_replicas=figures.updated_available,
        expected_updated_replicas=figures.expected_updated,
        update_revision=figures.update_revision,
        current_revision=figures.current_revision,
        collision_count=figures.collision_count,
        conditions=_conditions(cloneset, figures, failures, standing, now),
        label_selector=figures.label_selector,
        failure_budget=failure_budget,
    )


def _conditions(
    cloneset: CloneSet,
    rollout: ProgressFigures,
    failures: Mapping[str, str | None],
    standing: Mapping[str, Condition | None],
    now: datetime,
) -> tuple[Condition, ...]:
    known = {item.type: item for item in cloneset.status.conditions}
    changes = {kind: conditions.failure(kind, known.get(kind), text, now) for kind, text in failures.items()}
    deadline = cloneset.spec.progress_deadline_seconds
    changes[PROGRESSING] = progressing(known.get(PROGRESSING), rollout, deadline_seconds=deadline, now=now)
    return conditions.changed(cloneset.status.conditions, {**changes, **standing})


_ALWAYS = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "updatedReplicas",
    "updatedReadyReplicas",
    "updatedAvailableReplicas",
    "collisionCount",
)
_COUNTS = (
    "replicas",
    "ready_replicas",
    "available_replicas",
    "updated_replicas",
    "updated_ready_replicas",
    "updated_available_replicas",
    "expected_updated_replicas",
)


def wire_form(status: CloneSetStatus) -> dict[str, Any]:
    """The counters that the schema requires and those that `kubectl get` shows are there even when 0, and so is
    `collisionCount`."""
    return statuses.wire_form(status, always=_ALWAYS)


def effect_of(old: CloneSetStatus, new: CloneSetStatus) -> StatusEffect:
    return statuses.effect_of(old, new, _COUNTS)
