"""How many pods each subset gets (UD section 6.2, UD-63, UD-70).

Sizes are allocated from what is asked for and from what is there. Every way to do so gives each subset a reason in
words: `kruise plan` and `kruise why` tell it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from kruise.api.apps.shared import IntOrPercent
from kruise.api.apps.uniteddeployment import ADAPTIVE, Subset, UnitedDeploymentSpec

UNLIMITED = 2**31 - 1
_PERCENT = re.compile(r"([0-9]{1,3})%", re.ASCII)


class SizeError(ValueError):
    """Sizes that cannot be given to the subsets; the text says why."""


def parsed(size: IntOrPercent, total: int) -> int:
    """A size against the total: percentages are rounded half up (UD-40)."""
    if isinstance(size, bool) or not isinstance(size, (int, str)):
        raise SizeError(f"{size!r} is neither a number nor a percentage")
    if isinstance(size, int):
        if size < 0:
            raise SizeError(f"{size} is below 0")
        return size
    found = _PERCENT.fullmatch(size)
    if found is None or int(found[1]) > 100:
        raise SizeError(f'"{size}" is no percentage: write a whole number from 0 to 100 and a percent sign')
    return (total * int(found[1]) * 2 + 100) // 200


def total_of(spec: UnitedDeploymentSpec) -> int:
    """How many pods are wanted; without replicas the sum of the subsets (UD-20 as it was recorded)."""
    if spec.replicas is not None:
        return spec.replicas
    return sum(subset.replicas for subset in spec.topology.subsets if isinstance(subset.replicas, int))


def is_adaptive(spec: UnitedDeploymentSpec) -> bool:
    return spec.topology.schedule_strategy.type == ADAPTIVE


def reserves(spec: UnitedDeploymentSpec) -> bool:
    """Whether pods that find no node stay beside their replacements."""
    adaptive = spec.topology.schedule_strategy.adaptive
    return is_adaptive(spec) and adaptive is not None and adaptive.reserve_unschedulable_pods


def has_capacities(subsets: Iterable[Subset]) -> bool:
    return any(subset.min_replicas is not None or subset.max_replicas is not None for subset in subsets)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a subset before sizes are allocated."""

    exists: bool = False
    """Whether it has its workload."""
    size: int = 0
    """How many pods its workload is to have so far."""
    ready: int = 0
    is_unschedulable: bool = False
    was_marked: bool = False
    """It was marked as unschedulable when the pass began."""
    reserved: int = 0
    """Pods that are stuck there."""


NOTHING_SEEN = Seen()


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """How many pods a subset gets, and why."""

    pods: int
    why: str


Shares = dict[str, Share]
"""By the name of the subset, in the order of the spec."""


def allocated(spec: UnitedDeploymentSpec, seen: Mapping[str, Seen]) -> Shares:
    """What each subset is to have (UD-41). Raises SizeError."""
    subsets, total = spec.topology.subsets, total_of(spec)
    if reserves(spec):
        return _beside_reserved(subsets, total, seen)
    if is_adaptive(spec):
        return _by_capacity(subsets, total, seen)
    if has_capacities(subsets):
        return _by_capacity(subsets, total, {})
    return _by_replicas(subsets, total, seen)


# Sizes given, the rest shared


def _by_replicas(subsets: Sequence[Subset], total: int, seen: Mapping[str, Seen]) -> Shares:
    """UD-42 to UD-45."""
    given = {subset.name: parsed(subset.replicas, total) for subset in subsets if subset.replicas is not None}
    rest = total - sum(given.values())
    others = [subset.name for subset in subsets if subset.name not in given]
    if rest < 0:
        raise SizeError(f"the subsets' replicas come to {total - rest}, more than the {total} of the UnitedDeployment")
    if rest and subsets and not others:
        raise SizeError(f"the subsets' replicas come to {total - rest}, and all are given: they must come to {total}")
    each, extra = divmod(rest, len(others)) if others else (0, 0)
    # Those that have most already get the odd ones, so that as few pods as possible move.
    largest = sorted(others, key=lambda name: (seen.get(name, NOTHING_SEEN).size, name), reverse=True)[:extra]
    shares: Shares = {}
    for subset in subsets:
        if subset.name in given:
            asked = f"replicas {subset.replicas}" + (f" of {total}" if isinstance(subset.replicas, str) else "")
            shares[subset.name] = Share(given[subset.name], asked)
        else:
            pods = each + (subset.name in largest)
            whose = f"{rest} that no subset asks for" if given else f"{rest}"
            shares[subset.name] = Share(pods, f"an even share of the {whose}, among {len(others)}")
    return shares


