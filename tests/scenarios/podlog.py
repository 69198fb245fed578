"""Every version of some pods, as a watch told them, to ask what was never so, and what came before what."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

from kruise.api.meta import Condition
from kruise.api.native.pod import Pod
from kruise.machinery.clock import Clock
from tests.support.rollout_log import revision_of

Count = Callable[[Pod], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    at: float
    kind: str
    """ADDED, MODIFIED or DELETED."""
    pod: Pod


class PodLog:
    def __init__(self, clock: Clock, pods: Iterable[Pod]) -> None:
        self._clock = clock
        self.start = tuple(pods)
        """The pods as they were when the log began."""
        self.entries: list[Entry] = []

    def note(self, kind: str, pod: Pod) -> None:
        self.entries.append(Entry(self._clock.monotonic(), kind, pod))

    def of(self, name: str) -> list[Pod]:
        """The versions of one pod, in order."""
        told = (entry.pod for entry in self.entries if entry.kind != "DELETED")
        return [pod for pod in (*self.start, *told) if pod.metadata.name == name]

    def first(self, name: str, fits: Count) -> int:
        """The place of the first version of a pod that fits."""
        for place, pod in enumerate(self.of(name)):
            if fits(pod):
                return place
        raise AssertionError(f"pod {name} never was so")

    def lowest(self, fits: Count) -> int:
        """The smallest number of pods that fit at any moment."""
        return min(self._counts(fits))

    def highest(self, fits: Count) -> int:
        return max(self._counts(fits))

    def _counts(self, fits: Count) -> Iterator[int]:
        there = {pod.metadata.name: pod for pod in self.start}
        yield sum(fits(pod) for pod in there.values())
        for entry in self.entries:
            if entry.kind == "DELETED":
                there.pop(entry.pod.metadata.name, None)
            else:
                there[entry.pod.metadata.name] = entry.pod
            yield sum(fits(pod) for pod in there.values())

    def updated_order(self, revision_hash: str) -> list[str]:
        """The names of pods in the order in which they got this revision."""
        seen: dict[str, None] = {}
        for entry in self.entries:
            if revision_of(entry.pod) == revision_hash and is_there(entry.pod):
                seen.setdefault(entry.pod.metadata.name)
        return list(seen)


def condition_of(pod: Pod, kind: str) -> Condition | None:
    return next((item for item in pod.status.conditions if item.type == kind), None)


def is_true(pod: Pod, kind: str) -> bool:
    found = condition_of(pod, kind)
    return found is not None and found.status == "True"


def is_there(pod: Pod) -> bool:
    """Not terminating."""
    return pod.metadata.deletion_timestamp is None


def is_serving(pod: Pod) -> bool:
    """A Service would send it requests."""
    return is_there(pod) and is_true(pod, "Ready")


def image_of(pod: Pod, container: str = "main") -> str:
    return next(item.image for item in pod.spec.containers if item.name == container)
