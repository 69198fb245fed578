"""How many pods to create, delete and update: integers in, integers out (CS-70 to CS-79).

Letters of the rules: R = replicas, p = partition, M = maxUnavailable, SM = scaleStrategy.maxUnavailable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from kruise.api.apps.cloneset import CloneSetSpec
from kruise.api.apps.shared import ON_DELETE
from kruise.machinery.intorpercent import absolute
from kruise.workloads.cloneset.counts import partition_of
from kruise.workloads.shared.pod_facts import PodFacts

DEFAULT_MAX_UNAVAILABLE = "20%"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The strategy's limits as numbers of pods."""

    partition: int = 0
    """Pods to keep at old revisions; between 0 and the replicas."""
    max_unavailable: int = 0
    max_surge: int = 0
    """0 while paused."""
    scale_max_unavailable: int | None = None
    """None: no limit."""
    is_paused: bool = False
    is_stopped: bool = False
    """The failure budget is used up: the partition is all pods, whatever the spec says."""
    rolls_back: bool = False
    """Pods of the stopped revision go back, whatever the gates say."""


def replicas_of(spec: CloneSetSpec) -> int:
    return 1 if spec.replicas is None else spec.replicas


def limits_of(spec: CloneSetSpec) -> Limits:
    """The limits of a spec (CS-71). A limit that is neither a number nor a percentage allows nothing; admission lets
    such a one through only for `scaleStrategy.maxUnavailable`."""
    replicas = replicas_of(spec)
    scale_value = spec.scale_strategy.max_unavailable
    scale_limit = None if scale_value is None else absolute(scale_value, replicas, round_up=True)
    rolling = spec.update_strategy.rolling_update
    if rolling is None:
        unavailable = absolute(DEFAULT_MAX_UNAVAILABLE, replicas, round_up=False)
        return Limits(max_unavailable=unavailable, scale_max_unavailable=scale_limit)
    # A surge would bring pods of the update revision, and old ones nobody deleted would go for them (CS-107).
    has_surge = not rolling.paused and spec.update_strategy.type != ON_DELETE
    surge = absolute(rolling.max_surge, replicas, round_up=True) if has_surge else 0
    value = DEFAULT_MAX_UNAVAILABLE if rolling.max_unavailable is None else rolling.max_unavailable
    return Limits(
        partition=partition_of(rolling.partition, replicas),
        max_unavailable=absolute(value, replicas, round_up=surge == 0),
        max_surge=surge,
        scale_max_unavailable=scale_limit,
        is_paused=rolling.paused,
    )


def updates_everything_at_once(spec: CloneSetSpec) -> bool:
    """Whether a rollout may touch every pod in its first step, so that nothing is gained by preparing it (IPU-151)."""
    replicas, rolling = replicas_of(spec), spec.update_strategy.rolling_update
    value = rolling.max_unavailable if rolling is not None else None
    unavailable = absolute(DEFAULT_MAX_UNAVAILABLE if value is None else value, replicas, round_up=False)
    partition = partition_of(rolling.partition, replicas) if rolling is not None else 0
    return partition == 0 and unavailable >= replicas


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Active pods of one side, old or new."""

    total: int = 0
    preparing_delete: int = 0
    active: int = 0
    """Not PreparingDelete."""
    to_delete: int = 0
    """Of the active: specified for deletion."""
    unavailable: int = 0
    """Of the active: neither specified for deletion nor available."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The pods of a CloneSet, counted by side."""

    old: Counts = Counts()
    new: Counts = Counts()

    @property
    def total(self) -> int:
        return self.old.total + self.new.total

    @property
    def preparing_delete(self) -> int:
        return self.old.preparing_delete + self.new.preparing_delete

    @property
    def to_delete(self) -> int:
        return self.old.to_delete + self.new.to_delete

    @property
    def unavailable(self) -> int:
        """CS-72: pods on their way out count, pods that somebody specified for deletion do not."""
        return self.preparing_delete + self.old.unavailable + self.new.unavailable


def counts_as_new(facts: PodFacts, *, preparing_as_new: bool) -> bool:
    """Which side a pod is on while scaling (gate PreparingUpdateAsUpdate)."""
    return facts.is_new or (preparing_as_new and facts.state == "PreparingUpdate")


