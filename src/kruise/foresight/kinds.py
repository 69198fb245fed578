"""What a forecast must know of a kind beside its decisions: one entry for each workload.

The decisions themselves are the kind's own code, found by its controller. Here stands only what people ask about: how
many pods are wanted, what the limits promise, when a pod serves, which hooks hold it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.shared import IN_PLACE_POLICIES, Lifecycle
from kruise.api.meta import LabelSelector
from kruise.api.native.pod import Pod
from kruise.api.resource import Resource
from kruise.inplace import availability
from kruise.machinery.intorpercent import IntOrPercent
from kruise.workloads.cloneset.numbers import DEFAULT_MAX_UNAVAILABLE, limits_of, replicas_of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A limit as somebody wrote it, and the number of pods that it comes to."""

    path: str
    given: IntOrPercent
    pods: int
    is_given: bool = True
    """False: it is the default."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a workload promises while it is rolled out."""

    unavailable: Amount | None = None
    surge: Amount | None = None
    partition: Amount | None = None
    is_paused: bool = False
    is_on_delete: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    resource: Resource[Any]
    replicas: Callable[[Any], int]
    """Pods that are wanted."""
    limits: Callable[[Any], Limits]
    min_ready_seconds: Callable[[Any], int]
    serves: Callable[[Pod, int, datetime], bool]
    """Whether a pod is available, by the kind's own rule; the number is minReadySeconds."""
    selector: Callable[[Any], LabelSelector]
    policy: Callable[[Any], str]
    """The update policy as it is written: `ReCreate`, `InPlaceIfPossible`, `InPlaceOnly`."""
    in_place_policies: frozenset[str] = frozenset()
    """The policies under which pods may be changed in place."""
    lifecycle: Callable[[Any], Lifecycle | None]
    update_revision: Callable[[Any], str]
    """As the status has it; empty before the first look at the object."""
    history_limit: Callable[[Any], int | None]
    claim_templates: Callable[[Any], tuple[Any, ...]]


def _cloneset_limits(cloneset: CloneSet) -> Limits:
    limits = limits_of(cloneset.spec)
    strategy = cloneset.spec.update_strategy
    rolling = strategy.rolling_update
    path = "spec.updateStrategy.rollingUpdate"
    unavailable = rolling.max_unavailable if rolling is not None else None
    return Limits(
        unavailable=Amount(
            path=f"{path}.maxUnavailable",
            given=DEFAULT_MAX_UNAVAILABLE if unavailable is None else unavailable,
            pods=limits.max_unavailable,
            is_given=unavailable is not None,
        ),
        surge=_amount(f"{path}.maxSurge", rolling.max_surge if rolling is not None else None, limits.max_surge),
        partition=_amount(f"{path}.partition", rolling.partition if rolling is not None else None, limits.partition),
        is_paused=limits.is_paused,
        is_on_delete=strategy.type == "OnDelete",
    )


def _amount(path: str, given: IntOrPercent | None, pods: int) -> Amount | None:
    return None if given is None else Amount(path=path, given=given, pods=pods)


def _cloneset_policy(cloneset: CloneSet) -> str:
    rolling = cloneset.spec.update_strategy.rolling_update
    return (rolling.pod_update_policy if rolling is not None else "") or "ReCreate"


def _cloneset_replicas(cloneset: CloneSet) -> int:
    return replicas_of(cloneset.spec)


CLONE_SET_KIND = Kind(
    resource=CLONE_SETS,
    replicas=_cloneset_replicas,
    limits=_cloneset_limits,
    min_ready_seconds=lambda cloneset: int(cloneset.spec.min_ready_seconds),
    serves=availability.is_available,
    selector=lambda cloneset: cloneset.spec.selector,
    policy=_cloneset_policy,
    in_place_policies=frozenset(IN_PLACE_POLICIES),
    lifecycle=lambda cloneset: cloneset.spec.lifecycle,
    update_revision=lambda cloneset: cloneset.status.update_revision,
    history_limit=lambda cloneset: cloneset.spec.revision_history_limit,
    claim_templates=lambda cloneset: cloneset.spec.volume_claim_templates,
)

KINDS: Mapping[Resource[Any], Kind] = {kind.resource: kind for kind in (CLONE_SET_KIND,)}
