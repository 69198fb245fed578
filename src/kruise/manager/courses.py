"""The course of each workload's rollout: when it began and ended, how, and what it waited for. Pure.

A rollout begins when the manager sees a revision that the workload has not come to the end of, or pods that are to be
updated again, as after a partition was lowered. It ends when `rollout status` would say so. Pods that crash, are added,
made again or taken away afterwards are none: while they go, a status counts them as if they were older.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator
from typing import NamedTuple

from kruise.faces.progress import Phase, Progress


class Ended(NamedTuple):
    """How a rollout came to an end."""

    phase: Phase
    seconds: float


class Course:
    """Of one workload. Times are seconds of a clock that only runs."""

    __slots__ = ("_began", "_causes", "_finished", "_kept", "_since", "_waited", "ends", "last", "progress")

    def __init__(self) -> None:
        self.progress = Progress()
        self.ends: Counter[Phase] = Counter()
        self.last: float | None = None
        """How long the latest rollout took that was done."""
        self._finished: str | None = None
        """The revision whose rollout has ended; None: nothing was seen yet."""
        self._kept: int | None = None
        """How many pods were meant to stay behind when it ended; None: others did, and may go on at any time."""
        self._began: float | None = None
        self._causes: frozenset[str] = frozenset()
        self._since = 0.0
        self._waited: dict[str, float] = {}

    def see(self, progress: Progress, revision: str, now: float) -> Ended | None:
        """The workload has changed. Gives what came to an end with that."""
        self.progress = progress
        is_new = self._finished is not None and revision != self._finished
        if self._finished is None:
            # What went on before this manager came is not its to measure, unless it still goes on.
            goes_on = _has_older(progress)
            self._finished, self._kept = "" if goes_on else revision, None if goes_on else _kept(progress)
            is_new = not progress.total and not progress.is_over
        if self._began is None and not progress.is_over and (is_new or self._goes_on(progress)):
            self._began = self._since = now
        if not progress.is_over:
            return None
        seconds = self._end(now)
        self._finished = revision
        self._kept = _kept(progress) if progress.phase is Phase.DONE else None
        if seconds is None:
            # Too quick to be seen under way; unless there is nothing that should be updated yet.
            seconds = 0.0 if is_new and (progress.expected or progress.phase is Phase.FAILED) else None
        return self._count(Ended(progress.phase, seconds)) if seconds is not None else None

    def rest(self, progress: Progress, revision: str, now: float) -> None:
        """The workload does not roll by itself (OnDelete): nothing begins, and what was under way ends uncounted."""
        self.progress = progress
        self._end(now)
        self._finished, self._kept = revision, None

    def hold(self, causes: Collection[str], now: float) -> None:
        """A decision was made: these hold pods now. It may come before the rollout is seen that it is about."""
        self._settle(now)
        self._causes = frozenset(causes)

    def age(self, now: float) -> float | None:
        """How long the rollout has been under way; None: there is none."""
        return now - self._began if self._began is not None else None

    def waited(self, now: float) -> dict[str, float]:
        """Seconds for each cause during which it held at least one pod of a rollout."""
        return dict(self._up_to(now))

    def _goes_on(self, progress: Progress) -> bool:
        """The same revision: pods that stayed behind are to be updated now."""
        return _has_older(progress) and (self._kept is None or _kept(progress) < self._kept)

    def _count(self, ended: Ended) -> Ended:
        self.ends[ended.phase] += 1
        if ended.phase is Phase.DONE:
            self.last = ended.seconds
        return ended

    def _end(self, now: float) -> float | None:
        self._settle(now)
        age = self.age(now)
        # What holds pods from here on, such as a partition, is no time of a rollout.
        self._began, self._causes = None, frozenset()
        return age

    def _settle(self, now: float) -> None:
        self._waited = self.waited(now)
        self._since = now

    def _up_to(self, now: float) -> Iterator[tuple[str, float]]:
        running = self._causes if self._began is not None else frozenset()
        for cause in sorted(running | self._waited.keys()):
            seconds = self._waited.get(cause, 0.0) + (now - self._since if cause in running else 0.0)
            if seconds:
                yield cause, seconds


def _kept(progress: Progress) -> int:
    """Pods that shall keep an older template."""
    return progress.wanted - progress.expected


def _has_older(progress: Progress) -> bool:
    """More pods have an older template than shall keep it. Pods that are yet to be made have none, and of those that
    are too many nobody knows."""
    return not progress.is_over and min(progress.total, progress.wanted) - progress.updated > _kept(progress)


class Courses:
    """Of all workloads, by whatever names them."""

    def __init__(self) -> None:
        self._courses: dict[Hashable, Course] = {}

    def of(self, name: Hashable) -> Course:
        course = self._courses.get(name)
        if course is None:
            course = self._courses[name] = Course()
        return course

    def known(self, name: Hashable) -> Course | None:
        return self._courses.get(name)

    def gone(self, name: Hashable) -> None:
        self._courses.pop(name, None)

    def clear(self) -> None:
        self._courses.clear()

    def items(self) -> list[tuple[Hashable, Course]]:
        return list(self._courses.items())
