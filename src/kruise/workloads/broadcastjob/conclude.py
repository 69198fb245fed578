"""What follows for a BroadcastJob once its plan was carried out: the status, events, when to look again."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.broadcastjob import FAILED_CONDITION, BroadcastJob, BroadcastJobStatus
from kruise.machinery.codec import evolve
from kruise.machinery.plan import (
    ChainOutcomes,
    Conclusion,
    EventNote,
    Outcomes,
    Plan,
    Result,
    StatusEffect,
    Wake,
)
from kruise.workloads.broadcastjob.decide import CREATE, DELETE, END
from kruise.workloads.broadcastjob.memo import Memo
from kruise.workloads.broadcastjob.situation import Snapshot
from kruise.workloads.broadcastjob.status import COUNTS, counted, ended, seconds_to_live, write_of
from kruise.workloads.shared.events import come_and_gone


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    job, memo = snapshot.job, plan.memo_as(Memo)
    if memo.end is not None and memo.end.condition == FAILED_CONDITION:
        return _failed(snapshot, memo, outcomes)
    deleted = {item.action.target.name for item in outcomes.within(DELETE) if item.result is Result.DONE}
    stopped = len(deleted.intersection(memo.active_pods))
    created = sum(item.result is Result.DONE for item in outcomes.within(CREATE))
    status = counted(job, memo)
    status = evolve(
        status,
        active=status.active + created - stopped,
        # Whoever is not counted as active is counted already, and after the end nobody counts anew.
        failed=status.failed + (stopped if memo.is_frozen else len(deleted)),
    )
    notes = list(memo.events)
    wakes: tuple[Wake, ...] = ()
    if memo.end is not None:
        status, note = ended(job, memo, status, snapshot.now)
        notes.append(note)
        wakes = tuple(_to_live(job, status, snapshot))
    write = write_of(job, status) if status != job.status else None
    return Conclusion(status=write, events=tuple(notes), wakes=wakes, effect=_effect(job.status, status))


def _failed(snapshot: Snapshot, memo: Memo, outcomes: Outcomes) -> Conclusion:
    """Its last status was the first write of the plan. Where that failed, nothing has happened yet. Pods whose deletion
    was refused run on, and are not counted as failed before they go."""
    if not all(item.result is Result.DONE for item in outcomes.within(END)):
        return Conclusion()
    job = snapshot.job
    failures = {item.action.target.name for item in outcomes.within(DELETE) if item.result is Result.FAILED}
    left = len(failures.intersection(memo.active_pods))
    status, _ = ended(job, memo, counted(job, memo), snapshot.now)
    after = evolve(memo, active=left, failed=memo.failed - left, stopped=memo.stopped - left)
    _, note = ended(job, after, counted(job, after), snapshot.now)
    write = write_of(job, evolve(status, active=left, failed=after.failed)) if left else None
    wakes = tuple(_to_live(job, status, snapshot))
    return Conclusion(status=write, events=(*memo.events, note), wakes=wakes, effect=StatusEffect.INFORMS)


def _to_live(job: BroadcastJob, status: BroadcastJobStatus, snapshot: Snapshot) -> Iterator[Wake]:
    left = seconds_to_live(evolve(job, status=status), snapshot.now)
    if left is not None:
        yield Wake(after=max(left, 0.0), reason="ttlSecondsAfterFinished is over then")


def _effect(old: BroadcastJobStatus, new: BroadcastJobStatus) -> StatusEffect:
    """Pods are counted anew at every pass; phase, begin and end are known from nowhere else."""
    uncounted = dict.fromkeys(COUNTS, 0)
    return StatusEffect.INFORMS if evolve(old, **uncounted) == evolve(new, **uncounted) else StatusEffect.BLOCKS


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    """Of each pod that was made or deleted (BJ section 12)."""
    if phase not in (CREATE, DELETE):
        return iter(())
    return come_and_gone(chain, made="Created pod:", refused="Error creating:", deleted="Delete pod:")
