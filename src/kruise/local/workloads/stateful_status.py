"""What a StatefulSet's status and events say after a pass (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kruise.api.native.ordinals import ordinal_of, pod_name
from kruise.api.native.pod import PODS
from kruise.local.workloads.objects import STATEFUL_SETS, StatefulSet, StatefulSetStatus
from kruise.local.workloads.stateful_members import Members, size
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Struct, evolve, to_builtins
from kruise.machinery.plan import (
    ChainOutcomes,
    Conclusion,
    EventNote,
    EventType,
    Outcome,
    Outcomes,
    Plan,
    Result,
    Target,
    Wake,
)

REVISION, REPLICAS, CONDEMN, UPDATE = "revision", "replicas", "condemn", "update"


class Memo(Struct):
    """What a plan leaves to its conclusion."""

    status: StatefulSetStatus
    next_check: float | None = None
    """Seconds until the next ready pod has been so for long enough."""
    refusals: tuple[tuple[str, str], ...] = ()
    """Pods that could not be made (no name: one that is there), with the reason."""
    foreign: tuple[str, ...] = ()
    """Claims that somebody else manages."""
    restored: tuple[str, ...] = ()
    """Pods that get back what is theirs: identity, volumes, claims."""


def counted(
    stateful_set: StatefulSet, members: Members, current: str, update: str, collision_count: int
) -> StatefulSetStatus:
    """The pods as they are; those that are made in this pass count in the next."""
    pods = [member for member in members.all if member.pod is not None]
    living = [member for member in pods if not member.is_terminating]
    return StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=len(pods),
        ready_replicas=sum(member.is_ready for member in pods),
        available_replicas=sum(member.is_ready and member.is_available for member in pods),
        current_replicas=sum(member.revision == current for member in living),
        updated_replicas=sum(member.revision == update for member in living),
        current_revision=current,
        update_revision=update,
        collision_count=collision_count,
    )


def conclusion(stateful_set: StatefulSet, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    memo = plan.memo_as(Memo)
    events = tuple(_events(stateful_set, memo, outcomes))
    if any(item.result is not Result.DONE for item in outcomes.within(REVISION)):
        return Conclusion(events=events)
    status = _completed(stateful_set, memo.status, outcomes)
    write = None
    if status != stateful_set.status:
        target = Target.of(STATEFUL_SETS, stateful_set)
        write = plans.status_patch(target, _json(status), uid=stateful_set.metadata.uid, reason="the status changed")
    wakes: tuple[Wake, ...] = ()
    if memo.next_check is not None:
        wakes = (Wake(after=memo.next_check, reason="a pod will have been ready for minReadySeconds"),)
    return Conclusion(status=write, events=events, wakes=wakes, retry=next((text for _, text in memo.refusals), ""))


def _completed(stateful_set: StatefulSet, status: StatefulSetStatus, outcomes: Outcomes) -> StatefulSetStatus:
    deleted = sum(item.result is Result.DONE for item in outcomes.within(UPDATE))
    status = evolve(status, current_replicas=status.current_replicas - deleted)
    wanted = size(stateful_set)
    rolls = stateful_set.spec.update_strategy.type == "RollingUpdate"
    if rolls and status.updated_replicas == status.ready_replicas == status.replicas == wanted:
        current = status.update_revision
        return evolve(status, current_replicas=status.updated_replicas, current_revision=current)
    return status


def _json(status: StatefulSetStatus) -> dict[str, Any]:
    """As Go writes it: these are there when they are zero."""
    always = {
        "replicas": status.replicas,
        "availableReplicas": status.available_replicas,
        "collisionCount": status.collision_count or 0,
    }
    return {**to_builtins(status), **always}


# Events


def _events(stateful_set: StatefulSet, memo: Memo, outcomes: Outcomes) -> Iterable[EventNote]:
    name = stateful_set.metadata.name
    for pod, problem in memo.refusals:
        if pod:
            yield _event("create", f"Pod {pod}", name, problem)
    for claim in memo.foreign:
        message = (
            f"PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a manging controller, "
            "the retention policy is ignored for this claim"
        )
        yield EventNote(reason="ConflictingController", message=message, type=EventType.WARNING)
    for phase in (REPLICAS, CONDEMN, UPDATE):
        for chain in outcomes.phase(phase):
            yield from _of_chain(name, chain, memo.restored)


def _of_chain(workload: str, chain: ChainOutcomes, restored: Collection[str]) -> Iterable[EventNote]:
    verb = next((_VERBS[item.action.verb] for item in chain if item.action.target.resource is PODS), "")
    pod = _pod_of(workload, chain[0])
    if not verb and pod in restored:
        # Kubernetes calls it an update of the pod, too, where only its claims are put right.
        verb = "update"
        if all(item.result is Result.DONE for item in chain):
            yield _event(verb, f"Pod {pod}", workload, "")
    for item in chain:
        if item.result not in (Result.DONE, Result.FAILED):
            continue
        if item.action.target.resource is PODS:
            if item.error_reason != "AlreadyExists":
                yield _event(verb, f"Pod {item.action.target.name}", workload, item.error)
        else:
            yield from _of_claim(workload, item, verb)


def _of_claim(workload: str, item: Outcome, verb: str) -> Iterable[EventNote]:
    """`verb`: what the claim was to be made for; empty: for a pod that is there and waits for it."""
    claim, pod = item.action.target.name, _pod_of(workload, item)
    failed = item.result is Result.FAILED
    if item.action.verb is Verb.CREATE and item.error_reason != "AlreadyExists":
        what = f"Claim {claim} for Pod {pod}" if failed else f"Claim {claim} Pod {pod}"
        yield _event("create", what, workload, item.error, success="success")
    if failed and verb:
        made = item.action.verb is Verb.CREATE
        what = (
            f"failed to create PVC {claim}" if made else f"could not update claim {claim} for delete policy ownerRefs"
        )
        yield _event(verb, f"Pod {pod}", workload, f"{what}: {item.error}")


def _pod_of(workload: str, item: Outcome) -> str:
    """Pods and their claims end in the same number."""
    return pod_name(workload, ordinal_of(item.action.target.name) or 0)


_VERBS = {Verb.CREATE: "create", Verb.PATCH: "update", Verb.DELETE: "delete"}


def _event(verb: str, what: str, workload: str, error: str, *, success: str = "successful") -> EventNote:
    message = f"{verb} {what} in StatefulSet {workload}"
    if error:
        message = f"{message} failed error: {error}"
        return EventNote(reason=f"Failed{verb.title()}", message=message, type=EventType.WARNING)
    return EventNote(reason=f"Successful{verb.title()}", message=f"{message} {success}")
