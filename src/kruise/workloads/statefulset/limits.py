"""What a StatefulSet's spec says about order and limits, as numbers. Pure."""

from __future__ import annotations

import dataclasses

from kruise.api.apps.shared import ON_DELETE
from kruise.api.apps.statefulset import PARALLEL, RollingUpdateStatefulSetStrategy, StatefulSetSpec
from kruise.machinery.intorpercent import IntOrPercent, absolute
from kruise.workloads.shared.ordinals import replicas_of

NO_STRATEGY = RollingUpdateStatefulSetStrategy()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    is_ordered: bool
    """OrderedReady: one pod after the other."""
    partition: int
    """How many pods stay at the old revision (ST-72)."""
    max_unavailable: int
    scale_max_unavailable: int | None
    """None: pods are made without a limit."""
    min_ready_seconds: int
    is_on_delete: bool
    is_paused: bool
    is_unordered: bool
    """Updates do not follow the ordinals."""
    is_stopped: bool = False
    """The failure budget stopped the rollout: nobody goes to the update revision."""
    rolls_back: bool = False
    """Stopped, and updated pods go back."""


def strategy_of(spec: StatefulSetSpec) -> RollingUpdateStatefulSetStrategy:
    return spec.update_strategy.rolling_update or NO_STRATEGY


def limits_of(spec: StatefulSetSpec) -> Limits:
    rolling, replicas = strategy_of(spec), replicas_of(spec)
    is_ordered = spec.pod_management_policy != PARALLEL
    scale = spec.scale_strategy.max_unavailable if spec.scale_strategy is not None else None
    return Limits(
        is_ordered=is_ordered,
        partition=max(0, min(rolling.partition or 0, replicas)),
        # Admission refuses anything but 1 where pods have an order.
        max_unavailable=1 if is_ordered else at_least_one(rolling.max_unavailable, replicas),
        scale_max_unavailable=None if is_ordered or scale is None else at_least_one(scale, replicas),
        min_ready_seconds=rolling.min_ready_seconds or 0,
        is_on_delete=spec.update_strategy.type == ON_DELETE,
        is_paused=rolling.paused,
        is_unordered=rolling.unordered_update is not None,
    )


def at_least_one(value: IntOrPercent | None, replicas: int) -> int:
    """A number, or a percentage rounded down; never less than one (ST-69, ST-64)."""
    return max(1, absolute(value, replicas, round_up=False))
