"""Judges a run under fire by its history alone: what the API server stored, as watches told it, in the order of its
versions; and what was asked of it and done, as it noted itself. Nothing is taken from our own counters.

Three promises: at no version fewer pods serve than were promised; no pod goes down for which no unit was taken, under
its very uid, before; in the end nothing is left of what was taken, and all of it is there again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

from kruise.api.native.pod import Pod
from kruise.api.policy.podunavailablebudget import PodUnavailableBudget
from tests.scenarios.podlog import is_serving

MARK = "unavailable-pod.kruise.io/fire"
_ARRIVES_WITHIN = 15.0
"""Seconds from a change of an image until its container stops: the unit may be given back meanwhile."""


@dataclasses.dataclass(frozen=True, slots=True)
class Version:
    """What an object was from this version on; None: gone."""

    number: int
    at: float
    name: str
    pod: Pod | None = None
    budget: PodUnavailableBudget | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Drop:
    """A pod that served, and does not any more."""

    at: float
    pod: Pod
    left: int


class History:
    """Of the pods of one application, and of its budget. All was well at version `begins`."""

    def __init__(self, begins: int) -> None:
        self.begins = begins
        self._pods: dict[tuple[int, str], Version] = {}
        self._budgets: dict[int, Version] = {}

    def note_pod(self, pod: Pod, at: float, *, is_gone: bool) -> None:
        number, name = int(pod.metadata.resource_version), pod.metadata.name
        self._pods[number, name] = Version(number, at, name, pod=None if is_gone else pod)

    def note_budget(self, budget: PodUnavailableBudget, at: float) -> None:
        number = int(budget.metadata.resource_version)
        self._budgets[number] = Version(number, at, budget.metadata.name, budget=budget)

    @property
    def pods(self) -> list[Version]:
        return [self._pods[key] for key in sorted(self._pods)]

    @property
    def budgets(self) -> list[Version]:
        return [self._budgets[key] for key in sorted(self._budgets)]

    def lowest(self) -> int:
        """The fewest that served from the beginning on."""
        counts = list(self._counts())
        at_first = [serving for number, serving in counts if number <= self.begins][-1:]
        return min([*at_first, *(serving for number, serving in counts if number > self.begins)])

    def drops(self) -> Iterator[Drop]:
        there: dict[str, Pod] = {}
        for version in self.pods:
            before = there.pop(version.name, None)
            if version.pod is not None:
                there[version.name] = version.pod
            if version.number <= self.begins or before is None or not serves(before):
                continue
            is_same = version.pod is not None and version.pod.metadata.uid == before.metadata.uid
            if not is_same or version.pod is None or not serves(version.pod):
                yield Drop(version.at, before, sum(map(serves, there.values())))

    def _counts(self) -> Iterator[tuple[int, int]]:
        there: dict[str, Pod] = {}
        for version in self.pods:
            if version.pod is None:
                there.pop(version.name, None)
            else:
                there[version.name] = version.pod
            yield version.number, sum(map(serves, there.values()))

    def permits(self) -> Callable[[str, float], bool]:
        """Whether a unit was taken for a uid, now or a little while before."""
        spans: dict[str, list[tuple[float, float]]] = {}
        budgets = self.budgets
        for place, version in enumerate(budgets):
            assert version.budget is not None
            until = budgets[place + 1].at if place + 1 < len(budgets) else float("inf")
            for identity in version.budget.status.identities.values():
                spans.setdefault(identity.uid, []).append((version.at, until))
        return lambda uid, at: any(
            since <= at + _TOGETHER and until + _ARRIVES_WITHIN >= at for since, until in spans.get(uid, ())
        )


_TOGETHER = 1.0
"""Seconds by which one watch may be faster than another."""


def serves(pod: Pod) -> bool:
    return is_serving(pod) and MARK not in pod.metadata.labels


def _runs_its_spec(pod: Pod) -> bool:
    """Whether no container has to restart for what the spec says: an update that was let in while the pod was down, and
    arrives only when it is up, needs no unit (PUB-42, PUB-122)."""
    wanted = {container.name: container.image for container in pod.spec.containers}
    return all(
        f"/{status.image}".endswith(f"/{wanted.get(status.name, '')}") for status in pod.status.container_statuses
    )


def breaches(history: History, floor: int, *, fell: Iterable[str] = ()) -> list[str]:
    """What was not as promised. `fell`: uids of pods that went down by themselves."""
    found = []
    is_permitted, by_themselves = history.permits(), frozenset(fell)
    for drop in history.drops():
        metadata = drop.pod.metadata
        if drop.left < floor:
            found.append(f"{drop.at:.1f}: {drop.left} pods served without {metadata.name}, {floor} were promised")
        needs_none = metadata.uid in by_themselves or not _runs_its_spec(drop.pod)
        if not needs_none and not is_permitted(metadata.uid, drop.at):
            found.append(f"{drop.at:.1f}: {metadata.name} went down, and no unit was taken for it")
    return found
