"""What follows from a snapshot of a workload with pods and revisions, before anything is decided: what all kinds share.

A kind derives its own situation from this one and adds its limits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from kruise.api.meta import PartialObject
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod
from kruise.api.policy.podunavailablebudget import PodUnavailableBudget
from kruise.api.resource import Resource
from kruise.machinery import revisions
from kruise.machinery.codec import Struct, field
from kruise.machinery.ownership import Owner
from kruise.machinery.pending import Pending
from kruise.machinery.revisions import HASH_LABEL
from kruise.machinery.selectors import Selector, from_label_selector
from kruise.protection.podunavailablebudget.permits import Permits
from kruise.workloads.shared.pod_facts import NOBODY, PodFacts, facts_of, once_written, sorted_out
from kruise.workloads.shared.rollout_revisions import RolloutRevisions, rollout_revisions


class WorkloadSnapshot(Struct, kw_only=True):
    """What a pass over any workload sees. A kind adds the workload itself and what only it looks at."""

    now: datetime
    pods: tuple[Pod, ...] = ()
    """Everything that the workload controls, finished and terminating pods included."""
    revisions: tuple[ControllerRevision, ...] = ()
    """Of the namespace, as far as the workload may use or collide with them."""
    pull_jobs: tuple[PartialObject, ...] = ()
    """ImagePullJobs that the workload controls."""
    pull_jobs_served: bool = False
    gates: dict[str, bool] = field(default_factory=dict)
    resize_subresource: bool = True
    """Whether the server has `pods/resize` (1.32 and later, IPU-55)."""
    pending: Pending = Pending()
    """Writes of earlier passes to pods."""
    budgets: tuple[PodUnavailableBudget, ...] = ()
    """That the pods name."""
    seed: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSituation:
    owner: Owner
    now: datetime
    gates: Mapping[str, bool]
    pending: Pending
    """Writes of earlier passes to pods."""
    resize_subresource: bool
    """Whether the server has `pods/resize` (1.32 and later, IPU-55)."""
    choice: revisions.Choice
    current: ControllerRevision
    """The revision that old pods are kept at and go back to."""
    update: ControllerRevision
    """The revision of the present template."""
    history: tuple[ControllerRevision, ...]
    """The workload's revisions that exist, oldest first."""
    templates: Mapping[str, Mapping[str, Any]]
    """Pod templates of the current and the update revision, by revision name."""
    facts: tuple[PodFacts, ...]
    """Active pods that the workload keeps, by name; those that are still written to as they will be then."""
    observed: tuple[PodFacts, ...]
    """The same pods as they show themselves: what the status tells."""
    inactive: tuple[Pod, ...]
    """Finished or terminating pods of the workload."""
    released: tuple[Pod, ...]
    """Active pods that the selector no longer matches."""
    permits: Permits
    """What the budgets over its pods allow in this pass."""

    @classmethod
    def of_workload(
        cls,
        resource: Resource[Any],
        workload: Any,
        snapshot: WorkloadSnapshot,
        *,
        current_name: str,
        min_ready_seconds: int,
        refreshed: Mapping[str, str] | None = None,
        revision_label: str = HASH_LABEL,
        **further: Any,
    ) -> Self:
        """`current_name` is the revision that the status names as current; `refreshed` are annotations that a revision
        always has as they are now; `revision_label` is one in which revisions carry their hash; the rest as in
        `work_out`."""
        owner, selector = Owner.of(resource, workload), from_label_selector(workload.spec.selector)
        return cls.work_out(
            owner=owner,
            selector=selector,
            revisions=rollout_revisions(
                owner,
                workload.spec.template,
                snapshot.revisions,
                selector=selector,
                annotations=workload.metadata.annotations,
                current_name=current_name,
                collision_count=workload.status.collision_count,
                refreshed=refreshed,
                hash_label=revision_label,
            ),
            pods=snapshot.pods,
            min_ready_seconds=min_ready_seconds,
            now=snapshot.now,
            gates=snapshot.gates,
            pending=snapshot.pending,
            resize_subresource=snapshot.resize_subresource,
            budgets=snapshot.budgets,
            snapshot=snapshot,
            **further,
        )

    @classmethod
    def work_out(
        cls,
        *,
        owner: Owner,
        selector: Selector,
        revisions: RolloutRevisions,
        pods: Sequence[Pod],
        min_ready_seconds: int,
        now: datetime,
        gates: Mapping[str, bool],
        pending: Pending,
        resize_subresource: bool,
        budgets: Sequence[PodUnavailableBudget] = (),
        to_delete: frozenset[str] = NOBODY,
        hash_label: bool = False,
        belongs: Callable[[Pod], bool] | None = None,
        **of_kind: Any,
    ) -> Self:
        """`of_kind` are the fields that the kind's own situation adds; the others are worked out."""
        pods_by_fate, update = sorted_out(pods, owner, selector, belongs), revisions.update.metadata.name
        observed = tuple(
            facts_of(
                pod,
                update=update,
                min_ready_seconds=min_ready_seconds,
                now=now,
                to_delete=to_delete,
                hash_label=hash_label,
            )
            for pod in pods_by_fate.kept
        )
        return cls(
            owner=owner,
            now=now,
            gates=gates,
            pending=pending,
            resize_subresource=resize_subresource,
            choice=revisions.choice,
            current=revisions.current,
            update=revisions.update,
            history=revisions.history,
            templates=revisions.templates,
            facts=tuple(once_written(observed, pending, update)) if pending.marks else observed,
            observed=observed,
            inactive=pods_by_fate.inactive,
            released=pods_by_fate.released,
            permits=Permits(budgets, gates=gates, now=now),
            **of_kind,
        )

    @property
    def is_at_one_revision(self) -> bool:
        """The current and the update revision are the same."""
        return self.current.metadata.name == self.update.metadata.name

    def makes_pod(self, name: str) -> bool:
        """Whether an earlier pass is still making the pod of this name."""
        return self.pending.creates(self.owner.namespace, name)

    def gate(self, name: str) -> bool:
        return self.gates.get(name, False)
