"""What happens to the pods of a workload, seen from outside: who moved when, who served when.

The same watcher looks at a forecast and at a cluster, so that both speak of the same things. It takes the pods' changes
in order, knows nothing of plans, and counts:

* A pod moves *in place* when its revision label changes while it lives on.
* A pod *goes* when its deletion begins. It is *recreated* where a successor takes its place, else *deleted*.
* A pod *comes* when it is created. It is the successor of the pod that went first and has none yet. One above the
  wanted number of pods is there for a pod that goes later (surge). Any other is *created* for its own sake.

Moves are counted in periods, see `kruise.faces.waves`.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from datetime import datetime
from typing import Any

from kruise.api.native.pod import Pod, is_active
from kruise.faces.forecast import ForecastFacts
from kruise.faces.waves import PeriodCount
from kruise.foresight.forecast import How, Move
from kruise.machinery.revision_names import short_hash


@dataclasses.dataclass(slots=True)
class _Seen:
    """What is known of a pod."""

    pod: Pod
    is_there: bool
    """Neither finished nor on its way out, and still ours."""
    is_available: bool
    ups: list[float] = dataclasses.field(default_factory=list)
    """When it became available, while it was watched."""
    fell: int = -1
    """The place in the counts at which it was last lost."""


@dataclasses.dataclass(slots=True)
class _Happening:
    how: How
    """CREATE for one that came, DELETE for one that went, until both are matched."""
    at: float
    uid: str
    pod: str
    revision: str
    """Where it goes; of one that came or went, what it has."""
    before: str
    reason: str
    period: int
    was_available: bool
    partner: str = ""
    """The uid of the successor of one that went."""
    is_successor: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A move, and what the watcher knows of it beside."""

    move: Move
    uid: str
    period: int
    before: str
    """The revision that it had, as its label has it."""
    reason: str
    """Of the write that began it, where a plan gave one."""


