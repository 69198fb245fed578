"""What a BroadcastJob needs, decided from a snapshot (BJ-33).

A finished job is deleted when its time is over, and is else left alone. Otherwise: pause, failures, deadline, pods on
nodes that do not suit any more, new pods, completion, in this order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from kruise.api.apps.broadcastjob import (
    BROADCAST_JOBS,
    COMPLETE_CONDITION,
    COMPLETED,
    CONTINUE,
    FAIL_FAST,
    FAILED,
    FAILED_CONDITION,
    NEVER,
    PAUSED,
    RUNNING,
    BroadcastJob,
)
from kruise.api.meta import key_of
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import plan as plans
from kruise.machinery.codec import evolve
from kruise.machinery.plan import EventNote, Held, OnError, Phase, Plan, Target, Urgency, Wake
from kruise.machinery.wording import listed, namespace_flag, plural
from kruise.workloads.broadcastjob import causes
from kruise.workloads.broadcastjob.creation import create_pods
from kruise.workloads.broadcastjob.memo import End, Memo
from kruise.workloads.broadcastjob.situation import (
    Situation,
    Snapshot,
    has_ended,
    is_finished,
    is_over,
    is_over_limit,
    is_paused_by_failure,
    names,
    own_pods,
    situation_of,
)
from kruise.workloads.broadcastjob.status import counted, ended, seconds_left, seconds_to_live, start_of, write_of
from kruise.workloads.shared.events import warning

CREATE, DELETE, END, REMOVE = "create", "delete", "end", "remove"
_LONGEST_PASS = 0.5
"""Seconds for which pods are made before the status tells of it."""
_NAMED = 100
"""Pods that a cause names at most."""

FAILED_POD_REASON = "failed pod is found"
FAILED_POD = "failure policy is FailurePolicyTypeFailFast and failed pod is found"
DEADLINE_REASON = "DeadlineExceeded"


def decide(snapshot: Snapshot) -> Plan:
    job = snapshot.job
    if is_finished(job):
        return _finished(snapshot)
    situation = situation_of(snapshot)
    before = job.status.phase or RUNNING
    if before == FAILED:
        return _failed_before(situation)
    if job.spec.paused:
        cause = causes.JOB_PAUSED.cause(f"the job is paused; {plural(len(situation.rest), 'node')} to go")
        return _paused(situation, cause, ())
    if is_paused_by_failure(situation):
        return _paused_by_failure(situation)
    notes = [*_twins(situation)]
    if before == PAUSED:
        notes.append(EventNote(reason="Continue", message="continue to process job"))
    if situation.failed and job.spec.failure_policy.type == FAIL_FAST:
        told = _with_counts(FAILED_POD, situation.succeeded, len(situation.failed))
        notes.append(warning(FAILED_POD_REASON, told))
        return _failing(situation, End(condition=FAILED_CONDITION, event=FAILED_POD_REASON, message=FAILED_POD), notes)
    left = _until_deadline(job, snapshot.now)
    if left is not None and left <= 0:
        message = f"Job {key_of(job)} was active longer than specified deadline"
        return _failing(situation, End(condition=FAILED_CONDITION, event=DEADLINE_REASON, message=message), notes)
    return _going_on(situation, notes, left)


# The end of a finished job


def _finished(snapshot: Snapshot) -> Plan:
    """BJ-47. Its pods go with it."""
    job = snapshot.job
    failed = next((one for one in job.status.conditions if one.type == FAILED_CONDITION), None)
    plan = Plan()
    if failed is not None:
        pods = own_pods(snapshot)
        plan = Plan(phases=_stop(pods), held=_failures(job, pods, failed.message), memo=_frozen(snapshot, pods))
    left = seconds_to_live(job, snapshot.now)
    if left is None or job.metadata.deletion_timestamp is not None:
        return plan
    if left > 0:
        return dataclasses.replace(plan, wakes=(Wake(after=left, reason="ttlSecondsAfterFinished is over then"),))
    ttl = job.spec.completion_policy.ttl_seconds_after_finished
    reason = f"it finished more than {plural(ttl or 0, 'second')} ago"
    removal = plans.delete(Target.of(BROADCAST_JOBS, job), uid=job.metadata.uid, reason=reason)
    return Plan(phases=(plans.single(REMOVE, removal),))


def _frozen(snapshot: Snapshot, pods: Iterable[Pod]) -> Memo:
    """The numbers of a job that has failed stay as they are (BJ-36), but for pods that could not be deleted: they are
    active while they run, and count then by how they ended, or as failed."""
    status, found = snapshot.job.status, list(pods)
    active = [pod for pod in found if not is_over(pod) and not is_over_limit(snapshot.job, pod)]
    ended = max(status.active - len(active), 0)
    succeeded = min(ended, max(sum(pod.status.phase == "Succeeded" for pod in found) - status.succeeded, 0))
    return Memo(
        phase=status.phase,
        desired=status.desired,
        active=len(active),
        succeeded=status.succeeded + succeeded,
        failed=max(status.active + status.failed - len(active) - succeeded, 0),
        start_time=start_of(snapshot.job, snapshot.now),
        active_pods=tuple(names(active)),
        is_frozen=True,
    )


def _failed_before(situation: Situation) -> Plan:
    """A job that never completes has failed: it is only counted (BJ-51)."""
    job, pods = situation.job, own_pods(situation.snapshot)
    said = next((one.message for one in job.status.conditions if one.type == FAILED_CONDITION), "")
    return Plan(phases=_stop(pods), held=_failures(job, pods, said), memo=_memo(situation, FAILED))


def _failures(job: BroadcastJob, pods: Sequence[Pod], said: str) -> tuple[Held, ...]:
    """Of a job that has failed: which of its pods did, as far as they are still there."""
    failed = [pod for pod in pods if pod.status.phase == "Failed"]
    look = f"see the failed pods ({_logs(failed[0])}); then " if failed else ""
    remedy = f"{look}delete the job, and create it anew"
    details = {"failed": names(failed)[:_NAMED]}
    cause = causes.JOB_FAILED.cause(f"the job has failed: {said}", details=details, remedy=remedy)
    found = [Held(target=Target.of(BROADCAST_JOBS, job), causes=(cause,))]
    for pod in failed[:_NAMED]:
        told = causes.POD_FAILED.cause(_how(pod), remedy=f"see what it printed: {_logs(pod)}")
        found.append(Held(target=Target.of(PODS, pod), causes=(told,)))
    for pod in [pod for pod in pods if not is_over(pod)][:_NAMED]:
        flag = namespace_flag(pod.metadata.namespace)
        remedy = f"see who refuses its deletion: kubectl delete pod {pod.metadata.name}{flag} --dry-run=server"
        told = causes.STILL_RUNS.cause("it still runs, and is deleted since the job has failed", remedy=remedy)
        found.append(Held(target=Target.of(PODS, pod), causes=(told,)))
    return tuple(found)


def _how(pod: Pod) -> str:
    """How a pod failed, as far as its node has told."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        done = status.state.terminated or status.last_state.terminated
        if done is not None and done.exit_code:
            said = f": {done.message.strip()}" if done.message.strip() else ""
            return f"container {status.name} ended with exit code {done.exit_code}{said}"
    said = ": ".join(part for part in (pod.status.reason, pod.status.message) if part)
    return f"it failed: {said}" if said else "it failed"


