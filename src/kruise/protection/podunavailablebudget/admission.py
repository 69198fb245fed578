"""Budgets in the chains of pods: new pods learn who guards them, and what is done to guarded ones is judged (PUB-57,
PUB sections 11, 12 and 14).

A refusal costs nothing and is told. What is let through is written into the status of the budget first, guarded by its
resourceVersion, so that however many replicas decide at the same time, none gives away what another has given. Requests
of the same moment share a write (`kruise.admission.bookkeeping`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import (
    Allow,
    Booking,
    Change,
    Deny,
    Failure,
    Listing,
    NeedsBooking,
    NeedsReads,
    Protected,
    PublicNote,
    Verdict,
)
from kruise.admission.validating_chain import PodOperation, PodQuestion
from kruise.api.meta import ObjectMeta, controller_of
from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import (
    DELETE,
    EVICT,
    POD_UNAVAILABLE_BUDGETS,
    RESIZE,
    UPDATE,
    PodUnavailableBudget,
)
from kruise.machinery import codec
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.codec import evolve
from kruise.machinery.guards import UNAVAILABLE_BUDGET
from kruise.machinery.plan import Action, EventNote, EventType, Target
from kruise.machinery.store import Store, parse_version
from kruise.machinery.wording import listed
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.booking import Freedom, Refused, Taken, book, is_let_through, write
from kruise.protection.podunavailablebudget.indexes import ANY, PODS_OF, TARGETS, WATCHED_BUDGETS, target_value
from kruise.protection.podunavailablebudget.operations import operation_of_update
from kruise.protection.podunavailablebudget.workloads import KINDS, Owner, owner_of

EVICTION_CODE, EVICTION_REASON = 429, "TooManyRequests"
"""PUB-91: what `kubectl drain` understands, and tries again."""
_CODE, _REASON = 403, "Forbidden"
_CAUSE = "DisruptionBudget"
"""As the API server says it of the native budgets: an answer, not overload."""
_COMPONENT = "pub-controller"
_COUNTER = "pod_unavailable_budget"


# New pods


def mark(pod: dict[str, Any], context: StepContext) -> Change | NeedsReads | None:
    """PUB-57. The first budget by name counts. Nothing here ever refuses a pod: who is missed is marked later, by the
    controller."""
    budgets: Store[PodUnavailableBudget] = context.view.store(POD_UNAVAILABLE_BUDGETS)
    if not budgets.synced:
        # A manager that has just begun: a pod that it lets in without a mark would be guarded by nobody.
        listing = Listing(POD_UNAVAILABLE_BUDGETS, context.namespace)
        if not context.view.was_read(listing):
            return NeedsReads(targets=(listing,), may_fail=True)
        budgets = _listed(context.view.live(listing))
    if not len(budgets):
        return None
    try:
        metadata = codec.convert({**(pod.get("metadata") or {}), "namespace": context.namespace}, ObjectMeta)
    except codec.DecodeError:
        return None
    found = _guards(budgets, Pod(metadata=metadata), context)
    if found is None or isinstance(found, NeedsReads):
        return found
    old = pod.get("metadata") or {}
    annotations = {**(old.get("annotations") or {}), keys.RELATED: found}
    if keys.RELATED_NEW in annotations:
        annotations[keys.RELATED_NEW] = found
    return Change(object={**pod, "metadata": {**old, "annotations": annotations}})


def _listed(found: Failure | Sequence[PodUnavailableBudget]) -> Store[PodUnavailableBudget]:
    """Where they cannot be listed there are none, as far as anybody can tell: a cluster need not serve them."""
    store: Store[PodUnavailableBudget] = Store(WATCHED_BUDGETS)
    budgets = () if isinstance(found, Failure) else found
    versions = (parse_version(budget.metadata.resource_version, budget) for budget in budgets)
    store.replace(budgets, max(versions, default=0))
    return store


def _guards(budgets: Store[PodUnavailableBudget], pod: Pod, context: StepContext) -> str | NeedsReads | None:
    namespace = pod.metadata.namespace
    names = [budget.metadata.name for budget in budgets.selecting(PODS_OF, pod.metadata.labels, namespace)]
    reference = controller_of(pod)
    if reference is None:
        return min(names, default=None)
    owner = owner_of(reference)
    for _ in range(_MOST_ABOVE):
        if owner is None:
            break
        names += [budget.metadata.name for budget in budgets.by_index(TARGETS, target_value(namespace, *owner))]
        if not _may_be_below(budgets, namespace, owner):
            break
        # A ReplicaSet is often a moment old when its first pods come: a store may not know it yet.
        target = Target(KINDS[owner.group, owner.kind], namespace, owner.name)
        if not context.view.was_read(target):
            return NeedsReads(targets=(target,))
        found = context.view.live(target)
        owner = owner_of(controller_of(found)) if found is not None else None
    return min(names, default=None)


_MOST_ABOVE = 3
"""A ReplicaSet, its Deployment, and a workload of another kind that has several of them."""


def _may_be_below(budgets: Store[PodUnavailableBudget], namespace: str, owner: Owner) -> bool:
    """Whether a budget could be about a workload above this one: nobody else pays for a look."""
    if not owner.is_watched:
        return False
    is_part = (owner.group, owner.kind) == ("apps", "ReplicaSet")
    if is_part and budgets.by_index(TARGETS, target_value(namespace, "apps", "Deployment", ANY)):
        return True
    return bool(budgets.by_index(TARGETS, target_value(namespace, ANY, ANY, ANY)))


# What is done to guarded pods


def guard(question: PodQuestion) -> Verdict | None:
    """PUB-70 to PUB-74. None: nothing speaks against it."""
    view, pod = question.view, question.pod
    asked = _asked(question)
    if asked is None:
        return None
    operation, name = asked
    target = Target(POD_UNAVAILABLE_BUDGETS, question.namespace, name)
    ask = _Ask(pod, operation, view.gates)
    said = view.booked(target)
    if said is None:
        known = ask(view.store(POD_UNAVAILABLE_BUDGETS).get(question.namespace, name), view.now)
        # Whoever needs nothing of a budget does not stand in line for it.
        said = known.result if known.is_sure and isinstance(known.result, Freedom) else None
    if isinstance(said, Taken) and not is_let_through(said.status, pod, view.now):
        said = None  # it took so long that what was written is nearly over
    if said is None:
        return NeedsBooking(target=target, book=ask, write=_written, may_fail=True)
    if isinstance(said, Failure):
        return _deny(question, operation, name, Refused(said.message, "it is worth another try"))
    if isinstance(said, Refused):
        return _deny(question, operation, name, said)
    return Allow()


@dataclasses.dataclass(frozen=True, slots=True)
class _Ask:
    """What one request wants of its budget."""

    pod: Pod
    operation: str
    gates: Mapping[str, bool]

    def __call__(self, budget: PodUnavailableBudget | None, now: datetime) -> Booking:
        if budget is None:
            return Booking(None, Freedom.NO_BUDGET, is_sure=False)
        said = book(budget, self.pod, self.operation, gates=self.gates, now=now)
        if isinstance(said, Taken):
            return Booking(evolve(budget, status=said.status), said)
        # A store may lag behind: behind a pod that came back, or a budget that has a floor by now.
        is_sure = not isinstance(said, Refused) and said is not Freedom.NO_FLOOR
        return Booking(budget, said, is_sure=is_sure)


def _written(before: PodUnavailableBudget, after: PodUnavailableBudget) -> Action:
    old, new = before.status, after.status
    names = sorted(name for name, identity in new.identities.items() if old.identities.get(name) != identity)
    return write(before, new, f"let {listed(names)} go")


def _asked(question: PodQuestion) -> tuple[str, str] | None:
    """The operation and the budget that is asked; None: no budget, or nothing that it is about."""
    if question.operation is PodOperation.UPDATE:
        new = question.request.body()
        name = keys.budget_named_by((new.get("metadata") or {}).get("annotations") or {})
        operation = operation_of_update(question.request.old_body(), new) if name else None
        return (operation, name) if operation is not None else None
    name = keys.budget_named_by(question.pod.metadata.annotations)
    if not name:
        return None
    return (EVICT if question.operation is PodOperation.EVICTION else DELETE), name


def _deny(question: PodQuestion, operation: str, budget: str, refused: Refused) -> Deny:
    is_eviction = operation == EVICT
    which = f'{POD_UNAVAILABLE_BUDGETS.kind.lower()}.{POD_UNAVAILABLE_BUDGETS.group} "{budget}"'
    message = f"{which} is forbidden: {refused.message}"
    return Deny(
        message=message,
        code=EVICTION_CODE if is_eviction else _CODE,
        reason=EVICTION_REASON if is_eviction else _REASON,
        causes=(StatusCause(reason=_CAUSE if is_eviction else UNAVAILABLE_BUDGET, message=message, field=""),),
        record=_record(question.pod),
        note=_note(question.pod, budget, operation, refused),
    )


def _record(pod: Pod) -> Protected:
    """PUB-92, PUB-93."""
    owner = controller_of(pod)
    kind, name = (owner.kind, owner.name) if owner is not None else ("unknown", pod.metadata.name)
    namespace = pod.metadata.namespace or "default"
    return Protected(
        event="PodUnavailableBudget",
        kind=kind,
        namespace=namespace,
        name=name,
        counter=_COUNTER,
        labels={"kind_namespace_name": f"{kind}_{namespace}_{name}"},
    )


_WORDS = {DELETE: "deletion", EVICT: "eviction", UPDATE: "update", RESIZE: "resize"}


def _note(pod: Pod, budget: str, operation: str, refused: Refused) -> PublicNote:
    """PUB section 15: it names the budget, and what would free it."""
    why = f"budget {budget} refuses the {_WORDS[operation]}: {refused.message}; {refused.remedy}"
    event = EventNote(
        reason="PubPreventPodDeletion",
        message=f"openkruise pub prevents pod deletion: {why}",
        type=EventType.WARNING,
        target=Target.of(PODS, pod),
        uid=pod.metadata.uid,
    )
    return PublicNote(component=_COMPONENT, event=event)
