"""What a pass over a StatefulSet sees, and what follows from it before anything is decided.

The `Snapshot` is what was read from the stores; it can be dumped and decided over again. The `Situation` is worked out
from it once: above all a `Slot` for each ordinal, with whatever has its name now.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from kruise.api.apps.statefulset import STATEFUL_SETS, StatefulSet
from kruise.api.native.ordinals import parent_and_ordinal, pod_name
from kruise.api.native.pod import Pod
from kruise.api.native.storage import PersistentVolumeClaim, StorageClass
from kruise.machinery.codec import Raw
from kruise.workloads.shared.claims import ClaimTemplate, claim_templates
from kruise.workloads.shared.ordinals import START_GATE, ordinals_of
from kruise.workloads.shared.pod_facts import PodFacts
from kruise.workloads.shared.situation import WorkloadSituation, WorkloadSnapshot
from kruise.workloads.statefulset.limits import Limits, limits_of


class Snapshot(WorkloadSnapshot, kw_only=True):
    statefulset: StatefulSet
    others: tuple[Pod, ...] = ()
    """Pods that it does not control and that have a name of its pods: orphans, and whatever holds a name it wants."""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    """Those that have the name of a claim of its pods, whoever made them."""
    storage_classes: tuple[StorageClass, ...] = ()
    """Those of the claims; only where claims grow."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of one ordinal, and what is there."""

    ordinal: int
    name: str
    fact: PodFacts | None = None
    """An active pod of the StatefulSet."""
    ending: Pod | None = None
    """A pod of it that is terminating or finished. It holds the name until it is gone."""
    stranger: Pod | None = None
    """A pod of somebody else that has the name."""
    is_being_made: bool = False
    """An earlier pass still creates the pod."""

    @property
    def pod(self) -> Pod | None:
        """The StatefulSet's pod, in whatever state."""
        return self.fact.pod if self.fact is not None else self.ending

    @property
    def is_missing(self) -> bool:
        """Nothing has the name, and nobody is about to take it."""
        return self.pod is None and self.stranger is None and not self.is_being_made

    @property
    def is_terminating(self) -> bool:
        return self.ending is not None and self.ending.metadata.deletion_timestamp is not None

    @property
    def is_available(self) -> bool:
        return self.fact is not None and self.fact.is_available


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation(WorkloadSituation):
    snapshot: Snapshot
    statefulset: StatefulSet
    limits: Limits
    ordinals: tuple[int, ...]
    """Those that pods should have, the lowest first."""
    slots: tuple[Slot, ...] = ()
    """One for each of them."""
    condemned: tuple[Slot, ...] = ()
    """Pods with other ordinals, the highest first (ST-40)."""
    claim_templates: tuple[ClaimTemplate, ...] = ()
    claims: Mapping[str, PersistentVolumeClaim] = dataclasses.field(default_factory=dict)
    """By name."""

    @property
    def replicas(self) -> int:
        return len(self.ordinals)


def situation_of(snapshot: Snapshot) -> Situation:
    statefulset = snapshot.statefulset
    spec, name = statefulset.spec, statefulset.metadata.name
    limits = limits_of(spec)
    situation = Situation.of_workload(
        STATEFUL_SETS,
        statefulset,
        snapshot,
        current_name=statefulset.status.current_revision,
        min_ready_seconds=limits.min_ready_seconds,
        belongs=lambda pod: has_ordinal_of(name, pod),
        statefulset=statefulset,
        limits=limits,
        ordinals=ordinals_of(spec, start_counts=snapshot.gates.get(START_GATE, False)),
        claim_templates=_templates(spec.volume_claim_templates),
        claims={claim.metadata.name: claim for claim in snapshot.claims},
    )
    slots, condemned = _slots(situation, (*situation.released, *snapshot.others))
    return dataclasses.replace(situation, slots=slots, condemned=condemned)


def _templates(given: Iterable[Raw]) -> tuple[ClaimTemplate, ...]:
    """Of templates with one name the last counts, as it does for volumes; nobody can make a claim of one without."""
    return tuple({item.name: item for item in claim_templates(given) if item.name}.values())


def has_ordinal_of(workload: str, pod: Pod) -> bool:
    """ST-35."""
    parent, ordinal = parent_and_ordinal(pod.metadata.name)
    return parent == workload and ordinal is not None


def _slots(situation: Situation, strangers: Iterable[Pod]) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    facts = {fact.name: fact for fact in situation.facts}
    ending = {pod.metadata.name: pod for pod in situation.inactive}
    taken = {pod.metadata.name: pod for pod in strangers}

    def slot(ordinal: int) -> Slot:
        name = pod_name(situation.owner.name, ordinal)
        return Slot(
            ordinal=ordinal,
            name=name,
            fact=facts.get(name),
            ending=ending.get(name),
            stranger=taken.get(name),
            is_being_made=situation.makes_pod(name),
        )

    wanted = set(situation.ordinals)
    beyond = sorted(_ordinals_of(situation.owner.name, (*facts, *ending)) - wanted, reverse=True)
    return tuple(map(slot, situation.ordinals)), tuple(map(slot, beyond))


def _ordinals_of(workload: str, names: Sequence[str]) -> set[int]:
    numbered = map(parent_and_ordinal, names)
    return {ordinal for parent, ordinal in numbered if parent == workload and ordinal is not None}
