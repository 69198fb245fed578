"""When an AdvancedCronJob runs: its zone, runs that it missed, the next one (ACJ-27, ACJ-53 to ACJ-59). Pure."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

from kruise.api.apps.advancedcronjob import AdvancedCronJob
from kruise.machinery import cron

MOST_MISSED = 100
"""More than so many missed runs are not made up for, unless a deadline bounds them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    missed: datetime | None = None
    """The latest run that is due and was not made."""
    next: datetime | None = None
    is_too_many: bool = False
    is_ahead: bool = False
    """The last run is in the future."""


def zone_name(spec_zone: str | None, schedule: str, local: str) -> str:
    """The zone of a schedule that does not name one itself; one that nobody knows is ignored (ACJ-27)."""
    if spec_zone and not cron.has_zone(schedule) and cron.zone_of(spec_zone) is not None:
        return spec_zone
    return local


def schedule_of(job: AdvancedCronJob, local_zone: str) -> cron.Schedule:
    """Raises ScheduleError."""
    return cron.parse(job.spec.schedule, zone_name(job.spec.time_zone, job.spec.schedule, local_zone))


def anchor_of(job: AdvancedCronJob, last: datetime | None, now: datetime) -> datetime:
    """Where runs are counted from."""
    return last or job.metadata.creation_timestamp or now


def timing_of(
    job: AdvancedCronJob, schedule: cron.Schedule, *, last: datetime | None, floor: datetime | None, now: datetime
) -> Timing:
    """`last` is the newest run that there was. `floor`: what was missed before is given up already."""
    anchor = anchor_of(job, last, now)
    upcoming = schedule.next(now, anchor=anchor)
    base, deadline = anchor, job.spec.starting_deadline_seconds
    if deadline is not None:
        base = max(base, _before(now, deadline))
    if floor is not None:
        base = max(base, floor)
    if base > now:
        return Timing(next=upcoming, is_ahead=anchor > now)
    if deadline is None and schedule.is_more_than(MOST_MISSED, after=base, until=now, anchor=anchor):
        return Timing(next=upcoming, is_too_many=True)
    return Timing(missed=schedule.last(now, after=base, anchor=anchor), next=upcoming)


def _before(now: datetime, seconds: int) -> datetime:
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