# Pauses


def _paused(situation: Situation, cause: plans.Cause, notes: tuple[EventNote, ...]) -> Plan:
    """Pods that run go on, and nothing else happens (BJ-40)."""
    return Plan(held=_held(situation, cause), memo=_memo(situation, PAUSED, notes))


def _paused_by_failure(situation: Situation) -> Plan:
    """BJ-39. The event tells of the moment, not of every look at it."""
    status, failed = situation.job.status, names(situation.failed)
    is_news = status.phase != PAUSED or status.failed == 0
    notes = (warning("Paused", "job is paused, due to failed pod"),) if is_news else ()
    cause = causes.FAILURE_PAUSES.cause(
        f"failurePolicy Pause: {plural(len(failed), 'pod')} failed ({listed(failed[:3])})",
        details={"failed": failed[:_NAMED]},
        remedy=f"see why ({_logs(situation.failed[0])}); then delete the failed pods, and their nodes are served anew,"
        f" or set failurePolicy.type to {CONTINUE} to leave these nodes as they are",
    )
    return _paused(situation, cause, notes)


# Failure


def _failing(situation: Situation, end: End, notes: list[EventNote]) -> Plan:
    """All pods that run go, those that restart again and again among them, and with them the job has failed (BJ-36).

    The end is written first: whatever happens then to the manager or to a deletion, the numbers are right, and the next
    pass deletes what is left.
    """
    job, stopped = situation.job, len(situation.active) + len(situation.leaving)
    restarting = next((pod for pod in situation.failed if not is_over(pod)), None)
    memo = evolve(
        _memo(situation, FAILED, notes, end=end),
        active=0,
        failed=len(situation.failed) + stopped,
        stopped=stopped,
        lost=f"pod {restarting.metadata.name}: {_how(restarting)}" if restarting is not None else "",
    )
    status, _ = ended(job, memo, counted(job, memo), situation.snapshot.now)
    return Plan(phases=(plans.single(END, write_of(job, status)), *_stop(own_pods(situation.snapshot))), memo=memo)


