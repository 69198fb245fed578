"""What follows from a pass over a StatefulSet: its status, the events of the pass, when to look again."""

from __future__ import annotations

from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.machinery.plan import Conclusion, Outcomes, Plan, Result, failure_of
from kruise.workloads.shared.events import budget_events
from kruise.workloads.shared.moving import REFRESH, UPDATE
from kruise.workloads.shared.rollout_revisions import REVISION
from kruise.workloads.shared.statuses import status_write, telling
from kruise.workloads.statefulset.face import progress
from kruise.workloads.statefulset.memo import Memo
from kruise.workloads.statefulset.scale import CLAIMS, CREATE, DELETE, IDENTITY
from kruise.workloads.statefulset.situation import Snapshot
from kruise.workloads.statefulset.status import effect_of, status_of, wire_form
from kruise.workloads.statefulset.volumes import VOLUMES

_SCALING = (CLAIMS, CREATE, DELETE)
_UPDATING = (IDENTITY, VOLUMES, REFRESH, UPDATE)


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if any(outcome.result is not Result.DONE for outcome in outcomes.within(REVISION)):
        # Nothing else was done, and a status must not name a revision that is not there.
        return Conclusion()
    statefulset, memo, pending = snapshot.statefulset, plan.memo_as(Memo), snapshot.pending
    failed_create = pending.failure(*_SCALING) or failure_of(outcomes.within(*_SCALING))
    failed_update = memo.update_error or pending.failure(*_UPDATING) or failure_of(outcomes.within(*_UPDATING))
    if statefulset.metadata.deletion_timestamp is not None:
        failed_create = failed_update = None  # neither is tried any more
    status = status_of(
        statefulset,
        memo.figures,
        now=snapshot.now,
        failed_create=failed_create,
        failed_update=failed_update,
        standing=memo.conditions(statefulset.status.conditions, snapshot.now),
        failure_budget=memo.remembered_failures(statefulset.status.failure_budget),
    )
    status = telling(progress, statefulset, status, wire_form, snapshot.now)
    wake = memo.figures.next_available
    return Conclusion(
        status=status_write(STATEFUL_SETS, statefulset, status, wire_form),
        events=(*memo.events, *budget_events(memo.failure_budget)),
        wakes=(wake,) if wake is not None else (),
        effect=effect_of(statefulset.status, status),
    )
