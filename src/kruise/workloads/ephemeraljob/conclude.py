"""What follows for an EphemeralJob once its plan was carried out: status and events."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from kruise.machinery import plan as plans
from kruise.machinery.plan import (
    ChainOutcomes,
    Conclusion,
    EventNote,
    Outcomes,
    Plan,
    Result,
    StatusEffect,
    Target,
    Wake,
)
from kruise.workloads.ephemeraljob.decide import INJECT, REMOVE, Memo
from kruise.workloads.ephemeraljob.situation import Snapshot
from kruise.workloads.ephemeraljob.status import wire_form
from kruise.workloads.shared.events import warning

FIRST_DELAY = 1.0


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    job, status = snapshot.job, plan.memo_as(Memo).status
    if any(outcome.result is Result.DONE for outcome in outcomes.within(REMOVE)):
        return Conclusion()  # it is gone, or goes
    retry = next((outcome.message for outcome in outcomes.within("finalizer", REMOVE) if _failed(outcome.result)), "")
    wakes: tuple[Wake, ...] = ()
    if any(_failed(outcome.result) for outcome in outcomes.within(INJECT)):
        wakes = (Wake(after=FIRST_DELAY, reason="a pod did not get its containers"),)
    if status == job.status:
        return Conclusion(retry=retry, wakes=wakes)
    write = plans.status_patch(
        Target.of(EPHEMERAL_JOBS, job), wire_form(status), uid=job.metadata.uid, reason="the status changed"
    )
    return Conclusion(status=write, retry=retry, wakes=wakes, effect=_effect(snapshot, status))


def _failed(result: Result) -> bool:
    return result is Result.FAILED


def _effect(snapshot: Snapshot, status: object) -> StatusEffect:
    """The end of the job plans its removal (EJ-55). Its start must not be lost; counters and phase decide nothing."""
    before = snapshot.job.status
    times = {"start_time": before.start_time, "completion_time": before.completion_time}
    told = {name: getattr(status, name) for name in times}
    if told == times:
        return StatusEffect.INFORMS
    return StatusEffect.REQUEUES if told["completion_time"] != times["completion_time"] else StatusEffect.INFORMS


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    """EJ-44."""
    if phase != INJECT:
        return
    for outcome in chain:
        if outcome.result is Result.FAILED:
            target = outcome.action.target
            text = f"failed to create ephemeral container in pod {target.key}: {outcome.message}"
            yield warning("CreateFailed", text)
