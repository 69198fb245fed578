"""What a pass over a DaemonSet sees, and what follows from it before anything is decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from kruise.api.apps.daemonset import DAEMON_SETS, DaemonSet, RollingUpdateDaemonSet
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.daemon_pods import GENERATION_LABEL, template_generation
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.inplace.completion import is_complete
from kruise.inplace.difference import InPlaceOptions
from kruise.machinery import ownership, revisions
from kruise.machinery.codec import evolve, field
from kruise.machinery.delays import Delay
from kruise.machinery.ownership import Owner
from kruise.machinery.revision_names import short_hash
from kruise.machinery.selectors import from_label_selector
from kruise.workloads.daemonset.nodes import DaemonNode, survey
from kruise.workloads.daemonset.numbers import Limits, limits_of
from kruise.workloads.shared.pod_facts import PodFacts
from kruise.workloads.shared.situation import WorkloadSituation, WorkloadSnapshot


class Snapshot(WorkloadSnapshot, kw_only=True):
    daemon_set: DaemonSet
    orphans: tuple[Pod, ...] = ()
    """Pods that nobody controls and that its selector matches."""
    nodes: tuple[Node, ...] = ()
    delays: dict[str, Delay] = field(default_factory=dict)
    """How long failed pods stay, by node."""
    by_scheduler: bool = True
    """New pods name their node by affinity, and the scheduler places them (flag assign-pods-by-scheduler)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation(WorkloadSituation):
    snapshot: Snapshot
    daemon_set: DaemonSet
    nodes: tuple[DaemonNode, ...]
    """By name; with what is left of nodes that are gone."""
    limits: Limits
    adopted: tuple[Pod, ...]
    """Pods of nobody that become its own."""

    @property
    def rolling(self) -> RollingUpdateDaemonSet | None:
        return self.daemon_set.spec.update_strategy.rolling_update

    @property
    def desired(self) -> int:
        """Nodes that should have a pod."""
        return sum(node.verdict.should_run for node in self.nodes)


def situation_of(snapshot: Snapshot) -> Situation:
    daemon_set = snapshot.daemon_set
    spec, name = daemon_set.spec, daemon_set.metadata.name
    adopted = ownership.claim(Owner.of(DAEMON_SETS, daemon_set), snapshot.orphans, from_label_selector(spec.selector))
    situation = Situation.of_workload(
        DAEMON_SETS,
        daemon_set,
        snapshot,
        current_name=f"{name}-{daemon_set.status.update_revision}",
        min_ready_seconds=daemon_set.spec.min_ready_seconds,
        revision_label=keys.REVISION_LABEL,
        daemon_set=daemon_set,
        nodes=(),
        limits=Limits(),
        adopted=tuple(adopted.to_adopt),
    )
    if generation := template_generation(daemon_set.metadata):
        situation = dataclasses.replace(
            situation,
            facts=_with_generation(situation.facts, generation),
            observed=_with_generation(situation.observed, generation),
        )
    if twins := {short_hash(item.metadata.name) for item in twins_of(situation)}:
        situation = dataclasses.replace(
            situation, facts=_with_twins(situation.facts, twins), observed=_with_twins(situation.observed, twins)
        )
    situation = dataclasses.replace(situation, facts=_without_arriving(situation.facts, situation.gates))
    nodes = tuple(survey(daemon_set, snapshot.nodes, situation.facts, situation.inactive))
    desired = sum(node.verdict.should_run for node in nodes)
    return dataclasses.replace(situation, nodes=nodes, limits=limits_of(spec, desired))


def twins_of(situation: WorkloadSituation) -> list[ControllerRevision]:
    """Other revisions that hold the present template (DS-24)."""
    update = situation.update
    equal = revisions.equal_to(bytes(update.data), situation.history)
    return [item for item in equal if item.metadata.name != update.metadata.name]


def _with_twins(facts: tuple[PodFacts, ...], twins: Collection[str]) -> tuple[PodFacts, ...]:
    """Pods of a twin have the present template already: they get another label, and go on running (DS-104)."""
    return tuple(evolve(fact, is_new=True) if worn_hash(fact.pod) in twins else fact for fact in facts)


def worn_hash(pod: Pod) -> str:
    """The hash of the revision that a pod carries."""
    return short_hash(pod.metadata.labels.get(keys.REVISION_LABEL, ""))


def _without_arriving(facts: tuple[PodFacts, ...], gates: Mapping[str, bool]) -> tuple[PodFacts, ...]:
    """A pod whose update in place is under way does not count as available, even where it serves all the time: no state
    tells so, as it does of other kinds. It is ready all the same: a surge must not take it away for another."""
    scaling = InPlaceOptions.of(gates).vertical_scaling
    return tuple(
        evolve(fact, is_available=False, is_arriving=True)
        if fact.is_ready
        and keys.UPDATE_STATE_ANNOTATION in fact.pod.metadata.annotations
        and not is_complete(fact.pod, vertical_scaling=scaling)
        else fact
        for fact in facts
    )


def _with_generation(facts: tuple[PodFacts, ...], generation: str) -> tuple[PodFacts, ...]:
    """Pods that carry the count of the template are at it, whatever their hash (DS-27)."""
    return tuple(
        evolve(fact, is_new=True) if fact.pod.metadata.labels.get(GENERATION_LABEL) == generation else fact
        for fact in facts
    )
