"""The status of a BroadcastJob: counters, times, how it ends (BJ-8 to BJ-10, BJ-36, BJ-46 to BJ-50). Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kruise.api.apps.broadcastjob import (
    BROADCAST_JOBS,
    COMPLETE_CONDITION,
    COMPLETED,
    BroadcastJob,
    BroadcastJobStatus,
)
from kruise.api.meta import Condition, key_of
from kruise.machinery import plan as plans
from kruise.machinery.codec import evolve
from kruise.machinery.plan import EventNote, Target
from kruise.machinery.times import format_time, later, next_second
from kruise.machinery.wording import plural
from kruise.workloads.broadcastjob.memo import Memo
from kruise.workloads.shared.conditions import condition_form
from kruise.workloads.shared.events import warning

COUNTS = ("active", "succeeded", "failed", "desired")


# Times


def start_of(job: BroadcastJob, now: datetime) -> datetime:
    return job.status.start_time or next_second(now)


def seconds_left(since: datetime, seconds: int, now: datetime) -> float:
    return (later(since, seconds) - now).total_seconds()


def seconds_to_live(job: BroadcastJob, now: datetime) -> float | None:
    """None: it stays (BJ-47)."""
    ttl, ended = job.spec.completion_policy.ttl_seconds_after_finished, job.status.completion_time
    if ttl is None or ended is None:
        return None
    return seconds_left(ended, ttl, now)


# Statuses


def counted(job: BroadcastJob, memo: Memo) -> BroadcastJobStatus:
    return evolve(
        job.status,
        phase=memo.phase,
        start_time=memo.start_time,
        desired=memo.desired,
        active=memo.active,
        succeeded=memo.succeeded,
        failed=memo.failed,
    )


def ended(
    job: BroadcastJob, memo: Memo, status: BroadcastJobStatus, now: datetime
) -> tuple[BroadcastJobStatus, EventNote]:
    """The last status, and the event that tells of it (BJ-36, BJ-46, BJ-50)."""
    end = memo.end
    assert end is not None
    counts = f"{status.succeeded} pods succeeded, {status.failed} pods failed"
    if end.condition == COMPLETE_CONDITION:
        message = f"Job completed, {counts}"
        note = EventNote(reason=end.event, message=f"Job {key_of(job)} is completed, {counts}")
        status = evolve(status, phase=COMPLETED)
    else:
        message, told = end.message, f"{end.message}: {counts}"
        if memo.stopped:
            # Nobody should look for what went wrong in pods that were well.
            message += f"; {plural(memo.stopped, 'pod')} had not ended, and count{_s(memo.stopped)} as failed"
            told += f" ({memo.stopped} of them had not ended, and {_were(memo.stopped)} deleted)"
        if memo.lost:
            message += f"; {memo.lost}"
        note = warning(end.event, told)
    moment = now.replace(microsecond=0)
    condition = Condition(
        type=end.condition,
        status="True",
        reason=end.condition,
        message=message,
        last_probe_time=moment,
        last_transition_time=moment,
    )
    return evolve(status, conditions=(*status.conditions, condition), completion_time=next_second(now)), note


def _s(count: int) -> str:
    return "s" if count == 1 else ""


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def write_of(job: BroadcastJob, status: BroadcastJobStatus) -> plans.Action:
    target = Target.of(BROADCAST_JOBS, job)
    return plans.status_patch(target, wire_form(status), uid=job.metadata.uid, reason="the status changed")


def wire_form(status: BroadcastJobStatus) -> dict[str, Any]:
    """Counters and phase are there even when empty (BJ-8)."""
    times = {"startTime": status.start_time, "completionTime": status.completion_time}
    document: dict[str, Any] = {
        **{name: getattr(status, name) for name in COUNTS},
        "phase": status.phase,
        **{name: format_time(time) for name, time in times.items() if time is not None},
    }
    if status.conditions:
        document["conditions"] = [condition_form(condition) for condition in status.conditions]
    return document
