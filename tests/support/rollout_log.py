"""Watching a rollout: what begins with which pod, in order, and how many pods serve meanwhile.

    async with watching(client, "demo", "app=web", clock) as log:
        ...
    log.signs                      # in place, deleted, created: one after the other
    log.fewest_available(10)       # with minReadySeconds 10

It reads pods alone, as anybody could: a pod begins to change in place with the label of its revision, it begins to go
with its deletion timestamp, and it comes when it is seen for the first time.

Much of this is what `kruise.foresight.watching` does, on purpose: forecasts are held against this log, so it must not
share their watcher and its mistakes. It makes neither moves nor waves of what it sees, and counts anew from the whole
log. Only what makes a pod available is the rule of the workloads themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime

from kruise.api.native.pod import PODS, Pod
from kruise.inplace import keys
from kruise.inplace.availability import is_available
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock

_LAST_EVENTS = 0.3
"""Seconds that the last events may be on their way."""


class Act(enum.StrEnum):
    IN_PLACE = "in-place"
    DELETE = "delete"
    CREATE = "create"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """Something begins with a pod."""

    act: Act
    pod: str
    at: float
    """Seconds since the log began."""
    revision: str
    """The hash of where it goes; of a pod that goes, of where it was."""
    is_marked: bool = False
    """Of a pod that goes: its deletion was asked for by label, as a rollout does that rebuilds pods."""

    def __str__(self) -> str:
        return f"{self.at:.1f}s {self.act} {self.pod} {self.revision}"


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    at: datetime
    is_gone: bool
    pod: Pod


class RolloutLog:
    def __init__(self, now: datetime, pods: Iterable[Pod]) -> None:
        self.began = now
        self.start = {pod.metadata.uid: pod for pod in pods}
        self._entries: list[_Entry] = []
        self._present = dict(self.start)
        self._leaving = {uid for uid, pod in self.start.items() if is_leaving(pod)}
        self.signs: list[Sign] = []
        self.last_news = now
        """When a pod last came, went, or changed its revision or lifecycle state."""

    def note(self, kind: str, pod: Pod, now: datetime) -> None:
        """Take an event of a watch."""
        uid = pod.metadata.uid
        before = self._present.get(uid)
        is_gone = kind == "DELETED"
        self._entries.append(_Entry(now, is_gone, pod))
        if before is None:
            if is_gone:
                return
            self._sign(Act.CREATE, pod, now)
        if (is_gone or is_leaving(pod)) and uid not in self._leaving:
            self._leaving.add(uid)
            self._sign(Act.DELETE, pod, now)
        elif before is not None and not is_leaving(pod) and revision_of(before) != revision_of(pod):
            self._sign(Act.IN_PLACE, pod, now)
        elif before is not None and _state(before) != _state(pod):
            self.last_news = now
        if is_gone:
            self._present.pop(uid, None)
            self.last_news = now
        else:
            self._present[uid] = pod

    def _sign(self, act: Act, pod: Pod, now: datetime) -> None:
        self.last_news = now
        self.signs.append(
            Sign(
                act=act,
                pod=pod.metadata.name,
                at=(now - self.began).total_seconds(),
                revision=revision_of(pod),
                is_marked=keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels,
            )
        )

    # What was so

    @property
    def pods(self) -> list[Pod]:
        """Those that are there now and not on their way out."""
        return [pod for pod in self._present.values() if not is_leaving(pod)]

    def by_revision(self) -> dict[str, int]:
        return dict(Counter(map(revision_of, self.pods)))

    def available(self, min_ready_seconds: int, now: datetime) -> int:
        return sum(is_available(pod, min_ready_seconds, now) for pod in self.pods)

    def fewest_available(self, min_ready_seconds: int) -> int:
        """The fewest pods that served at any moment, by the rule of the workloads (IPU-112)."""
        return min(
            sum(is_available(pod, min_ready_seconds, now) for pod in pods if not is_leaving(pod))
            for now, pods in self._moments()
        )

    def most_pods(self) -> int:
        """The most pods that were there at any moment and not on their way out."""
        return max(sum(not is_leaving(pod) for pod in pods) for _, pods in self._moments())

    def _moments(self) -> Iterator[tuple[datetime, Iterable[Pod]]]:
        present = dict(self.start)
        yield self.began, present.values()
        for entry in self._entries:
            if entry.is_gone:
                present.pop(entry.pod.metadata.uid, None)
            else:
                present[entry.pod.metadata.uid] = entry.pod
            yield entry.at, present.values()


def revision_of(pod: Pod) -> str:
    """The short hash: it is the same whatever the gates say about the label."""
    return pod.metadata.labels.get(keys.REVISION_LABEL, "").rpartition("-")[2]


def _state(pod: Pod) -> str:
    return pod.metadata.labels.get(keys.STATE_LABEL, "")


def is_leaving(pod: Pod) -> bool:
    """Its end has begun, or is over."""
    return pod.metadata.deletion_timestamp is not None or pod.status.phase in ("Succeeded", "Failed")


@contextlib.asynccontextmanager
async def watching(client: Client, namespace: str, labels: str, clock: Clock) -> AsyncIterator[RolloutLog]:
    """Every change of these pods from here on."""
    listed = await client.list(PODS, namespace, labels=labels)
    log = RolloutLog(clock.now(), listed.items)

    async def follow() -> None:
        async with client.watch(
            PODS, namespace, resource_version=listed.resource_version, labels=labels, bookmarks=False
        ) as events:
            async for event in events:
                log.note(event.type, event.object, clock.now())

    task = asyncio.create_task(follow(), name=f"rollout log of {namespace}")
    try:
        yield log
        await asyncio.sleep(_LAST_EVENTS)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
