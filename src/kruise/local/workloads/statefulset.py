"""StatefulSet: numbered pods that keep their name, their claims and their turn (decisions).

The rules are kube-controller-manager's. With OrderedReady a pass goes through the ordinals and ends at the first pod
that is not in service: nothing is made, removed or updated behind it. A broken pod therefore holds up even the update
that would repair it, and somebody has to delete it; Kubernetes documents that, and so it is here. With Parallel all
ordinals are looked at, and a new revision goes through from the highest ordinal down, one pod at a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime

from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.ordinals import parent_and_ordinal
from kruise.api.native.pod import PODS, Pod
from kruise.inplace.keys import REVISION_LABEL
from kruise.local.storage_binding.objects import Claim
from kruise.local.workloads import stateful_claims, stateful_members, stateful_pods, templates
from kruise.local.workloads.objects import STATEFUL_SETS, StatefulSet, StatefulSetStatus
from kruise.local.workloads.pods import selector_of
from kruise.local.workloads.stateful_members import Member, Members
from kruise.local.workloads.stateful_status import CONDEMN, REPLICAS, REVISION, UPDATE, Memo, conclusion, counted
from kruise.machinery import plan as plans
from kruise.machinery import revisions as history
from kruise.machinery.codec import Struct
from kruise.machinery.intorpercent import scaled
from kruise.machinery.ownership import Owner, adoption, claim, release
from kruise.machinery.plan import Action, Chain, Conclusion, OnError, Outcomes, Phase, Plan, Target, single

__all__ = ["Snapshot", "conclude", "decide"]

_PARALLEL = "Parallel"
_ON_DELETE = "OnDelete"


class Snapshot(Struct):
    now: datetime
    stateful_set: StatefulSet
    pods: tuple[Pod, ...]
    """Those that it controls."""
    orphans: tuple[Pod, ...]
    """Those that nobody controls and that its selector matches."""
    revisions: tuple[ControllerRevision, ...]
    """Those of its namespace."""
    claims: tuple[Claim, ...]
    """Those that bear the names of its pods' claims."""
    deleted: tuple[str, ...] = ()
    """Uids of the pods that are being deleted."""


