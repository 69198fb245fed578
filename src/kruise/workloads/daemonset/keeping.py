"""Keeping one pod on each node that suits: which nodes get a pod, and which pods go (DS section 10). Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kruise.api.native.daemon_pods import FIRST_DELAY, LONGEST_DELAY
from kruise.api.native.pod import Pod
from kruise.machinery.delays import Delay, next_delay, seconds_left
from kruise.workloads.daemonset.nodes import MOST_PODS, DaemonNode
from kruise.workloads.daemonset.numbers import Limits, may_be_created
from kruise.workloads.shared.pod_facts import PodFacts

SURPLUS = "its node has another pod already"
NOT_HERE = "its node should have no pod"
NODE_GONE = "its node is gone"
FAILED = "it failed"
ENDED = "it ended"
RELEASED = "nothing holds its deletion any more"
REPLACED = "the new pod of its node took its place"


@dataclasses.dataclass(frozen=True, slots=True)
class Deletion:
    pod: Pod
    node: str
    reason: str


@dataclasses.dataclass(slots=True)
class Keeping:
    nodes: list[str] = dataclasses.field(default_factory=list)
    """Nodes that get a pod."""
    held_back: list[str] = dataclasses.field(default_factory=list)
    """Nodes that would get one if the partition did not hold creation back, too."""
    deletions: list[Deletion] = dataclasses.field(default_factory=list)
    failed: list[str] = dataclasses.field(default_factory=list)
    """What is to be said about pods that failed."""
    delays: dict[str, Delay] = dataclasses.field(default_factory=dict)
    """New ones, by node."""
    delayed: dict[str, float] = dataclasses.field(default_factory=dict)
    """Failed pods that stay for now, by name: seconds until they may go."""


def keep(nodes: Sequence[DaemonNode], limits: Limits, delays: Mapping[str, Delay], now: datetime) -> Keeping:
    keeping = Keeping()
    for node in nodes:
        if not node.exists:
            # No scheduler will ever place these, and pod GC looks only at those that were placed (DS-41).
            unplaced = (fact.pod for fact in node.active if not fact.pod.spec.node_name)
            keeping.deletions += (Deletion(pod, node.name, NODE_GONE) for pod in unplaced)
        elif node.verdict.should_run and not node.has_pods:
            keeping.nodes.append(node.name)
        elif node.verdict.may_stay:
            _sort_out_ended(node, keeping, delays.get(node.name), now)
            keeping.deletions += (Deletion(fact.pod, node.name, RELEASED) for fact in node.leaving)
            is_empty = not node.running and not node.ended and len(node.leaving) < MOST_PODS
            if limits.surges and node.verdict.should_run and is_empty:
                keeping.nodes.append(node.name)
            else:
                surplus = _surplus_of_surge(node) if limits.surges else _all_but_first(node)
                keeping.deletions += (Deletion(fact.pod, node.name, reason) for fact, reason in surplus)
        else:
            keeping.deletions += (Deletion(fact.pod, node.name, NOT_HERE) for fact in node.active)
            keeping.deletions += (Deletion(pod, node.name, NOT_HERE) for pod in node.ended)
    if limits.holds_back_creation:
        _hold_back(keeping, nodes, limits)
    return keeping


def _hold_back(keeping: Keeping, nodes: Iterable[DaemonNode], limits: Limits) -> None:
    wanted = [node for node in nodes if node.verdict.should_run]
    most = may_be_created(limits, desired=len(wanted), new=sum(bool(node.new) for node in wanted))
    keeping.nodes, keeping.held_back = keeping.nodes[:most], keeping.nodes[most:]


def _sort_out_ended(node: DaemonNode, keeping: Keeping, delay: Delay | None, now: datetime) -> None:
    """A kubelet that refuses pods would get one after the other, so failed ones go after a delay (DS-44)."""
    for pod in node.ended:
        if pod.status.phase == "Succeeded":
            keeping.deletions.append(Deletion(pod, node.name, ENDED))
        elif (left := seconds_left(delay, now)) > 0:
            keeping.delayed[pod.metadata.name] = left
        else:
            delay = keeping.delays[node.name] = next_delay(delay, now, first=FIRST_DELAY, most=LONGEST_DELAY)
            where = f"{pod.metadata.namespace}/{pod.metadata.name} on node {node.name}"
            keeping.failed.append(f"Found failed daemon pod {where}, will try to kill it")
            keeping.deletions.append(Deletion(pod, node.name, FAILED))


def _all_but_first(node: DaemonNode) -> list[tuple[PodFacts, str]]:
    return [(fact, SURPLUS) for fact in node.running[1:]]


def _surplus_of_surge(node: DaemonNode) -> list[tuple[PodFacts, str]]:
    """While surging, a node may have an old pod that is ready and a new one that is not available yet."""
    new, old = node.new, node.old
    surplus = [(fact, SURPLUS) for fact in (*new[1:], *old[1:])]
    if new and old and (not old[0].is_ready or new[0].is_available):
        surplus.append((old[0], REPLACED))
    return surplus
