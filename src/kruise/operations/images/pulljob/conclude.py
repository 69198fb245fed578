"""The status of an ImagePullJob (IPJ-41, IPJ-42). Pure."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.images import IMAGE_PULL_JOBS, ImagePullJobStatus
from kruise.machinery import plan as plans
from kruise.machinery.codec import to_builtins
from kruise.machinery.plan import Conclusion, Outcomes, Plan, Result, Target
from kruise.operations.images.pulljob.decide import SPREAD, Memo, Snapshot

COMPLETED = "job has completed"
LATE = "job exceeds activeDeadlineSeconds"
NO_PROGRESS = "job is running, no progress"


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    memo, job = plan.memo_as(Memo), snapshot.job
    if not memo.is_counted:
        return Conclusion()
    begun = sum(outcome.result is Result.DONE for outcome in outcomes.within(SPREAD))
    status = ImagePullJobStatus(
        start_time=memo.start_time,
        completion_time=memo.completion_time,
        desired=memo.desired,
        active=memo.active + begun,
        succeeded=memo.succeeded,
        failed=len(memo.failed_nodes),
        failed_nodes=memo.failed_nodes,
        message=message_of(memo),
    )
    if status == job.status:
        return Conclusion()
    write = plans.status_patch(
        Target.of(IMAGE_PULL_JOBS, job), written(status), uid=job.metadata.uid, reason="its status"
    )
    return Conclusion(status=write)


def message_of(memo: Memo) -> str:
    if memo.problem:
        return memo.problem
    if memo.is_late:
        return LATE
    if memo.completion_time is not None:
        return COMPLETED
    if memo.desired == 0:
        return NO_PROGRESS
    done = 100 * (memo.succeeded + len(memo.failed_nodes)) / memo.desired
    return f"job is running, progress {done:.1f}%"


def written(status: ImagePullJobStatus) -> dict[str, Any]:
    """With its zeros: they are numbers that people look at."""
    zeros = {"desired": 0, "active": 0, "succeeded": 0, "failed": 0}
    return {**zeros, **to_builtins(status)}