class Watcher:
    def __init__(self, kind: ForecastFacts, subject: Any, replicas: int, began: datetime) -> None:
        self._kind = kind
        self._subject = subject
        self._replicas = replicas
        self._min_ready = kind.min_ready_seconds(subject)
        self._began = began
        self._seen: dict[str, _Seen] = {}
        self._waiting: dict[str, None] = {}
        """Uids of pods that may become available by time alone."""
        self._happenings: list[_Happening] = []
        self._vacancies: deque[_Happening] = deque()
        self._extras: deque[_Happening] = deque()
        self._periods = PeriodCount()
        self._places: list[int] = []
        """For each period, where in the counts it begins."""
        self._over_at = 0
        """The place in the counts at which a pod of the present period has become available."""
        self._there = 0
        self._available = 0
        self._counts = [0]
        self.most_pods = 0
        self.last_change = 0.0
        """Seconds until the last pod came, moved, went, or began or ceased to serve."""

    # What happens

    def prime(self, pod: Pod) -> None:
        """A pod that is there from the beginning."""
        if self._is_ours(pod):
            self._enter(pod, self._began).ups.clear()
            self._counts = [self._available]

    def saw(self, now: datetime, old: Pod | None, new: Pod | None, reason: str = "") -> None:
        """A pod came, changed or went."""
        ours = new if new is not None and self._is_ours(new) else None
        changed = new if new is not None else old
        found = self._seen.get(changed.metadata.uid) if changed is not None else None
        if found is None:
            if ours is not None:
                self._came(ours, now, reason)
            return
        before, was_there = found.pod, found.is_there
        found.pod = ours if ours is not None else before
        found.is_there = ours is not None and is_active(ours)
        if was_there and not found.is_there:
            self._there -= 1
            available = found.is_available
            self._judge(found, now)
            self._happened(How.DELETE, found, now, reason, was_available=available)
        elif was_there and ours is not None:
            self._judge(found, now)
            if short_hash(self._revision(before)) != short_hash(self._revision(ours)):
                self._happened(How.IN_PLACE, found, now, reason, before=self._revision(before))
        if new is None:
            self._waiting.pop(found.pod.metadata.uid, None)

    def tick(self, now: datetime) -> None:
        """Time has passed: some pods may have been ready for long enough."""
        for uid in tuple(self._waiting):
            self._judge(self._seen[uid], now)

    def _came(self, pod: Pod, now: datetime, reason: str) -> None:
        found = self._enter(pod, now)
        if found.is_there:
            self._happened(How.CREATE, found, now, reason)

    def _enter(self, pod: Pod, now: datetime) -> _Seen:
        found = self._seen[pod.metadata.uid] = _Seen(pod=pod, is_there=is_active(pod), is_available=False)
        self._there += found.is_there
        self.most_pods = max(self.most_pods, self._there)
        self._judge(found, now)
        return found

    def _is_ours(self, pod: Pod) -> bool:
        return self._kind.owns(self._subject, pod)

    def _revision(self, pod: Pod) -> str:
        return self._kind.revision_of(self._subject, pod)

    def _seconds(self, now: datetime) -> float:
        return (now - self._began).total_seconds()

    def _judge(self, found: _Seen, now: datetime) -> None:
        """Whether the pod serves."""
        uid = found.pod.metadata.uid
        serves = found.is_there and self._kind.serves(found.pod, self._min_ready, now)
        if self._min_ready > 0:
            if found.is_there and not serves and self._kind.serves(found.pod, 0, now):
                self._waiting[uid] = None
            else:
                self._waiting.pop(uid, None)
        if serves == found.is_available:
            return
        found.is_available = serves
        self._available += 1 if serves else -1
        self._counts.append(self._available)
        self.last_change = self._seconds(now)
        if serves:
            found.ups.append(self.last_change)
            if self._periods.serves(uid):
                self._over_at = len(self._counts) - 1
        else:
            found.fell = len(self._counts) - 1

    def _happened(
        self, how: How, found: _Seen, now: datetime, reason: str, *, before: str = "", was_available: bool | None = None
    ) -> None:
        self.last_change = at = self._seconds(now)
        if self._periods.begins():
            # A pod may have ceased to serve just before it moved: that belongs to this period, not to the one before.
            lately = not found.is_available and found.fell > self._over_at
            self._places.append(found.fell if lately else max(len(self._counts) - 1, 0))
        uid = found.pod.metadata.uid
        if how is not How.DELETE:
            self._periods.joins(uid)
        happening = _Happening(
            how=how,
            at=at,
            uid=uid,
            pod=self._kind.name_of(found.pod),
            revision=self._revision(found.pod),
            before=before or self._revision(found.pod),
            reason=reason,
            period=self._periods.count,
            was_available=found.is_available if was_available is None else was_available,
        )
        self._happenings.append(happening)
        self._match(happening)

    def _match(self, happening: _Happening) -> None:
        if happening.how is How.CREATE:
            if self._vacancies:
                self._vacancies.popleft().partner = happening.uid
                happening.is_successor = True
            elif self._there > self._replicas:
                self._extras.append(happening)
        elif happening.how is How.DELETE:
            if self._extras:
                successor = self._extras.popleft()
                successor.is_successor = True
                happening.partner = successor.uid
            elif self._there < self._replicas:
                self._vacancies.append(happening)

    # What came of it

    @property
    def available(self) -> int:
        """Pods that serve now."""
        return self._available

    @property
    def there(self) -> int:
        return self._there

    @property
    def fewest_available(self) -> int:
        return min(self._counts, default=0)

    def moved(self) -> tuple[Moved, ...]:
        """The moves so far, in order."""
        return tuple(self._moved(item) for item in self._happenings if not item.is_successor)

    def _moved(self, item: _Happening) -> Moved:
        how, served_by, revision = item.how, item.uid, item.revision
        if how is How.DELETE and item.partner:
            how, served_by = How.RECREATE, item.partner
            revision = self._revision(self._seen[item.partner].pod)
        move = Move(
            pod=item.pod,
            how=how,
            at=item.at,
            revision="" if how is How.DELETE else revision,
            until_available=None if how is How.DELETE else self._until(served_by, item.at),
        )
        return Moved(move=move, uid=item.uid, period=item.period, before=item.before, reason=item.reason)

    def _until(self, uid: str, at: float) -> float | None:
        found = self._seen[uid]
        later = next((up for up in found.ups if up >= at), None)
        if later is not None:
            return round(later - at, 3)
        return 0.0 if found.is_available else None

    def fewest_in(self, period: int) -> int:
        """The fewest pods that served from the begin of a period (1, 2, ...) to the begin of the next."""
        begin = self._places[period - 1]
        end = self._places[period] if period < len(self._places) else len(self._counts)
        return min(self._counts[begin : max(end, begin + 1)], default=self._available)