# Between a minimum and a maximum


def bounds(subset: Subset, total: int) -> tuple[int, int]:
    """Minimum and maximum of a subset. Raises SizeError."""
    least = 0 if subset.min_replicas is None else parsed(subset.min_replicas, total)
    most = UNLIMITED if subset.max_replicas is None else parsed(subset.max_replicas, total)
    if least > most:
        raise SizeError(f"subset {subset.name}: minReplicas comes to {least}, more than maxReplicas, which is {most}")
    return least, most


def _by_capacity(subsets: Sequence[Subset], total: int, seen: Mapping[str, Seen]) -> Shares:
    """The minimums first, then up to the maximums, in the order of the spec (UD-46). What is `seen` moves the limits
    (UD-63): running pods stay, and a subset whose pods find no node gets no more than it has running."""
    limits: dict[str, tuple[int, int]] = {}
    reasons: dict[str, str] = {}
    for subset in subsets:
        least, most = bounds(subset, total)
        here = seen.get(subset.name, NOTHING_SEEN)
        reasons[subset.name] = _limits(subset)
        if here.exists and here.is_unschedulable:
            least, most = min(max(least, here.ready), most), min(most, here.ready)
            reasons[subset.name] = f"its pods find no node: it keeps the {here.ready} that are ready" + (
                f", and minReplicas {subset.min_replicas}" if least > here.ready else ""
            )
        elif here.exists and here.ready > least:
            least = min(here.ready, most)
        limits[subset.name] = (least, most)
    given: dict[str, int] = {}
    rest = total
    for name, (least, _) in limits.items():
        given[name] = min(least, rest)
        rest -= given[name]
    for name, (least, most) in limits.items():
        more = min(max(most - least, 0), rest)
        given[name] += more
        rest -= more
    return {name: Share(pods, reasons[name]) for name, pods in given.items()}


def _limits(subset: Subset) -> str:
    least = 0 if subset.min_replicas is None else subset.min_replicas
    most = "no maxReplicas" if subset.max_replicas is None else f"maxReplicas {subset.max_replicas}"
    return f"minReplicas {least}, {most}, in the order of the subsets"


# Beside pods that are stuck


def _beside_reserved(subsets: Sequence[Subset], total: int, seen: Mapping[str, Seen]) -> Shares:
    """UD-70: pods that are stuck do not use up replicas, so that others stand in for them."""
    rest = total
    given = dict.fromkeys((subset.name for subset in subsets), 0)
    capacity = {subset.name: _capacity(seen.get(subset.name, NOTHING_SEEN)) for subset in subsets}
    limits = {subset.name: bounds(subset, total) for subset in subsets}

    def take(name: str, wanted: int, rest: int) -> int:
        """How many of those that are left a subset makes up for."""
        more = min(wanted - given[name], rest)
        if more <= 0:
            return 0
        given[name] += more
        capacity[name] -= more
        return more if capacity[name] >= 0 else max(0, more + capacity[name])

    for name, (least, _) in limits.items():
        if rest > 0:
            rest -= take(name, least, rest)
    for name, (_, most) in limits.items():
        if rest > 0:
            here = seen.get(name, NOTHING_SEEN)
            grows = not here.exists or not here.is_unschedulable
            rest -= take(name, most if grows else min(here.size, most), rest)
    shares: Shares = {}
    for subset in subsets:
        here = seen.get(subset.name, NOTHING_SEEN)
        why = _limits(subset)
        if here.reserved:
            why = f"{here.reserved} of its pods are stuck, and others stand in for them"
        shares[subset.name] = Share(given[subset.name], why)
    return shares


def _capacity(here: Seen) -> int:
    if not here.exists or not (here.is_unschedulable or here.was_marked):
        return UNLIMITED
    return here.size - here.reserved


def partition_of(spec: UnitedDeploymentSpec, subset: str, pods: int) -> int:
    """How many pods of a subset stay at the old template (UD-81)."""
    manual = spec.update_strategy.manual_update
    wanted = manual.partitions.get(subset, 0) if manual is not None else 0
    return max(0, min(wanted, pods))
