"""Which nodes of a DaemonSet get a pod, and which pods go (pure).

Two steps, as kube-controller-manager takes them: `tend` brings every node to the number of pods that it should have;
only when nothing is left to do there, `roll` moves some nodes on to the current revision.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kruise.api.native.daemon_pods import FIRST_DELAY, LONGEST_DELAY
from kruise.local.workloads.daemon_nodes import DaemonNode, DaemonPod, Limits, is_rolling, may_surge
from kruise.local.workloads.objects import DaemonSet
from kruise.machinery.delays import Delay, next_delay, seconds_left


@dataclasses.dataclass(slots=True)
class Work:
    nodes: list[str] = dataclasses.field(default_factory=list)
    """Get a pod."""
    pods: list[DaemonPod] = dataclasses.field(default_factory=list)
    """Go."""
    failed: list[str] = dataclasses.field(default_factory=list)
    """What is to be said about pods that failed, and about those that ended well."""
    succeeded: list[str] = dataclasses.field(default_factory=list)
    delays: dict[str, Delay] = dataclasses.field(default_factory=dict)
    """New ones, by node."""
    next_try: float | None = None
    """Seconds until failed pods are looked at again."""

    @property
    def is_nothing(self) -> bool:
        return not self.nodes and not self.pods


def tend(daemon_set: DaemonSet, nodes: Iterable[DaemonNode], delays: Mapping[str, Delay], now: datetime) -> Work:
    work = Work()
    for node in nodes:
        if not node.exists:
            # The scheduler will never place these, and pod GC looks only at those that were placed.
            work.pods += [item for item in node.alive if not item.pod.spec.node_name]
        elif node.verdict.should_run and not node.pods:
            work.nodes.append(node.name)
        elif node.verdict.may_stay:
            running = _sort_out_ended(node, work, delays.get(node.name), now)
            if not may_surge(daemon_set):
                work.pods += running[1:]
            elif running:
                work.pods += _surplus(running)
            elif node.verdict.should_run:
                work.nodes.append(node.name)
        else:
            work.pods += node.alive
    return work


def _sort_out_ended(node: DaemonNode, work: Work, delay: Delay | None, now: datetime) -> list[DaemonPod]:
    """Those that run; pods that have ended go. A kubelet that refuses pods would get one after the other, so failed
    ones go after a delay."""
    running = []
    for item in node.alive:
        phase, where = item.pod.status.phase, f"{item.pod.metadata.namespace}/{item.name} on node {node.name}"
        if phase == "Succeeded":
            work.succeeded.append(f"Found succeeded daemon pod {where}, will try to delete it")
            work.pods.append(item)
        elif phase == "Failed":
            if delay is not None and seconds_left(delay, now) > 0:
                # The whole delay from now on, not what is left of it: that is when Kubernetes looks again.
                work.next_try = min(work.next_try or delay.seconds, delay.seconds)
                continue
            delay = work.delays[node.name] = next_delay(delay, now, first=FIRST_DELAY, most=LONGEST_DELAY)
            work.failed.append(f"Found failed daemon pod {where}, will try to kill it")
            work.pods.append(item)
        else:
            running.append(item)
    return running


def _surplus(running: Sequence[DaemonPod]) -> list[DaemonPod]:
    """While surging, a node may have an old pod that is ready and a new one that is not available yet."""
    if len(running) <= 1:
        return []
    new = [item for item in running if item.is_new]
    old = [item for item in running if not item.is_new]
    surplus = new[1:] + old[1:]
    if new and old and (not old[0].is_ready or new[0].is_available):
        surplus.append(old[0])
    return surplus


def roll(daemon_set: DaemonSet, nodes: Sequence[DaemonNode]) -> Work:
    if not is_rolling(daemon_set):
        return Work()
    wanted = sum(node.verdict.should_run for node in nodes)
    limits = Limits.of(daemon_set, wanted)
    concerned = [node for node in nodes if node.pods or node.verdict.should_run]
    return _surge(concerned, limits, wanted) if limits.surge else _replace(concerned, limits)


def _replace(nodes: Iterable[DaemonNode], limits: Limits) -> Work:
    """Old pods that are not available go at once, others as far as the limit allows."""
    unavailable = 0
    broken: list[DaemonPod] = []
    candidates: list[DaemonPod] = []
    for node in nodes:
        pair = node.new_and_old
        new, old = pair if pair is not None else (None, None)
        if old is not None and new is None:
            if old.is_available:
                candidates.append(old)
                continue
            broken.append(old)
        elif new is not None and old is None and new.is_available:
            continue
        unavailable += 1
    return Work(pods=broken + candidates[: max(0, limits.unavailable - unavailable)])


def _surge(nodes: Iterable[DaemonNode], limits: Limits, wanted: int) -> Work:
    """Nodes get a new pod beside the old one. Pods on nodes that should have none any more go only when there are more
    available ones than wanted."""
    work = Work()
    surging = available = 0
    candidates: list[str] = []
    misplaced: list[DaemonPod] = []
    for node in nodes:
        pair = node.new_and_old
        if pair is None:
            surging += 1
            continue
        new, old = pair
        counted = old or new
        available += counted is not None and counted.is_available
        if old is None:
            continue
        if new is not None:
            if new.is_available:
                work.pods.append(old)
            else:
                surging += 1
        elif not node.verdict.should_run:
            (misplaced if old.is_available else work.pods).append(old)
        elif old.is_available:
            candidates.append(node.name)
        else:
            work.nodes.append(node.name)
    work.pods += misplaced[: max(0, available - wanted)]
    work.nodes += candidates[: max(0, limits.surge - surging)]
    return work
