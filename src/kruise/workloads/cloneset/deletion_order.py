"""Which pods go when there are too many (CS-90 to CS-93)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kruise.api.native.deletion_cost import deletion_cost
from kruise.api.native.pod import ready_since
from kruise.inplace.order import Placing, Standing, placing, standing
from kruise.workloads.cloneset.numbers import ScaleNumbers, counts_as_new
from kruise.workloads.shared.pod_facts import PodFacts

HOST_NAME = "kubernetes.io/hostname"

NodeLabels = Mapping[str, Mapping[str, str]]
_Head = tuple[Placing, bool, bool, int]
_Entry = tuple[PodFacts, _Head, Standing]


def topology_keys(template: Mapping[str, Any]) -> tuple[str, ...]:
    """The topologies that a pod template spreads its pods over."""
    spec = template.get("spec")
    constraints = spec.get("topologySpreadConstraints") if isinstance(spec, dict) else None
    found = (item.get("topologyKey") for item in constraints or () if isinstance(item, dict))
    return tuple(key for key in found if isinstance(key, str) and key)


def choose_for_deletion(
    facts: Iterable[PodFacts],
    numbers: ScaleNumbers,
    *,
    preparing_as_new: bool = False,
    topologies: Sequence[str] = (),
    node_labels: NodeLabels | None = None,
) -> list[PodFacts]:
    """The pods to scale in, first to go first: old ones as many as there are too many, then new ones (CS-90)."""
    if numbers.down <= 0:
        return []
    sides: tuple[list[PodFacts], list[PodFacts]] = ([], [])
    for item in facts:
        sides[counts_as_new(item, preparing_as_new=preparing_as_new)].append(item)
    old_count = min(numbers.down_old, numbers.down)
    chosen: list[PodFacts] = []
    for side, count in zip(sides, (old_count, numbers.down - old_count), strict=True):
        if count:
            chosen += in_deletion_order(side, topologies=topologies, node_labels=node_labels)[:count]
    return chosen


def in_deletion_order(
    facts: Iterable[PodFacts], *, topologies: Sequence[str] = (), node_labels: NodeLabels | None = None
) -> list[PodFacts]:
    """A group of pods, first to go first (CS-91)."""
    entries = sorted(map(_entry, facts), key=_without_rank)
    node_ranks = _node_ranks(entries)
    ranks = _topology_ranks(entries, node_ranks, topologies, node_labels or {}) if topologies else node_ranks
    return [facts for facts, _, _ in _ranked(entries, ranks)]


def _entry(facts: PodFacts) -> _Entry:
    pod = facts.pod
    is_ready, since = ready_since(pod)
    head = (placing(pod), facts.is_available, is_ready, deletion_cost(pod))
    return facts, head, standing(pod, is_ready=is_ready, since=since)


def _without_rank(entry: _Entry) -> tuple[_Head, Standing]:
    return entry[1], entry[2]


def _ranked(entries: Iterable[_Entry], ranks: Mapping[str, float]) -> list[_Entry]:
    """The higher rank first, after what weighs more than a rank and before what weighs less."""
    return sorted(entries, key=lambda entry: (entry[1], -ranks.get(entry[0].name, 0.0), entry[2]))


def _grouped(entries: Iterable[_Entry], place: Callable[[str], str | None]) -> dict[str, list[str]]:
    """Names by the place that their nodes are in; pods without a node, or on one that is in no place, are left out."""
    groups: dict[str, list[str]] = defaultdict(list)
    for facts, _, _ in entries:
        node = facts.pod.spec.node_name
        if node and (where := place(node)) is not None:
            groups[where].append(facts.name)
    return groups


def _node_ranks(entries: Sequence[_Entry]) -> dict[str, float]:
    """Pods that share a node go before pods that are alone on theirs (CS-92). `entries` are in order already."""
    ranks: dict[str, float] = {}
    for names in _grouped(entries, str).values():
        for index, name in enumerate(names, start=1):
            ranks[name] = len(names) - index
    return ranks


def _topology_ranks(
    entries: Sequence[_Entry], node_ranks: Mapping[str, float], topologies: Sequence[str], node_labels: NodeLabels
) -> dict[str, float]:
    """Pods of crowded domains go first (CS-93)."""
    gains: dict[str, list[float]] = defaultdict(list)
    spread_by_node = _ranked(entries, node_ranks)
    for topology in topologies:
        domain_of = {node: labels[topology] for node, labels in node_labels.items() if topology in labels}
        domains = _grouped(entries if topology == HOST_NAME else spread_by_node, domain_of.get)
        weight = math.log(len(domains) + 2)
        for names in domains.values():
            for index, name in enumerate(names):
                gains[name].append((len(names) - index) * weight)
    return {name: math.fsum(parts) for name, parts in gains.items()}
