"""Required anti-affinity between pods: topology values that a pod must keep away from (pure).

A pod keeps away from pods that its own terms match, and from pods whose terms match it. Both are the same question with
the roles changed, asked of every pod that is on a node.
"""

from __future__ import annotations

import dataclasses
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
        Term(term.topology_key, from_label_selector(term.label_selector), _scope(term, pod, namespaces))
        for term in required_terms(pod)
    )


def _scope(term: PodAffinityTerm, pod: Pod, namespaces: Namespaces) -> Callable[[str], bool]:
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
    """The topology values that are closed to one kind of pod; grows as pods are placed."""

    __slots__ = ("_pod", "_terms", "own", "theirs")

    def __init__(self, pod: Pod, terms: tuple[Term, ...]) -> None:
        self._pod = pod
        self._terms = terms
        self.own: dict[str, set[str]] = {}
        """Values by topology key, closed by the pod's own terms."""
        self.theirs: dict[str, set[str]] = {}
        """Closed by the terms of pods that are there."""

    @property
    def has_terms(self) -> bool:
        return bool(self._terms)

    def note(self, other: Pod, other_terms: tuple[Term, ...], labels: Mapping[str, str]) -> None:
        """Another pod is on a node with these labels."""
        for term in self._terms:
            value = labels.get(term.topology)
            if value is not None and term.matches(other):
                self.own.setdefault(term.topology, set()).add(value)
        for term in other_terms:
            value = labels.get(term.topology)
            if value is not None and term.matches(self._pod):
                self.theirs.setdefault(term.topology, set()).add(value)

    def closed_by_own(self, labels: Mapping[str, str]) -> bool:
        return any(labels.get(key) in values for key, values in self.own.items())

    def closed_by_theirs(self, labels: Mapping[str, str]) -> bool:
        return any(labels.get(key) in values for key, values in self.theirs.items())
