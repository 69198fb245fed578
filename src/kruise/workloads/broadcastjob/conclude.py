"""What follows for a BroadcastJob once its plan was carried out: the status, events, when to look again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kruise.api.apps.broadcastjob import (
    BROADCAST_JOBS,
    COMPLETE_CONDITION,
    COMPLETED,
    RUNNING,
    BroadcastJob,
    BroadcastJobStatus,
)
from kruise.api.meta import Condition, key_of
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import evolve
from kruise.machinery.plan import (
    UNDECIDED,
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
from kruise.machinery.times import format_time
from kruise.workloads.broadcastjob.decide import CREATE, DELETE, not_before, seconds_to_live
from kruise.workloads.broadcastjob.memo import Memo
from kruise.workloads.broadcastjob.situation import Snapshot
from kruise.workloads.shared.conditions import condition_form
from kruise.workloads.shared.events import warning

_COUNTS = ("active", "succeeded", "failed", "desired")
_SETTLED = frozenset({Result.DONE, Result.GONE, Result.MOVED})
"""Of a deletion: that pod is gone, whoever did it."""


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    job, memo = snapshot.job, plan.memo_as(Memo)
    deleted = [item.action.target.name for item in outcomes.within(DELETE) if item.result is Result.DONE]
    created = sum(item.result is Result.DONE for item in outcomes.within(CREATE))
    active = memo.active + created - len(set(deleted).intersection(memo.active_pods))
    status = evolve(
        job.status,
        phase=memo.phase,
        start_time=memo.start_time,
        desired=memo.desired,
        active=active,
        succeeded=memo.succeeded,
        failed=memo.failed + len(set(deleted).difference(memo.over_limit_pods)),
    )
    notes = list(memo.events)
    wakes: tuple[Wake, ...] = ()
    if memo.end is not None:
        if all(item.result in _SETTLED for item in outcomes.within(DELETE)):
            status, note = _ended(snapshot, memo, status)
            notes.append(note)
            wakes = tuple(_to_live(evolve(job, status=status), snapshot))
        else:
            # Its status would be frozen while pods still run.
            status = evolve(status, phase=job.status.phase or RUNNING)
    write = _write(job, status) if status != job.status else None
    return Conclusion(status=write, events=tuple(notes), wakes=wakes, effect=_effect(job.status, status))


def _ended(snapshot: Snapshot, memo: Memo, status: BroadcastJobStatus) -> tuple[BroadcastJobStatus, EventNote]:
    """BJ-36, BJ-46, BJ-50."""
    job, end = snapshot.job, memo.end
    assert end is not None
    counts = f"{status.succeeded} pods succeeded, {status.failed} pods failed"
    if end.condition == COMPLETE_CONDITION:
        message = f"Job completed, {counts}"
        note = EventNote(reason=end.event, message=f"Job {key_of(job)} is completed, {counts}")
        status = evolve(status, phase=COMPLETED)
    else:
        message, note = end.message, warning(end.event, f"{end.message}: {counts}")
    moment = snapshot.now.replace(microsecond=0)
    condition = Condition(
        type=end.condition,
        status="True",
        reason=end.condition,
        message=message,
        last_probe_time=moment,
        last_transition_time=moment,
    )
    ended = evolve(status, conditions=(*status.conditions, condition), completion_time=not_before(snapshot.now))
    return ended, note


def _to_live(job: BroadcastJob, snapshot: Snapshot) -> Iterator[Wake]:
    left = seconds_to_live(job, snapshot.now)
    if left is not None:
        yield Wake(after=max(left, 0.0), reason="ttlSecondsAfterFinished is over then")


def _write(job: BroadcastJob, status: BroadcastJobStatus) -> plans.Action:
    target = Target.of(BROADCAST_JOBS, job)
    return plans.status_patch(target, wire_form(status), uid=job.metadata.uid, reason="the status changed")


def wire_form(status: BroadcastJobStatus) -> dict[str, Any]:
    """Counters and phase are there even when empty (BJ-8)."""
    times = {"startTime": status.start_time, "completionTime": status.completion_time}
    document: dict[str, Any] = {
        **{name: getattr(status, name) for name in _COUNTS},
        "phase": status.phase,
        **{name: format_time(time) for name, time in times.items() if time is not None},
    }
    if status.conditions:
        document["conditions"] = [condition_form(condition) for condition in status.conditions]
    return document


def _effect(old: BroadcastJobStatus, new: BroadcastJobStatus) -> StatusEffect:
    """Pods are counted anew at every pass; phase, begin and end are known from nowhere else."""
    uncounted = dict.fromkeys(_COUNTS, 0)
    return StatusEffect.INFORMS if evolve(old, **uncounted) == evolve(new, **uncounted) else StatusEffect.BLOCKS


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    """Of each pod that was made or deleted (BJ section 12)."""
    if phase not in (CREATE, DELETE):
        return
    for outcome in chain:
        name, done = outcome.action.target.name, outcome.result is Result.DONE
        if outcome.result in UNDECIDED:
            continue
        if outcome.action.verb is Verb.CREATE:
            yield (
                EventNote(reason="SuccessfulCreate", message=f"Created pod: {name}")
                if done
                else warning("FailedCreate", f"Error creating: {outcome.message}")
            )
        elif done:
            yield EventNote(reason="SuccessfulDelete", message=f"Delete pod: {name}")
