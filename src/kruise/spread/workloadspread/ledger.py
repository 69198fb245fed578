"""The ledger in the status: who is let into which subset. Admission writes it, the controller counts it anew.

Admission asks for a place with `booked`, and for a deletion with `noted`. Both are pure functions from an object to the
next one, and idempotent: a request whose answer was lost finds its own entry. Whoever writes the result guards it with
the resourceVersion, so that of two writers one has to look again.

A place is free where the limit is above the pods that were counted and those that are being created. A pod that is
being deleted keeps its place while it lives: only when it is seen to go is its place given to another. So a deletion
that is refused costs nothing (the original gave the place away for 15 seconds).

A pod that is created under the name of one that was deleted is entered with the uid of its request beside its name, and
bears that uid: whoever counts late and still sees the former one must not take it for this one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from kruise.api.apps.workloadspread import SCHEDULABLE, UNLIMITED, SubsetStatus, WorkloadSpread, WorkloadSpreadSpec
from kruise.api.native.ordinals import ordinal_of
from kruise.machinery.codec import evolve
from kruise.spread.workloadspread.numbers import limit_of
from kruise.spread.workloadspread.targets import STATEFUL_SET

MOST_LOOKS = 4
"""Pods that one request looks at before it goes on to the next subset: each costs a read while the creation waits."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What came of asking for a place."""

    spread: WorkloadSpread
    """With the ledger as it is then."""
    subset: str = ""
    """Empty: there is none."""
    is_booked: bool = False
    """There is an entry in the ledger."""
    uid: str = ""
    """That the pod is to bear beside its name, so that it is not taken for the one before."""
    doubtful: tuple[str, ...] = ()
    """Pods that may be gone. There is no place unless one of them is: look, and ask again."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who asks for a place."""

    key: str
    """The name of the pod, or what stands for it."""
    version: str
    now: datetime
    uid: str = ""
    """Of the request."""
    replicas: int | None = None
    """Of the workload, for percentages."""
    gone: Collection[str] = ()
    """Names of pods that were looked at, and are gone or on their way out."""
    alive: Collection[str] = ()
    """Names of pods that were looked at, and are not."""


def elements_of(spread: WorkloadSpread, version: str, replicas: int | None) -> list[SubsetStatus]:
    """The list of a version, in the order of the spec; subsets that it does not know are empty (WS-22.2)."""
    known = {element.name: element for element in spread.status.versioned_subset_statuses.get(version, ())}
    found = []
    for subset in spread.spec.subsets:
        element = known.get(subset.name)
        if element is None:
            limit = limit_of(subset, replicas)
            element = SubsetStatus(name=subset.name, missing_replicas=UNLIMITED if limit is None else limit)
        found.append(element)
    return found


def is_schedulable(element: SubsetStatus | None) -> bool:
    conditions = element.conditions if element is not None else ()
    return not any(item.type == SCHEDULABLE and item.status == "False" for item in conditions)


def entry_key(name: str, uid: str) -> str:
    """Of a pod that follows another under its name."""
    return f"{name}/{uid}"


def name_in(key: str) -> str:
    """The name of the pod in a key, or what stands for it."""
    return key.partition("/")[0]


def _entry(element: SubsetStatus, name: str) -> str | None:
    """The key of a pod that is being created."""
    if name in element.creating_pods:
        return name
    start = entry_key(name, "")
    return next((key for key in element.creating_pods if key.startswith(start)), None)


def _without(element: SubsetStatus, gone: Collection[str]) -> SubsetStatus:
    """Those who are gone but not yet counted out make room. Some were never counted: they go out of those to come."""
    left = [name for name in element.deleting_pods if name in gone]
    if not left:
        return element
    entries = {key for name in left if (key := _entry(element, name)) is not None}
    return evolve(
        element,
        replicas=max(0, element.replicas - (len(left) - len(entries))),
        creating_pods={key: time for key, time in element.creating_pods.items() if key not in entries},
        deleting_pods={name: time for name, time in element.deleting_pods.items() if name not in left},
    )


def free_places(element: SubsetStatus, limit: int, gone: Collection[str] = ()) -> int:
    """Of a limited subset."""
    staying = _without(element, gone)
    return max(0, limit - staying.replicas - len(staying.creating_pods))


