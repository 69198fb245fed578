"""The limits of a DaemonSet as numbers of nodes: integers in, integers out."""

from __future__ import annotations

import dataclasses

from kruise.api.apps.daemonset import DaemonSetSpec
from kruise.api.apps.shared import ON_DELETE
from kruise.machinery.intorpercent import absolute, is_percent

DEFAULT_BURST = 250


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    unavailable: int = 1
    """Nodes without an available pod."""
    surge: int = 0
    """Nodes with a second pod; above 0, new pods come before old ones go."""
    partition: int = 0
    """Nodes that keep an old pod."""
    burst: int = DEFAULT_BURST
    """Pods that one pass creates, deletes or updates, each."""
    is_paused: bool = False
    is_on_delete: bool = False
    holds_back_creation: bool = False
    """The partition limits the creation of pods, too."""
    is_stopped: bool = False
    """The failure budget is used up: no node goes on to the present template."""

    @property
    def surges(self) -> bool:
        return self.surge > 0


def limits_of(spec: DaemonSetSpec, desired: int) -> Limits:
    """`desired` nodes should have a pod. Percentages are of these as they are now, not of what the status last told:
    that is 0 in the beginning (DS-43, DS-108)."""
    burst = _burst(spec, desired)
    strategy = spec.update_strategy
    if strategy.type == ON_DELETE:
        return Limits(burst=burst, is_on_delete=True)
    rolling = strategy.rolling_update
    if rolling is None:
        return Limits(burst=burst)
    surge = absolute(rolling.max_surge, desired, round_up=True)
    unavailable = absolute(rolling.max_unavailable, desired, round_up=True)
    if surge == unavailable == 0:
        unavailable = 1  # DS-61: otherwise nothing would ever move
    partition = absolute(rolling.partition, desired, round_up=False)
    scale = spec.scale_strategy
    return Limits(
        unavailable=unavailable,
        surge=surge,
        partition=partition,
        burst=burst,
        is_paused=bool(rolling.paused),
        holds_back_creation=partition > 0 and scale is not None and scale.partitioned_scaling,
    )


def _burst(spec: DaemonSetSpec, desired: int) -> int:
    """A small percentage of few nodes still lets one pod go on."""
    value = spec.burst_replicas
    if value is None:
        return DEFAULT_BURST
    count = absolute(value, desired, round_up=False)
    return max(count, 1) if is_percent(value) and value != "0%" else count


def may_be_created(limits: Limits, *, desired: int, new: int) -> int:
    """Pods that partitioned scaling lets come (DS-43). `new` nodes have an updated pod."""
    return max(0, desired - new - min(limits.partition, desired))
