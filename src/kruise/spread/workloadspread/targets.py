"""Which workloads can be spread, and how they are found: always by group, kind and name, never by version (WS-4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kruise.api.apps.shared import GROUP
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, TargetReference, WorkloadSpread
from kruise.api.meta import OwnerReference, PartialObject
from kruise.api.resource import Resource
from kruise.machinery.documents import Json
from kruise.machinery.selectors import EVERYTHING, NOTHING, Selector, SelectorError, from_label_selector
from kruise.machinery.watched import Watched

DEPLOYMENT, REPLICA_SET, STATEFUL_SET, CLONE_SET, JOB = "Deployment", "ReplicaSet", "StatefulSet", "CloneSet", "Job"

SUPPORTED: Mapping[str, frozenset[str]] = {
    DEPLOYMENT: frozenset({"apps"}),
    REPLICA_SET: frozenset({"apps"}),
    STATEFUL_SET: frozenset({"apps", GROUP}),
    CLONE_SET: frozenset({GROUP}),
    JOB: frozenset({"batch"}),
}
"""Kinds that need no entry in the whitelist, with their groups."""
WITH_DELETION_COST = frozenset({REPLICA_SET, DEPLOYMENT, CLONE_SET})
"""WS-45. Others do not look at it, or are somebody else's (WS-56)."""


class Workload(NamedTuple):
    """Who owns pods: a workload, in whatever version."""

    namespace: str
    group: str
    kind: str
    name: str

    @property
    def is_supported(self) -> bool:
        return self.group in SUPPORTED.get(self.kind, ())

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def target_of(spread: WorkloadSpread) -> Workload:
    reference = spread.spec.target_ref
    return Workload(spread.metadata.namespace, reference.group, reference.kind, reference.name)


def selector_of(spread: WorkloadSpread) -> Selector:
    """Which pods of its workload it is about (WS-19): a filter without a selector only redirects the replicas."""
    wanted = spread.spec.target_filter
    if wanted is None or wanted.selector is None:
        return EVERYTHING
    try:
        return from_label_selector(wanted.selector)
    except SelectorError:
        return NOTHING


def owner_of(reference: OwnerReference, namespace: str) -> Workload:
    return Workload(namespace, reference.api_version.rpartition("/")[0], reference.kind, reference.name)


def is_supported(reference: TargetReference) -> bool:
    return reference.group in SUPPORTED.get(reference.kind, ())


TARGET = "target"
"""Index of the spreads by their workload."""
KIND = "target kind"
"""Index of the spreads by namespace and kind of their workload."""
CUSTOM = "custom"
"""In place of a kind: all that need an entry in the whitelist."""


def kind_value(namespace: str, group: str, kind: str) -> str:
    return f"{namespace}/{group}/{kind}"


def _by_target(spread: WorkloadSpread) -> Iterable[str]:
    return ("/".join(target_of(spread)),)


def _by_kind(spread: WorkloadSpread) -> Iterable[str]:
    target = target_of(spread)
    if not target.is_supported:
        return (kind_value(target.namespace, "", CUSTOM),)
    return (kind_value(target.namespace, target.group, target.kind),)


WATCHED_SPREADS = Watched(WORKLOAD_SPREADS, indexes={TARGET: _by_target, KIND: _by_kind})


def index_value(workload: Workload) -> str:
    return "/".join(workload)


class CustomObject(PartialObject):
    """Of a kind that nobody here describes."""

    spec: Any = None
    status: Any = None

    @property
    def document(self) -> Json:
        """For paths into it."""
        return {"spec": self.spec, "status": self.status}


def guessed(api_version: str, kind: str) -> Resource[CustomObject]:
    """By the plural that a kind has as a rule."""
    group, _, version = api_version.rpartition("/")
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        plural = f"{word}es"
    elif word.endswith("y") and word[-2:-1] not in "aeiou":
        plural = f"{word[:-1]}ies"
    else:
        plural = f"{word}s"
    return Resource(group, version, plural, kind, True, CustomObject)
