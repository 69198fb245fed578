"""Why a workload does not move, as a condition of its status: the causes of its last plan in a few words.

Most of what a plan holds back follows by itself: the next pod waits until the one before it is ready. The condition
tells only what does not resolve in the rollout's own motion: what somebody has to correct at once, and what hangs on
pods that have not been available for a minute. What a user asked for (partition, pause, OnDelete) is no news.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from kruise.api.meta import Condition
from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.inplace.availability import latest_meaning, serves
from kruise.inplace.state import BrokenAnnotation, update_state_of
from kruise.machinery.causes import ENDLESS, MINUTE, UNAVAILABLE, Cause, Meaning
from kruise.machinery.plan import Held, Wake
from kruise.machinery.times import TimeError, parse_time
from kruise.machinery.wording import listed, shortened
from kruise.workloads.shared.conditions import lasting
from kruise.workloads.shared.pod_facts import PodFacts

CONDITION = "Waiting"
PATIENCE = MINUTE
"""Seconds that a pod may be unavailable before what waits for it counts as stuck. What waits for itself has the
patience of its cause."""
LONGEST_MESSAGE = 512
_NAMED = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    reason: str
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    summary: Summary | None = None
    """None: nothing waits for longer than it should."""
    wake_after: float | None = None
    """Seconds until time alone makes something count as stuck."""

    @property
    def wakes(self) -> tuple[Wake, ...]:
        if self.wake_after is None:
            return ()
        return (Wake(after=self.wake_after, reason="what waits counts as stuck from then on"),)


NOTHING_WAITS = Waiting()


def seconds_until_stuck(pod: Pod, now: datetime, patience: float = PATIENCE) -> float:
    """How long a pod that is not available may still take, at the least; 0 or less: it is stuck.

    It counts from the last change that shows: of its readiness, of its lifecycle state, or, where it has none, of what
    it runs.
    """
    times = [pod.metadata.creation_timestamp]
    times += (item.last_transition_time for item in pod.status.conditions if item.type == "Ready")
    left = max((_left(time, now, patience) for time in times if time is not None), default=0.0)
    if left > 0:
        return left  # enough to know for now; most pods end here, and nothing has to be parsed
    # With an annotation that is wrong the other times tell enough.
    with contextlib.suppress(TimeError, BrokenAnnotation):
        if (text := pod.metadata.annotations.get(keys.STATE_TIME_ANNOTATION)) is not None:
            return _left(parse_time(text), now, patience)
        if (state := update_state_of(pod)) is not None:
            return _left(state.update_timestamp, now, patience)
    return left


def _left(since: datetime, now: datetime, patience: float) -> float:
    return (latest_meaning(since) + timedelta(seconds=patience) - now).total_seconds()


def of_pods(facts: Iterable[PodFacts], held: Sequence[Held], now: datetime) -> Waiting:
    """Pods that only minReadySeconds keeps from being available are not in anybody's way, and of those that are written
    to nobody can tell yet."""
    down = {
        fact.name: fact.pod
        for fact in facts
        if not fact.is_available and not fact.is_pending and not _lacks_only_time(fact)
    }
    return summarized(held, down, now)


def _lacks_only_time(fact: PodFacts) -> bool:
    return fact.is_ready and not fact.is_arriving and serves(fact.state)


def summarized(held: Sequence[Held], unavailable: Mapping[str, Pod], now: datetime) -> Waiting:
    """The summary of what a plan holds back. `unavailable` are the pods that time alone does not make available."""
    if not any(_may_be_told(cause.meaning) for item in held for cause in item.causes):
        return NOTHING_WAITS
    return _Summing(unavailable, now).of(held)


class _Summing:
    def __init__(self, unavailable: Mapping[str, Pod], now: datetime) -> None:
        self._unavailable = unavailable
        self._now = now
        self._waits: dict[tuple[str, float], float] = {}
        self._answers: dict[int, float] = {}

    def of(self, held: Sequence[Held]) -> Waiting:
        stuck: dict[str, list[str]] = {}
        first: dict[str, Cause] = {}
        soonest: float | None = None
        for item in held:
            for cause in item.causes:
                if not _may_be_told(cause.meaning):
                    continue
                wait = self._answers.get(id(cause))
                if wait is None:
                    wait = self._wait_for(item, cause)
                if wait <= 0:
                    stuck.setdefault(cause.code, []).append(item.target.name)
                    first.setdefault(cause.code, cause)
                elif wait != ENDLESS and (soonest is None or wait < soonest):
                    soonest = wait
        return Waiting(summary=_summary(stuck, first) if stuck else None, wake_after=soonest)

    def _wait_for(self, held: Held, cause: Cause) -> float:
        """Seconds until the cause counts as stuck; endless where it resolves by itself."""
        meaning = cause.meaning
        if not meaning.waits_for_others:
            return self._patience_with(held.target.name, meaning.patience) if meaning.patience > 0 else 0.0
        # Thousands of pods wait for the same: it is asked once.
        answer = self._answers[id(cause)] = self._patience_with_all(cause.details.get(UNAVAILABLE, ()))
        return answer

    def _patience_with_all(self, names: Sequence[str]) -> float:
        """As long as one of them may still move on, so may those that wait for it."""
        if not names:
            return ENDLESS
        return next((wait for wait in map(self._patience_with, names) if wait > 0), 0.0)

    def _patience_with(self, name: str, patience: float = PATIENCE) -> float:
        asked = (name, patience)
        if asked not in self._waits:
            pod = self._unavailable.get(name)
            self._waits[asked] = seconds_until_stuck(pod, self._now, patience) if pod is not None else ENDLESS
        return self._waits[asked]


def _may_be_told(meaning: Meaning) -> bool:
    """Whether it can come to last longer than is normal."""
    return meaning.waits_for_others or meaning.patience != ENDLESS


def _summary(stuck: Mapping[str, Sequence[str]], first: Mapping[str, Cause]) -> Summary:
    """The most frequent comes first; among equals what somebody has to do at once, and last what waits for others."""
    codes = sorted(stuck, key=lambda code: (-len(stuck[code]), first[code].meaning.patience, code))
    parts = []
    for code in codes:
        cause = first[code]
        remedy = f" ({cause.remedy})" if cause.remedy else ""
        parts.append(f"{listed(stuck[code], _NAMED)}: {cause.message}{remedy}")
    return Summary(reason=reason_of(first[codes[0]].meaning), message=shortened("; ".join(parts), LONGEST_MESSAGE))


def reason_of(meaning: Meaning) -> str:
    return "".join(word.capitalize() for word in meaning.code.split("-"))


def condition_of(summary: Summary | None, previous: Condition | None, now: datetime) -> Condition | None:
    """The condition from now on; None: there is none."""
    if summary is None:
        return None
    return lasting(CONDITION, summary.message, previous, now, reason=summary.reason)
