"""What pods want of the pods around them: required and preferred affinity, and an even spread over topologies (pure).

Everything is counted by topology value, as pods come and go, so that a node is asked with a few look-ups. Only where
pods ask for such things is there a `Company`; all others cost nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from kruise.api.meta import LabelSelectorRequirement
from kruise.api.native.node_selection import selected
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod, PodAffinityTerm, TopologySpreadConstraint
from kruise.api.native.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from kruise.machinery.codec import evolve
from kruise.machinery.selectors import NOTHING, Selector, from_label_selector
from kruise.scheduling import messages
from kruise.scheduling.exclusion import Namespaces, Term, scope_of

DO_NOT_SCHEDULE = "DoNotSchedule"
_WEIGHT = 2
"""Of both plugins of kube-scheduler."""

Labels = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """A preferred term; a negative weight keeps away."""

    term: Term
    weight: int


def has_wishes(pod: Pod) -> bool:
    """Whether a pod asks anything of the company that it will have, but for required anti-affinity."""
    affinity = pod.spec.affinity
    if pod.spec.topology_spread_constraints:
        return True
    if affinity is None:
        return False
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    return near is not None or (far is not None and bool(far.preferred))


def wishes_of(pod: Pod, namespaces: Namespaces) -> tuple[Wish, ...]:
    affinity = pod.spec.affinity
    if affinity is None:
        return ()
    found: list[Wish] = []
    for part, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        for item in part.preferred if part is not None else ():
            found.append(Wish(_term(item.pod_affinity_term, pod, namespaces), sign * item.weight))
    return tuple(found)


def _term(term: PodAffinityTerm, pod: Pod, namespaces: Namespaces) -> Term:
    return Term(term.topology_key, from_label_selector(term.label_selector), scope_of(term, pod, namespaces))


class _Constraint:
    """A spread constraint of one kind of pod, with what is counted for it."""

    __slots__ = ("counts", "is_hard", "is_own", "key", "max_skew", "min_domains", "nodes", "selector")

    def __init__(self, given: TopologySpreadConstraint, pod: Pod, nodes: Sequence[Node]) -> None:
        self.key = given.topology_key
        self.max_skew = given.max_skew
        self.min_domains = given.min_domains or 1
        self.is_hard = given.when_unsatisfiable in ("", DO_NOT_SCHEDULE)
        self.selector = _selector(given, pod)
        self.is_own = self.selector.matches(pod.metadata.labels)
        self.nodes = frozenset(node.metadata.name for node in nodes if _counts(given, pod, node))
        self.counts: Counter[str] = Counter()
        """Pods by topology value; each value that a node has is there."""
        for node in nodes:
            if node.metadata.name in self.nodes and self.key in node.metadata.labels:
                self.counts[node.metadata.labels[self.key]] += 0

    @property
    def fewest(self) -> int:
        if len(self.counts) < self.min_domains:
            return 0
        return min(self.counts.values(), default=0)

    def count(self, node: str, labels: Labels, by: int) -> None:
        value = labels.get(self.key)
        if value is not None and node in self.nodes:
            self.counts[value] += by


def _selector(given: TopologySpreadConstraint, pod: Pod) -> Selector:
    if given.label_selector is None:
        return NOTHING
    labels = pod.metadata.labels
    more = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(labels[key],))
        for key in given.match_label_keys
        if key in labels
    )
    wanted = given.label_selector
    return from_label_selector(evolve(wanted, match_expressions=(*wanted.match_expressions, *more)))


def _counts(given: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    """Whether the pods of a node count, by the constraint's policies."""
    if given.node_affinity_policy in ("", "Honor") and not selected(pod.spec, node):
        return False
    taints = node.spec.taints
    is_asked = given.node_taints_policy == "Honor"
    return not (is_asked and untolerated(taints, pod.spec.tolerations, (NO_SCHEDULE, NO_EXECUTE)))


