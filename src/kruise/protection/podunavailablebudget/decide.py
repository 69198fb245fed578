"""What the status of a budget should be, and which pods have to learn that it guards them (PUB-51 to PUB-53)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import (
    POD_UNAVAILABLE_BUDGETS,
    PodUnavailableBudget,
    PodUnavailableBudgetStatus,
)
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct, evolve, field
from kruise.machinery.intorpercent import IntOrPercentError
from kruise.machinery.plan import Action, Cause, EventNote, EventType, Held, OnError, Phase, Plan, Target, Wake
from kruise.machinery.times import format_time
from kruise.machinery.wording import listed, plural
from kruise.protection.podunavailablebudget import causes, keys
from kruise.protection.podunavailablebudget.availability import is_available, why_unavailable
from kruise.protection.podunavailablebudget.booking import (
    DISRUPTION_LASTS,
    UPDATE_LASTS,
    ends,
    is_closed,
    is_recorded,
    remedy,
)
from kruise.protection.podunavailablebudget.floor import floor_of
from kruise.protection.podunavailablebudget.members import Members
from kruise.protection.podunavailablebudget.operations import guarded_operations, unguarded_operations

MARK = "mark"
"""The phase that tells pods who guards them."""
RETURN = "return"
"""The phase that makes sure of units that were taken in vain: nobody can use them any more."""


_ASKED_AGAIN = 30.0
"""Seconds until a workload of a kind that nobody watches is asked again; changes of its pods are a reason, too."""


_AHEAD = timedelta(seconds=2)
"""By so much the clocks of managers may differ."""
_SOON = timedelta(seconds=1)
_RETURNED_WITHIN = timedelta(seconds=30)
"""Where a pod cannot be written for so long, its unit is given back all the same: it must not be lost for good."""


class Snapshot(Struct):
    budget: PodUnavailableBudget
    members: Members
    now: datetime
    gates: dict[str, bool] = field(default_factory=dict)
    waits_for: str = ""
    """What has to be known first; empty: all is known."""


class Memo(Struct):
    status: PodUnavailableBudgetStatus | None = None
    """None: nobody can tell."""
    error: str = ""
    events: tuple[EventNote, ...] = ()


def decide(snapshot: Snapshot) -> Plan:
    budget, members = snapshot.budget, snapshot.members
    if budget.metadata.deletion_timestamp is not None:
        return Plan()
    if snapshot.waits_for:
        return Plan(wakes=(Wake(after=1.0, reason=snapshot.waits_for),))
    try:
        # PUB-125: what nobody wants any more may go, whatever minAvailable says.
        floor = 0 if members.is_target_missing or members.is_abandoned else floor_of(budget.spec, members.total)
    except IntOrPercentError as error:
        return Plan(phases=_marks(snapshot), memo=Memo(error=str(error)))
    kept = _Records(snapshot)
    status = kept.status(floor)
    asks = (Wake(after=_ASKED_AGAIN, reason="nobody hears when its workload is scaled"),) if members.is_asked else ()
    return Plan(
        phases=(*_marks(snapshot), *kept.returns),
        held=tuple(_held(snapshot, status)),
        wakes=(*kept.wakes, *asks),
        memo=Memo(status=status, events=tuple(kept.events)),
    )


def _marks(snapshot: Snapshot) -> tuple[Phase, ...]:
    """PUB-51.3: one that names any budget, even one that is gone, is left alone."""
    name = snapshot.budget.metadata.name
    writes = [_mark(pod, name) for pod in snapshot.members.pods if not keys.budget_named_by(pod.metadata.annotations)]
    return (plans.single(MARK, *writes, on_error=OnError.CONTINUE),) if writes else ()


def _mark(pod: Pod, budget: str) -> Action:
    return plans.patch(
        Target.of(PODS, pod),
        {"metadata": {"annotations": {keys.RELATED: budget}}},
        uid=pod.metadata.uid,
        reason="the budget guards it",
        patch_type=PatchType.STRATEGIC,
    )


class _Records:
    """What was let through and is not over (PUB-52)."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._resizes = snapshot.gates.get(keys.RESIZE_GATE, False)
        # Once it is clear whose they are, strays count: what was let through of them must not be forgotten by then.
        self._active = {pod.metadata.name: pod for pod in (*snapshot.members.pods, *snapshot.members.strays)}
        self._gone = frozenset(snapshot.members.gone)
        self._behind = frozenset(snapshot.members.behind)
        self._ends: list[datetime] = []
        self._unused: list[Pod] = []
        self.events: list[EventNote] = []
        status = snapshot.budget.status
        self._disrupted = {
            name: since
            for name, since in self._since(status.disrupted_pods)
            if self._stays(name, ends(since, DISRUPTION_LASTS), is_deletion=True)
        }
        self._updated = {
            name: since
            for name, since in self._since(status.unavailable_pods)
            if self._stays(name, ends(since, UPDATE_LASTS), is_deletion=False)
        }

    def _since(self, records: Mapping[str, datetime]) -> Iterator[tuple[str, datetime]]:
        """A record that is far ahead was written by a clock that has jumped since, this one or another: its unit would
        be lost for as long. It lasts from now on, which is never too short: whoever has taken it did so before."""
        latest = (self._snapshot.now + _AHEAD).replace(microsecond=0)
        for name, since in records.items():
            yield name, min(since, latest)

    def _stays(self, name: str, end: datetime, *, is_deletion: bool) -> bool:
        budget, now = self._snapshot.budget, self._snapshot.now
        pod = self._active.get(name)
        if name in self._behind and now >= end:
            # The watch lags behind: what was let through may have happened, and not be seen yet.
            self._ends.append(now + _SOON)
            return True
        if pod is None or not is_recorded(budget.status, pod):
            # Gone, or another pod has the name now; unless the one of the record is yet to be seen.
            if not self._may_come(name) or now >= end:
                return False
        elif now >= end:
            if self._is_unused(pod) and now < end + _RETURNED_WITHIN:
                self._unused.append(pod)
                self._ends.append(now + _SOON)
                return True
            if is_deletion:
                self.events.append(_not_deleted(budget, pod))
            return False
        self._ends.append(end)
        return True

    def _is_unused(self, pod: Pod) -> bool:
        """The pod is in the very version that was let go: what was let through may still be on its way, in a request
        that got stuck, or in the hands of a manager that stood still. A new version of the pod puts an end to that:
        the API server asks again, or refuses what is about another version."""
        known = self._snapshot.budget.status.identities.get(pod.metadata.name)
        return known is not None and known.resource_version == pod.metadata.resource_version

    @property
    def returns(self) -> tuple[Phase, ...]:
        mark = {"metadata": {"annotations": {keys.RETURNED: format_time(self._snapshot.now)}}}
        writes = [
            plans.patch(Target.of(PODS, pod), mark, uid=pod.metadata.uid, reason="nothing came of what was let through")
            for pod in self._unused
        ]
        return (plans.single(RETURN, *writes, on_error=OnError.CONTINUE),) if writes else ()

    def _may_come(self, name: str) -> bool:
        """The pod is not among ours. It is gone, unless it was looked at in a version that has not reached us: then it
        would come as one that is available, while it is about to be deleted."""
        known = self._snapshot.budget.status.identities.get(name)
        if known is None or known.uid in self._gone or not known.resource_version.isdecimal():
            return False
        return int(known.resource_version) > self._snapshot.members.version

    @property
    def wakes(self) -> tuple[Wake, ...]:
        if not self._ends:
            return ()
        after = max(0.0, (min(self._ends) - self._snapshot.now).total_seconds())
        return (Wake(after=after, reason="what was let through is over then"),)

    def status(self, floor: int) -> PodUnavailableBudgetStatus:
        budget = self._snapshot.budget
        pods = self._snapshot.members.pods
        current = sum(
            pod.metadata.name not in self._disrupted
            and pod.metadata.name not in self._updated
            and is_available(pod, resizes=self._resizes)
            for pod in pods
        )
        identities = {
            name: known
            for name, known in budget.status.identities.items()
            if name in self._disrupted or name in self._updated
        }
        return PodUnavailableBudgetStatus(
            observed_generation=budget.metadata.generation,
            disrupted_pods=self._disrupted,
            unavailable_pods=self._updated,
            identities=identities,
            pods_version=max(budget.status.pods_version, self._snapshot.members.version),
            unavailable_allowed=max(0, current - floor),
            current_available=current,
            desired_available=floor,
            total_replicas=self._snapshot.members.total,
        )