def _stop(pods: Iterable[Pod]) -> tuple[Phase, ...]:
    """A job that has failed runs nothing any more."""
    chains = tuple((_deletion(pod, "the job has failed"),) for pod in pods if not is_over(pod))
    return (Phase(name=DELETE, chains=chains, on_error=OnError.CONTINUE),) if chains else ()


def _until_deadline(job: BroadcastJob, now: datetime) -> float | None:
    """Seconds; None: there is no deadline (BJ-48)."""
    seconds = job.spec.completion_policy.active_deadline_seconds
    if seconds is None or job.spec.completion_policy.type == NEVER:
        return None
    if seconds <= 0:
        return 0.0  # at once, although its start is told in whole seconds
    return seconds_left(start_of(job, now), seconds, now)


# Work


def _going_on(situation: Situation, notes: list[EventNote], left: float | None) -> Plan:
    snapshot, job, limit = situation.snapshot, situation.job, situation.limit
    deletions = tuple((_deletion(pod, f"its node: {why}"),) for pod, why in situation.unfit)
    room = 0 if limit.problem else limit.pods - len(situation.active)
    if room < 0:
        notes.append(warning("TooManyActivePods", "Number of active pods exceed parallelism limit"))
    chosen = situation.rest[: max(room, 0)] if job.metadata.deletion_timestamp is None else ()
    taken = (*names(snapshot.pods), *snapshot.foreign)
    creations = create_pods(job, chosen, taken=taken, by_scheduler=snapshot.by_scheduler)
    phases = (
        Phase(name=DELETE, chains=deletions, on_error=OnError.CONTINUE),
        Phase(
            name=CREATE,
            chains=tuple((action,) for action in creations),
            on_error=OnError.STOP_PHASE,
            slow_start=True,
            pause_after=_LONGEST_PASS,
            urgency=Urgency.LATER,
        ),
    )
    end = None
    if situation.is_done and job.spec.completion_policy.type != NEVER:
        end = End(condition=COMPLETE_CONDITION, event="JobComplete", message="")
    wakes = () if left is None or end is not None else (Wake(after=left, reason="activeDeadlineSeconds is over then"),)
    return Plan(
        phases=tuple(phase for phase in phases if phase.chains),
        held=tuple(_waiting(situation, len(chosen))) if end is None else (),
        wakes=wakes,
        memo=_memo(situation, _phase_of(job), notes, end=end),
    )


def _phase_of(job: BroadcastJob) -> str:
    """One that had completed before it was told never to complete goes on, and stays completed."""
    return COMPLETED if has_ended(job) else RUNNING


def _waiting(situation: Situation, chosen: int) -> Iterator[Held]:
    """Why the job is not over yet."""
    target = Target.of(BROADCAST_JOBS, situation.job)
    for pod in situation.over_limit:
        cause = causes.RESTARTS.cause(
            f"it has restarted more often than restartLimit {situation.job.spec.failure_policy.restart_limit} allows,"
            " counts as failed, and still runs",
            remedy=f"see why ({_logs(pod)}); then delete it, and its node is served anew",
        )
        yield Held(target=Target.of(PODS, pod), causes=(cause,))
    runs = causes.TASKS.cause("its task has not ended yet")
    for pod in situation.active[:_NAMED]:
        yield Held(target=Target.of(PODS, pod), causes=(runs,))
    if (found := _cause(situation, chosen)) is not None:
        yield Held(target=target, causes=(found,))


