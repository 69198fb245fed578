"""What follows for an AdvancedCronJob once its plan was carried out: the status and events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS, ActiveReference, AdvancedCronJob, AdvancedCronJobStatus
from kruise.machinery import plan as plans
from kruise.machinery.codec import evolve, to_builtins
from kruise.machinery.plan import (
    ChainOutcomes,
    Conclusion,
    EventNote,
    Outcomes,
    Plan,
    Result,
    StatusEffect,
    Target,
)
from kruise.machinery.times import format_time
from kruise.workloads.advancedcronjob.children import Child, ChildKind, kind_of, reference_to
from kruise.workloads.advancedcronjob.decide import REPLACED, RUN, Memo, Snapshot
from kruise.workloads.shared.events import come_and_gone


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    job, kind = snapshot.job, kind_of(snapshot.job)
    if plan.memo is None or kind is None:
        return Conclusion()
    memo = plan.memo_as(Memo)
    status = _status(job, kind, memo, outcomes)
    write = _write(job, status) if status != job.status else None
    return Conclusion(status=write, events=memo.events, effect=StatusEffect.INFORMS)


def _status(job: AdvancedCronJob, kind: ChildKind, memo: Memo, outcomes: Outcomes) -> AdvancedCronJobStatus:
    """ACJ-46. A run that was made in this pass is told of at once: it may be gone before the next (ACJ-47)."""
    replaced = {item.action.uid for item in outcomes.within(REPLACED) if item.result is Result.DONE}
    active = [child for child in memo.active if child.uid not in replaced]
    last = memo.last
    for outcome in outcomes.within(RUN):
        if outcome.result is Result.DONE and memo.due is not None:
            last = max(last, memo.due) if last is not None else memo.due
            if outcome.object is not None:
                metadata = outcome.object.metadata
                made = Child(name=metadata.name, uid=metadata.uid, resource_version=metadata.resource_version)
                active = [child for child in active if child.uid != made.uid] + [made]
    known = {reference.uid: reference for reference in job.status.active}
    references = tuple(
        known.get(child.uid) or reference_to(kind, job.metadata.namespace, child)
        for child in sorted(active, key=lambda child: child.name)
    )
    return evolve(job.status, type=memo.type, active=references, last_schedule_time=last)


def _write(job: AdvancedCronJob, status: AdvancedCronJobStatus) -> plans.Action:
    target = Target.of(ADVANCED_CRON_JOBS, job)
    return plans.status_patch(target, wire_form(status), uid=job.metadata.uid, reason="the status changed")


def wire_form(status: AdvancedCronJobStatus) -> dict[str, Any]:
    document: dict[str, Any] = {"type": status.type}
    if status.active:
        document["active"] = [_reference(one) for one in status.active]
    if status.last_schedule_time is not None:
        document["lastScheduleTime"] = format_time(status.last_schedule_time)
    return document


def _reference(reference: ActiveReference) -> dict[str, Any]:
    found: dict[str, Any] = to_builtins(reference)
    return found


def refusal_of(outcomes: Outcomes) -> str:
    """Why the run that was due could not be made; empty: it was, or none was due."""
    return next((item.message for item in outcomes.within(RUN) if item.result is Result.FAILED), "")


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    """ACJ-86. A refusal that every try repeats is told once."""
    told = plan.memo_as(Memo).refusal
    return come_and_gone(chain, made="Created job", refused="Error creating job:", deleted="Deleted job", told=told)
