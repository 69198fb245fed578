"""Nodes as a DaemonSet sees them: whether they should have a pod, and which pods they have. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from kruise.api.apps.daemonset import DaemonSet
from kruise.api.native.daemon_pods import NOT_HERE, Verdict, judge_of, target_node
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.workloads.shared.pod_facts import PodFacts

MOST_PODS = 2
"""On one node, while it surges. Pods that a hook holds count: they must not pile up, template by template."""
_BEGINNING = datetime.min.replace(tzinfo=UTC)
_FINISHED = ("Failed", "Succeeded")
_NO_LABELS: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class DaemonNode:
    name: str
    verdict: Verdict
    exists: bool
    labels: Mapping[str, str]
    running: tuple[PodFacts, ...]
    """Active pods, but those that prepare for their deletion. Placed before waiting, then the oldest first (DS-9)."""
    leaving: tuple[PodFacts, ...]
    """Active pods that prepare for their deletion."""
    ended: tuple[Pod, ...]
    """Failed and succeeded pods that nobody has deleted yet."""
    terminating: tuple[Pod, ...]

    @property
    def has_pods(self) -> bool:
        return bool(self.running or self.leaving or self.ended or self.terminating)

    @property
    def active(self) -> tuple[PodFacts, ...]:
        return (*self.running, *self.leaving)

    @property
    def new(self) -> tuple[PodFacts, ...]:
        return tuple(fact for fact in self.running if fact.is_new)

    @property
    def old(self) -> tuple[PodFacts, ...]:
        return tuple(fact for fact in self.running if not fact.is_new)

    @property
    def representative(self) -> PodFacts | None:
        """The active pod that stands for the node: during a surge the old one, until it is gone."""
        return min(self.active, key=_age, default=None)


def survey(
    daemon_set: DaemonSet, nodes: Iterable[Node], facts: Iterable[PodFacts], inactive: Iterable[Pod]
) -> list[DaemonNode]:
    """The nodes that should have a pod or have some, and what is left of those that are gone, by name. Pods made for no
    node are nobody's (DS-33). Of thousands of nodes, a DaemonSet for a few must not cost a look at the others."""
    active: dict[str, list[PodFacts]] = {}
    others: dict[str, list[Pod]] = {}
    for fact in sorted(facts, key=_age):
        active.setdefault(target_node(fact.pod), []).append(fact)
    for pod in inactive:
        others.setdefault(target_node(pod), []).append(pod)
    known = {node.metadata.name: node for node in nodes}
    judge = judge_of(daemon_set.spec.template)
    wanted = [name for name, node in known.items() if judge(node).should_run]
    names = sorted({*wanted, *active, *others} - {""})
    return [_node(judge, name, known.get(name), active.get(name, ()), others.get(name, ())) for name in names]


def _node(
    judge: Callable[[Node], Verdict], name: str, node: Node | None, active: Iterable[PodFacts], inactive: Iterable[Pod]
) -> DaemonNode:
    running: list[PodFacts] = []
    leaving: list[PodFacts] = []
    for fact in active:
        (leaving if fact.is_preparing_delete else running).append(fact)
    ended, terminating = [], []
    for pod in inactive:
        if pod.metadata.deletion_timestamp is None:
            ended.append(pod)
        elif pod.status.phase not in _FINISHED:
            terminating.append(pod)
    return DaemonNode(
        name=name,
        verdict=judge(node) if node is not None else NOT_HERE,
        exists=node is not None,
        labels=node.metadata.labels if node is not None else _NO_LABELS,
        running=tuple(running),
        leaving=tuple(leaving),
        ended=tuple(ended),
        terminating=tuple(terminating),
    )


def _age(fact: PodFacts) -> tuple[bool, datetime, str]:
    metadata = fact.pod.metadata
    return not fact.pod.spec.node_name, metadata.creation_timestamp or _BEGINNING, metadata.name