def _cause(situation: Situation, chosen: int) -> plans.Cause | None:
    limit, rest = situation.limit, len(situation.rest) - chosen
    if situation.job.metadata.deletion_timestamp is not None:
        rest = 0  # they are not served any more (BJ-54)
    active = {"pods": names(situation.active)[:_NAMED]}
    if not situation.desired:
        return causes.NO_NODE.cause(
            f"no node suits the job: {_reasons(situation)}",
            remedy="correct node selector, affinity, tolerations or requests of the template, or add a node that suits",
        )
    if rest and limit.problem:
        return causes.NO_PARALLELISM.cause(
            f"parallelism cannot be read: {limit.problem}",
            remedy='set spec.parallelism to a number, or to a percentage such as "10%"',
        )
    if rest and limit.pods <= 0:
        return causes.NO_PARALLELISM.cause(
            f"parallelism is {situation.job.spec.parallelism}, so no pod is made",
            remedy="set spec.parallelism to a positive number or percentage, or leave it out for no limit",
        )
    if rest:
        told = f"{plural(rest, 'node', 'waits for its turn', 'wait for their turn')}: {limit.pods} at a time"
        return causes.PARALLELISM.cause(told, details=active)
    if situation.active or chosen:
        count = len(situation.active) + chosen
        return causes.TASKS.cause(f"{plural(count, 'pod', 'has', 'have')} not finished yet", details=active)
    if situation.job.spec.completion_policy.type == NEVER and situation.is_done:
        done = plural(situation.desired, "node", "is", "are")
        return causes.NEVER_COMPLETES.cause(
            f"{done} done; completionPolicy Never: it waits for nodes that come later",
            remedy="delete it when no node needs it any more",
        )
    leaving = [pod for pod in situation.served.values() if not is_over(pod)]
    if leaving:  # over the limit, told of above
        return causes.TASKS.cause(
            f"{plural(len(leaving), 'pod', 'has', 'have')} not finished yet", details={"pods": names(leaving)}
        )
    return None


def _reasons(situation: Situation) -> str:
    """Why nodes do not suit, the most frequent reason first."""
    found: dict[str, int] = {}
    for why in (*situation.against.values(), *(why for _, why in situation.unfit)):
        found[why] = found.get(why, 0) + 1
    if not found:
        return "there is none"
    most = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:3]
    return "; ".join(f"{plural(count, 'node')}: {why}" for why, count in most)


# Parts


def _twins(situation: Situation) -> Iterator[EventNote]:
    for pod, node in situation.twins:
        message = f"pod {pod.metadata.name} is on node {node}, which has another pod of the job"
        yield warning("DuplicatePodCreatedOnSameNode", message)


def _deletion(pod: Pod, reason: str) -> plans.Action:
    return plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=reason)


def _held(situation: Situation, cause: plans.Cause) -> tuple[Held, ...]:
    return (Held(target=Target.of(BROADCAST_JOBS, situation.job), causes=(cause,)),)


def _memo(
    situation: Situation, phase: str, notes: list[EventNote] | tuple[EventNote, ...] = (), *, end: End | None = None
) -> Memo:
    return Memo(
        phase=phase,
        desired=situation.desired,
        active=len(situation.active),
        succeeded=situation.succeeded,
        failed=len(situation.failed),
        start_time=start_of(situation.job, situation.snapshot.now),
        end=end,
        events=tuple(notes),
        active_pods=tuple(names(situation.active)),
    )


def _with_counts(message: str, succeeded: int, failed: int) -> str:
    return f"{message}: {succeeded} pods succeeded, {failed} pods failed"


def _logs(pod: Pod) -> str:
    return f"kubectl logs {pod.metadata.name}{namespace_flag(pod.metadata.namespace)}"