class Company:
    """The pods around, as one kind of pod sees them."""

    __slots__ = ("_constraints", "_near", "_near_counts", "_pod", "_scores", "_wishes")

    def __init__(self, pod: Pod, namespaces: Namespaces, nodes: Sequence[Node]) -> None:
        self._pod = pod
        affinity = pod.spec.affinity
        near = affinity.pod_affinity if affinity is not None else None
        self._near = tuple(_term(term, pod, namespaces) for term in (near.required if near is not None else ()))
        self._near_counts: Counter[tuple[str, str]] = Counter()
        self._wishes = wishes_of(pod, namespaces)
        self._scores: Counter[tuple[str, str]] = Counter()
        self._constraints = [_Constraint(given, pod, nodes) for given in pod.spec.topology_spread_constraints]
        keys = {item.key for item in self._constraints if item.is_hard}
        for item in self._constraints:
            if item.is_hard:  # nodes that lack one of the labels count for none of them
                lacking = {node.metadata.name for node in nodes if not keys <= node.metadata.labels.keys()}
                item.nodes -= lacking
                known = [node.metadata.labels[item.key] for node in nodes if node.metadata.name in item.nodes]
                item.counts = Counter(dict.fromkeys(known, 0))

    def note(self, other: Pod, wishes: Sequence[Wish], node: str, labels: Labels, by: int = 1) -> None:
        """Another pod is on a node with these labels; with `by` -1 it is there no more."""
        if self._near and all(term.matches(other) for term in self._near):
            for term in self._near:
                if term.topology in labels:
                    _add(self._near_counts, (term.topology, labels[term.topology]), by)
        for wish, who in (*((wish, other) for wish in self._wishes), *((wish, self._pod) for wish in wishes)):
            if wish.term.topology in labels and wish.term.matches(who):
                _add(self._scores, (wish.term.topology, labels[wish.term.topology]), by * wish.weight)
        if other.metadata.deletion_timestamp is None and other.metadata.namespace == self._pod.metadata.namespace:
            for item in self._constraints:
                if item.selector.matches(other.metadata.labels):
                    item.count(node, labels, by)

    def refusal(self, labels: Labels) -> tuple[str, bool]:
        """Why a node will not do, and whether the removal of pods could help; empty: it will."""
        for item in self._constraints:
            if not item.is_hard:
                continue
            value = labels.get(item.key)
            if value is None:
                return messages.NO_SPREAD_LABEL, False
            if item.counts[value] + item.is_own - item.fewest > item.max_skew:
                return messages.UNEVEN, True
        if self._near and not self._is_near(labels):
            return messages.NO_AFFINITY, False
        return "", True

    def _is_near(self, labels: Labels) -> bool:
        if any(term.topology not in labels for term in self._near):
            return False
        if all(self._near_counts[term.topology, labels[term.topology]] > 0 for term in self._near):
            return True
        # The first of pods that want to be near each other may go anywhere.
        return not self._near_counts and all(term.matches(self._pod) for term in self._near)

    @property
    def has_scores(self) -> bool:
        return bool(self._scores) or any(not item.is_hard for item in self._constraints)

    def scores(self, candidates: Sequence[Labels]) -> list[float]:
        """For each candidate, how much it is preferred."""
        wished = [float(sum(self._scores[key, value] for key, value in labels.items())) for labels in candidates]
        spread = self._spread(candidates)
        return [one + other for one, other in zip(_normal(wished), spread, strict=True)]

    def _spread(self, candidates: Sequence[Labels]) -> list[float]:
        soft = [item for item in self._constraints if not item.is_hard]
        if not soft:
            return [0.0] * len(candidates)
        raw: list[float | None] = []
        for labels in candidates:
            if any(item.key not in labels for item in soft):
                raw.append(None)
                continue
            raw.append(
                sum(item.counts[labels[item.key]] * math.log(len(item.counts) + 2) + item.max_skew - 1 for item in soft)
            )
        known = [value for value in raw if value is not None]
        most, least = max(known, default=0.0), min(known, default=0.0)
        return [
            0.0 if value is None else _WEIGHT * (100 * (most + least - value) / most if most else 100.0)
            for value in raw
        ]


def _normal(raw: Sequence[float]) -> list[float]:
    most, least = max(raw, default=0.0), min(raw, default=0.0)
    return [_WEIGHT * 100 * (value - least) / (most - least) if most > least else 0.0 for value in raw]


def _add(counts: Counter[tuple[str, str]], key: tuple[str, str], by: int) -> None:
    counts[key] += by
    if not counts[key]:
        del counts[key]