def _not_deleted(budget: PodUnavailableBudget, pod: Pod) -> EventNote:
    where = f"{budget.metadata.namespace}/{budget.metadata.name}"
    return EventNote(
        reason="NotDeleted",
        message=f"Pod was expected by PUB {where} to be deleted but it wasn't",
        type=EventType.WARNING,
        target=Target.of(PODS, pod),
        uid=pod.metadata.uid,
    )


# Why it is as it is


def _held(snapshot: Snapshot, status: PodUnavailableBudgetStatus) -> Iterator[Held]:
    """What is wrong with the budget, and which pods use it up."""
    budget, members = snapshot.budget, snapshot.members
    target = Target.of(POD_UNAVAILABLE_BUDGETS, budget)
    if budget.metadata.namespace == KUBE_SYSTEM:
        yield Held(target=target, causes=(_unasked(),))
        return
    if (cause := _idle(snapshot, status)) is not None:
        yield Held(target=target, causes=(cause,))
        return
    if (cause := _elsewhere(budget, members)) is not None:
        yield Held(target=target, causes=(cause,))
        if all(names_other(pod, budget) for pod in members.pods):
            return  # whatever its numbers say, nobody asks it
    if members.uncounted and not isinstance(budget.spec.min_available, int):
        yield Held(target=target, causes=(_uncounted(members, "so it is not guarded with the others"),))
    if unguarded := unguarded_operations(budget, snapshot.gates):
        yield Held(target=target, causes=(_unguarded(unguarded),))
    if status.unavailable_allowed > 0 or status.desired_available == 0:
        return
    resizes = snapshot.gates.get(keys.RESIZE_GATE, False)
    down: list[str] = []
    for pod in members.pods:
        name = pod.metadata.name
        why = why_unavailable(pod, resizes=resizes)
        if not why and (name in status.disrupted_pods or name in status.unavailable_pods):
            why = "let through just now"
        if why:
            down.append(name)
            cause = causes.POD_UNAVAILABLE.cause(
                f"pod {name} does not count as available: {why}", remedy=_remedy(pod, why)
            )
            yield Held(target=Target.of(PODS, pod), causes=(cause,))
    yield Held(target=target, causes=(_used_up(snapshot, status, down),))


