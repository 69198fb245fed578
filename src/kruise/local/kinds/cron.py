"""The schedules of CronJobs: what is wrong with one, in the words of the parser that Kubernetes uses."""

from __future__ import annotations

from kruise.machinery import cron


def problem(schedule: str) -> str:
    """What is wrong with a schedule; empty for a good one."""
    try:
        cron.parse(schedule)
    except cron.ScheduleError as error:
        return str(error)
    return ""
