"""The runs of an AdvancedCronJob that are to come, if each takes as long as the longest one did so far, and what they
meet (ACJ-60 to ACJ-62). Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from kruise.api.apps.advancedcronjob import ALLOW, FORBID, AdvancedCronJob
from kruise.machinery.cron import Schedule
from kruise.machinery.runs import earliest
from kruise.machinery.wording import listed, plural
from kruise.workloads.advancedcronjob.children import Child

_SECOND = timedelta(seconds=1)
_WITH_ACTIVE = {ALLOW: "beside", FORBID: "waits for"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    job: AdvancedCronJob
    schedule: Schedule
    anchor: datetime
    """Where runs are counted from."""
    longest: timedelta | None
    """None: no run has ended yet, and nobody knows how long one takes."""
    now: datetime

    def runs(self, active: Sequence[Child], missed: datetime | None) -> Iterator[tuple[datetime, str]]:
        """The moment of each, and what it meets. `missed` is due already."""
        moment = missed or self._next(max(self.anchor, self.now))
        begun = [child.started_at or child.scheduled_at or self.now for child in active]
        free = max(map(self._end, begun), default=self.now)
        if moment is None:
            return
        if begun and not self._end_in_time(begun):
            # They may end whenever they like: what follows is told as if they had by then.
            words = _WITH_ACTIVE.get(self.policy, "replaces")
            yield moment, f"{words} {listed(sorted(child.name for child in active))}, unless that has ended by then"
            free = self._end(moment)
            moment = self._next(moment)
        while moment is not None:
            due = moment
            if free > max(due, self.now) and self.policy == FORBID:
                moment = self._when_free(due, free)
                if moment is None:
                    return
            yield moment, self._meets(due, moment, free)
            begin = max(moment, free) if self.policy == FORBID else moment
            free = self._end(max(begin, self.now))
            moment = self._next(moment)

    @property
    def policy(self) -> str:
        return self.job.spec.concurrency_policy or ALLOW

    def _next(self, after: datetime) -> datetime | None:
        return self.schedule.next(after, anchor=self.anchor)

    def _end(self, start: datetime) -> datetime:
        return start + (self.longest or timedelta())

    def _end_in_time(self, begun: Sequence[datetime]) -> bool:
        """Whether runs that are active have not yet taken longer than any before."""
        return self.longest is not None and all(self._end(begin) > self.now for begin in begun)

    def _when_free(self, due: datetime, free: datetime) -> datetime | None:
        """Of those that wait for the one before, the latest starts when that has ended, if its deadline lets it; the
        others never do (ACJ-53, ACJ-60)."""
        since = max(due - _SECOND, earliest(free, self.job.spec.starting_deadline_seconds))
        return self.schedule.last(free, after=since, anchor=self.anchor) or self._next(free)

    def _meets(self, due: datetime, moment: datetime, free: datetime) -> str:
        left = plural(int((free - moment).total_seconds()), "second")
        told = []
        if free > max(moment, self.now):
            waits = {
                ALLOW: f"beside the one before, for about {left}",
                FORBID: f"waits about {left} for the one before",
            }
            told.append(waits.get(self.policy, "replaces the one before"))
        if due < moment:
            told.append("what was due before it never starts")
        return "; ".join(told)
