"""What a pass over a CloneSet sees, and what follows from it before anything is decided.

The `Snapshot` is what was read from the store; it can be dumped and decided over again. The `Situation` is worked out
from it once, and everything that decides (scaling, updating, status) reads it.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet, RollingUpdateCloneSetStrategy
from kruise.api.meta import PartialObject, controller_of
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod, is_active
from kruise.api.native.storage import PersistentVolumeClaim
from kruise.inplace import keys
from kruise.inplace.availability import is_ready_for, readiness_of, serves
from kruise.inplace.engine import is_settled
from kruise.machinery import codec, revisions
from kruise.machinery.codec import Struct, field
from kruise.machinery.ownership import Owner
from kruise.machinery.pending import Pending, revision_of
from kruise.machinery.revision_names import is_revision
from kruise.machinery.selectors import Selector, from_label_selector
from kruise.workloads.cloneset.claims import INSTANCE_ID_LABEL, claim_templates_hash
from kruise.workloads.cloneset.numbers import Limits, limits_of, replicas_of


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


class PodFacts(Struct):
    """An active pod, and what every decision asks about it. A struct, since thousands of them are made in a pass."""

    pod: Pod
    name: str
    instance_id: str
    state: str
    """Lifecycle state; empty where the pod has none."""
    is_new: bool
    """It carries the update revision."""
    is_available: bool
    is_ready: bool
    """Update-ready without minReadySeconds, whatever its lifecycle state."""
    is_specified: bool
    """Somebody asked for its deletion: by label, or by name in podsToDelete."""
    is_preparing_delete: bool
    is_settled: bool = False
    """In state Normal, with both conditions written and no update under way: a refresh would change nothing."""
    is_pending: bool = False
    """An earlier pass still writes to it. One that moves counts as there already, and as down."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    snapshot: Snapshot
    cloneset: CloneSet
    owner: Owner
    replicas: int
    limits: Limits
    choice: revisions.Choice
    current: ControllerRevision
    """The revision that old pods are kept at and go back to."""
    update: ControllerRevision
    """The revision of the present template."""
    history: tuple[ControllerRevision, ...]
    """The CloneSet's revisions that exist, oldest first."""
    templates: Mapping[str, Mapping[str, Any]]
    """Pod templates of the current and the update revision, by revision name."""
    facts: tuple[PodFacts, ...]
    """Active pods that the CloneSet keeps, by name; those that are still written to as they will be then."""
    observed: tuple[PodFacts, ...]
    """The same pods as they show themselves: what the status tells."""
    inactive: tuple[Pod, ...]
    """Finished or terminating pods of the CloneSet."""
    released: tuple[Pod, ...]
    """Active pods that the selector no longer matches."""
    now: datetime

    @property
    def rolling(self) -> RollingUpdateCloneSetStrategy | None:
        return self.cloneset.spec.update_strategy.rolling_update

    @property
    def is_on_delete(self) -> bool:
        return self.cloneset.spec.update_strategy.type == "OnDelete"

    def makes_pod(self, instance_id: str) -> bool:
        """Whether an earlier pass is still making the pod with this id."""
        return self.snapshot.pending.creates(self.owner.namespace, f"{self.owner.name}-{instance_id}")

    def gate(self, name: str) -> bool:
        return self.snapshot.gates.get(name, False)


def facts_of(pod: Pod, *, update: str, min_ready_seconds: int, to_delete: frozenset[str], now: datetime) -> PodFacts:
    metadata = pod.metadata
    labels = metadata.labels
    state = labels.get(keys.STATE_LABEL, "")
    seen = readiness_of(pod)
    return PodFacts(
        pod=pod,
        name=metadata.name,
        instance_id=labels.get(INSTANCE_ID_LABEL, ""),
        state=state,
        is_new=is_revision(labels.get(keys.REVISION_LABEL, ""), update),
        is_available=serves(state) and is_ready_for(seen, min_ready_seconds, now),
        is_ready=seen.is_ready,
        is_specified=keys.SPECIFIED_DELETE_LABEL in labels or metadata.name in to_delete,
        is_settled=is_settled(pod),
        is_preparing_delete=state == "PreparingDelete",
    )


def _once_written(observed: Iterable[PodFacts], pending: Pending, update: str) -> Iterator[PodFacts]:
    """The pods as they are when the pending writes have ended."""
    for facts in observed:
        mark = pending.mark_of(facts.pod)
        if revision := revision_of(mark):
            is_new = is_revision(revision, update)
            yield codec.evolve(facts, is_pending=True, is_new=is_new, is_available=False, is_ready=False)
        elif mark is not None:
            yield codec.evolve(facts, is_pending=True)
        else:
            yield facts


def situation_of(snapshot: Snapshot) -> Situation:
    cloneset, pending = snapshot.cloneset, snapshot.pending
    spec, status, metadata = cloneset.spec, cloneset.status, cloneset.metadata
    owner = Owner.of(CLONE_SETS, cloneset)
    selector = from_label_selector(spec.selector)
    history = revisions.belonging_to(owner, snapshot.revisions, selector)
    template = codec.decode(bytes(spec.template), object)
    choice = revisions.choose(
        owner,
        history,
        revisions.template_data(template),
        labels=revisions.template_labels(template),
        annotations=metadata.annotations,
        refreshed={keys.CLAIM_TEMPLATES_HASH: claim_templates_hash(spec.volume_claim_templates)},
        collision_count=status.collision_count,
        others=snapshot.revisions,
    )
    update = choice.revision
    current = revisions.current_revision(history, status.current_revision, update)
    kept, inactive, released = _sorted_out(snapshot.pods, owner, selector)
    to_delete, wait, now = frozenset(spec.scale_strategy.pods_to_delete), spec.min_ready_seconds, snapshot.now
    observed = tuple(
        facts_of(pod, update=update.metadata.name, min_ready_seconds=wait, to_delete=to_delete, now=now) for pod in kept
    )
    return Situation(
        snapshot=snapshot,
        cloneset=cloneset,
        owner=owner,
        replicas=replicas_of(spec),
        limits=limits_of(spec),
        choice=choice,
        current=current,
        update=update,
        history=tuple(history),
        templates={revision.metadata.name: revisions.template_of(revision) or {} for revision in (current, update)},
        facts=tuple(_once_written(observed, pending, update.metadata.name)) if pending.marks else observed,
        observed=observed,
        inactive=tuple(inactive),
        released=tuple(released),
        now=snapshot.now,
    )


def _sorted_out(pods: tuple[Pod, ...], owner: Owner, selector: Selector) -> tuple[list[Pod], list[Pod], list[Pod]]:
    """Active pods that stay, finished or terminating ones, and active ones that the selector does not match any more
    (CS-65, CS-67). A CloneSet that is being deleted lets nothing go."""
    kept: list[Pod] = []
    inactive: list[Pod] = []
    released: list[Pod] = []
    for pod in sorted(pods, key=operator.attrgetter("metadata.name")):
        reference = controller_of(pod)
        if not is_active(pod):
            inactive.append(pod)
        elif reference is None or reference.uid != owner.uid:
            continue  # an owner among others, but not the one that manages it
        elif owner.is_deleted or selector.matches(pod.metadata.labels):
            kept.append(pod)
        else:
            released.append(pod)
    return kept, inactive, released
