"""Pods as workload controllers see them: availability, order of removal, and which changes concern their owners."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kruise.api.meta import Key, LabelSelector, controller_of
from kruise.api.native.deletion_cost import deletion_cost
from kruise.api.native.pod import Pod, ready_since
from kruise.api.resource import Resource, refers_to
from kruise.machinery.selectors import NOTHING, Selector, from_label_selector
from kruise.machinery.store import Store

FINISHED = ("Succeeded", "Failed")
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def selector_of(selector: LabelSelector | None) -> Selector:
    """A selector that is missing or empty selects nothing: a workload must never take all pods of a namespace."""
    found = from_label_selector(selector)
    return NOTHING if found.is_empty else found


def matcher(selector: LabelSelector | None) -> Callable[[Mapping[str, str]], bool]:
    """`selector_of(selector).matches`, quick for the usual selector of plain labels: it is asked of every pod."""
    if selector is None or selector.match_expressions or not selector.match_labels:
        return selector_of(selector).matches
    return has_labels(selector.match_labels)


def has_labels(wanted: Mapping[str, str]) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels have all the wanted ones."""
    items = wanted.items()
    return lambda labels: items <= labels.items()


def active_pods(store: Store[Pod], pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Those that are neither finished nor being deleted."""
    terminating = store.is_terminating
    return tuple([pod for pod in pods if pod.status.phase not in FINISHED and not terminating(pod)])


def seconds_until_available(pod: Pod, needed: int, now: datetime) -> float | None:
    """How long it still has to be ready (`needed`: minReadySeconds); 0: it is available. None: it is not ready, or
    nobody knows since when."""
    ready, since = ready_since(pod)
    if not ready or (needed and since is None):
        return None
    left = (since - now).total_seconds() + needed if needed and since is not None else 0.0
    return max(0.0, left)


def restarts(pod: Pod) -> int:
    """The most restarts of any container."""
    counts = [status.restart_count for status in pod.status.container_statuses]
    return max(counts, default=0)


def _age_rank(since: datetime | None, now: datetime) -> int:
    """Ages count by order of magnitude only: the older a pod, the less a few minutes matter."""
    if since is None:
        return -1
    age = (now - since).total_seconds()
    return int(math.log2(age * 1e9)) if age > 0 else -1


def first_to_go(pods: Sequence[Pod], count: int, *, now: datetime, beside: Mapping[str, int]) -> list[Pod]:
    """The pods that a smaller size costs, in Kubernetes' order of preference. `beside`: related pods on each node.

    Not placed before placed, pending before running, not ready before ready, lower deletion cost, more related pods on
    the same node, ready for a shorter time, more restarts, younger; the uid decides at last.
    """

    def rank(pod: Pod) -> tuple[Any, ...]:
        ready, since = ready_since(pod)
        return (
            pod.spec.node_name != "",
            _PHASES.get(pod.status.phase, 0),
            ready,
            deletion_cost(pod),
            -beside.get(pod.spec.node_name, 0),
            _age_rank(since, now) if ready else 0,
            -restarts(pod),
            _age_rank(pod.metadata.creation_timestamp, now),
            pod.metadata.uid,
        )

    if count >= len(pods):
        return list(pods)
    return heapq.nsmallest(count, pods, key=rank)


def concerns_owner(old: Pod | None, new: Pod | None) -> bool:
    """Whether a change can matter to the workload that owns the pod: most status updates cannot."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        ready_since(old) != ready_since(new)
        or (old.status.phase in FINISHED) != (new.status.phase in FINISHED)
        or before.deletion_timestamp != after.deletion_timestamp
        or before.labels != after.labels
        or before.owner_references != after.owner_references
        or before.finalizers != after.finalizers
    )


def owner_of(pod: Pod, owner: Resource[Any]) -> Key | None:
    reference = controller_of(pod)
    if reference is None or not refers_to(reference, owner):
        return None
    return Key(pod.metadata.namespace, reference.name)