def _idle(snapshot: Snapshot, status: PodUnavailableBudgetStatus) -> Cause | None:
    """Why it refuses nothing."""
    budget, members = snapshot.budget, snapshot.members
    reference = budget.spec.target_ref
    if members.is_target_missing and reference is not None:
        return causes.TARGET_MISSING.cause(
            f"there is no {reference.kind} {reference.name} of {reference.api_version} in its namespace",
            remedy="create it, or delete the budget and make one for the right workload: targetRef cannot be changed",
        )
    if members.uncounted and status.desired_available == 0:
        return _uncounted(members, "so nothing is refused")
    if reference is not None and members.total == 0 and status.desired_available > 0:
        return causes.NEVER_FREE.cause(
            f"{reference.kind} {reference.name} should have no pods, and minAvailable wants"
            f" {plural(status.desired_available, 'available pod')}: those that it still has are kept",
            remedy="lower minAvailable, or delete the budget",
        )
    if not members.pods:
        if reference is None:
            remedy = "compare its selector with the labels of the pods"
            return causes.NO_PODS.cause("its selector matches no pods", remedy=remedy)
        if members.total == 0:
            remedy = "nothing has to be done: it guards the pods that come when the workload grows"
            return causes.SCALED_TO_ZERO.cause(f"{reference.kind} {reference.name} is scaled to 0", remedy=remedy)
        remedy = f"see what keeps it from having some: kruise why {reference.kind.lower()}/{reference.name}"
        return causes.NO_PODS.cause(f"{reference.kind} {reference.name} has no pods", remedy=remedy)
    if members.is_abandoned:
        return causes.TARGET_MISSING.cause(
            "the workloads of its pods are gone, and nothing is refused about what they left",
            remedy="nothing has to be done: it guards the pods of the next workload that it selects",
        )
    if members.total == 0 and status.desired_available == 0:
        return causes.UNKNOWN_COUNT.cause(
            "no workload stands behind its pods, so nobody tells how many there should be, and nothing is refused",
            remedy="set spec.protectTotalReplicas, or minAvailable as a number",
        )
    return None


