"""What an AdvancedCronJob needs, decided from a snapshot (ACJ-45).

Runs that are not kept any more go, then the run that is due is made, if nothing stands in its way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS, FORBID, REPLACE, SCHEDULED_AT, AdvancedCronJob
from kruise.machinery import cron, runs
from kruise.machinery import plan as plans
from kruise.machinery.codec import Raw, Struct, decode, evolve
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Cause, EventNote, Held, OnError, Phase, Plan, Target
from kruise.machinery.runs import MOST_MISSED, Due
from kruise.machinery.times import format_time
from kruise.machinery.wording import listed
from kruise.workloads.advancedcronjob import causes
from kruise.workloads.advancedcronjob.children import Child, ChildKind, State, kind_of
from kruise.workloads.advancedcronjob.refusals import LONGEST_NAME, refusals
from kruise.workloads.advancedcronjob.timing import anchor_of, schedule_of, timing_of, unknown_zone
from kruise.workloads.shared.events import warning

HISTORY, REPLACED, RUN = "history", "replace", "run"


class Snapshot(Struct, kw_only=True):
    job: AdvancedCronJob
    children: tuple[Child, ...] = ()
    sees_runs: bool = True
    """False: nobody can tell yet which runs there are."""
    local_zone: str = "UTC"
    """Of this process."""
    floor: datetime | None = None
    """Runs that were missed until then are given up already."""
    refusal: str = ""
    """Why the last run could not be made."""
    closed_gate: str = ""
    """A feature gate that is off, without which no run can be made."""
    now: datetime


class Memo(Struct, kw_only=True):
    type: str
    active: tuple[Child, ...] = ()
    last: datetime | None = None
    due: datetime | None = None
    """The run that the plan makes."""
    floor: datetime | None = None
    """What was missed until then is given up."""
    events: tuple[EventNote, ...] = ()
    refusal: str = ""
    """What has been told already of why a run could not be made."""


def decide(snapshot: Snapshot) -> Plan:
    job, kind = snapshot.job, kind_of(snapshot.job)
    if kind is None:
        lost = causes.NO_TEMPLATE.cause("it has no template", remedy="give one, or delete it: admission refuses it so")
        return Plan(held=_held(job, lost))
    if not snapshot.sees_runs:
        # Whether a run is still active is not known, and the status tells what was known before. When the kind is
        # read, all are looked at again.
        unseen = causes.RUNS_UNSEEN.cause(
            f"its runs are {kind.kind}s, and the manager has not read those of the cluster yet: no run starts",
            remedy=f"if that lasts: kubectl get {kind.resource} tells whether the cluster serves them; if it does not, "
            "install the definition of that kind",
        )
        return Plan(held=_held(job, unseen))
    active = tuple(child for child in snapshot.children if child.state is State.ACTIVE)
    memo = Memo(type=kind.kind, active=active, last=last_of(job, snapshot.children))
    history = _history(job, kind, snapshot.children)
    plan = Plan(phases=(history,) if history.chains else (), memo=memo)
    if job.metadata.deletion_timestamp is not None:  # ACJ-49
        return plan
    if job.spec.paused:  # ACJ-52
        return dataclasses.replace(plan, held=_held(job, causes.RUNS_PAUSED.cause("it is paused: no new runs start")))
    try:
        schedule = schedule_of(job, snapshot.local_zone)
    except cron.ScheduleError as error:
        return _unreadable(plan, memo, job, str(error))
    timing = timing_of(job, schedule, last=memo.last, floor=_given_up(snapshot), now=snapshot.now)
    plan = dataclasses.replace(plan, wakes=runs.wakes_for(timing.next, snapshot.now))
    if snapshot.closed_gate:
        return dataclasses.replace(plan, held=_held(job, _gate_off(kind, snapshot.closed_gate)))
    if timing.missed is None:
        return _waiting(plan, memo, snapshot, kind, timing, schedule.zone)
    if (obstacle := _obstacle(job, active, timing.missed)) is not None:
        return dataclasses.replace(plan, held=_held(job, obstacle))
    return _running(plan, memo, snapshot, kind, timing.missed)


def last_of(job: AdvancedCronJob, children: Iterable[Child]) -> datetime | None:
    """The newest run that there was; it never goes back (ACJ-46, ACJ-47)."""
    known = [child.scheduled_at for child in children if child.scheduled_at is not None]
    if job.status.last_schedule_time is not None:
        known.append(job.status.last_schedule_time)
    return max(known, default=None)


def _given_up(snapshot: Snapshot) -> datetime | None:
    """A clock that was ahead when runs were given up, and was set back, gave up runs that are still to come."""
    floor = snapshot.floor
    return floor if floor is not None and floor <= snapshot.now else None


def run_name(job: AdvancedCronJob, moment: datetime) -> str:
    """Always the same for a run, so none is ever made twice (ACJ-70)."""
    return f"{job.metadata.name}-{int(moment.timestamp())}"


# History


def _history(job: AdvancedCronJob, kind: ChildKind, children: Iterable[Child]) -> Phase:
    """ACJ-50, ACJ-51."""
    spec, found = job.spec, list(children)
    doomed: list[Action] = []
    for state, limit, name in (
        (State.FAILED, spec.failed_jobs_history_limit, "failedJobsHistoryLimit"),
        (State.SUCCESSFUL, spec.successful_jobs_history_limit, "successfulJobsHistoryLimit"),
    ):
        old = runs.surplus((child for child in found if child.state is state), limit, _begin)
        doomed += (_deletion(job, kind, child, f"{name} keeps {limit}") for child in old if not child.is_leaving)
    return Phase(name=HISTORY, chains=tuple((action,) for action in doomed), on_error=OnError.CONTINUE)


def _begin(child: Child) -> tuple[datetime | None, str]:
    return child.started_at, child.name


def _deletion(job: AdvancedCronJob, kind: ChildKind, child: Child, reason: str) -> Action:
    return runs.deletion(kind.resource, job.metadata.namespace, child.name, uid=child.uid, reason=reason)


# Runs


def _obstacle(job: AdvancedCronJob, active: tuple[Child, ...], due: datetime) -> Cause | None:
    """Why a run that is due does not start (ACJ-60)."""
    if job.spec.concurrency_policy != FORBID or not active:
        return None
    names = [child.name for child in active]
    return causes.STILL_ACTIVE.cause(
        f"the run of {format_time(due)} waits until {listed(names)} has ended (concurrencyPolicy Forbid)",
        details={"active": names},
    )


def _running(plan: Plan, memo: Memo, snapshot: Snapshot, kind: ChildKind, due: datetime) -> Plan:
    job = snapshot.job
    replaced: tuple[Action, ...] = ()
    if job.spec.concurrency_policy == REPLACE:  # ACJ-61
        leaving = (child for child in memo.active if not child.is_leaving)
        replaced = tuple(_deletion(job, kind, child, "a newer run replaces it") for child in leaving)
    phases = [*plan.phases]
    if replaced:
        phases.append(plans.single(REPLACED, *replaced, on_error=OnError.STOP_PLAN))
    phases.append(plans.single(RUN, _creation(job, kind, due)))
    held: tuple[Held, ...] = ()
    if snapshot.refusal:
        held = _held(job, _refused(job, kind, snapshot.refusal, due))
    memo = evolve(memo, due=due, refusal=snapshot.refusal, events=_ignored_zone(snapshot))
    return dataclasses.replace(plan, phases=tuple(phases), held=held, memo=memo)


def _ignored_zone(snapshot: Snapshot) -> tuple[EventNote, ...]:
    """Told with each run, which may begin at another time than its author thinks."""
    zone = unknown_zone(snapshot.job)
    told = f"time zone {zone!r} is not known here, and is ignored: the schedule is read in {snapshot.local_zone}"
    return (warning("UnknownTimeZone", told),) if zone else ()


def _refused(job: AdvancedCronJob, kind: ChildKind, refusal: str, due: datetime) -> Cause:
    return causes.RUN_REFUSED.cause(
        f"the run of {format_time(due)} is refused, and tried again with growing pauses: {refusal}",
        remedy=_remedy(job, kind),
    )


def _remedy(job: AdvancedCronJob, kind: ChildKind) -> str:
    if len(job.metadata.name) > LONGEST_NAME:
        return f"its name has more than {LONGEST_NAME} characters: create it anew under a shorter one"
    if kind.is_fixed:
        return "correct what the message names: a template of jobs cannot be changed, so create it anew"
    return f"correct what the message names in spec.template.{kind.field}"


def _gate_off(kind: ChildKind, gate: str) -> Cause:
    """Each try would be refused: none is made, until a manager runs with the gate on."""
    return causes.GATE_OFF.cause(
        f"its runs are {kind.kind}s, and feature-gate {gate} is not enabled: no run starts",
        remedy=f"start the manager with --feature-gates={gate}=true",
    )


def _creation(job: AdvancedCronJob, kind: ChildKind, due: datetime) -> Action:
    """ACJ-70 to ACJ-75."""
    template = kind.template(job)
    return runs.creation(
        kind.resource,
        owner=Owner.of(ADVANCED_CRON_JOBS, job),
        namespace=job.metadata.namespace,
        name=run_name(job, due),
        labels=template.metadata.labels,
        annotations={**template.metadata.annotations, SCHEDULED_AT: format_time(due)},
        spec=decode(Raw(template.spec), dict[str, Any]),
        reason=f"the run of {format_time(due)} is due",
    )


# Waiting


def _unreadable(plan: Plan, memo: Memo, job: AdvancedCronJob, error: str) -> Plan:
    """ACJ-56: only a change can help."""
    told = f"schedule {job.spec.schedule!r} cannot be read: {error}"
    cause = causes.BAD_SCHEDULE.cause(told, remedy='correct spec.schedule, such as "*/5 * * * *" or "@daily"')
    note = warning("UnparseableSchedule", f"unparseable schedule: {job.spec.schedule!r}: {error}")
    return dataclasses.replace(plan, held=_held(job, cause), memo=evolve(memo, events=(note,)))


def _waiting(plan: Plan, memo: Memo, snapshot: Snapshot, kind: ChildKind, timing: Due, zone: str) -> Plan:
    job, now = snapshot.job, snapshot.now
    begin = format_time(anchor_of(job, memo.last, now))
    if timing.is_too_many:
        told = (
            f"more than {MOST_MISSED} runs were missed since {begin}, and none of them is made up for; "
            f"{_next(timing, zone)}"
        )
        cause = causes.MISSED_TOO_MANY.cause(told)
        text = (
            f"too many missed start times: more than {MOST_MISSED}. Set or decrease startingDeadlineSeconds or check "
            "clock skew"
        )
        note = warning("TooManyMissedTimes", text)
        return dataclasses.replace(plan, held=_held(job, cause), memo=evolve(memo, floor=now, events=(note,)))
    if timing.next is None:
        remedy = "correct spec.schedule: it names days that no month has"
        cause = causes.NEVER_DUE.cause(f"schedule {job.spec.schedule!r} matches no day for years", remedy=remedy)
    elif job.spec.starting_deadline_seconds == 0:
        cause = causes.NO_DEADLINE_LEFT.cause(
            "startingDeadlineSeconds is 0, so no run ever starts", remedy="set it to some seconds, or leave it out"
        )
    elif timing.is_ahead:
        told = f"its last run was for {begin}" if memo.last is not None else f"it was created at {begin}"
        cause = causes.CLOCK_BEHIND.cause(f"{told}, which is in the future; runs go on after that")
    elif doomed := next(refusals(job), None):
        cause = causes.RUN_REFUSED.cause(f"{doomed}; {_next(timing, zone)}", remedy=_remedy(job, kind))
    else:
        ignored = f" ({unknown_zone(job)} is no time zone that is known here)" if unknown_zone(job) else ""
        cause = causes.SCHEDULED.cause(f"{_next(timing, zone)}{ignored}", details={"next": format_time(timing.next)})
    return dataclasses.replace(plan, held=_held(job, cause))


def _next(timing: Due, zone: str) -> str:
    if timing.next is None:
        return "there is no next run"
    local = timing.next.astimezone(cron.zone_of(zone))
    return f"the next run is due at {local:%Y-%m-%d %H:%M:%S} {zone}"


def _held(job: AdvancedCronJob, cause: Cause) -> tuple[Held, ...]:
    return (Held(target=Target.of(ADVANCED_CRON_JOBS, job), causes=(cause,)),)
