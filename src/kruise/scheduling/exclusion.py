"""Required anti-affinity between pods: topology values that a pod must keep away from (pure).

A pod keeps away from pods that its own terms match, and from pods whose terms match it. Both are the same question with
the roles changed, asked of every pod that is on a node.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping

from kruise.api.native.pod import Pod, PodAffinityTerm
from kruise.machinery.selectors import Selector, from_label_selector

Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of the namespaces, by name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """A term of a pod, ready to be asked."""

    topology: str
    selector: Selector
    in_scope: Callable[[str], bool]

    def matches(self, pod: Pod) -> bool:
        return self.in_scope(pod.metadata.namespace) and self.selector.matches(pod.metadata.labels)


def required_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required


def terms_of(pod: Pod, namespaces: Namespaces) -> tuple[Term, ...]:
    return tuple(
        Term(term.topology_key, from_label_selector(term.label_selector), scope_of(term, pod, namespaces))
        for term in required_terms(pod)
    )


def scope_of(term: PodAffinityTerm, pod: Pod, namespaces: Namespaces) -> Callable[[str], bool]:
    """Without any namespace the pod's own is meant; a namespace selector adds to the list."""
    if not term.namespaces and term.namespace_selector is None:
        own = pod.metadata.namespace
        return lambda namespace: namespace == own
    listed = frozenset(term.namespaces)
    if term.namespace_selector is None:
        return lambda namespace: namespace in listed
    selector = from_label_selector(term.namespace_selector)
    return lambda namespace: namespace in listed or selector.matches(namespaces.get(namespace, {}))


class Exclusions:
    """The topology values that are closed to one kind of pod, as pods come and go."""

    __slots__ = ("_pod", "_terms", "own", "theirs")

    def __init__(self, pod: Pod, terms: tuple[Term, ...]) -> None:
        self._pod = pod
        self._terms = terms
        self.own: dict[str, Counter[str]] = {}
        """Values by topology key, closed by the pod's own terms; each with how often."""
        self.theirs: dict[str, Counter[str]] = {}
        """Closed by the terms of pods that are there."""

    @property
    def has_terms(self) -> bool:
        return bool(self._terms)

    def note(self, other: Pod, other_terms: tuple[Term, ...], labels: Mapping[str, str]) -> None:
        """Another pod is on a node with these labels."""
        self._count(other, other_terms, labels, 1)

    def forget(self, other: Pod, other_terms: tuple[Term, ...], labels: Mapping[str, str]) -> None:
        """It is there no more."""
        self._count(other, other_terms, labels, -1)

    def _count(self, other: Pod, other_terms: tuple[Term, ...], labels: Mapping[str, str], by: int) -> None:
        for term in self._terms:
            if term.matches(other):
                _close(self.own, term.topology, labels, by)
        for term in other_terms:
            if term.matches(self._pod):
                _close(self.theirs, term.topology, labels, by)

    def closed_by_own(self, labels: Mapping[str, str]) -> bool:
        return any(labels.get(key) in values for key, values in self.own.items())

    def closed_by_theirs(self, labels: Mapping[str, str]) -> bool:
        return any(labels.get(key) in values for key, values in self.theirs.items())


def _close(closed: dict[str, Counter[str]], topology: str, labels: Mapping[str, str], by: int) -> None:
    value = labels.get(topology)
    if value is None:
        return
    counts = closed.setdefault(topology, Counter())
    counts[value] += by
    if not counts[value]:
        del counts[value]
