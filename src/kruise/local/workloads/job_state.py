"""What a Job's pods say about it: who runs, who ended, whether it is over, and how long to wait after failures (pure).

Pods carry a finalizer until they are counted, so that none is missed or counted twice. Delays after failures are worked
out from the failed pods that are still there; Kubernetes remembers failures in memory, with the same result as long as
nobody removes the pods.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime, timedelta

from kruise.api.meta import Condition
from kruise.api.native.pod import Pod, condition, is_ready
from kruise.local.workloads import conditions as among
from kruise.local.workloads import job_indexes
from kruise.local.workloads.conditions import whole_second
from kruise.local.workloads.objects import Job
from kruise.local.workloads.pods import FINISHED
from kruise.machinery.codec import Struct, decode, field

FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETE, FAILED = "Complete", "Failed"
SUCCESS_CRITERIA_MET, FAILURE_TARGET, SUSPENDED = "SuccessCriteriaMet", "FailureTarget", "Suspended"
FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 600.0
DEFAULT_BACKOFF_LIMIT = 6


class _TemplateSpec(Struct):
    restart_policy: str = ""


class _Template(Struct):
    spec: _TemplateSpec = field(default_factory=_TemplateSpec)


def is_finished(job: Job) -> Condition | None:
    """The condition that says so."""
    for item in job.status.conditions:
        if item.type in (COMPLETE, FAILED) and item.status == "True":
            return item
    return None


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def has_finalizer(pod: Pod) -> bool:
    return FINALIZER in pod.metadata.finalizers


def replaces_only_failed(job: Job) -> bool:
    return job.spec.pod_replacement_policy == "Failed"


@dataclasses.dataclass(slots=True)
class JobState:
    """The pods of a Job, sorted out."""

    active: list[Pod]
    ready: int
    terminating: int
    new_succeeded: list[Pod]
    """Ended since the last count, and not yet in the status."""
    new_failed: list[Pod]
    succeeded: int
    failed: int
    completed_indexes: set[int]


def sort_out(job: Job, pods: Iterable[Pod], deleted: frozenset[str]) -> JobState:
    """`deleted`: uids of the pods that are being deleted."""
    pods = list(pods)
    uncounted = job.status.uncounted_terminated_pods
    completions = job.spec.completions or 0
    active = [pod for pod in pods if pod.status.phase not in FINISHED and pod.metadata.uid not in deleted]
    terminating = [pod for pod in pods if pod.status.phase not in FINISHED and pod.metadata.uid in deleted]
    countable = [pod for pod in pods if has_finalizer(pod)]
    if is_indexed(job):
        countable = [pod for pod in countable if job_indexes.index_of(pod, completions) is not None]
    new_succeeded = [
        pod for pod in countable if pod.status.phase == "Succeeded" and pod.metadata.uid not in uncounted.succeeded
    ]
    new_failed = [pod for pod in countable if is_failed(job, pod, deleted) and pod.metadata.uid not in uncounted.failed]
    done: set[int] = set()
    succeeded = job.status.succeeded + len(new_succeeded) + len(uncounted.succeeded)
    if is_indexed(job):
        done = job_indexes.parse(job.status.completed_indexes, completions)
        done.update(
            index
            for pod in pods
            if pod.status.phase == "Succeeded" and (index := job_indexes.index_of(pod, completions)) is not None
        )
        succeeded = len(done)
    return JobState(
        active=active,
        ready=sum(is_ready(pod) for pod in active),
        terminating=len(terminating),
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=succeeded,
        failed=job.status.failed + len(new_failed) + len(uncounted.failed),
        completed_indexes=done,
    )


def is_failed(job: Job, pod: Pod, deleted: frozenset[str]) -> bool:
    """A pod that is deleted before it ended counts as failed, unless only failed pods are replaced."""
    if pod.status.phase == "Failed":
        return True
    return not replaces_only_failed(job) and pod.metadata.uid in deleted and pod.status.phase != "Succeeded"


def new_condition(kind: str, reason: str, message: str, now: datetime, *, status: str = "True") -> Condition:
    moment = whole_second(now)
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_probe_time=moment,
        last_transition_time=moment,
    )


def verdict(job: Job, state: JobState, pods: Iterable[Pod], now: datetime) -> Condition | None:
    """The end that the Job has come to, apart from having all completions: an interim condition, or `Failed` once its
    interim condition stands."""
    known = job.status.conditions
    met = among.find(known, SUCCESS_CRITERIA_MET)
    if met is not None and met.status == "True":
        return met
    target = among.find(known, FAILURE_TARGET)
    if target is not None and target.status == "True":
        return new_condition(FAILED, target.reason, target.message, now)
    limit = DEFAULT_BACKOFF_LIMIT if job.spec.backoff_limit is None else job.spec.backoff_limit
    if state.failed > limit or _restarted_too_often(job, pods, limit):
        message = "Job has reached the specified backoff limit"
        return new_condition(FAILURE_TARGET, "BackoffLimitExceeded", message, now)
    left = deadline_left(job, now)
    if left is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        return new_condition(FAILURE_TARGET, "DeadlineExceeded", message, now)
    return None


def deadline_left(job: Job, now: datetime) -> float | None:
    """Seconds until the Job has been active for too long; None: it has no deadline, or its time does not run."""
    seconds, started = job.spec.active_deadline_seconds, job.status.start_time
    if seconds is None or job.spec.suspend:
        return None
    return float(seconds) if started is None else (started + timedelta(seconds=seconds) - now).total_seconds()


def _restarted_too_often(job: Job, pods: Iterable[Pod], limit: int) -> bool:
    """Pods that restart their containers in place count by their restarts."""
    if decode(job.spec.template, _Template).spec.restart_policy != "OnFailure":
        return False
    restarts = sum(
        status.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def backoff_left(job: Job, pods: Iterable[Pod], deleted: frozenset[str], now: datetime) -> float:
    """Seconds before the next pod may be made: twice as long for every failure since the last success."""
    pods = list(pods)
    failures = [finished_at(pod) for pod in pods if is_failed(job, pod, deleted)]
    last_success = max((finished_at(pod) for pod in pods if pod.status.phase == "Succeeded"), default=None)
    if last_success is not None:
        failures = [moment for moment in failures if moment > last_success]
    if not failures:
        return 0.0
    delay = min(FIRST_BACKOFF * 2.0 ** min(len(failures) - 1, 16), LONGEST_BACKOFF)
    return max(0.0, delay - (now - max(failures)).total_seconds())


def finished_at(pod: Pod) -> datetime:
    """When a pod ended: its last container, else when it stopped being ready, was deleted, or was made."""
    ends = [status.state.terminated for status in pod.status.container_statuses]
    moments = [end.finished_at for end in ends if end is not None and end.finished_at is not None]
    if moments and len(moments) == len(ends):
        return max(moments)
    ready = condition(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None
    return metadata.creation_timestamp
