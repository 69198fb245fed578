"""The status of a UnitedDeployment: what was counted, and how it is written (UD sections 3 and 6.9)."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.uniteddeployment import SubsetStatus, UnitedDeploymentStatus
from kruise.api.native.pod import is_ready
from kruise.machinery.codec import evolve
from kruise.machinery.plan import StatusEffect
from kruise.machinery.selectors import from_label_selector
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.children import is_new
from kruise.spread.uniteddeployment.memo import Memo
from kruise.spread.uniteddeployment.numbers import Shares, partition_of, reserves
from kruise.spread.uniteddeployment.situation import Situation
from kruise.workloads.shared import statuses


def memo_of(situation: Situation, *, shares: Shares | None) -> Memo:
    """What was counted. `shares` are None where none were allocated: then what was allocated before stands."""
    united, revision = situation.united, situation.revision
    replicas = ready = updated = updated_ready = reserved = 0
    written: list[SubsetStatus] = []
    for subset in situation.subsets:
        verdict, child = situation.verdicts[subset.name], situation.children.get(subset.name)
        status = verdict.status
        share = shares[subset.name].pods if shares is not None else status.allocated
        there = child.replicas if child is not None else 0
        written.append(
            evolve(
                status,
                replicas=there,
                allocated_replicas=share if share != there else None,
                ready_replicas=child.ready if child is not None else 0,
                partition=partition_of(united.spec, subset.name, share),
                reserved_pods=len(verdict.reserved),
            )
        )
        if child is None:
            continue
        stuck = {pod.metadata.uid for pod in verdict.reserved}
        counted = [pod for pod in child.pods if pod.metadata.uid not in stuck]
        replicas += max(there - len(stuck), 0)
        ready += max(child.ready - sum(is_ready(pod) for pod in verdict.reserved), 0)
        updated += sum(is_new(pod, revision) for pod in counted)
        updated_ready += sum(is_new(pod, revision) and is_ready(pod) for pod in counted)
        reserved += len(stuck)
    current = united.status.current_revision or situation.current.metadata.name
    has_arrived = all(child.worn_revision == revision for child in situation.children.values())
    if current != revision and has_arrived and updated_ready >= replicas:
        current = revision  # UD-83
    selector = str(from_label_selector(united.spec.selector))
    count = situation.choice.collision_count
    return Memo(
        update_revision=revision,
        word=situation.kind.word,
        statuses=tuple(written),
        replicas=replicas,
        ready=ready,
        updated=updated,
        updated_ready=updated_ready,
        reserved=reserved,
        current_revision=current,
        collision_count=count if count or united.status.collision_count is not None else None,
        label_selector=f"{selector},{keys.RESERVED}=false" if reserves(united.spec) else selector,
    )


def status_of(before: UnitedDeploymentStatus, memo: Memo, **changes: Any) -> UnitedDeploymentStatus:
    return evolve(
        before,
        replicas=memo.replicas,
        ready_replicas=memo.ready,
        updated_replicas=memo.updated,
        updated_ready_replicas=memo.updated_ready,
        reserved_pods=memo.reserved,
        collision_count=memo.collision_count,
        current_revision=memo.current_revision,
        updated_revision=memo.update_revision,
        label_selector=memo.label_selector,
        subset_statuses=memo.statuses,
        **changes,
    )


def wire_form(status: UnitedDeploymentStatus) -> dict[str, Any]:
    """The counters that the schema requires are there even when 0; others are left out."""
    return {"currentRevision": "", **statuses.wire_form(status, always=("replicas", "updatedReplicas"))}


def effect_of(old: UnitedDeploymentStatus, new: UnitedDeploymentStatus) -> StatusEffect:
    """Pods are counted anew at every pass. Which subsets are marked, since when, and which revision was the last that
    all pods had, is known from nowhere else."""
    return StatusEffect.BLOCKS if _remembered(old) != _remembered(new) else StatusEffect.INFORMS


def _remembered(status: UnitedDeploymentStatus) -> tuple[Any, ...]:
    return (
        status.collision_count,
        status.current_revision,
        tuple((one.name, one.conditions) for one in status.subset_statuses),
        tuple((one.type, one.status) for one in status.conditions),
    )
