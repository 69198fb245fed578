"""What follows for a budget: its status and its events."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.api.policy.podunavailablebudget import PodUnavailableBudgetStatus
from kruise.machinery.codec import evolve
from kruise.machinery.plan import Conclusion, EventNote, EventType, Outcomes, Plan, StatusEffect
from kruise.machinery.wording import plural
from kruise.protection.podunavailablebudget.booking import write
from kruise.protection.podunavailablebudget.decide import Memo, Snapshot, names_other
from kruise.protection.podunavailablebudget.operations import unguarded_operations


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    memo = plan.memo_as(Memo)
    events = tuple(_events(snapshot, memo))
    if memo.status is None:
        return Conclusion(events=events, retry=memo.error)
    budget = snapshot.budget
    status = None if _same(budget.status, memo.status) else write(budget, memo.status, "the numbers changed")
    return Conclusion(status=status, events=events, effect=StatusEffect.INFORMS)


def _same(before: PodUnavailableBudgetStatus, after: PodUnavailableBudgetStatus) -> bool:
    """Which pods they are of is no news by itself."""
    return evolve(before, pods_version=0) == evolve(after, pods_version=0)


def _events(snapshot: Snapshot, memo: Memo) -> Iterator[EventNote]:
    if not snapshot.members.pods:
        yield EventNote(reason="NoPods", message="No matching pods found")
    if memo.error:
        yield EventNote(
            reason="CalculateExpectedPodCountFailed",
            message=f"Failed to calculate the number of expected pods: {memo.error}",
            type=EventType.WARNING,
        )
    budget = snapshot.budget
    if budget.status.observed_generation != budget.metadata.generation:
        # Once for each spec: there is no condition that could tell it.
        for said in _not_guarded(snapshot):
            yield EventNote(reason="NotGuarded", message=said, type=EventType.WARNING)
    yield from memo.events


def _not_guarded(snapshot: Snapshot) -> Iterator[str]:
    budget = snapshot.budget
    if unguarded := unguarded_operations(budget, snapshot.gates):
        gates = " and ".join(sorted(set(unguarded.values())))
        yield f"{', '.join(unguarded)} of its pods not guarded: {gates} of the manager is off"
    pods = snapshot.members.pods
    if elsewhere := sum(names_other(pod, budget) for pod in pods):
        yield f"{elsewhere} of its {plural(len(pods), 'pod')} belong to another budget, which alone is asked"
    if budget.metadata.namespace == KUBE_SYSTEM:
        yield f"nobody is asked about pods in {KUBE_SYSTEM}"
