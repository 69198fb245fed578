"""What an AdvancedCronJob will do: its next runs, in its zone, and where they would overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from kruise.api.apps.advancedcronjob import ALLOW, FORBID, AdvancedCronJob
from kruise.api.resource import Resource
from kruise.faces.outlook import Outlook, OutlookFacts, Seen
from kruise.machinery import codec, cron
from kruise.machinery.ages import age
from kruise.machinery.documents import Json
from kruise.machinery.runs import MOST_MISSED, Due
from kruise.machinery.times import format_time
from kruise.machinery.wording import listed, plural
from kruise.workloads.advancedcronjob.children import Child, State, child_of, kind_of
from kruise.workloads.advancedcronjob.decide import last_of, run_name
from kruise.workloads.advancedcronjob.timing import anchor_of, names_zone, schedule_of, timing_of, unknown_zone

RUNS = 10


def _tell(document: Json, seen: Seen) -> Outlook:
    job = codec.convert(document, AdvancedCronJob)
    kind = kind_of(job)
    if kind is None:
        raise ValueError("it has no template")
    try:
        schedule = schedule_of(job, seen.zone)
    except cron.ScheduleError as error:
        raise ValueError(f"spec.schedule: {error}") from error
    runs = list(seen.objects.get(kind.resource, ()))
    children = [child_of(kind, one, is_leaving=False) for one in runs]
    last, zone = last_of(job, children), schedule.zone
    timing = timing_of(job, schedule, last=last, floor=None, now=seen.now)
    longest = max(filter(None, map(_took, runs)), default=None)
    active = [child for child in children if child.state is State.ACTIVE]
    place = cron.zone_of(zone)
    anchor = anchor_of(job, last, seen.now)
    moments = list(schedule.upcoming(max(anchor, seen.now), RUNS, anchor=anchor))
    if timing.missed is not None and not job.spec.paused:
        moments.insert(0, timing.missed)
    rows = []
    policy = job.spec.concurrency_policy or ALLOW
    before: datetime | None = None
    for moment in moments[:RUNS]:
        if before is None:
            overlap = _overlap_with_active(policy, moment, active, longest, seen.now)
        else:
            overlap = _overlap(policy, moment, before, longest)
        rows.append(
            (f"{moment.astimezone(place):%Y-%m-%d %H:%M:%S}", format_time(moment), run_name(job, moment), overlap)
        )
        before = moment
    took = f"{int(longest.total_seconds())}s" if longest is not None else "not known yet"
    facts = (
        ("Schedule", job.spec.schedule),
        ("Zone", zone),
        ("Makes", f"{kind.kind}s"),
        ("Concurrency", policy),
        ("Longest run", took),
        ("Active", f"{len(active)}{': ' if active else ''}{', '.join(child.name for child in active)}"),
        ("Last run", f"{format_time(last)} ({age(last, seen.now)} ago)" if last is not None else "none yet"),
    )
    header = (f"TIME ({zone})", "UTC", "RUN", "OVERLAP")
    return Outlook(facts=facts, header=header, rows=tuple(rows), notes=tuple(_notes(job, schedule, timing, zone)))


def _notes(job: AdvancedCronJob, schedule: cron.Schedule, timing: Due, zone: str) -> Iterator[str]:
    if job.spec.paused:
        yield "it is paused: none of these runs starts until it goes on"
    if job.spec.starting_deadline_seconds == 0:
        yield "startingDeadlineSeconds is 0: none of these runs ever starts"
    if ignored := unknown_zone(job):
        yield f"{ignored} is no time zone that is known here, and is ignored"
    if isinstance(schedule.rule, cron.Calendar) and not names_zone(job):
        yield f"it names no time zone, so that of the manager counts: these are times of {zone}, that of this machine"
    if timing.is_ahead:
        yield "its last run, or its creation, is in the future: runs go on after that"
    if timing.missed is not None and not job.spec.paused:
        yield f"the run of {format_time(timing.missed)} is due already"
    if timing.is_too_many:
        yield f"more than {MOST_MISSED} runs were missed: none of them is made up for"
    if timing.next is None:
        yield "no day matches the schedule for years"


def _took(run: Any) -> timedelta | None:
    begin, end = run.status.start_time, run.status.completion_time
    return end - begin if begin is not None and end is not None else None


def _overlap(policy: str, moment: datetime, before: datetime, longest: timedelta | None) -> str:
    """With a run that began then, by how long runs took so far."""
    if longest is None or before + longest <= moment:
        return ""
    late = plural(int((before + longest - moment).total_seconds()), "second")
    if policy == ALLOW:
        return f"beside the one before, for about {late}"
    if policy == FORBID:
        return f"waits about {late} for the one before"
    return "replaces the one before"


def _overlap_with_active(
    policy: str, moment: datetime, active: Sequence[Child], longest: timedelta | None, now: datetime
) -> str:
    """Of the first run with those that run now. One that takes longer than any before may end whenever it likes."""
    begun = [(child.started_at or child.scheduled_at or now, child.name) for child in active]
    if longest is not None and all(begin + longest > now for begin, _ in begun):
        return _overlap(policy, moment, max(begun)[0], longest) if begun else ""
    if not begun:
        return ""
    words = {ALLOW: "beside", FORBID: "waits for"}.get(policy, "replaces")
    return f"{words} {listed(sorted(name for _, name in begun))}, unless that has ended by then"


def _reads(document: Json) -> tuple[Resource[Any], ...]:
    kind = kind_of(codec.convert(document, AdvancedCronJob))
    return (kind.resource,) if kind is not None else ()


OUTLOOK = OutlookFacts(reads=_reads, tell=_tell)
