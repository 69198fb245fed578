"""What a CronJob needs: as kube-controller-manager decides it, from a snapshot (pure).

Schedules are those of AdvancedCronJobs (`kruise.machinery.cron`). More than a hundred missed runs are told of, and the
latest of them starts nonetheless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from kruise.api.meta import Condition
from kruise.local.workloads.job_state import COMPLETE, is_finished
from kruise.local.workloads.objects import CRON_JOBS, JOBS, ActiveJob, CronJob, CronJobStatus, Job
from kruise.machinery import cron, runs
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Struct, decode, evolve, to_builtins
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import (
    Action,
    Conclusion,
    EventNote,
    EventType,
    OnError,
    Outcomes,
    Plan,
    Result,
    StatusEffect,
    Target,
    Wake,
)
from kruise.machinery.times import format_time

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
HISTORY, REPLACED, RUN = "history", "replace", "run"
_DELTA = 0.1
"""Seconds that Kubernetes adds to every wait, so that the moment is over when it looks."""


class Snapshot(Struct, kw_only=True):
    cron_job: CronJob
    jobs: tuple[Job, ...] = ()
    local_zone: str = "UTC"
    now: datetime


class Memo(Struct, kw_only=True):
    status: CronJobStatus
    due: datetime | None = None
    events: tuple[EventNote, ...] = ()


def decide(snapshot: Snapshot) -> Plan:
    cron_job, now = snapshot.cron_job, snapshot.now
    spec = cron_job.spec
    status, notes = _counted(cron_job, snapshot.jobs)
    history = tuple((action,) for action in _history(cron_job, snapshot.jobs))
    phases = [plans.Phase(name=HISTORY, chains=history, on_error=OnError.CONTINUE)] if history else []

    def nothing_due(*more: EventNote, wakes: tuple[Wake, ...] = ()) -> Plan:
        return Plan(phases=tuple(phases), wakes=wakes, memo=Memo(status=status, events=(*notes, *more)))

    if cron_job.metadata.deletion_timestamp is not None or spec.suspend:
        return nothing_due()
    if spec.time_zone is not None and cron.zone_of(spec.time_zone) is None:
        return nothing_due(_warning("UnknownTimeZone", f'invalid timeZone: "{spec.time_zone}"'))
    try:
        schedule = cron.parse(spec.schedule, spec.time_zone or snapshot.local_zone)
    except cron.ScheduleError as error:
        return nothing_due(_warning("UnparseableSchedule", f'unparseable schedule: "{spec.schedule}" : {error}'))
    anchor = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp or now
    timing = runs.due(schedule, anchor=anchor, deadline=spec.starting_deadline_seconds, now=now)
    wakes, due = runs.wakes_for(timing.next, now, later=_DELTA), timing.missed
    if due is None:
        return nothing_due(wakes=wakes)
    if timing.is_too_many:
        told = "Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        notes.append(_warning("TooManyMissedTimes", f"too many missed start times. {told}"))
    name = _name(cron_job, due)
    if any(job.name == name for job in status.active) or status.last_schedule_time == due:
        return nothing_due(wakes=wakes)
    if spec.concurrency_policy == "Forbid" and status.active:
        told = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return nothing_due(EventNote(reason="JobAlreadyActive", message=told), wakes=wakes)
    if spec.concurrency_policy == "Replace" and status.active:
        doomed = tuple(_deletion(cron_job, job.name, job.uid, "a newer run replaces it") for job in status.active)
        phases.append(plans.single(REPLACED, *doomed))
    phases.append(plans.single(RUN, _creation(cron_job, due)))
    return Plan(phases=tuple(phases), wakes=wakes, memo=Memo(status=status, due=due, events=tuple(notes)))


def _counted(cron_job: CronJob, jobs: Iterable[Job]) -> tuple[CronJobStatus, list[EventNote]]:
    """The status, with jobs that have ended or vanished since taken off."""
    status, notes = cron_job.status, []
    known = {job.metadata.uid: job for job in jobs}
    active = []
    last_success = status.last_successful_time
    for reference in status.active:
        job = known.get(reference.uid)
        if job is None:
            notes.append(EventNote(reason="MissingJob", message=f"Active job went missing: {reference.name}"))
            continue
        end = is_finished(job)
        if end is None:
            active.append(reference)
        else:
            told = f"Saw completed job: {reference.name}, condition: {end.type}"
            notes.append(EventNote(reason="SawCompletedJob", message=told))
    for job in known.values():
        ended = _success(job, is_finished(job))
        if ended is not None and (last_success is None or ended > last_success):
            last_success = ended
    return evolve(status, active=tuple(active), last_successful_time=last_success), notes


def _success(job: Job, end: Condition | None) -> datetime | None:
    return job.status.completion_time if end is not None and end.type == COMPLETE else None


def _history(cron_job: CronJob, jobs: Iterable[Job]) -> Iterator[Action]:
    spec = cron_job.spec
    ended: dict[bool, list[Job]] = {True: [], False: []}
    for job in jobs:
        if (end := is_finished(job)) is not None:
            ended[end.type == COMPLETE].append(job)
    for is_success, limit in ((True, spec.successful_jobs_history_limit), (False, spec.failed_jobs_history_limit)):
        for job in runs.surplus(ended[is_success], limit, _begin):
            if job.metadata.deletion_timestamp is None:
                yield _deletion(cron_job, job.metadata.name, job.metadata.uid, "the history keeps no more")


def _begin(job: Job) -> tuple[datetime | None, str]:
    return job.status.start_time, job.metadata.name


def _name(cron_job: CronJob, due: datetime) -> str:
    """After the minute of the run."""
    return f"{cron_job.metadata.name}-{int(due.timestamp()) // 60}"


def _deletion(cron_job: CronJob, name: str, uid: str, reason: str) -> Action:
    return runs.deletion(JOBS, cron_job.metadata.namespace, name, uid=uid, reason=reason)


def _creation(cron_job: CronJob, due: datetime) -> Action:
    template, zone = cron_job.spec.job_template, cron_job.spec.time_zone
    local = due.astimezone(cron.zone_of(zone)) if zone else due
    moment = format_time(due) if local.utcoffset() == timedelta() else local.isoformat(timespec="seconds")
    return runs.creation(
        JOBS,
        owner=Owner.of(CRON_JOBS, cron_job),
        namespace=cron_job.metadata.namespace,
        name=_name(cron_job, due),
        labels=template.metadata.labels,
        annotations={**template.metadata.annotations, SCHEDULED_AT: moment},
        spec=decode(template.spec, dict[str, Any]),
        reason=f"the run of {moment} is due",
    )


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    memo, cron_job = plan.memo_as(Memo), snapshot.cron_job
    status, notes = memo.status, list(memo.events)
    for item in outcomes:
        name, done = item.action.target.name, item.result is Result.DONE
        if item.action.verb is Verb.DELETE and done:
            notes.append(EventNote(reason="SuccessfulDelete", message=f"Deleted job {name}"))
            status = evolve(status, active=tuple(job for job in status.active if job.uid != item.action.uid))
        elif item.action.verb is Verb.CREATE and done:
            notes.append(EventNote(reason="SuccessfulCreate", message=f"Created job {name}"))
            made = item.object.metadata
            reference = ActiveJob(
                api_version=JOBS.api_version,
                kind=JOBS.kind,
                namespace=made.namespace,
                name=made.name,
                uid=made.uid,
                resource_version=made.resource_version,
            )
            status = evolve(status, active=(*status.active, reference), last_schedule_time=memo.due)
        elif item.action.verb is Verb.CREATE and item.result is Result.FAILED:
            notes.append(_warning("FailedCreate", f"Error creating job: {item.message}"))
    write = None
    if status != cron_job.status:
        target = Target.of(CRON_JOBS, cron_job)
        write = plans.status_patch(target, _form(status), uid=cron_job.metadata.uid, reason="the status changed")
    return Conclusion(status=write, events=tuple(notes), effect=StatusEffect.BLOCKS)


def _form(status: CronJobStatus) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if status.active:
        body["active"] = [to_builtins(job) for job in status.active]
    for key, moment in (
        ("lastScheduleTime", status.last_schedule_time),
        ("lastSuccessfulTime", status.last_successful_time),
    ):
        if moment is not None:
            body[key] = format_time(moment)
    return body


def _warning(reason: str, message: str) -> EventNote:
    return EventNote(type=EventType.WARNING, reason=reason, message=message)
