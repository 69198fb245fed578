"""How large each ReplicaSet of a Deployment should be (pure).

`Group` is one ReplicaSet with the size that it has and the size that it gets. The functions change sizes only; what is
written for them is `deployment`'s business. The rules are kube-controller-manager's, with one difference: pods count as
available only up to the size of their ReplicaSet. A ReplicaSet that was made smaller a moment ago still shows the pods
that are about to go, and counting them would take the Deployment below its minimum.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from kruise.local.workloads.objects import Deployment, ReplicaSet, RollingUpdate
from kruise.machinery.intorpercent import scaled

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
FOREVER = 2**31 - 1
_USUAL = "25%"
_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclasses.dataclass(slots=True)
class Group:
    """A ReplicaSet of the Deployment; `known` is None for one that is to be created."""

    name: str
    known: ReplicaSet | None
    size: int
    annotations: dict[str, str]
    min_ready_seconds: int = 0

    @classmethod
    def of(cls, replica_set: ReplicaSet) -> Group:
        spec = replica_set.spec
        return cls(
            name=replica_set.metadata.name,
            known=replica_set,
            size=1 if spec.replicas is None else spec.replicas,
            annotations=dict(replica_set.metadata.annotations),
            min_ready_seconds=spec.min_ready_seconds,
        )

    @property
    def uid(self) -> str:
        return self.known.metadata.uid if self.known is not None else ""

    @property
    def size_before(self) -> int:
        if self.known is None:
            return 0
        return 1 if self.known.spec.replicas is None else self.known.spec.replicas

    @property
    def available(self) -> int:
        return min(self.known.status.available_replicas, self.size) if self.known is not None else 0

    @property
    def age_order(self) -> tuple[datetime, str]:
        created = self.known.metadata.creation_timestamp if self.known is not None else None
        return (created or _BEGINNING, self.name)

    @property
    def revision(self) -> int | None:
        """None for a text that is no number."""
        text = self.annotations.get(REVISION, "")
        try:
            return int(text) if text else 0
        except ValueError:
            return None


@dataclasses.dataclass(slots=True)
class Limits:
    """How many pods more and fewer than wanted a Deployment may have meanwhile."""

    replicas: int
    surge: int
    unavailable: int

    @classmethod
    def of(cls, deployment: Deployment) -> Limits:
        spec = deployment.spec
        replicas = 1 if spec.replicas is None else spec.replicas
        if not is_rolling(deployment):
            return cls(replicas, 0, 0)
        given = spec.strategy.rolling_update or RollingUpdate()
        # An API server fills in the defaults; in forecasts there is none.
        surge = scaled(_USUAL if given.max_surge is None else given.max_surge, replicas, round_up=True)
        unavailable = scaled(
            _USUAL if given.max_unavailable is None else given.max_unavailable, replicas, round_up=False
        )
        if surge == 0 and unavailable == 0:
            unavailable = 1  # both rounded to nothing: something must be able to move
        return cls(replicas, surge, min(unavailable, replicas))

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def fewest(self) -> int:
        return self.replicas - self.unavailable

    def annotations(self) -> dict[str, str]:
        return {DESIRED_REPLICAS: str(self.replicas), MAX_REPLICAS: str(self.most)}


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type != "Recreate"


def total(groups: Iterable[Group]) -> int:
    return sum(group.size for group in groups)


def resize(group: Group, size: int, limits: Limits) -> bool:
    """Give a group another size; the annotations say for which size of the Deployment that was."""
    if group.size == size:
        return False
    group.size = size
    group.annotations.update(limits.annotations())
    return True


def is_scaling(groups: Iterable[Group], limits: Limits) -> bool:
    """The Deployment's size changed since the ReplicaSets were sized."""
    return any(
        group.size > 0 and (desired := _number(group, DESIRED_REPLICAS)) is not None and desired != limits.replicas
        for group in groups
    )


def _number(group: Group, annotation: str) -> int | None:
    text = group.annotations.get(annotation, "")
    return int(text) if text.isdecimal() and int(text) <= FOREVER else None


# A changed size of the Deployment


def scale(new: Group | None, old: Sequence[Group], limits: Limits, *, rolling: bool, actual: int) -> None:
    """Bring the groups to the Deployment's size without any further rollout. `actual`: pods there were at last."""
    only = _only_active_or_newest(new, old)
    if only is not None:
        resize(only, limits.replicas, limits)
        return
    if new is not None and _is_saturated(new, limits):
        for group in old:
            resize(group, 0, limits)
        return
    if rolling:
        active = [group for group in (*old, *([new] if new is not None else [])) if group.size > 0]
        _scale_in_proportion(active, limits, actual)


def _only_active_or_newest(new: Group | None, old: Sequence[Group]) -> Group | None:
    if new is None and not old:
        return None
    everyone = [*old, *([new] if new is not None else [])]
    active = [group for group in everyone if group.size > 0]
    if not active:
        return new if new is not None else max(old, key=lambda group: group.age_order)
    return active[0] if len(active) == 1 else None


