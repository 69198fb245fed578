"""What a pass over a BroadcastJob sees, and what follows from it before anything is decided (BJ-20 to BJ-32). Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import UTC, datetime

from kruise.api.apps.broadcastjob import (
    COMPLETE_CONDITION,
    FAILED,
    FAILED_CONDITION,
    NAME_LABEL,
    NEVER,
    PAUSE,
    UID_LABEL,
    BroadcastJob,
)
from kruise.api.native.daemon_pods import target_node
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.machinery.codec import Struct
from kruise.workloads.broadcastjob.fitting import judge_of, pod_obstacle
from kruise.workloads.broadcastjob.numbers import Limit, limit_of

_BEGINNING = datetime.min.replace(tzinfo=UTC)
_FINISHED = ("Succeeded", "Failed")


class Snapshot(Struct, kw_only=True):
    job: BroadcastJob
    pods: tuple[Pod, ...] = ()
    """Those that it controls, in whatever state."""
    nodes: tuple[Node, ...] = ()
    foreign: tuple[str, ...] = ()
    """Names that it would give to pods, and that pods of others have."""
    by_scheduler: bool = True
    """New pods name their node by affinity, and the scheduler places them (flag assign-bcj-pods-by-scheduler)."""
    now: datetime


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    snapshot: Snapshot
    job: BroadcastJob
    served: dict[str, Pod]
    """Desired nodes that have a pod, by name."""
    rest: tuple[str, ...]
    """Desired nodes that have none, by name."""
    unfit: tuple[tuple[Pod, str], ...]
    """Pods whose node does not suit them any more, and why."""
    against: dict[str, str]
    """Nodes without a pod that the template does not suit, and why."""
    active: tuple[Pod, ...]
    succeeded: int
    failed: tuple[Pod, ...]
    over_limit: tuple[Pod, ...]
    """Of the failed ones, those that still run: they have restarted too often."""
    leaving: tuple[Pod, ...]
    """Those that are being deleted and have not finished: no counter has them (BJ-29)."""
    twins: tuple[tuple[Pod, str], ...]
    """Pods on a node that has another one of the job (BJ-26)."""
    limit: Limit

    @property
    def desired(self) -> int:
        return len(self.served) + len(self.rest)

    @property
    def is_done(self) -> bool:
        """Every node had its pod, and none of them runs any more (BJ-46)."""
        return self.desired > 0 and not self.rest and all(is_over(pod) for pod in self.served.values())


def situation_of(snapshot: Snapshot) -> Situation:
    job = snapshot.job
    pods = own_pods(snapshot)
    by_node: dict[str, Pod] = {}
    twins: list[tuple[Pod, str]] = []
    for pod in pods:
        node = target_node(pod)
        if node in by_node:
            twins.append((pod, node))
        if node:
            by_node[node] = pod  # the later one wins (BJ-26)
    judge = judge_of(job.spec.template)
    served: dict[str, Pod] = {}
    rest: list[str] = []
    unfit: list[tuple[Pod, str]] = []
    against: dict[str, str] = {}
    for one in sorted(snapshot.nodes, key=_name):
        name, found = one.metadata.name, by_node.get(one.metadata.name)
        if found is None:
            why = judge(one)
            if why:
                against[name] = why
            else:
                rest.append(name)
        elif found.metadata.deletion_timestamp is not None or not (why := pod_obstacle(found, one)):
            served[name] = found
        else:
            unfit.append((found, why))
    active: list[Pod] = []
    failed: list[Pod] = []
    over_limit: list[Pod] = []
    leaving: list[Pod] = []
    succeeded = 0
    for pod in pods:
        if pod.status.phase == "Succeeded":
            succeeded += 1
        elif pod.status.phase == "Failed":
            failed.append(pod)
        elif pod.metadata.deletion_timestamp is not None:
            leaving.append(pod)
        elif is_over_limit(job, pod):
            failed.append(pod)
            over_limit.append(pod)
        else:
            active.append(pod)
    return Situation(
        snapshot=snapshot,
        job=job,
        served=served,
        rest=tuple(rest),
        unfit=tuple(unfit),
        against=against,
        active=tuple(active),
        succeeded=succeeded,
        failed=tuple(failed),
        over_limit=tuple(over_limit),
        leaving=tuple(leaving),
        twins=tuple(twins),
        limit=limit_of(job.spec.parallelism, len(served) + len(rest)),
    )


def own_pods(snapshot: Snapshot) -> list[Pod]:
    """The oldest first."""
    return sorted((pod for pod in snapshot.pods if _is_own(snapshot.job, pod)), key=_age)


def is_finished(job: BroadcastJob) -> bool:
    """It has ended for good, and its status stays as it is (BJ-46)."""
    return job.spec.completion_policy.type != NEVER and has_ended(job)


def wants_no_nodes(job: BroadcastJob) -> bool:
    """Nor does one that has failed, if it never completes (BJ-51)."""
    return is_finished(job) or job.status.phase == FAILED


def is_paused_by_failure(situation: Situation) -> bool:
    """BJ-39."""
    return bool(situation.failed) and situation.job.spec.failure_policy.type == PAUSE


def has_ended(job: BroadcastJob) -> bool:
    ends = (COMPLETE_CONDITION, FAILED_CONDITION)
    return any(condition.type in ends and condition.status == "True" for condition in job.status.conditions)


def is_over(pod: Pod) -> bool:
    """In the plain sense: it has finished, or it is being deleted."""
    return pod.status.phase in _FINISHED or pod.metadata.deletion_timestamp is not None


def is_over_limit(job: BroadcastJob, pod: Pod) -> bool:
    """BJ-32: the restarts of this pod, not of all."""
    return pod.spec.restart_policy == "OnFailure" and restarts_of(pod) > job.spec.failure_policy.restart_limit


def restarts_of(pod: Pod) -> int:
    status = pod.status
    return sum(one.restart_count for one in (*status.init_container_statuses, *status.container_statuses))


def _is_own(job: BroadcastJob, pod: Pod) -> bool:
    """BJ-27. Its controller is the job already."""
    labels = pod.metadata.labels
    return labels.get(NAME_LABEL) == job.metadata.name and labels.get(UID_LABEL) == job.metadata.uid


def _name(node: Node) -> str:
    return node.metadata.name


def _age(pod: Pod) -> tuple[datetime, str]:
    return pod.metadata.creation_timestamp or _BEGINNING, pod.metadata.name


def names(pods: Iterable[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]
