"""The status of an EphemeralJob: counters, phase, conditions (EJ-24 to EJ-34). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kruise.api.apps.ephemeraljob import EphemeralJob, EphemeralJobStatus
from kruise.api.meta import Condition
from kruise.machinery.codec import evolve
from kruise.machinery.times import format_time, later
from kruise.workloads.ephemeraljob.pods import Seen, State
from kruise.workloads.ephemeraljob.situation import Situation
from kruise.workloads.shared.conditions import condition_form

WAITING, RUNNING, SUCCEEDED, FAILED = "Waiting", "Running", "Succeeded", "Failed"
PAUSED, ERROR, UNKNOWN = "Paused", "Error", "Unknown"
DEADLINE_EXCEEDED = "DeadlineExceeded"
"""Reason of the condition of a job that had no more time."""
_MAY_EXPIRE = (WAITING, UNKNOWN, RUNNING)
_ALWAYS = ("failed", "match", "phase", "running", "succeeded", "waiting")


def deadline_of(job: EphemeralJob, start: datetime) -> datetime | None:
    """When the job is over whatever its containers do. Times on objects are cut to whole seconds: it is never early."""
    seconds = job.spec.active_deadline_seconds
    return None if seconds is None else _after(start, seconds)


def removal_of(job: EphemeralJob, ended: datetime, usual: int) -> datetime:
    seconds = job.spec.ttl_seconds_after_finished
    seconds = usual if seconds is None else seconds
    return ended if seconds <= 0 else _after(ended, seconds)


def _after(time: datetime, seconds: int) -> datetime:
    return later(time, seconds + 1 if seconds > 0 else seconds)


def status_of(situation: Situation) -> EphemeralJobStatus:
    """The status that the pods ask for; what says the same as before keeps its times (EJ-9)."""
    job, now = situation.job, situation.now
    before = job.status
    start = before.start_time or now.replace(microsecond=0)
    counted = EphemeralJobStatus(
        conditions=before.conditions,
        start_time=start,
        match=len(situation.targets),
        running=situation.count(State.RUNNING),
        succeeded=situation.count(State.SUCCEEDED),
        waiting=situation.count(State.WAITING),
        failed=situation.count(State.FAILED),
    )
    wanted = [] if before.conditions else [("Initialized", "Initialized", "")]
    phase, ends, told = _phase(situation, counted)
    wanted += told
    name = f"{job.metadata.namespace}/{job.metadata.name}"
    if job.spec.paused:
        phase = PAUSED
    if counted.failed:
        wanted.append(("JobFailed", "CreateFailed", f"EphemeralJob {name} failed to create ephemeral container"))
    deadline = deadline_of(job, start)
    if phase in _MAY_EXPIRE and deadline is not None and now >= deadline:
        phase, ends = FAILED, True
        text = f"EphemeralJob {name} was active longer than specified deadline"
        wanted.append(("JobFailed", DEADLINE_EXCEEDED, text))
    if not situation.containers:
        phase, ends = ERROR, False
        wanted.append(("JobError", "Error", "job spec is invalid: spec.template.ephemeralContainers has no containers"))
    return evolve(
        counted,
        phase=phase,
        completion_time=now.replace(microsecond=0) if ends else None,
        conditions=_with(before.conditions, wanted, now),
    )


def _phase(situation: Situation, counted: EphemeralJobStatus) -> tuple[str, bool, list[tuple[str, str, str]]]:
    """The phase by the counters, whether the job ends by it, and the conditions that come with it (EJ-28)."""
    replicas = situation.job.spec.replicas
    wanted = counted.match if replicas is None else replicas
    if counted.match == 0:
        return WAITING, False, [("MatchedEmpty", "MatchEmpty", "job match no pods")]
    if counted.succeeded == wanted and counted.succeeded > 0:
        return SUCCEEDED, True, [("JobSucceeded", "JobSucceeded", "job success to run all tasks")]
    if counted.running > 0:
        return RUNNING, False, []
    if counted.failed == wanted:
        return FAILED, True, [("JobFailed", "JobFailed", "job failed to run all tasks")]
    if counted.waiting == wanted:
        return WAITING, False, []
    return UNKNOWN, False, []


def _with(known: Iterable[Condition], wanted: Iterable[tuple[str, str, str]], now: datetime) -> tuple[Condition, ...]:
    """A condition replaces the one of its type in its place; none is ever taken away (EJ-8)."""
    time = now.replace(microsecond=0)
    final = {kind: (reason, message) for kind, reason, message in wanted}
    conditions = {condition.type: condition for condition in known}
    for kind, (reason, message) in final.items():
        before = conditions.get(kind)
        if before is None or (before.status, before.reason, before.message) != ("True", reason, message):
            conditions[kind] = Condition(
                type=kind,
                status="True",
                reason=reason,
                message=message,
                last_probe_time=time,
                last_transition_time=time,
            )
    return tuple(conditions.values())


def after_the_end(before: EphemeralJobStatus, served: Iterable[Seen]) -> EphemeralJobStatus:
    """A job that has ended stays as it ended (EJ-33), but containers that ran on beyond a deadline are told of truly:
    what runs and waits is what does so now, and what ended since is counted."""
    states = [one.state for one in served if one.is_served]
    return evolve(
        before,
        running=states.count(State.RUNNING),
        waiting=states.count(State.WAITING),
        succeeded=max(before.succeeded, states.count(State.SUCCEEDED)),
        failed=max(before.failed, states.count(State.FAILED)),
    )


def wire_form(status: EphemeralJobStatus) -> dict[str, Any]:
    """Counters and phase are always there (EJ-6)."""
    times = {"startTime": status.start_time, "completionTime": status.completion_time}
    document: dict[str, Any] = {
        **{name: getattr(status, name) for name in _ALWAYS},
        **{name: format_time(time) for name, time in times.items() if time is not None},
    }
    if status.conditions:
        document["conditions"] = [condition_form(condition) for condition in status.conditions]
    return document
