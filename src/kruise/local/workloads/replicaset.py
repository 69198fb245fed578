"""ReplicaSet: so many pods of one template (decisions).

The rules are kube-controller-manager's: adopt orphans that the selector matches, release pods that it does not match
any more, create what is missing with a slow start, delete what is too much in Kubernetes' order, count in the status.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kruise.api.meta import Condition
from kruise.api.native.pod import PODS, Pod, condition
from kruise.local.workloads import templates
from kruise.local.workloads.conditions import to_json, whole_second
from kruise.local.workloads.objects import REPLICA_SETS, ReplicaSet
from kruise.local.workloads.pods import first_to_go, has_labels, matcher, selector_of
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Struct, field
from kruise.machinery.names import choose_names
from kruise.machinery.ownership import Claim, Owner, adoption, claim, release
from kruise.machinery.plan import (
    Action,
    Conclusion,
    EventNote,
    EventType,
    OnError,
    Outcome,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
    Wake,
    single,
)

BURST = 500
"""How many pods one pass creates or deletes at most."""
FAILURE = "ReplicaFailure"
_NAMESPACE_ENDS = "because it is being terminated"
_CLAIM, _SCALE = "claim", "scale"


class Snapshot(Struct):
    now: datetime
    seed: int
    replica_set: ReplicaSet
    pods: tuple[Pod, ...]
    """Active ones that it controls."""
    orphans: tuple[Pod, ...]
    """Active ones that nobody controls, in its namespace."""
    beside: dict[str, int] = field(default_factory=dict)
    """Active pods of all ReplicaSets of the same owner, by node; known only where pods have to go."""


def decide(snapshot: Snapshot) -> Plan:
    replica_set = snapshot.replica_set
    owner = Owner.of(REPLICA_SETS, replica_set)
    claimed = _claim(snapshot, owner)
    phases: list[Phase] = []
    if claimed.to_adopt or claimed.to_release:
        chains = [*(adoption(owner, PODS, pod) for pod in claimed.to_adopt)]
        chains += [(release(PODS, pod, owner),) for pod in claimed.to_release]
        phases.append(Phase(name=_CLAIM, chains=tuple(chains), on_error=OnError.STOP_PLAN))
    pods = (*claimed.owned, *claimed.to_adopt)
    if not owner.is_deleted:
        actions = _resize(snapshot, owner, pods)
        if actions:
            creates = actions[0].verb is Verb.CREATE
            on_error = OnError.STOP_PLAN if creates else OnError.CONTINUE
            phases.append(single(_SCALE, *actions, slow_start=creates, on_error=on_error))
    return Plan(phases=tuple(phases))


def _claim(snapshot: Snapshot, owner: Owner) -> Claim[Pod]:
    selector = snapshot.replica_set.spec.selector
    matches = matcher(selector)
    if not snapshot.orphans and all(matches(pod.metadata.labels) for pod in snapshot.pods):
        return Claim(owned=snapshot.pods)
    return claim(owner, (*snapshot.pods, *snapshot.orphans), selector_of(selector))


def _resize(snapshot: Snapshot, owner: Owner, pods: tuple[Pod, ...]) -> list[Action]:
    wanted = size(snapshot.replica_set)
    missing = wanted - len(pods)
    if missing > 0:
        return _creates(snapshot, owner, min(missing, BURST))
    if missing < 0:
        surplus = first_to_go(pods, min(-missing, BURST), now=snapshot.now, beside=snapshot.beside)
        reason = f"{len(pods)} pods, {wanted} wanted"
        return [plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=reason) for pod in surplus]
    return []


def size(replica_set: ReplicaSet) -> int:
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def _creates(snapshot: Snapshot, owner: Owner, count: int) -> list[Action]:
    template = templates.parse(snapshot.replica_set.spec.template)
    prefix = f"{owner.name}-"
    taken = [pod.metadata.name for pod in snapshot.pods]
    names = choose_names(prefix, count, owner_uid=owner.uid, seed=snapshot.seed, taken=taken)
    reference = owner.reference()
    reason = f"{len(snapshot.pods)} pods, {size(snapshot.replica_set)} wanted"
    return [
        plans.create(
            PODS,
            templates.new_pod(template, name=name, namespace=owner.namespace, generate_name=prefix, owner=reference),
            reason=reason,
            owner_uid=owner.uid,
        )
        for name in names
    ]


# After the writes


@dataclasses.dataclass(slots=True)
class _Counts:
    replicas: int = 0
    labelled: int = 0
    ready: int = 0
    available: int = 0
    next_check: float | None = None
    """Seconds until the next ready pod has been so for long enough."""


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    replica_set = snapshot.replica_set
    failures = [item for item in outcomes if item.result is Result.FAILED and not is_namespace_end(item)]
    counts = _count(snapshot, outcomes)
    conditions = _conditions(snapshot, failures)
    status = replica_set.status
    changed = (
        (counts.replicas, counts.labelled, counts.ready, counts.available)
        != (status.replicas, status.fully_labeled_replicas, status.ready_replicas, status.available_replicas)
        or status.observed_generation != replica_set.metadata.generation
        or conditions != status.conditions
    )
    write = None
    if changed:
        body = _status(counts, conditions, replica_set.metadata.generation)
        target = Target.of(REPLICA_SETS, replica_set)
        write = plans.status_patch(target, body, uid=replica_set.metadata.uid, reason="the status changed")
    wakes: tuple[Wake, ...] = ()
    if counts.next_check is not None:
        wakes = (Wake(after=counts.next_check, reason="a pod will have been ready for minReadySeconds"),)
    return Conclusion(status=write, events=pod_events(outcomes), wakes=wakes)


def is_namespace_end(outcome: Outcome) -> bool:
    """A namespace that is being deleted takes no pods: nobody's fault, and nothing to tell."""
    return outcome.error_reason == "Forbidden" and _NAMESPACE_ENDS in outcome.error


