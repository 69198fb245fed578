"""What follows for a SidecarSet once its plan was carried out: the status and the events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSetStatus
from kruise.machinery.codec import evolve
from kruise.machinery.plan import (
    ChainOutcomes,
    Conclusion,
    EventNote,
    EventType,
    Outcomes,
    Plan,
    Result,
    StatusEffect,
)
from kruise.sidecars.sidecarset.decide import CONDITIONS, RESET, REVISION
from kruise.sidecars.sidecarset.face import progress
from kruise.sidecars.sidecarset.memo import Memo
from kruise.sidecars.sidecarset.situation import Snapshot
from kruise.workloads.shared import statuses
from kruise.workloads.shared.statuses import status_write, telling

_ALWAYS = ("matchedPods", "updatedPods", "readyPods", "collisionCount")


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    if any(outcome.result is not Result.DONE for outcome in outcomes.within(REVISION)):
        return Conclusion()  # nothing is told of a content that has no revision yet
    sidecar_set, memo = snapshot.sidecar_set, plan.memo_as(Memo)
    before = sidecar_set.status
    status = evolve(
        before,
        observed_generation=max(sidecar_set.metadata.generation, before.observed_generation),
        matched_pods=memo.matched,
        updated_pods=memo.updated,
        ready_pods=memo.ready,
        updated_ready_pods=memo.updated_ready,
        not_selected_pods=memo.not_selected,
        not_upgradable_pods=memo.stuck,
        latest_revision=memo.revision,
        collision_count=memo.collision_count,
        failure_budget=memo.failure_budget,
    )
    status = telling(progress, sidecar_set, status, wire_form, snapshot.now)
    decides = (before.collision_count or 0, before.failure_budget) != (status.collision_count, status.failure_budget)
    return Conclusion(
        status=status_write(SIDECAR_SETS, sidecar_set, status, wire_form),
        events=tuple(_events(memo, outcomes)),
        effect=StatusEffect.BLOCKS if decides else StatusEffect.INFORMS,
    )


def wire_form(status: SidecarSetStatus) -> dict[str, Any]:
    """The counters that the schema requires are there even when 0; others are left out."""
    return statuses.wire_form(status, always=_ALWAYS)


def _events(memo: Memo, outcomes: Outcomes) -> Iterator[EventNote]:
    told = any(outcome.result is Result.DONE for outcome in outcomes.within(CONDITIONS))
    if memo.has_newly_stuck and told:
        yield EventNote(
            reason="NotUpgradablePods",
            message=f"SidecarSet in-place update detected {memo.stuck} not upgradable pod(s) in this round, "
            "will skip them.",
        )
    if memo.stopped:
        yield EventNote(type=EventType.WARNING, reason="FailureBudgetExceeded", message=memo.stopped)


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    """SCS-112, on the pods."""
    if phase != RESET:
        return
    for outcome in chain:
        target, uid = outcome.action.target, outcome.action.uid
        if outcome.result is Result.DONE:
            message = "reset sidecar container image empty successfully"
            yield EventNote(reason="ResetContainerSucceed", message=message, target=target, uid=uid)
        elif outcome.result is Result.FAILED:
            yield EventNote(
                type=EventType.WARNING,
                reason="ResetContainerFailed",
                message=outcome.message,
                target=target,
                uid=uid,
            )
