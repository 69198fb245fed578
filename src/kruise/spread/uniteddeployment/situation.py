"""What a pass over a UnitedDeployment sees, and what follows from it before anything is decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kruise.api.apps.cloneset import CloneSet
from kruise.api.apps.statefulset import StatefulSet
from kruise.api.apps.uniteddeployment import (
    UNITED_DEPLOYMENTS,
    Subset,
    SubsetStatus,
    UnitedDeployment,
)
from kruise.api.meta import controller_of
from kruise.api.native.apps import ControllerRevision, Workload
from kruise.api.native.pod import Pod
from kruise.machinery import codec, revisions
from kruise.machinery.codec import Struct, field
from kruise.machinery.ownership import Owner
from kruise.machinery.selectors import Selector, SelectorError, from_label_selector
from kruise.spread.uniteddeployment import adaptive, keys
from kruise.spread.uniteddeployment.adaptive import Times, Verdict
from kruise.spread.uniteddeployment.children import KINDS, Child, ChildKind, Json, active, child_of, kind_of
from kruise.spread.uniteddeployment.numbers import NOTHING_SEEN, Seen, is_adaptive, reserves
from kruise.spread.uniteddeployment.shape import in_one_form, revision_data

UPDATED = "UnitedDeploymentUpdated"


class Snapshot(Struct, kw_only=True):
    united: UnitedDeployment
    stateful_sets: tuple[Workload, ...] = ()
    """Its children, and what it may adopt."""
    advanced_stateful_sets: tuple[StatefulSet, ...] = ()
    clone_sets: tuple[CloneSet, ...] = ()
    deployments: tuple[Workload, ...] = ()
    pods: tuple[Pod, ...] = ()
    """Those of its children."""
    revisions: tuple[ControllerRevision, ...] = ()
    gates: dict[str, bool] = field(default_factory=dict)
    now: datetime
    seed: int = 0

    def objects(self, kind: ChildKind) -> tuple[Any, ...]:
        found = (self.stateful_sets, self.advanced_stateful_sets, self.clone_sets, self.deployments)
        return found[KINDS.index(kind)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    snapshot: Snapshot
    united: UnitedDeployment
    owner: Owner
    template: Json
    kind: ChildKind
    choice: revisions.Choice
    """The revision of the present template, and the write that makes it."""
    history: tuple[ControllerRevision, ...]
    current: ControllerRevision
    children: dict[str, Child]
    """By subset."""
    duplicates: tuple[Child, ...]
    """Further children of a subset that has one (UD-48)."""
    others: tuple[Child, ...]
    """Children of the other kinds (UD-53)."""
    left_over: tuple[Child, ...]
    """Children of any kind whose labels the selector does not match (any more): nothing is done about them."""
    adopted: tuple[Child, ...]
    verdicts: dict[str, Verdict]
    """By subset; of every subset that is defined."""
    times: Times

    @property
    def revision(self) -> str:
        return self.choice.revision.metadata.name

    @property
    def now(self) -> datetime:
        return self.snapshot.now

    @property
    def subsets(self) -> tuple[Subset, ...]:
        return self.united.spec.topology.subsets

    def seen(self) -> dict[str, Seen]:
        """For the allocation."""
        found: dict[str, Seen] = {}
        for subset in self.subsets:
            child, verdict = self.children.get(subset.name), self.verdicts[subset.name]
            found[subset.name] = NOTHING_SEEN
            if child is not None:
                found[subset.name] = Seen(
                    exists=True,
                    size=child.size,
                    ready=child.ready,
                    is_unschedulable=verdict.is_unschedulable,
                    was_marked=verdict.was_marked,
                    reserved=len(verdict.reserved) + verdict.to_come,
                )
        return found


def template_of(united: UnitedDeployment) -> Json:
    found = codec.decode(united.spec.template, object)
    return found if isinstance(found, dict) else {}


def _history(owner: Owner, known: Sequence[ControllerRevision], selector: Selector) -> tuple[ControllerRevision, ...]:
    """Its own as well where they lack the template's labels: OpenKruise has left them out (UD-77)."""
    found = {revision.metadata.name: revision for revision in revisions.belonging_to(owner, known, selector)}
    for revision in known:
        reference = controller_of(revision)
        if reference is not None and reference.uid == owner.uid:
            found[revision.metadata.name] = revision
    return tuple(in_one_form(revision) for revision in revisions.in_order(found.values()))


def selector_problem(united: UnitedDeployment) -> str:
    """Why nothing can be selected by it. Admission refuses that; what got past is left alone."""
    try:
        if from_label_selector(united.spec.selector).is_empty:
            return "spec.selector is empty, and would take every workload of the namespace"
    except SelectorError as error:
        return f"spec.selector is invalid: {error}"
    return ""


