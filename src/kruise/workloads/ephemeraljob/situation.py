"""What an EphemeralJob decides from, and what follows from it at once: its pods, in order, and what they have (EJ
section 6). Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kruise.api.apps.ephemeraljob import EphemeralJob
from kruise.api.native.pod import Pod, is_active
from kruise.machinery.codec import DecodeError, Struct, decode, field
from kruise.machinery.delays import Delay
from kruise.workloads.ephemeraljob.pods import Seen, State, seen, taken_names

USUAL_PARALLELISM = 1
USUAL_TTL = 1800


class Refusal(Struct):
    """The API server would not add the containers to a pod."""

    message: str
    delay: Delay


class Snapshot(Struct):
    """Everything that a decision depends on."""

    job: EphemeralJob
    pods: tuple[Pod, ...]
    """Those that the selector matches."""
    now: datetime
    refusals: dict[str, Refusal] = field(default_factory=dict)
    """By uid of the pod."""
    unreported: dict[str, datetime] = field(default_factory=dict)
    """Pods that have the containers, while their nodes have not said a word of them: by uid, since when."""


LONGEST_SILENCE = timedelta(minutes=1)
"""A node that says nothing of the containers for so long may never do."""

Container = Mapping[str, Any]


def containers_of(job: EphemeralJob) -> tuple[Container, ...]:
    """The containers of the template. What got past admission and is no list of named objects counts as none."""
    try:
        found = decode(job.spec.template.ephemeral_containers, list[Any])
    except DecodeError:
        return ()
    if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in found):
        return ()
    return tuple(found)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    job: EphemeralJob
    now: datetime
    containers: tuple[Container, ...]
    targets: tuple[Seen, ...]
    """The pods that get the containers or have them, the oldest first (EJ-22)."""
    taken: Mapping[str, tuple[str, ...]]
    """Pods with another container of a name of the template: the pod, and these names."""
    pods: Mapping[str, Pod]
    refusals: Mapping[str, Refusal]
    unreported: Mapping[str, datetime]

    @property
    def uid(self) -> str:
        return self.job.metadata.uid

    @property
    def parallelism(self) -> int:
        given = self.job.spec.parallelism
        return USUAL_PARALLELISM if given is None else given

    @property
    def under_way(self) -> tuple[Seen, ...]:
        """Those that take a place of the parallelism: none that may never end, else one would keep all waiting."""
        return tuple(one for one in self.targets if one.is_under_way and not self.is_stranded(one))

    def is_stranded(self, one: Seen) -> bool:
        """Whether nobody can tell that its containers will ever run."""
        if one.stuck is not None:
            return True
        since = self.silent_since(one)
        return since is not None and self.now >= since + LONGEST_SILENCE

    def silent_since(self, one: Seen) -> datetime | None:
        return self.unreported.get(one.pod.metadata.uid) if one.is_served and not one.statuses else None

    @property
    def candidates(self) -> tuple[Seen, ...]:
        """The pods that have not been served, in the order in which they will be (EJ-36, EJ-39). Those that the server
        refused come after all others, who would else wait for many tries in vain. A pod without a node comes last: it
        is served when it has one, and keeps nobody waiting until then."""
        fresh = [one for one in self.targets if not one.is_served]
        return tuple(sorted(fresh, key=lambda one: (not one.has_node, one.pod.metadata.uid in self.refusals)))

    def count(self, state: State) -> int:
        return sum(one.state is state for one in self.targets if one.is_served)


def situation_of(snapshot: Snapshot) -> Situation:
    job = snapshot.job
    uid, containers = job.metadata.uid, containers_of(job)
    names = frozenset(str(container["name"]) for container in containers)
    targets: list[Seen] = []
    taken: dict[str, tuple[str, ...]] = {}
    pods: dict[str, Pod] = {}
    for pod in sorted(snapshot.pods, key=_age):
        if not is_active(pod):
            continue
        if clash := taken_names(pod, names, uid):
            taken[pod.metadata.name] = clash
            pods[pod.metadata.name] = pod
            continue
        targets.append(seen(pod, uid))
    replicas = job.spec.replicas
    if replicas is not None:
        targets = targets[: max(replicas, 0)]
    return Situation(
        job=job,
        now=snapshot.now,
        containers=containers,
        targets=tuple(targets),
        taken=taken,
        pods=pods,
        refusals=snapshot.refusals,
        unreported=snapshot.unreported,
    )


def _age(pod: Pod) -> tuple[float, str]:
    """EJ-18."""
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0, pod.metadata.name