def names_other(pod: Pod, budget: PodUnavailableBudget) -> bool:
    return keys.budget_named_by(pod.metadata.annotations) not in ("", budget.metadata.name)


def _elsewhere(budget: PodUnavailableBudget, members: Members) -> Cause | None:
    """A pod belongs to one budget, the first that found it (PUB-51): of any other it is not even a question."""
    elsewhere = [pod for pod in members.pods if names_other(pod, budget)]
    if not elsewhere:
        return None
    others = sorted({keys.budget_named_by(pod.metadata.annotations) for pod in elsewhere})
    kept = f"podunavailablebudget/{others[0]}"
    return causes.OTHER_BUDGET.cause(
        f"{len(elsewhere)} of its {plural(len(members.pods), 'pod')} belong to budget {listed(others)}, so this one "
        "refuses nothing about them",
        remedy=f"keep one budget for these pods: delete this one and make {kept} as strict as it should be; or delete "
        f"{kept}, and take the annotation {keys.RELATED} off the pods",
    )


def _uncounted(members: Members, effect: str) -> Cause:
    return causes.UNKNOWN_COUNT.cause(
        f"{listed(members.uncounted)} does not tell how many pods it should have, {effect}",
        remedy="set spec.protectTotalReplicas, or minAvailable as a number",
    )


def _unguarded(unguarded: Mapping[str, str]) -> Cause:
    gates = sorted(set(unguarded.values()))
    return causes.UNGUARDED.cause(
        f"{' and '.join(unguarded)} of its pods {'are' if len(unguarded) > 1 else 'is'} not guarded:"
        f" {listed(gates)} of the manager is off",
        details={"gates": gates},
        remedy=f"start the manager with --feature-gates={','.join(f'{gate}=true' for gate in gates)}",
    )


def _unasked() -> Cause:
    return causes.UNASKED.cause(
        f"deletions, evictions and changes of pods in {KUBE_SYSTEM} are never asked about; only workloads of ours that"
        " update pods in place are held to it",
        remedy="use a PodDisruptionBudget there, which holds back evictions",
    )


def _used_up(snapshot: Snapshot, status: PodUnavailableBudgetStatus, down: list[str]) -> Cause:
    spec = snapshot.budget.spec
    said = (
        f"minAvailable {spec.min_available}"
        if spec.max_unavailable is None
        else f"maxUnavailable {spec.max_unavailable}"
    )
    guarded = guarded_operations(snapshot.budget, snapshot.gates)
    asked = sorted(guarded.difference(unguarded_operations(snapshot.budget, snapshot.gates)))
    operations = f"{', '.join(asked)} {'is' if len(asked) == 1 else 'are'}"
    needed = f"{said} wants {plural(status.desired_available, 'available pod')}, and {status.current_available} are"
    if not down and is_closed(status):
        return causes.NEVER_FREE.cause(
            f"{needed}: {operations} refused, although no pod is down",
            details={"down": down},
            remedy=remedy(evolve(snapshot.budget, status=status)),
        )
    missing = status.total_replicas - len(snapshot.members.pods)
    lacking = [listed(down)] if down else []
    if missing > 0:
        lacking.append(f"{plural(missing, 'pod')} not made yet")
    return causes.USED_UP.cause(
        f"{needed}: {operations} refused until more are; not available: {' and '.join(lacking) or 'none'}",
        details={"down": down},
        remedy="wait for these pods, or repair them",
    )


def _remedy(pod: Pod, why: str) -> str:
    marks = [key for key in pod.metadata.labels if key.startswith(keys.UNAVAILABLE_PREFIX)]
    if marks:
        return f"when the repair is over: kubectl label pod {pod.metadata.name} {marks[0]}-"
    return "it ends by itself" if why == "let through just now" else "see what is wrong with the pod"
