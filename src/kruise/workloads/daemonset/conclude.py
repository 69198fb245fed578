"""What follows for a DaemonSet once its plan was carried out: the status and when to look again."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.machinery.plan import Conclusion, EventNote, Outcomes, Plan, Result, Wake
from kruise.workloads.daemonset.causes import SELECTS_ALL
from kruise.workloads.daemonset.face import progress
from kruise.workloads.daemonset.memo import Memo
from kruise.workloads.daemonset.situation import Snapshot
from kruise.workloads.daemonset.status import effect_of, status_of, wire_form
from kruise.workloads.daemonset.update import CREATE, DELETE
from kruise.workloads.shared import conditions
from kruise.workloads.shared.adoption import ADOPT
from kruise.workloads.shared.events import budget_events, warning
from kruise.workloads.shared.rollout_revisions import REVISION
from kruise.workloads.shared.statuses import status_write, telling


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion(events=tuple(_selecting_all(plan)))
    if any(outcome.result is not Result.DONE for outcome in outcomes.within(REVISION)):
        return Conclusion()
    daemon_set, memo = snapshot.daemon_set, plan.memo_as(Memo)
    before, counted = daemon_set.status, memo.figures
    status = status_of(
        before,
        counted,
        observed_generation=(
            daemon_set.metadata.generation if _is_observed(memo, outcomes) else before.observed_generation
        ),
        conditions=conditions.changed(before.conditions, memo.conditions(before.conditions, snapshot.now)),
        failure_budget=memo.remembered_failures(before.failure_budget),
    )
    status = telling(progress, daemon_set, status, wire_form, snapshot.now)
    wakes: tuple[Wake, ...] = ()
    if counted.next_available_after is not None:
        reason = f"pod {counted.next_available} becomes available after minReadySeconds"
        wakes = (Wake(after=counted.next_available_after, reason=reason),)
    return Conclusion(
        status=status_write(DAEMON_SETS, daemon_set, status, wire_form),
        events=(*memo.events, *budget_events(memo.failure_budget)),
        wakes=wakes,
        effect=effect_of(before, status),
    )


def _is_observed(memo: Memo, outcomes: Outcomes) -> bool:
    """DS-36: the pass after the one that created or deleted pods tells the generation. Where nothing of that came to
    be, no other pass will see more."""
    return memo.is_complete or not any(
        outcome.result is Result.DONE for outcome in outcomes.within(ADOPT, CREATE, DELETE)
    )


def _selecting_all(plan: Plan) -> Iterator[EventNote]:
    for held in plan.held:
        yield from (warning("SelectingAll", cause.message) for cause in held.causes if cause.meaning is SELECTS_ALL)
