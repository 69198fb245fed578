"""The pods of a StatefulSet by ordinal: those that it should have, made or not, and those that must go (pure)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from kruise.api.native.ordinals import ordinal_of, pod_name
from kruise.api.native.pod import Pod
from kruise.inplace.keys import REVISION_LABEL
from kruise.local.workloads.objects import StatefulSet
from kruise.local.workloads.pods import FINISHED, seconds_until_available
from kruise.local.workloads.stateful_claims import PodOfSet


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """One ordinal."""

    name: str
    ordinal: int
    pod: Pod | None
    """None: it is yet to be made."""
    revision: str
    """The one that it has."""
    is_condemned: bool = False
    is_terminating: bool = False
    is_ready: bool = False
    """Running, too."""
    available_in: float | None = None
    """Seconds; 0: it is available."""

    @property
    def is_finished(self) -> bool:
        return self.pod is not None and self.pod.status.phase in FINISHED

    @property
    def is_pending(self) -> bool:
        return self.pod is not None and self.pod.status.phase == "Pending"

    @property
    def is_available(self) -> bool:
        return self.available_in == 0

    @property
    def is_in_service(self) -> bool:
        return self.is_available and not self.is_terminating

    @property
    def of_set(self) -> PodOfSet:
        uid = self.pod.metadata.uid if self.pod is not None else ""
        return PodOfSet(self.name, self.ordinal, uid, self.is_condemned)


@dataclasses.dataclass(frozen=True, slots=True)
class Members:
    replicas: Sequence[Member]
    """By ordinal, without a gap."""
    condemned: Sequence[Member]
    """The highest ordinal first."""

    @property
    def all(self) -> Iterable[Member]:
        return (*self.replicas, *self.condemned)

    @property
    def first_out_of_service(self) -> Member | None:
        everyone = (*self.replicas, *reversed(self.condemned))
        return next((member for member in everyone if not member.is_in_service), None)


def size(stateful_set: StatefulSet) -> int:
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def ordinals(stateful_set: StatefulSet) -> range:
    start = stateful_set.spec.ordinals.start
    return range(start, start + size(stateful_set))


def sort_out(stateful_set: StatefulSet, pods: Iterable[Pod], deleted: Collection[str], now: datetime) -> Members:
    wanted = ordinals(stateful_set)
    needed = stateful_set.spec.min_ready_seconds

    def member(ordinal: int, pod: Pod) -> Member:
        return Member(
            name=pod.metadata.name,
            ordinal=ordinal,
            pod=pod,
            revision=pod.metadata.labels.get(REVISION_LABEL, ""),
            is_condemned=ordinal not in wanted,
            is_terminating=pod.metadata.uid in deleted,
            is_ready=pod.status.phase == "Running" and seconds_until_available(pod, 0, now) is not None,
            available_in=seconds_until_available(pod, needed, now),
        )

    known = {}
    for pod in pods:
        ordinal = ordinal_of(pod.metadata.name)
        if ordinal is not None:
            known[ordinal] = member(ordinal, pod)
    name = stateful_set.metadata.name
    return Members(
        replicas=[known.get(ordinal) or Member(pod_name(name, ordinal), ordinal, None, "") for ordinal in wanted],
        condemned=[known[ordinal] for ordinal in sorted(known, reverse=True) if ordinal not in wanted],
    )
