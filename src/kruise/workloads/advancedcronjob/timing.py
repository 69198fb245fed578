"""When an AdvancedCronJob runs: its zone, runs that it missed, the next one (ACJ-27, ACJ-53 to ACJ-59). Pure."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from kruise.api.apps.advancedcronjob import AdvancedCronJob
from kruise.machinery import cron, runs
from kruise.machinery.runs import Due


def zone_name(spec_zone: str | None, schedule: str, local: str) -> str:
    """The zone of a schedule that does not name one itself; one that nobody knows is ignored (ACJ-27)."""
    if spec_zone and not cron.has_zone(schedule) and cron.zone_of(spec_zone) is not None:
        return spec_zone
    return local


def names_zone(job: AdvancedCronJob) -> bool:
    """Otherwise that of the manager counts."""
    return cron.has_zone(job.spec.schedule) or zone_name(job.spec.time_zone, job.spec.schedule, "") != ""


def unknown_zone(job: AdvancedCronJob) -> str:
    """The zone that is asked for and that nobody knows, if so. Admission refuses it; an object that was made where more
    zones are known may have it."""
    zone = job.spec.time_zone
    return zone if zone and not cron.has_zone(job.spec.schedule) and cron.zone_of(zone) is None else ""


def schedule_of(job: AdvancedCronJob, local_zone: str) -> cron.Schedule:
    """Raises ScheduleError."""
    return cron.parse(job.spec.schedule, zone_name(job.spec.time_zone, job.spec.schedule, local_zone))


def anchor_of(job: AdvancedCronJob, last: datetime | None, now: datetime) -> datetime:
    """Where runs are counted from."""
    return last or job.metadata.creation_timestamp or now


def timing_of(
    job: AdvancedCronJob, schedule: cron.Schedule, *, last: datetime | None, floor: datetime | None, now: datetime
) -> Due:
    """`last` is the newest run that there was. `floor`: what was missed before is given up already. Where too many were
    missed, none is made up for, unless a deadline bounds them (ACJ-55)."""
    deadline = job.spec.starting_deadline_seconds
    found = runs.due(schedule, anchor=anchor_of(job, last, now), deadline=deadline, now=now, floor=floor)
    if deadline is not None:
        return dataclasses.replace(found, is_too_many=False)
    return dataclasses.replace(found, missed=None) if found.is_too_many else found
