"""What a pass over a CloneSet sees, and what follows from it before anything is decided.

The `Snapshot` is what was read from the store; it can be dumped and decided over again. The `Situation` is worked out
from it once, and everything that decides (scaling, updating, status) reads it.
"""

from __future__ import annotations

import dataclasses

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet, RollingUpdateCloneSetStrategy
from kruise.api.native.storage import PersistentVolumeClaim
from kruise.inplace import keys
from kruise.machinery.codec import field
from kruise.workloads.cloneset.numbers import Limits, limits_of, replicas_of
from kruise.workloads.shared.claims import claim_templates_hash
from kruise.workloads.shared.situation import WorkloadSituation, WorkloadSnapshot


class Snapshot(WorkloadSnapshot, kw_only=True):
    cloneset: CloneSet
    claims: tuple[PersistentVolumeClaim, ...] = ()
    """Owned by the CloneSet and not terminating (CS-123)."""
    node_labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of the nodes the pods run on; only where the template spreads pods over a topology."""
    exclude_preparing_delete: bool = False
    """The process flag that turns the exclusion on for all (CS-141)."""


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
    spec = cloneset.spec
    return Situation.of_workload(
        CLONE_SETS,
        cloneset,
        snapshot,
        current_name=cloneset.status.current_revision,
        min_ready_seconds=spec.min_ready_seconds,
        refreshed={keys.CLAIM_TEMPLATES_HASH: claim_templates_hash(spec.volume_claim_templates)},
        to_delete=frozenset(spec.scale_strategy.pods_to_delete),
        hash_label=True,
        cloneset=cloneset,
        replicas=replicas_of(spec),
        limits=limits_of(spec),
    )