def _is_saturated(new: Group, limits: Limits) -> bool:
    return new.size == limits.replicas == new.available and _number(new, DESIRED_REPLICAS) == limits.replicas


def _scale_in_proportion(active: list[Group], limits: Limits, actual: int) -> None:
    """Every group grows or shrinks by its share, the largest takes what is left over."""
    allowed = limits.most if limits.replicas > 0 else 0
    to_add = allowed - total(active)
    # Growing favours the newer of equal groups, shrinking takes from the older.
    active.sort(key=lambda group: group.age_order, reverse=to_add > 0)
    active.sort(key=lambda group: -group.size)
    shares: list[int] = []
    added = 0
    for group in active:
        share = _share(group, limits, actual, to_add - added) if to_add not in (0, added) else 0
        shares.append(share)
        added += share
    for position, (group, share) in enumerate(zip(active, shares, strict=True)):
        leftover = to_add - added if position == 0 else 0
        group.size = max(0, group.size + share + leftover) if position == 0 else group.size + share
        group.annotations.update(limits.annotations())


def _share(group: Group, limits: Limits, actual: int, left: int) -> int:
    fraction = _fraction(group, limits, actual)
    return min(fraction, left) if left > 0 else max(fraction, left)


def _fraction(group: Group, limits: Limits, actual: int) -> int:
    if limits.replicas == 0:
        return -group.size
    before = _number(group, MAX_REPLICAS) or actual
    if before == 0:
        return 0
    # Half away from zero, as Go rounds; sizes are never negative.
    return int(group.size * limits.most / before + 0.5) - group.size


# Rolling update


def first_size(groups: Iterable[Group], limits: Limits, *, rolling: bool) -> int:
    """The size with which a new ReplicaSet begins."""
    if not rolling:
        return limits.replicas
    return max(0, min(limits.most - total(groups), limits.replicas))


def roll(new: Group, old: Sequence[Group], limits: Limits) -> None:
    """One step of a rolling update: grow the new group if there is room, otherwise shrink old ones if pods suffice."""
    if new.size > limits.replicas:
        resize(new, limits.replicas, limits)
        return
    if new.size < limits.replicas:
        room = limits.most - total((new, *old))
        if room > 0 and resize(new, new.size + min(room, limits.replicas - new.size), limits):
            return
    _shrink_old(new, [group for group in old if group.size > 0], limits)


def _shrink_old(new: Group, old: list[Group], limits: Limits) -> None:
    if not old:
        return
    # Pods of the new group that are not available yet must not be made up for by removing old ones.
    may_go = total((new, *old)) - limits.fewest - (new.size - new.available)
    if may_go <= 0:
        return
    old.sort(key=lambda group: group.age_order)
    for group in old:
        unhealthy = min(may_go, group.size - group.available)
        if unhealthy > 0:
            may_go -= unhealthy
            resize(group, group.size - unhealthy, limits)
    spare = sum(group.available for group in (new, *old)) - limits.fewest
    for group in old:
        if spare <= 0:
            break
        count = min(group.size, spare)
        spare -= count
        resize(group, group.size - count, limits)


# Recreate


def recreate_down(old: Sequence[Group], limits: Limits) -> bool:
    """Shrink all old groups to nothing; whether any had to be."""
    shrunk = [group for group in old if resize(group, 0, limits)]
    return bool(shrunk)


# History


def superfluous(old: Sequence[Group], keep: int | None) -> list[Group]:
    """The oldest ReplicaSets beyond the history limit, as far as they are empty for certain."""
    if keep is None or keep == FOREVER:
        return []
    alive = [group for group in old if group.known is not None and group.known.metadata.deletion_timestamp is None]
    alive.sort(key=lambda group: (group.revision or 0, *group.age_order))
    return [group for group in alive[: max(0, len(alive) - keep)] if _is_empty(group)]


def _is_empty(group: Group) -> bool:
    known = group.known
    return (
        known is not None
        and known.status.replicas == 0
        and group.size == 0
        and group.size_before == 0
        and known.metadata.generation <= known.status.observed_generation
    )


def changes(group: Group) -> dict[str, Any]:
    """The merge patch that makes the ReplicaSet what the group is; empty where it is that already."""
    known = group.known
    if known is None:
        return {}
    patch: dict[str, Any] = {}
    before = known.metadata.annotations
    annotations = {key: text for key, text in group.annotations.items() if before.get(key) != text}
    if annotations:
        patch["metadata"] = {"annotations": annotations}
    spec: dict[str, Any] = {}
    if group.size != group.size_before:
        spec["replicas"] = group.size
    if group.min_ready_seconds != known.spec.min_ready_seconds:
        spec["minReadySeconds"] = group.min_ready_seconds
    if spec:
        patch["spec"] = spec
    return patch
