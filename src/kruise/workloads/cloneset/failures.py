"""What a CloneSet tells the failure budget, and what a stopped rollout means for its limits."""

from __future__ import annotations

import dataclasses

from kruise.workloads.cloneset.progress import NO_DEADLINE
from kruise.workloads.cloneset.situation import Situation
from kruise.workloads.shared import failure_budget, failures
from kruise.workloads.shared.failures import Asked, Failures


def believed(situation: Situation) -> Situation:
    return failures.believed(situation, _asked(situation))


def failures_of(situation: Situation) -> Failures:
    return failures.failures_of(situation, _asked(situation))


def _asked(situation: Situation) -> Asked:
    cloneset = situation.cloneset
    deadline = cloneset.spec.progress_deadline_seconds
    return Asked(
        annotations=cloneset.metadata.annotations,
        memory=cloneset.status.failure_budget,
        conditions=cloneset.status.conditions,
        replicas=situation.replicas,
        current_revision=cloneset.status.current_revision,
        can_go_back=not situation.is_on_delete,
        deadline_seconds=failure_budget.DEFAULT_DEADLINE if deadline in (None, NO_DEADLINE) else deadline,
    )


def stopped(situation: Situation, found: Failures) -> Situation:
    """The situation under a stop: as if the partition kept all pods, so that new ones are made at the current revision
    and those of the stopped one are the first to be scaled in."""
    stop = found.stop
    if stop is None:
        return situation
    limits = dataclasses.replace(
        situation.limits,
        partition=situation.replicas,
        max_surge=situation.limits.max_surge if stop.rolls_back else 0,
        is_stopped=True,
        rolls_back=stop.rolls_back,
    )
    return dataclasses.replace(situation, limits=limits)
