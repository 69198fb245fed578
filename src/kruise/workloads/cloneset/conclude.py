"""What follows for a CloneSet once its plan was carried out: the status, when to look again, and the events that no
write makes (`events` has the others)."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.cloneset import CLONE_SETS, CloneSetStatus
from kruise.machinery.plan import Conclusion, Outcomes, Plan, Result, Wake, failure_of
from kruise.workloads.cloneset.face import progress
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.progress import PROGRESSING, deadline_of
from kruise.workloads.cloneset.scale import SCALE
from kruise.workloads.cloneset.situation import Snapshot
from kruise.workloads.cloneset.status import Figures, effect_of, status_of, wire_form
from kruise.workloads.shared.events import budget_events
from kruise.workloads.shared.moving import REFRESH, UPDATE
from kruise.workloads.shared.rollout_revisions import REVISION
from kruise.workloads.shared.statuses import status_write, telling


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if any(outcome.result is not Result.DONE for outcome in outcomes.within(REVISION)):
        # Nothing else was done, and a status must not name a revision that is not there.
        return Conclusion()
    cloneset, memo = snapshot.cloneset, plan.memo_as(Memo)
    counted = memo.figures
    failed_scale = snapshot.pending.failure(SCALE) or failure_of(outcomes.within(SCALE))
    failed_update = (
        memo.update_error or snapshot.pending.failure(UPDATE, REFRESH) or failure_of(outcomes.within(REFRESH, UPDATE))
    )
    if cloneset.metadata.deletion_timestamp is not None:
        failed_scale = failed_update = None  # neither is tried any more
    status = status_of(
        cloneset,
        counted,
        now=snapshot.now,
        failed_scale=failed_scale,
        failed_update=failed_update,
        standing=memo.conditions(cloneset.status.conditions, snapshot.now),
        failure_budget=memo.remembered_failures(cloneset.status.failure_budget),
    )
    status = telling(progress, cloneset, status, wire_form, snapshot.now)
    return Conclusion(
        status=status_write(CLONE_SETS, cloneset, status, wire_form),
        events=(*memo.events, *budget_events(memo.failure_budget)),
        wakes=tuple(_wakes(snapshot, counted, status)),
        effect=effect_of(cloneset.status, status),
    )


def _wakes(snapshot: Snapshot, counted: Figures, status: CloneSetStatus) -> Iterator[Wake]:
    """The moments at which time alone changes something: CS-69a and CS-118."""
    if counted.next_available is not None:
        yield counted.next_available
    condition = next((item for item in status.conditions if item.type == PROGRESSING), None)
    ends = deadline_of(condition, snapshot.cloneset.spec.progress_deadline_seconds)
    if ends is not None:
        yield Wake(after=max(0.0, (ends - snapshot.now).total_seconds()), reason="progressDeadlineSeconds ends")
