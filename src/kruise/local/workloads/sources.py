"""Which changes of pods concern which workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kruise.api.meta import Key
from kruise.api.native.pod import Pod
from kruise.api.resource import Resource
from kruise.local.workloads.pods import concerns_owner, owner_of
from kruise.machinery.spec import Stores
from kruise.workloads.shared.adoption import wanting


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
