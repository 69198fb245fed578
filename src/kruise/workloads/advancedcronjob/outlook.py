"""What an AdvancedCronJob will do: its next runs, in its zone, and where they would overlap."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from kruise.api.apps.advancedcronjob import ALLOW, AdvancedCronJob
from kruise.api.resource import Resource
from kruise.faces.outlook import Outlook, OutlookFacts, Seen
from kruise.machinery import codec, cron
from kruise.machinery.ages import age
from kruise.machinery.documents import Json
from kruise.machinery.runs import MOST_MISSED, Due
from kruise.machinery.times import format_time
from kruise.workloads.advancedcronjob.children import State, child_of, kind_of
from kruise.workloads.advancedcronjob.course import Course
from kruise.workloads.advancedcronjob.decide import last_of, run_name
from kruise.workloads.advancedcronjob.refusals import refusals
from kruise.workloads.advancedcronjob.timing import anchor_of, names_zone, schedule_of, timing_of, unknown_zone

RUNS = 10


def _outlook(document: Json, seen: Seen) -> Outlook:
    job = codec.convert(document, AdvancedCronJob)
    kind = kind_of(job)
    if kind is None:
        raise ValueError("it has no template")
    try:
        schedule = schedule_of(job, seen.zone)
    except cron.ScheduleError as error:
        raise ValueError(f"spec.schedule: {error}") from error
    found = list(seen.objects.get(kind.resource, ()))
    children = [child_of(kind, one, is_leaving=False) for one in found]
    last, zone = last_of(job, children), schedule.zone
    timing = timing_of(job, schedule, last=last, floor=None, now=seen.now)
    longest = max(filter(None, map(_took, found)), default=None)
    active = [child for child in children if child.state is State.ACTIVE]
    place = cron.zone_of(zone)
    policy = job.spec.concurrency_policy or ALLOW
    course = Course(job=job, schedule=schedule, anchor=anchor_of(job, last, seen.now), longest=longest, now=seen.now)
    missed = None if job.spec.paused else timing.missed
    rows = [
        (f"{moment.astimezone(place):%Y-%m-%d %H:%M:%S}", format_time(moment), run_name(job, moment), overlap)
        for moment, overlap in itertools.islice(course.runs(active, missed), RUNS)
    ]
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
    yield from map(str, refusals(job))
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


def _reads(document: Json) -> tuple[Resource[Any], ...]:
    kind = kind_of(codec.convert(document, AdvancedCronJob))
    return (kind.resource,) if kind is not None else ()


OUTLOOK = OutlookFacts(reads=_reads, outlook=_outlook)
