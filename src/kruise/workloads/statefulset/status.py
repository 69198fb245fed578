"""The status of a StatefulSet: counters, revisions, claims, conditions (ST section 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kruise.api.apps.shared import FailureBudgetStatus
from kruise.api.apps.statefulset import StatefulSet, StatefulSetStatus, VolumeClaimStatus
from kruise.api.meta import Condition
from kruise.api.native.pod import Pod, is_ready
from kruise.inplace import keys
from kruise.inplace.availability import is_available
from kruise.inplace.lifecycle import State
from kruise.machinery.plan import StatusEffect, Wake
from kruise.machinery.selectors import from_label_selector
from kruise.workloads.shared import conditions, statuses
from kruise.workloads.shared.pod_facts import next_available
from kruise.workloads.statefulset.creation import carries
from kruise.workloads.statefulset.situation import Situation, has_ordinal_of
from kruise.workloads.statefulset.volumes import volume_claims

FAILED_CREATE = "FailedCreatePod"
FAILED_UPDATE = "FailedUpdatePod"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a pass counted. The plan carries it, so that the status is not counted a second time."""

    existing: int = 0
    ready: int = 0
    available: int = 0
    current: int = 0
    updated: int = 0
    updated_ready: int = 0
    updated_available: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int = 0
    label_selector: str = ""
    volume_claims: tuple[VolumeClaimStatus, ...] = ()
    next_available: Wake | None = None
    """When the next pod becomes available for which only time is missing."""


def figures(situation: Situation, *, current_revision: str | None = None) -> Figures:
    """Count the pods, terminating and condemned ones among them. `current_revision`: what a failure budget makes of it;
    None: the rule without one."""
    seconds, now = situation.limits.min_ready_seconds, situation.now
    created = [pod for pod in _pods(situation) if pod.status.phase]
    staying = [pod for pod in created if pod.metadata.deletion_timestamp is None]
    ready = [pod for pod in created if pod.status.phase == "Running" and is_ready(pod)]
    available = [pod for pod in ready if is_available(pod, seconds, now)]
    current = sum(carries(pod, situation.current) and not _is_going_over(pod) for pod in staying)
    updated = sum(carries(pod, situation.update) for pod in staying)
    if current_revision is None:
        current_revision = situation.current.metadata.name
        is_rolling = not situation.limits.is_on_delete
        if is_rolling and updated == len(created) == len(ready) == situation.replicas:
            # ST-14. More or fewer pods than wanted say nothing: a pod that is missing for a moment may come back old.
            current_revision, current = situation.update.metadata.name, updated
    return Figures(
        existing=len(created),
        ready=len(ready),
        available=len(available),
        current=current,
        updated=updated,
        updated_ready=sum(carries(pod, situation.update) for pod in ready),
        updated_available=sum(carries(pod, situation.update) for pod in available),
        current_revision=current_revision,
        update_revision=situation.update.metadata.name,
        collision_count=situation.choice.collision_count,
        label_selector=str(from_label_selector(situation.statefulset.spec.selector)),
        volume_claims=volume_claims(situation),
        next_available=next_available(situation.observed, seconds, now),
    )


def _is_going_over(pod: Pod) -> bool:
    """A pod that is prepared for its update counts as moved already (ST-13)."""
    return pod.metadata.labels.get(keys.STATE_LABEL) == State.PREPARING_UPDATE


def _pods(situation: Situation) -> list[Pod]:
    ending = (pod for pod in situation.inactive if has_ordinal_of(situation.owner.name, pod))
    return [*(fact.pod for fact in situation.observed), *ending]


def status_of(
    statefulset: StatefulSet,
    figures: Figures,
    *,
    now: datetime,
    failed_create: str | None,
    failed_update: str | None,
    standing: Mapping[str, Condition | None],
    failure_budget: FailureBudgetStatus | None,
) -> StatefulSetStatus:
    """The status from now on. For the texts of failures see `conditions.failure`."""
    known = {item.type: item for item in statefulset.status.conditions}
    failures = {FAILED_CREATE: failed_create, FAILED_UPDATE: failed_update}
    changes = {kind: conditions.failure(kind, known.get(kind), text, now) for kind, text in failures.items()}
    return StatefulSetStatus(
        observed_generation=statefulset.metadata.generation,
        replicas=figures.existing,
        ready_replicas=figures.ready,
        available_replicas=figures.available,
        current_replicas=figures.current,
        updated_replicas=figures.updated,
        updated_ready_replicas=figures.updated_ready,
        updated_available_replicas=figures.updated_available,
        current_revision=figures.current_revision,
        update_revision=figures.update_revision,
        collision_count=figures.collision_count,
        conditions=conditions.changed(statefulset.status.conditions, {**changes, **standing}),
        label_selector=figures.label_selector,
        volume_claims=figures.volume_claims,
        failure_budget=failure_budget,
    )


_ALWAYS = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas", "collisionCount")
_COUNTS = (
    "replicas",
    "ready_replicas",
    "available_replicas",
    "current_replicas",
    "updated_replicas",
    "updated_ready_replicas",
    "updated_available_replicas",
)


def wire_form(status: StatefulSetStatus) -> dict[str, Any]:
    """ST-5, ST-16."""
    document = statuses.wire_form(status, always=_ALWAYS)
    if status.volume_claims:
        document["volumeClaims"] = [
            {
                "volumeClaimName": claim.volume_claim_name,
                "compatibleReplicas": claim.compatible_replicas,
                "compatibleReadyReplicas": claim.compatible_ready_replicas,
            }
            for claim in status.volume_claims
        ]
    return document


def effect_of(old: StatefulSetStatus, new: StatefulSetStatus) -> StatusEffect:
    return statuses.effect_of(old, new, _COUNTS)
