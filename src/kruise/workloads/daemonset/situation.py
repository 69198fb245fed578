"""What a pass over a DaemonSet sees, and what follows from it before anything is decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime

from kruise.api.apps.daemonset import DAEMON_SETS, DaemonSet, RollingUpdateDaemonSet
from kruise.api.meta import PartialObject
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.daemon_pods import GENERATION_LABEL, template_generation
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.inplace.completion import is_complete
from kruise.inplace.difference import InPlaceOptions
from kruise.machinery import ownership
from kruise.machinery.codec import Struct, evolve, field
from kruise.machinery.delays import Delay
from kruise.machinery.ownership import Owner
from kruise.machinery.pending import Pending
from kruise.machinery.selectors import from_label_selector
from kruise.workloads.daemonset.nodes import DaemonNode, survey
from kruise.workloads.daemonset.numbers import Limits, limits_of
from kruise.workloads.shared.pod_facts import PodFacts
from kruise.workloads.shared.rollout_revisions import rollout_revisions
from kruise.workloads.shared.situation import WorkloadSituation


class Snapshot(Struct):
    daemon_set: DaemonSet
    now: datetime
    pods: tuple[Pod, ...] = ()
    """Everything that the DaemonSet controls, finished and terminating pods included."""
    orphans: tuple[Pod, ...] = ()
    """Pods that nobody controls and that its selector matches."""
    nodes: tuple[Node, ...] = ()
    revisions: tuple[ControllerRevision, ...] = ()
    """Of the namespace, as far as the DaemonSet may use or collide with them."""
    pull_jobs: tuple[PartialObject, ...] = ()
    """ImagePullJobs that the DaemonSet controls."""
    pull_jobs_served: bool = False
    delays: dict[str, Delay] = field(default_factory=dict)
    """How long failed pods stay, by node."""
    gates: dict[str, bool] = field(default_factory=dict)
    by_scheduler: bool = True
    """New pods name their node by affinity, and the scheduler places them (flag assign-pods-by-scheduler)."""
    resize_subresource: bool = True
    """Whether the server has `pods/resize` (1.32 and later, IPU-55)."""
    pending: Pending = Pending()
    """Writes of earlier passes to pods."""
    seed: int = 0


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
    spec, status, metadata = daemon_set.spec, daemon_set.status, daemon_set.metadata
    owner, selector = Owner.of(DAEMON_SETS, daemon_set), from_label_selector(spec.selector)
    adopted = ownership.claim(owner, snapshot.orphans, selector).to_adopt
    situation = Situation.work_out(
        owner=owner,
        selector=selector,
        revisions=rollout_revisions(
            owner,
            spec.template,
            snapshot.revisions,
            selector=selector,
            annotations=metadata.annotations,
            current_name=f"{metadata.name}-{status.update_revision}",
            collision_count=status.collision_count,
            hash_label=keys.REVISION_LABEL,
        ),
        pods=snapshot.pods,
        min_ready_seconds=spec.min_ready_seconds,
        now=snapshot.now,
        gates=snapshot.gates,
        pending=snapshot.pending,
        resize_subresource=snapshot.resize_subresource,
        snapshot=snapshot,
        daemon_set=daemon_set,
        nodes=(),
        limits=Limits(),
        adopted=tuple(adopted),
    )
    if generation := template_generation(daemon_set.metadata):
        situation = dataclasses.replace(
            situation,
            facts=_with_generation(situation.facts, generation),
            observed=_with_generation(situation.observed, generation),
        )
    situation = dataclasses.replace(situation, facts=_without_arriving(situation.facts, situation.gates))
    nodes = tuple(survey(daemon_set, snapshot.nodes, situation.facts, situation.inactive))
    desired = sum(node.verdict.should_run for node in nodes)
    return dataclasses.replace(situation, nodes=nodes, limits=limits_of(spec, desired))


def _without_arriving(facts: tuple[PodFacts, ...], gates: Mapping[str, bool]) -> tuple[PodFacts, ...]:
    """A pod whose update in place is under way does not count as available, even where it is ready all the time: no
    state tells so, as it does of other kinds."""
    scaling = InPlaceOptions.of(gates).vertical_scaling
    return tuple(
        evolve(fact, is_available=False)
        if fact.is_available
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
