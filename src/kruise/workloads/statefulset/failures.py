"""What a StatefulSet tells the failure budget, and what a stopped rollout means for its limits."""

from __future__ import annotations

import dataclasses

from kruise.workloads.shared import failures
from kruise.workloads.shared.failures import Asked, Failures
from kruise.workloads.statefulset.situation import Situation


def believed(situation: Situation) -> Situation:
    return failures.believed(situation, _asked(situation))


def failures_of(situation: Situation) -> Failures:
    return failures.failures_of(situation, _asked(situation))


def _asked(situation: Situation) -> Asked:
    metadata, status = situation.statefulset.metadata, situation.statefulset.status
    return Asked(
        annotations=metadata.annotations,
        memory=status.failure_budget,
        conditions=status.conditions,
        replicas=situation.replicas,
        current_revision=status.current_revision,
        can_go_back=not situation.limits.is_on_delete,
    )


def stopped(situation: Situation, found: Failures) -> Situation:
    """The situation under a stop: new pods are made at the current revision, and nobody goes to the stopped one."""
    if found.stop is None:
        return situation
    limits = dataclasses.replace(situation.limits, is_stopped=True, rolls_back=found.stop.rolls_back)
    return dataclasses.replace(situation, limits=limits)
