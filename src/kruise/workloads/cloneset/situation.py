"""What a pass over a CloneSet sees, and what follows from it before anything is decided.

The `Snapshot` is what was read from the store; it can be dumped and decided over again. The `Situation` is worked out
from it once, and everything that decides (scaling, updating, status) reads it.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet, RollingUpdateCloneSetStrategy
from kruise.api.meta import PartialObject
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod
from kruise.api.native.storage import PersistentVolumeClaim
from kruise.inplace import keys
from kruise.machinery.codec import Struct, field
from kruise.machinery.ownership import Owner
from kruise.machinery.pending import Pending
from kruise.machinery.selectors import from_label_selector
from kruise.workloads.cloneset.numbers import Limits, limits_of, replicas_of
from kruise.workloads.shared.claims import claim_templates_hash
from kruise.workloads.shared.rollout_revisions import rollout_revisions
from kruise.workloads.shared.situation import WorkloadSituation


class Snapshot(Struct):
    cloneset: CloneSet
    now: datetime
    pods: tuple[Pod, ...] = ()
    """Everything with an owner reference to the CloneSet, finished and terminating pods included."""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    """Owned by the CloneSet and not terminating (CS-123)."""
    revisions: tuple[ControllerRevision, ...] = ()
    """Of the namespace, as far as the CloneSet may use or collide with them."""
    pull_jobs: tuple[PartialObject, ...] = ()
    """ImagePullJobs that the CloneSet controls."""
    pull_jobs_served: bool = False
    node_labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of the nodes the pods run on; only where the template spreads pods over a topology."""
    gates: dict[str, bool] = field(default_factory=dict)
    exclude_preparing_delete: bool = False
    """The process flag that turns the exclusion on for all (CS-141)."""
    resize_subresource: bool = True
    """Whether the server has `pods/resize` (1.32 and later, IPU-55)."""
    pending: Pending = Pending()
    """Writes of earlier passes to pods."""
    seed: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation(WorkloadSituation):
    snapshot: Snapshot
    cloneset: CloneSet
    replicas: int
    limits: Limits

    @property
    def rolling(self) -> RollingUpdateCloneSetStrategy | None:
        return self.cloneset.spec.update_strategy.rolling_update

    @property
    def is_on_delete(self) -> bool:
        return self.cloneset.spec.update_strategy.type == "OnDelete"


def situation_of(snapshot: Snapshot) -> Situation:
    cloneset = snapshot.cloneset
    spec, status, metadata = cloneset.spec, cloneset.status, cloneset.metadata
    owner, selector = Owner.of(CLONE_SETS, cloneset), from_label_selector(spec.selector)
    return Situation.work_out(
        owner=owner,
        selector=selector,
        revisions=rollout_revisions(
            owner,
            spec.template,
            snapshot.revisions,
            selector=selector,
            annotations=metadata.annotations,
            current_name=status.current_revision,
            collision_count=status.collision_count,
            refreshed={keys.CLAIM_TEMPLATES_HASH: claim_templates_hash(spec.volume_claim_templates)},
        ),
        pods=snapshot.pods,
        min_ready_seconds=spec.min_ready_seconds,
        now=snapshot.now,
        gates=snapshot.gates,
        pending=snapshot.pending,
        resize_subresource=snapshot.resize_subresource,
        to_delete=frozenset(spec.scale_strategy.pods_to_delete),
        hash_label=True,
        snapshot=snapshot,
        cloneset=cloneset,
        replicas=replicas_of(spec),
        limits=limits_of(spec),
    )
