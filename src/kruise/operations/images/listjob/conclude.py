"""The status of an ImageListPullJob, and its events. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS, ImageListPullJobStatus
from kruise.machinery import plan as plans
from kruise.machinery.codec import to_builtins
from kruise.machinery.plan import Conclusion, EventNote, Outcomes, Plan, Result, Target
from kruise.operations.images.listjob.decide import CREATE, DELETE, Memo, Snapshot

CREATED, DELETED = "Successful create ImagePullJob", "Successful delete ImagePullJob"


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    memo, job = plan.memo_as(Memo), snapshot.job
    events = tuple(_events(outcomes))
    if memo.status is None or memo.status == job.status:
        return Conclusion(events=events)
    write = plans.status_patch(
        Target.of(IMAGE_LIST_PULL_JOBS, job), written(memo.status), uid=job.metadata.uid, reason="its status"
    )
    return Conclusion(status=write, events=events)


def _events(outcomes: Outcomes) -> Iterator[EventNote]:
    """ILPJ-E1, ILPJ-E2: of a whole pass, where all of it worked."""
    for phase, reason, verb in ((CREATE, CREATED, "Create"), (DELETE, DELETED, "Delete")):
        found = list(outcomes.within(phase))
        if found and all(outcome.result is Result.DONE for outcome in found):
            yield EventNote(reason=reason, message=f"{verb} {len(found)} ImagePullJob")


def written(status: ImageListPullJobStatus) -> dict[str, Any]:
    """With its zeros: they are numbers that people look at."""
    zeros = {"desired": 0, "active": 0, "completed": 0, "succeeded": 0}
    return {**zeros, **to_builtins(status)}
