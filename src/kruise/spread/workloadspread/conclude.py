"""What follows for a WorkloadSpread once its plan was carried out: its events, and the generation that is
observed once all pods are marked. The rest of the status is a part of the plan."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import ChainOutcomes, Conclusion, EventNote, EventType, Outcomes, Plan, Result, StatusEffect
from kruise.spread.workloadspread.decide import LEDGER, MARK, STATUS, Memo
from kruise.spread.workloadspread.situation import Snapshot
from kruise.spread.workloadspread.statuses import observed_write


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    # What has expired is told once it is out of the ledger: a pass that comes to nothing is made again.
    is_told = all(
        outcome.result is Result.DONE
        for outcome in outcomes.within(LEDGER, STATUS)
        if outcome.action.subresource == "status"
    )
    memo = plan.memo_as(Memo)
    told = memo.events if is_told else ()
    if memo.observes is None or any(
        outcome.result is not Result.DONE for outcome in outcomes.within(LEDGER, MARK, STATUS)
    ):
        return Conclusion(events=told)
    status = observed_write(snapshot.spread, memo.observes)
    return Conclusion(status=status, events=told, effect=StatusEffect.BLOCKS)


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    for outcome in chain:
        if outcome.result is not Result.FAILED:
            continue
        name = outcome.action.target.name
        if phase == MARK:
            text = f"Failed to patch pod {name}: {outcome.message}"
            yield EventNote(reason="PatchPodDeletionCostFailed", message=text, type=EventType.WARNING)
        elif outcome.action.verb is Verb.DELETE:
            text = f"Failed to delete unschedulable pod {name}: {outcome.message}"
            yield EventNote(reason="DeletePodFailed", message=text, type=EventType.WARNING)