def pod_events(outcomes: Outcomes) -> tuple[EventNote, ...]:
    """What every workload says about the pods that it made or removed."""
    notes: list[EventNote] = []
    for item in outcomes:
        action = item.action
        if action.target.resource is not PODS or action.subresource:
            continue
        name = action.target.name
        if item.result is Result.DONE and action.verb is Verb.CREATE:
            notes.append(EventNote(reason="SuccessfulCreate", message=f"Created pod: {name}"))
        elif item.result is Result.DONE and action.verb is Verb.DELETE:
            notes.append(EventNote(reason="SuccessfulDelete", message=f"Deleted pod: {name}"))
        elif item.result is Result.FAILED and action.verb is Verb.CREATE and not is_namespace_end(item):
            notes.append(_warning("FailedCreate", f"Error creating: {item.error}"))
        elif item.result is Result.FAILED and action.verb is Verb.DELETE:
            notes.append(_warning("FailedDelete", f"Error deleting: {item.error}"))
    return tuple(notes)


def _warning(reason: str, message: str) -> EventNote:
    return EventNote(reason=reason, message=message, type=EventType.WARNING)


def _count(snapshot: Snapshot, outcomes: Outcomes) -> _Counts:
    """The pods as they are after the writes: what was created counts at once, what was deleted no more."""
    replica_set = snapshot.replica_set
    selected = matcher(replica_set.spec.selector)
    labelled = has_labels(templates.labels(replica_set.spec.template))
    gone, adopted, created = set(), set(), 0
    for item in outcomes:
        action = item.action
        if item.result is not Result.DONE or action.target.resource is not PODS:
            continue
        if action.verb is Verb.DELETE:
            gone.add(action.uid)
        elif action.verb is Verb.CREATE:
            created += 1
        else:
            adopted.add(action.uid)
    counts = _Counts(replicas=created, labelled=created)
    needed = timedelta(seconds=replica_set.spec.min_ready_seconds)
    for pod in (*snapshot.pods, *[pod for pod in snapshot.orphans if pod.metadata.uid in adopted]):
        metadata = pod.metadata
        if metadata.uid in gone:
            continue
        # The template's labels include the selector's, so most pods need one look.
        if labelled(metadata.labels):
            counts.labelled += 1
        elif not selected(metadata.labels):
            continue
        counts.replicas += 1
        ready = condition(pod, "Ready")
        if ready is None or ready.status != "True":
            continue
        counts.ready += 1
        since = ready.last_transition_time
        left = 0.0 if not needed or since is None else (since + needed - snapshot.now).total_seconds()
        if left <= 0:
            counts.available += 1
        elif counts.next_check is None or left < counts.next_check:
            counts.next_check = left
    return counts


def _conditions(snapshot: Snapshot, failures: list[Outcome]) -> tuple[Condition, ...]:
    known = snapshot.replica_set.status.conditions
    others = tuple(item for item in known if item.type != FAILURE)
    current = next((item for item in known if item.type == FAILURE), None)
    if not failures:
        return others
    if current is not None:
        return known  # the first failure stays until it is over
    reason = "FailedCreate" if failures[0].action.verb is Verb.CREATE else "FailedDelete"
    failed = Condition(
        type=FAILURE,
        status="True",
        reason=reason,
        message=failures[0].error,
        last_transition_time=whole_second(snapshot.now),
    )
    return (*others, failed)


def _status(counts: _Counts, conditions: tuple[Condition, ...], generation: int) -> Mapping[str, Any]:
    body: dict[str, Any] = {
        "replicas": counts.replicas,
        "fullyLabeledReplicas": counts.labelled,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "observedGeneration": generation,
    }
    # As Go writes it: only the first is there when it is zero.
    body = {key: value for key, value in body.items() if value or key == "replicas"}
    if conditions:
        body["conditions"] = [to_json(item) for item in conditions]
    return body
