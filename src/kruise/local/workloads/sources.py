"""Which changes of pods and other children concern which workloads.

An orphan says nothing about who may want it, so the sources of orphans ask the stores whose selectors match it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kruise.api.meta import Key, Object, controller_of, key_of
from kruise.api.native.pod import Pod
from kruise.api.resource import Resource
from kruise.local.workloads.pods import concerns_owner, owner_of, selector_of
from kruise.machinery.selector_index import Selects
from kruise.machinery.spec import Stores

_ADOPTION = "adoption"
"""Index of the workloads by what they would adopt."""


def _adopts(workload: Any) -> tuple[Selects]:
    return (Selects(selector_of(workload.spec.selector), workload.metadata.namespace),)


ADOPTERS: Mapping[str, Callable[[Any], Iterable[Selects]]] = {_ADOPTION: _adopts}


def wanting(workloads: Resource[Any]) -> Callable[[Object | None, Stores], Iterable[Key]]:
    """The workloads whose selector matches an orphan; nobody wants what is controlled or on its way out."""

    def keys(orphan: Object | None, stores: Stores) -> Iterable[Key]:
        if orphan is None or controller_of(orphan) is not None:
            return
        labels = orphan.metadata.labels
        if not labels or orphan.metadata.deletion_timestamp is not None:
            return
        for workload in stores.store(workloads).selecting(_ADOPTION, labels, orphan.metadata.namespace):
            yield key_of(workload)

    return keys


def pods_of(
    workloads: Resource[Any], *, matters: Callable[[Pod | None, Pod | None], bool] = concerns_owner
) -> Callable[[Pod | None, Pod | None, Stores], Iterable[Key]]:
    """The workloads that own a pod, did so before, or may adopt it."""
    wanted_by = wanting(workloads)

    def keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        if not matters(old, new):
            return
        for pod in (old, new):
            if pod is not None and (key := owner_of(pod, workloads)) is not None:
                yield key
        yield from wanted_by(new, stores)

    return keys