def booked(spread: WorkloadSpread, asked: Asked) -> Place:
    """WS-22, and for StatefulSets WS-21 with the limits kept."""
    spec = spread.spec
    elements = elements_of(spread, asked.version, asked.replicas)
    is_stateful = spec.target_ref.kind == STATEFUL_SET
    follows = any(asked.key in element.deleting_pods for element in elements)
    for element in elements:
        key = _entry(element, asked.key)
        if key is not None and not follows:
            return Place(spread=spread, subset=element.name, is_booked=True, uid=key.partition("/")[2])
    order = _order(spread, elements, asked.key, is_stateful=is_stateful)
    for position in order if follows and not is_stateful else ():
        limit = limit_of(spec.subsets[position], asked.replicas)
        if asked.key in elements[position].deleting_pods and limit is not None:
            # It takes the place of the pod whose name it has, and is one that comes, no more one that goes.
            return _entered(spread, elements, position, asked, limit, {*asked.gone, asked.key})
    # Who asks under the name of a pod that was deleted follows it: that one is gone, or the name would be taken.
    gone = {*asked.gone, asked.key} if follows else asked.gone
    looks = max(0, MOST_LOOKS - len(asked.gone) - len(asked.alive))
    doubtful: list[str] = []
    for position in order:
        element, limit = elements[position], limit_of(spec.subsets[position], asked.replicas)
        if limit is None:
            if doubtful:
                break
            return Place(spread=spread, subset=element.name)
        if free_places(element, limit, gone) > 0:
            if doubtful:
                break
            return _entered(spread, elements, position, asked, limit, gone)
        since = sorted(element.deleting_pods, key=lambda name: (element.deleting_pods[name], name))
        unsure = [name for name in since if name not in gone and name not in asked.alive][: looks - len(doubtful)]
        if free_places(element, limit, {*gone, *unsure}) > 0:
            doubtful += unsure
    return Place(spread=spread, doubtful=tuple(doubtful))


def _entered(
    spread: WorkloadSpread,
    elements: Sequence[SubsetStatus],
    position: int,
    asked: Asked,
    limit: int,
    gone: Collection[str],
) -> Place:
    follows = asked.key in gone and bool(asked.uid)
    key = entry_key(asked.key, asked.uid) if follows else asked.key
    after = [_without(element, {asked.key}) if asked.key in gone else element for element in elements]
    changed = _without(after[position], gone)
    creating = {**changed.creating_pods, key: asked.now.replace(microsecond=0)}
    changed = evolve(changed, creating_pods=creating)
    after[position] = evolve(changed, missing_replicas=free_places(changed, limit))
    return Place(
        spread=_with_list(spread, asked.version, after),
        subset=changed.name,
        is_booked=True,
        uid=asked.uid if follows else "",
    )


def noted(spread: WorkloadSpread, asked: Asked, subset: str) -> WorkloadSpread:
    """The deletion of a pod was admitted (WS-33). The same object: there is nothing to note.

    One that is being created as far as anybody has counted is noted, too: who follows it under its name is another.
    """
    if asked.version not in spread.status.versioned_subset_statuses:
        return spread  # nobody has counted the pod yet
    if is_noted(spread, asked):
        return spread
    elements = elements_of(spread, asked.version, asked.replicas)
    for position, element in enumerate(elements):
        if element.name != subset:
            continue
        if spread.spec.subsets[position].max_replicas is None:
            return spread
        deleting = {**element.deleting_pods, asked.key: asked.now.replace(microsecond=0)}
        after = [*elements[:position], evolve(element, deleting_pods=deleting), *elements[position + 1 :]]
        return _with_list(spread, asked.version, after)
    return spread


def is_noted(spread: WorkloadSpread, asked: Asked) -> bool:
    elements = spread.status.versioned_subset_statuses.get(asked.version, ())
    return any(asked.key in element.deleting_pods for element in elements)


def _with_list(spread: WorkloadSpread, version: str, elements: Sequence[SubsetStatus]) -> WorkloadSpread:
    lists: Mapping[str, tuple[SubsetStatus, ...]] = spread.status.versioned_subset_statuses
    status = evolve(spread.status, versioned_subset_statuses={**lists, version: tuple(elements)})
    return evolve(spread, status=status)


def _order(spread: WorkloadSpread, elements: Sequence[SubsetStatus], name: str, *, is_stateful: bool) -> list[int]:
    """The subsets that may be taken, the one to try first in front."""
    # The list of a version goes with its last pod. What was found out about its nodes stays in the overall list.
    overall = {element.name: element for element in spread.status.subset_statuses}
    open_ones = [
        position
        for position, element in enumerate(elements)
        if is_schedulable(overall.get(element.name)) and (is_stateful or is_schedulable(element))
    ]
    if not is_stateful:
        return open_ones
    ordinal = ordinal_of(name)
    own = subset_by_ordinal(spread.spec, open_ones, ordinal)
    if own is None and ordinal is not None:
        return []  # pods of lower ordinals have all places, whoever is created first
    return sorted(open_ones, key=lambda position: (position != own, position))


def subset_by_ordinal(spec: WorkloadSpreadSpec, positions: Sequence[int], ordinal: int | None) -> int | None:
    """WS-21: the first subset whose limit, added to those before, is above the ordinal."""
    if ordinal is None:
        return None
    threshold = 0
    for position in positions:
        limit = limit_of(spec.subsets[position], None)
        if limit is None:
            return position
        threshold += limit
        if ordinal < threshold:
            return position
    return None
