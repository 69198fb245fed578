"""Which nodes go on to the present template now (DS section 12). Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from kruise.workloads.daemonset.nodes import MOST_PODS, DaemonNode
from kruise.workloads.daemonset.numbers import Limits
from kruise.workloads.shared.pod_facts import PodFacts


@dataclasses.dataclass(slots=True)
class Rolling:
    replace: list[PodFacts] = dataclasses.field(default_factory=list)
    """Old pods that are updated in place, or deleted so that a new one comes."""
    surge: list[str] = dataclasses.field(default_factory=list)
    """Nodes that get a new pod beside the old one."""
    waiting: list[PodFacts] = dataclasses.field(default_factory=list)
    """Old pods whose turn has not come: the limit is used up."""
    used_by: list[str] = dataclasses.field(default_factory=list)
    """Pods, or nodes without one, that use the limit up."""
    kept_old: list[PodFacts] = dataclasses.field(default_factory=list)
    """Old pods that the partition keeps."""
    not_selected: list[PodFacts] = dataclasses.field(default_factory=list)
    """Old pods on nodes that the update is not for."""
    succeeded: list[tuple[PodFacts, str]] = dataclasses.field(default_factory=list)
    """Old pods whose successor is not available yet, and what that one is called."""
    crowded: list[tuple[PodFacts, str]] = dataclasses.field(default_factory=list)
    """Old pods beside one that a hook holds, and what that one is called: their node gets no third pod."""
    misplaced: list[PodFacts] = dataclasses.field(default_factory=list)
    """Old pods that may stay on their nodes, where a new one could not be started beside them."""


def roll(
    nodes: Sequence[DaemonNode],
    limits: Limits,
    *,
    is_selected: Callable[[Mapping[str, str]], bool] | None,
    prune: bool,
) -> Rolling:
    """`is_selected` tells by the labels of a node whether the update is for it; None: it is for all. `prune`: nodes
    that should have no pod do not count (gate DaemonSetPruneIneligibleNodes)."""
    concerned = [node for node in nodes if node.exists and (node.verdict.should_run or (node.has_pods and not prune))]
    rolling = Rolling()
    taking_part = _taking_part(concerned, limits, is_selected, rolling)
    if limits.surges:
        _surge(taking_part, limits, rolling)
    else:
        _replace(taking_part, limits, rolling)
    return rolling


def _taking_part(
    nodes: Sequence[DaemonNode],
    limits: Limits,
    is_selected: Callable[[Mapping[str, str]], bool] | None,
    rolling: Rolling,
) -> list[DaemonNode]:
    """The nodes that the partition leaves (DS-62): those that have gone on already use up the places first."""
    updated, updating, others = [], [], []
    for node in reversed(nodes):
        if node.new or len(node.old) > 1:
            updated.append(node)
        elif not node.old:
            updating.append(node)
        elif is_selected is None or is_selected(node.labels):
            others.append(node)
        else:
            rolling.not_selected += node.old
    ordered = [*updated, *updating, *others]
    places = max(0, len(nodes) - limits.partition)
    rolling.kept_old = [fact for node in ordered[places:] for fact in node.old]
    return ordered[:places]


def _replace(nodes: Iterable[DaemonNode], limits: Limits, rolling: Rolling) -> None:
    """Old pods that are not available go at once, others as far as the limit allows (DS-64)."""
    candidates: list[PodFacts] = []
    for node in nodes:
        new, old = node.new, node.old
        if len(old) == 1 and not new:
            (candidates if old[0].is_available else rolling.replace).append(old[0])
            if not old[0].is_available:
                rolling.used_by.append(old[0].name)
        elif len(new) == 1 and not old and new[0].is_available:
            continue
        else:
            rolling.used_by.append(_name(node))
    room = max(0, limits.unavailable - len(rolling.used_by))
    rolling.replace += candidates[:room]
    rolling.waiting = candidates[room:]


def _surge(nodes: Iterable[DaemonNode], limits: Limits, rolling: Rolling) -> None:
    """A node gets a new pod beside the old one; `keeping` deletes the old one when that is available (DS-68)."""
    candidates: list[tuple[str, PodFacts]] = []
    for node in nodes:
        new, old = node.new, node.old
        if len(new) > 1 or len(old) > 1:
            rolling.used_by.append(_name(node))
        elif old and not new and len(node.active) >= MOST_PODS:
            leaving = node.leaving[0].name
            rolling.used_by.append(leaving)
            rolling.crowded.append((old[0], leaving))
        elif not old:
            continue
        elif new:
            if not new[0].is_available:
                rolling.used_by.append(new[0].name)
                rolling.succeeded.append((old[0], new[0].name))
        elif not node.verdict.should_run:
            rolling.misplaced.append(old[0])
        elif old[0].is_available:
            candidates.append((node.name, old[0]))
        else:
            rolling.surge.append(node.name)
    room = max(0, limits.surge - len(rolling.used_by))
    rolling.surge += [name for name, _ in candidates[:room]]
    rolling.waiting = [fact for _, fact in candidates[room:]]


def _name(node: DaemonNode) -> str:
    """Of the pod that is in the way, or of the node where none is."""
    return node.active[0].name if node.active else f"node {node.name}"