def counts_of(pods: Iterable[PodFacts], *, scaling: bool, preparing_as_new: bool) -> Census:
    """Count pods by side. For updating only the revision label tells the side (CS-79), for scaling a pod that
    prepares its update may count as new."""
    as_new = scaling and preparing_as_new
    tallies = ([0, 0, 0, 0], [0, 0, 0, 0])
    for facts in pods:
        tally = tallies[counts_as_new(facts, preparing_as_new=as_new)]
        tally[0] += 1
        if facts.is_preparing_delete:
            tally[1] += 1
        elif facts.is_specified:
            tally[2] += 1
        elif not facts.is_available:
            tally[3] += 1
    old, new = (
        Counts(total=total, preparing_delete=preparing, active=total - preparing, to_delete=to_delete, unavailable=down)
        for total, preparing, to_delete, down in tallies
    )
    return Census(old=old, new=new)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScaleNumbers:
    up: int = 0
    """Pods that are missing."""
    up_current: int = 0
    """Of these, pods to create at the current revision."""
    limit: int = 0
    """Of these, pods that may be created now."""
    down: int = 0
    """Pods too many, specified ones left out."""
    down_old: int = 0
    """Of these, old pods; they go first."""
    delete_budget: int = 0
    """Ready pods that may be deleted now."""
    surge: int = 0
    """Pods above the replicas that are wanted for now."""

    @property
    def create_current(self) -> int:
        """Of the pods to create now, those at the current revision."""
        return min(self.up_current, self.limit)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UpdateNumbers:
    count: int = 0
    """Pods to bring to the update revision; negative: pods to bring back to the current revision."""
    budget: int = 0
    """Pods that may be unavailable meanwhile."""


def scale_numbers(
    census: Census,
    limits: Limits,
    replicas: int,
    *,
    same_revision: bool,
    can_roll_back: bool,
    exclude_preparing_delete: bool,
) -> ScaleNumbers:
    """CS-74 to CS-78. `same_revision`: current and update revision are one; `can_roll_back`: gate
    CloneSetPartitionRollback."""
    old_diff, new_diff = _differences(census, limits, replicas, may_go_back=can_roll_back and not same_revision)
    surge, surge_old = _surge(census, limits, old_diff, new_diff)
    have, have_old = census.total, census.old.total
    if exclude_preparing_delete:
        have -= census.preparing_delete
        have_old -= census.old.preparing_delete
    want, want_old = replicas + surge, limits.partition + surge_old
    up = max(want - have, 0)
    limit = up
    if limits.scale_max_unavailable is not None:
        limit = min(up, max(limits.scale_max_unavailable - census.unavailable, 0))
    down = max(have - census.to_delete - want, 0)
    return ScaleNumbers(
        up=up,
        up_current=min(up, max(want_old - have_old, 0)),
        limit=limit,
        down=down,
        down_old=min(down, max(have_old - census.old.to_delete - want_old, 0)),
        delete_budget=max(limits.max_unavailable + census.total - replicas - census.unavailable, 0),
        surge=surge,
    )


def update_numbers(
    census: Census, limits: Limits, replicas: int, *, same_revision: bool, can_roll_back: bool
) -> UpdateNumbers:
    """CS-79, over a census that was taken for updating.

    Where both sides have too many pods, or both too few, no update helps: that is for scaling. Taking the smaller
    difference by its size alone would then move pods the wrong way, even past the partition.
    """
    old_diff, new_diff = _differences(census, limits, replicas, may_go_back=can_roll_back and not same_revision)
    count = 0
    if old_diff * new_diff < 0:
        count = old_diff if abs(old_diff) <= abs(new_diff) else -new_diff
    return UpdateNumbers(count=count, budget=limits.max_unavailable + census.total - replicas)


def _differences(census: Census, limits: Limits, replicas: int, *, may_go_back: bool) -> tuple[int, int]:
    """Old pods and new pods too many (CS-73)."""
    old_diff = census.old.active - limits.partition
    new_diff = census.new.active - (replicas - limits.partition)
    if may_go_back:
        return old_diff, new_diff
    return max(old_diff, 0), min(new_diff, 0)


def _surge(census: Census, limits: Limits, old_diff: int, new_diff: int) -> tuple[int, int]:
    """Pods to have above the replicas for now, and how many of them at the current revision (CS-74)."""
    if limits.max_surge <= 0:
        return 0, 0
    to_delete = census.to_delete
    deletion = min(max(census.unavailable + to_delete - limits.max_unavailable, 0), to_delete)
    deletion_old = max(deletion - census.new.to_delete, 0)
    update = min(abs(old_diff), abs(new_diff)) if old_diff * new_diff < 0 else 0
    update_old = update if old_diff < 0 else 0
    need, need_old = (deletion, deletion_old) if deletion >= update else (update, update_old)
    surge = min(limits.max_surge, need)
    return surge, min(surge, need_old)
