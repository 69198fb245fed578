"""Waves of a rollout (`kruise.faces.waves`), as somebody sees them who looks at its pods from time to time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from kruise.faces.waves import PeriodCount
from kruise.verbs.podstates import PodState, Side


class Waves:
    """Which pod moved in which wave, counted from 1. A pod that moves again belongs to the later wave."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}
        self.count = 0
        self._periods = PeriodCount()
        self._numbered = 0
        """The last period that is a wave."""
        self._before: Mapping[str, PodState] | None = None
        self._available: set[str] = set()
        self._vacancies: deque[int] = deque()
        """For each pod that went and has no successor yet, its wave."""
        self._extras = 0
        """Pods that stand in for others that go later."""

    def members(self, wave: int) -> tuple[str, ...]:
        """Of those that are there."""
        there = self._before or {}
        return tuple(sorted(name for name, number in self.of.items() if number == wave and name in there))

    def observe(self, pods: Iterable[PodState], now: datetime, *, wanted: int, min_ready_seconds: int = 0) -> None:
        """What is there at a moment; `wanted` is how many pods there should be."""
        before, present = self._before, {pod.name: pod for pod in pods}
        self._before = present
        available = {name for name, pod in present.items() if _serves(pod, now, min_ready_seconds)}
        for name in available - self._available:
            self._periods.serves(name)
        self._available = available
        if before is None:
            # Who looks in the middle of a wave has not seen it begin.
            for name, pod in present.items():
                if pod.side is Side.MOVING:
                    self._moves(name)
            return
        there = sum(not _goes(pod) for pod in before.values())
        for name, pod in before.items():
            if not _goes(pod) and _goes(present.get(name)):
                there -= 1
                self._went(name, is_missed=there < wanted)
            elif name in present and pod.revision != present[name].revision:
                self._moves(name)
        for name, pod in present.items():
            if name not in before and not _goes(pod):
                there += 1
                self._came(name, is_surplus=there > wanted)

    def _moves(self, name: str, *, will_serve: bool = True) -> None:
        self._periods.begins()
        if self._periods.count != self._numbered:
            self._numbered = self._periods.count
            self.count += 1
        self.of[name] = self.count
        if will_serve:
            self._periods.joins(name)

    def _went(self, name: str, *, is_missed: bool) -> None:
        self._moves(name, will_serve=False)
        if self._extras:
            self._extras -= 1
        elif is_missed:
            self._vacancies.append(self.count)

    def _came(self, name: str, *, is_surplus: bool) -> None:
        if not self._vacancies and not is_surplus:
            self._moves(name)
            return
        self._periods.begins()
        self._periods.joins(name)
        if self._vacancies:
            self.of[name] = self._vacancies.popleft()
        else:
            self._extras += 1
            self.of[name] = self.count + 1


def _goes(pod: PodState | None) -> bool:
    return pod is None or pod.state == "Terminating"


def _serves(pod: PodState, now: datetime, min_ready_seconds: int) -> bool:
    if not pod.is_ready or pod.state != "Ready":
        return False
    since = pod.ready_since
    return min_ready_seconds <= 0 or (since is not None and now - since >= timedelta(seconds=min_ready_seconds))