@dataclasses.dataclass(slots=True)
class _Course:
    """What a pass does with the pods, and what it has to say beside."""

    chains: list[Chain] = dataclasses.field(default_factory=list)
    blocked: bool = False
    """What comes later has to wait."""
    refusals: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    """Pods that cannot be made, with the reason."""
    foreign: list[str] = dataclasses.field(default_factory=list)
    """Claims that somebody else manages."""
    restored: list[str] = dataclasses.field(default_factory=list)
    """Pods that get back what is theirs."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Pass:
    """What the decisions of a pass look at."""

    stateful_set: StatefulSet
    members: Members
    claims: dict[str, Claim]
    current: ControllerRevision
    update: ControllerRevision

    @property
    def is_ordered(self) -> bool:
        return self.stateful_set.spec.pod_management_policy != _PARALLEL


def decide(snapshot: Snapshot) -> Plan:
    stateful_set = snapshot.stateful_set
    owner = Owner.of(STATEFUL_SETS, stateful_set)
    selector = selector_of(stateful_set.spec.selector)
    known = history.belonging_to(owner, snapshot.revisions, selector)
    choice = history.choose(
        owner,
        known,
        templates.revision_data(stateful_set.spec.template),
        labels=templates.labels(stateful_set.spec.template),
        annotations=stateful_set.metadata.annotations,
        collision_count=stateful_set.status.collision_count,
        others=snapshot.revisions,
    )
    claimed = claim(owner, (*snapshot.pods, *snapshot.orphans), selector, belongs=_belongs_to(owner.name))
    pods = (*claimed.owned, *claimed.to_adopt)
    current = history.current_revision(known, stateful_set.status.current_revision, choice.revision)
    members = stateful_members.sort_out(stateful_set, pods, snapshot.deleted, snapshot.now)
    work = _Pass(
        stateful_set, members, {item.metadata.name: item for item in snapshot.claims}, current, choice.revision
    )
    status = counted(
        stateful_set, members, current.metadata.name, choice.revision.metadata.name, choice.collision_count
    )
    if owner.is_deleted:
        return Plan(memo=_memo(status, members, _Course()) if choice.action is None else None)
    phases: list[Phase] = []
    chains: list[Chain] = [adoption(owner, CONTROLLER_REVISIONS, item) for item in known if not _is_managed(item)]
    chains += [adoption(owner, PODS, pod) for pod in claimed.to_adopt]
    chains += [(release(PODS, pod, owner),) for pod in claimed.to_release]
    if chains:
        phases.append(Phase(name="claim", chains=tuple(chains), on_error=OnError.STOP_PLAN))
    if choice.action is not None:
        phases.append(single(REVISION, choice.action))
    course = _Course()
    phases += _pods(work, course)
    keep = {current.metadata.name, choice.revision.metadata.name}
    labels = [pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods]
    limit = stateful_set.spec.revision_history_limit
    superfluous = history.truncate(known, keep=keep, pod_labels=labels, limit=limit)
    if superfluous:
        phases.append(single("history", *superfluous, on_error=OnError.CONTINUE))
    return Plan(phases=tuple(phases), memo=_memo(status, members, course))


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    return conclusion(snapshot.stateful_set, plan, outcomes)


def _belongs_to(name: str) -> Callable[[Pod], bool]:
    return lambda pod: parent_and_ordinal(pod.metadata.name)[0] == name


def _is_managed(revision: ControllerRevision) -> bool:
    return any(reference.controller for reference in revision.metadata.owner_references)


def _memo(status: StatefulSetStatus, members: Members, course: _Course) -> Memo:
    waits = [member.available_in for member in members.all if member.is_ready and member.available_in]
    return Memo(
        status=status,
        next_check=min(waits, default=None),
        refusals=tuple(course.refusals),
        foreign=tuple(course.foreign),
        restored=tuple(course.restored),
    )


# In the order of a pass


def _pods(work: _Pass, course: _Course) -> list[Phase]:
    phases: list[Phase] = []
    for member in work.members.replicas:
        _look_after(work, member, course)
        if course.blocked and work.is_ordered:
            break
    if course.chains:
        phases.append(Phase(name=REPLICAS, chains=tuple(course.chains), slow_start=not work.is_ordered))
    if (course.blocked and work.is_ordered) or course.refusals:
        return phases
    owners = [_owners(work, member, course) for member in work.members.condemned]
    if any(owners):
        phases.append(Phase(name="claims", chains=tuple(chain for chain in owners if chain)))
    condemned = [_deletion(member, "its ordinal is beyond the size") for member in _to_condemn(work)]
    if condemned:
        phases.append(single(CONDEMN, *condemned))
    if work.is_ordered and work.members.condemned:
        return phases
    old = [_deletion(member, "it has another revision") for member in _to_update(work)]
    if old:
        phases.append(single(UPDATE, *old))
    return phases


def _look_after(work: _Pass, member: Member, course: _Course) -> None:
    """What one ordinal needs; `blocked` where later ones have to wait for it."""
    stateful_set, claims, pod = work.stateful_set, work.claims, member.of_set
    if member.is_finished:
        if not member.is_terminating:
            course.chains.append((_deletion(member, "it has ended"),))
        course.blocked = True
        return
    if member.pod is None or member.is_pending:
        if member.pod is None and stateful_claims.is_stale(stateful_set, pod, claims):
            course.blocked = True
            return
        problem = stateful_claims.being_deleted(stateful_set, pod, claims)
        if problem:
            course.refusals.append((member.name if member.pod is None else "", problem))
            course.blocked = True
            return
        course.foreign += stateful_claims.managed_by_others(stateful_set, pod, claims)
        chain = (
            _creation(work, member) if member.pod is None else stateful_pods.with_claims(stateful_set, member, claims)
        )
        if chain:
            course.chains.append(chain)
    if not (member.is_in_service and member.is_ready):
        course.blocked = True
    if member.pod is None or (course.blocked and work.is_ordered):
        return
    chain = () if member.is_pending else stateful_pods.restoration(stateful_set, member, claims)
    if chain:
        course.foreign += stateful_claims.managed_by_others(stateful_set, pod, claims)
        course.restored.append(member.name)
        course.chains.append(chain)


def _creation(work: _Pass, member: Member) -> Chain:
    revision = work.current if _begins_at_current(work.stateful_set, member.ordinal) else work.update
    template = history.template_of(revision) if revision is not work.update else None
    if template is None:
        template = templates.parse(work.stateful_set.spec.template)
    return stateful_pods.creation(work.stateful_set, member, template, revision.metadata.name, work.claims)


def _begins_at_current(stateful_set: StatefulSet, ordinal: int) -> bool:
    """Whether a pod that is made now is made of the revision before the update."""
    strategy, position = stateful_set.spec.update_strategy, ordinal - stateful_set.spec.ordinals.start
    if strategy.rolling_update is not None:
        return position < strategy.rolling_update.partition
    return strategy.type != _ON_DELETE and position < stateful_set.status.current_replicas


def _owners(work: _Pass, member: Member, course: _Course) -> Chain:
    chain = tuple(stateful_claims.corrections(work.stateful_set, member.of_set, work.claims))
    if chain:
        course.foreign += stateful_claims.managed_by_others(work.stateful_set, member.of_set, work.claims)
    return chain


def _to_condemn(work: _Pass) -> list[Member]:
    condemned = work.members.condemned
    if not work.is_ordered:
        return [member for member in condemned if not member.is_terminating]
    if not condemned or condemned[0].is_terminating:
        return []
    highest, first = condemned[0], work.members.first_out_of_service
    healthy = highest.is_ready and highest.is_available
    return [highest] if healthy or highest is first else []


def _to_update(work: _Pass) -> list[Member]:
    strategy = work.stateful_set.spec.update_strategy
    if strategy.type == _ON_DELETE:
        return []
    rolling = strategy.rolling_update
    replicas = work.members.replicas
    candidates = list(reversed(replicas[rolling.partition if rolling is not None else 0 :]))
    if rolling is not None and rolling.max_unavailable is not None:
        most = max(1, scaled(rolling.max_unavailable, len(replicas), round_up=False))
        room = most - sum(not member.is_in_service for member in replicas)
        return [member for member in candidates if _is_old(work, member)][: max(0, room)]
    for member in candidates:
        if _is_old(work, member):
            return [member]
        if not member.is_in_service:
            break
    return []


def _is_old(work: _Pass, member: Member) -> bool:
    if member.pod is None or member.is_terminating:
        return False
    return member.revision != work.update.metadata.name


def _deletion(member: Member, reason: str) -> Action:
    assert member.pod is not None
    return plans.delete(Target.of(PODS, member.pod), uid=member.pod.metadata.uid, reason=reason)
