"""Nodes as a DaemonSet sees them: whether they should have a pod, and which pods they have (pure)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from kruise.api.native.daemon_pods import (
    GENERATION_LABEL,
    NOT_HERE,
    Verdict,
    target_node,
    template_generation,
    verdict_on,
)
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.inplace.keys import REVISION_LABEL
from kruise.local.workloads.objects import DaemonSet
from kruise.local.workloads.pods import FINISHED, seconds_until_available
from kruise.machinery.intorpercent import scaled

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class DaemonPod:
    pod: Pod
    is_new: bool
    """It has the current revision."""
    is_terminating: bool
    is_ready: bool
    available_in: float | None
    """Seconds; 0: it is available."""

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def is_available(self) -> bool:
        return self.available_in == 0


@dataclasses.dataclass(frozen=True, slots=True)
class DaemonNode:
    name: str
    verdict: Verdict
    exists: bool
    pods: tuple[DaemonPod, ...]
    """Placed before waiting, then the oldest first. Those that have ended and are being deleted do not count."""

    @property
    def alive(self) -> list[DaemonPod]:
        return [item for item in self.pods if not item.is_terminating]

    @property
    def new_and_old(self) -> tuple[DaemonPod | None, DaemonPod | None] | None:
        """The pod of the current revision and the one of another; None: there are two of a kind."""
        new = [item for item in self.alive if item.is_new]
        old = [item for item in self.alive if not item.is_new]
        if len(new) > 1 or len(old) > 1:
            return None
        return (new[0] if new else None, old[0] if old else None)


def survey(
    daemon_set: DaemonSet,
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    revision: str,
    deleted: Collection[str],
    now: datetime,
) -> list[DaemonNode]:
    """All nodes, and what is left of those that are gone, by name. `revision`: the hash of the current one."""
    generation = template_generation(daemon_set.metadata)
    by_node: dict[str, list[DaemonPod]] = {}
    for pod in pods:
        terminating = pod.metadata.uid in deleted
        name = target_node(pod)
        if not name or (terminating and pod.status.phase in FINISHED):
            continue
        labels = pod.metadata.labels
        item = DaemonPod(
            pod,
            is_new=labels.get(REVISION_LABEL) == revision
            or (bool(generation) and labels.get(GENERATION_LABEL) == generation),
            is_terminating=terminating,
            is_ready=seconds_until_available(pod, 0, now) is not None,
            available_in=seconds_until_available(pod, daemon_set.spec.min_ready_seconds, now),
        )
        by_node.setdefault(name, []).append(item)
    result = []
    for node in nodes:
        here = by_node.pop(node.metadata.name, [])
        found = verdict_on(daemon_set.spec.template, node)
        result.append(DaemonNode(node.metadata.name, found, True, _oldest_first(here)))
    result += [DaemonNode(name, NOT_HERE, False, _oldest_first(here)) for name, here in by_node.items()]
    return sorted(result, key=lambda node: node.name)


def _oldest_first(pods: list[DaemonPod]) -> tuple[DaemonPod, ...]:
    def order(item: DaemonPod) -> tuple[bool, datetime, str]:
        return not item.pod.spec.node_name, item.pod.metadata.creation_timestamp or _BEGINNING, item.name

    return tuple(sorted(pods, key=order))


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How many nodes may be without an available pod, or have a second one, while a new revision goes through."""

    unavailable: int
    surge: int

    @classmethod
    def of(cls, daemon_set: DaemonSet, wanted: int) -> Limits:
        rolling = daemon_set.spec.update_strategy.rolling_update
        if rolling is None:
            return cls(1, 0)
        surge = scaled(rolling.max_surge or 0, wanted, round_up=True)
        unavailable = scaled(1 if rolling.max_unavailable is None else rolling.max_unavailable, wanted, round_up=True)
        return cls(1 if surge == unavailable == 0 else unavailable, surge)


def is_rolling(daemon_set: DaemonSet) -> bool:
    return daemon_set.spec.update_strategy.type != "OnDelete"


def may_surge(daemon_set: DaemonSet) -> bool:
    return is_rolling(daemon_set) and Limits.of(daemon_set, 1).surge > 0