def situation_of(snapshot: Snapshot) -> Situation | None:
    """None: its template is of no kind."""
    united = snapshot.united
    template = template_of(united)
    kind = kind_of(template)
    if kind is None:
        return None
    owner = Owner.of(UNITED_DEPLOYMENTS, united)
    selector = from_label_selector(united.spec.selector)
    history = _history(owner, snapshot.revisions, selector)
    given = template[kind.member].get("metadata")
    choice = revisions.choose(
        owner,
        history,
        revision_data(template),
        labels={**revisions.template_labels({"metadata": given or {}}), **united.spec.selector.match_labels},
        collision_count=united.status.collision_count,
        others=snapshot.revisions,
    )
    current = revisions.current_revision(history, united.status.current_revision, choice.revision)
    name = choice.revision.metadata.name
    pods = _by_child(snapshot.pods)

    def child(of: ChildKind, obj: Any) -> Child:
        where = (f"{of.resource.group}/{of.resource.kind}", obj.metadata.name)
        return Child(kind=of, object=obj, pods=active(tuple(pods.get(where, ()))), revision=name)

    found = [child(kind, obj) for obj in _sorted(snapshot.objects(kind)) if selector.matches(obj.metadata.labels)]
    owned = [one for one in found if _is_owned(one.object, owner)]
    taken = {one.subset for one in owned}
    adopted = [
        one
        for one in found
        if controller_of(one.object) is None
        and not one.is_leaving
        and not owner.is_deleted
        and one.subset
        and one.subset not in taken
    ]
    children: dict[str, Child] = {}
    duplicates: list[Child] = []
    for one in owned:
        if one.subset in children:
            duplicates.append(one)
        else:
            children[one.subset] = one
    others = [
        child(other, obj)
        for other in KINDS
        if other is not kind
        for obj in _sorted(snapshot.objects(other))
        if _is_owned(obj, owner) and selector.matches(obj.metadata.labels)
    ]
    left_over = [
        child(any_kind, obj)
        for any_kind in KINDS
        for obj in _sorted(snapshot.objects(any_kind))
        if _is_owned(obj, owner)
        and obj.metadata.deletion_timestamp is None
        and not selector.matches(obj.metadata.labels)
    ]
    times = adaptive.times_of(united.spec)
    situation = Situation(
        snapshot=snapshot,
        united=united,
        owner=owner,
        template=template,
        kind=kind,
        choice=choice,
        history=history,
        current=current,
        children=children,
        duplicates=tuple(duplicates),
        others=tuple(others),
        left_over=tuple(left_over),
        adopted=tuple(adopted),
        verdicts={},
        times=times,
    )
    return dataclasses.replace(situation, verdicts=_verdicts(situation))


def _verdicts(situation: Situation) -> dict[str, Verdict]:
    united, now, times = situation.united, situation.now, situation.times
    spec = united.spec
    known = {status.name: status for status in united.status.subset_statuses}
    found: dict[str, Verdict] = {}
    for subset in spec.topology.subsets:
        status = known.get(subset.name)
        if status is None:
            status = SubsetStatus(name=subset.name)
            if known and reserves(spec):
                text = "newly-created subsets in reservation strategy"
                status = adaptive.marked(status, False, adaptive.CREATED, text, now)  # UD-13
        child = situation.children.get(subset.name)
        if child is None or not is_adaptive(spec):
            found[subset.name] = Verdict(status, was_marked=adaptive.is_marked(status))
        elif reserves(spec):
            found[subset.name] = adaptive.reserving(child, status, times, _update_began(situation), now)
        else:
            found[subset.name] = adaptive.judged(child, status, times, now)
    return found


def _update_began(situation: Situation) -> datetime | None:
    """When the present template came, where pods may have another (UD-10)."""
    if situation.current.metadata.name == situation.revision:
        return None
    for item in situation.united.status.conditions:
        if item.type == UPDATED and item.status == "False":
            return item.last_transition_time
    return situation.now


def _by_child(pods: Iterable[Pod]) -> dict[tuple[str, str], list[Pod]]:
    found: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        where = child_of(pod)
        if where is not None:
            found.setdefault(where, []).append(pod)
    return found


def _is_owned(obj: Any, owner: Owner) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.uid == owner.uid


def _sorted(objects: Iterable[Any]) -> list[Any]:
    """The oldest first, so that it is the one that stays where a subset has several."""
    return sorted(
        objects,
        key=lambda obj: (
            str(obj.metadata.creation_timestamp or ""),
            obj.metadata.name,
        ),
    )


def revisions_in_use(situation: Situation) -> set[str]:
    """Those that the status and children name: their templates may still be asked for."""
    status = situation.united.status
    worn = {child.object.metadata.labels.get(keys.REVISION, "") for child in situation.children.values()}
    return {situation.revision, status.current_revision, status.updated_revision, *worn} - {""}
