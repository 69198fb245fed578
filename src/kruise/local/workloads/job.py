"""Job: pods that run to their end (decisions).

A pass makes or removes pods, then counts those that ended. Counting takes three steps that may break off anywhere
without losing a pod: the pods go into `uncountedTerminatedPods` of the status, they lose their finalizer, and the
status moves them into its counts. The first two are in the plan, the third is the status that `conclude` writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from kruise.api.meta import Condition
from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.local.workloads import conditions as among
from kruise.local.workloads import job_indexes, templates
from kruise.local.workloads.job_state import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    FINALIZER,
    SUCCESS_CRITERIA_MET,
    SUSPENDED,
    JobState,
    backoff_left,
    deadline_left,
    has_finalizer,
    is_failed,
    is_finished,
    is_indexed,
    new_condition,
    replaces_only_failed,
    sort_out,
    verdict,
)
from kruise.local.workloads.objects import JOBS, Job, JobStatus, UncountedPods
from kruise.local.workloads.pods import first_to_go, selector_of
from kruise.local.workloads.replicaset import pod_events
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.codec import Struct, evolve
from kruise.machinery.names import choose_names
from kruise.machinery.ownership import Owner, adoption, claim, release
from kruise.machinery.plan import (
    Action,
    Chain,
    Conclusion,
    EventNote,
    EventType,
    OnError,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
    Wake,
    single,
)
from kruise.machinery.times import format_time

__all__ = ["FINALIZER", "Snapshot", "conclude", "decide"]

AT_ONCE = 500
"""How many pods one pass makes, removes or counts at most."""
_CONTROLLER = "kubernetes.io/job-controller"
_PODS, _COUNT, _FINALIZERS = "pods", "count", "finalizers"


class Snapshot(Struct):
    now: datetime
    seed: int
    job: Job | None
    """None: it is gone."""
    pods: tuple[Pod, ...]
    """Those that it controls."""
    orphans: tuple[Pod, ...]
    """Active ones that nobody controls and that its selector matches."""
    lost: tuple[Pod, ...] = ()
    """Pods of a Job of this name that is gone: nobody will count them."""
    deleted: tuple[str, ...] = ()
    """Uids of the pods that are being deleted."""


@dataclasses.dataclass(slots=True)
class _Course:
    """What a pass does."""

    state: JobState
    end: Condition | None = None
    pods: Phase | None = None
    counted: list[Pod] = dataclasses.field(default_factory=list)
    status: JobStatus = dataclasses.field(default_factory=JobStatus)
    """As it is to be written before the finalizers go."""
    wake: Wake | None = None
    events: list[EventNote] = dataclasses.field(default_factory=list)


def decide(snapshot: Snapshot) -> Plan:
    lost = [_without_finalizer(pod, "its Job is gone") for pod in snapshot.lost]
    phases = [single("lost", *lost, on_error=OnError.CONTINUE)] if lost else []
    job = snapshot.job
    if job is None or not _is_ours(job):
        return Plan(phases=tuple(phases))
    finished = is_finished(job)
    if finished is not None:
        return _retire(job, finished, phases, snapshot.now)
    owner = Owner.of(JOBS, job)
    claimed = claim(owner, (*snapshot.pods, *snapshot.orphans), selector_of(job.spec.selector))
    chains: list[Chain] = [_adoption(owner, pod) for pod in claimed.to_adopt]
    chains += [(_release(pod, owner),) for pod in claimed.to_release]
    if chains:
        phases.append(Phase(name="claim", chains=tuple(chains)))
    course = _course(snapshot, (*claimed.owned, *claimed.to_adopt))
    if course.pods is not None:
        phases.append(course.pods)
    if course.counted or _has_new_interim(job, course.status):
        reason = "pods ended" if course.counted else "the Job is about to end"
        phases.append(single(_COUNT, _status_write(job, course.status, reason)))
    if course.counted:
        removals = (_without_finalizer(pod, "counted") for pod in course.counted)
        phases.append(single(_FINALIZERS, *removals, on_error=OnError.CONTINUE))
    return Plan(phases=tuple(phases), wakes=() if course.wake is None else (course.wake,))


def _is_ours(job: Job) -> bool:
    return job.spec.managed_by in ("", _CONTROLLER)


def _retire(job: Job, finished: Condition, phases: list[Phase], now: datetime) -> Plan:
    """A finished Job is removed after its time to live."""
    seconds, since = job.spec.ttl_seconds_after_finished, finished.last_transition_time
    if seconds is None or since is None or job.metadata.deletion_timestamp is not None:
        return Plan(phases=tuple(phases))
    left = (since + timedelta(seconds=seconds) - now).total_seconds()
    if left > 0:
        return Plan(phases=tuple(phases), wakes=(Wake(after=left, reason="ttlSecondsAfterFinished"),))
    target = Target.of(JOBS, job)
    removal = plans.delete(target, uid=job.metadata.uid, reason="ttlSecondsAfterFinished", propagation="Foreground")
    return Plan(phases=(*phases, single("retire", removal)))


def _adoption(owner: Owner, pod: Pod) -> Chain:
    check, adopt = adoption(owner, PODS, pod)
    metadata = {**adopt.body["metadata"], "finalizers": [FINALIZER]}
    return (check, dataclasses.replace(adopt, body={"metadata": metadata}))


def _release(pod: Pod, owner: Owner) -> Action:
    action = release(PODS, pod, owner)
    metadata = {**action.body["metadata"], "$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    return dataclasses.replace(action, body={"metadata": metadata})


def _without_finalizer(pod: Pod, reason: str) -> Action:
    return plans.patch(
        Target.of(PODS, pod),
        {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}},
        uid=pod.metadata.uid,
        reason=reason,
        patch_type=PatchType.STRATEGIC,
    )


def _course(snapshot: Snapshot, pods: Sequence[Pod]) -> _Course:
    job = snapshot.job
    assert job is not None
    deleted = frozenset(snapshot.deleted)
    state = sort_out(job, pods, deleted)
    course = _Course(state)
    status = job.status
    if status.start_time is None and not job.spec.suspend:
        status = evolve(status, start_time=among.whole_second(snapshot.now))
    course.end = verdict(evolve(job, status=status), state, pods, snapshot.now)
    active = len(state.active)
    if course.end is not None:
        course.pods = _remove_active(state)
        active, state.terminating = 0, state.terminating + active
        state.ready = 0
    else:
        if job.metadata.deletion_timestamp is None:
            active = _manage(snapshot, job, pods, course)
        wanted = job.spec.completions
        complete = active == 0 and (state.succeeded >= wanted if wanted is not None else state.succeeded > 0)
        if complete:
            message = "Reached expected number of succeeded pods"
            course.end = new_condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message, snapshot.now)
        elif job.metadata.deletion_timestamp is None:
            status = _suspension(job, status, course, snapshot.now)
    status = evolve(status, active=active, ready=state.ready, terminating=state.terminating)
    course.status = _interim(course, _count(snapshot, job, pods, course, status))
    left = deadline_left(evolve(job, status=status), snapshot.now)
    if course.end is None and left is not None and (course.wake is None or left < course.wake.after):
        course.wake = Wake(after=left, reason="activeDeadlineSeconds")
    return course


def _remove_active(state: JobState) -> Phase | None:
    if not state.active:
        return None
    return single(_PODS, *(_delete(pod, "the Job has ended") for pod in state.active))


def _delete(pod: Pod, reason: str) -> Action:
    return plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=reason)


def _manage(snapshot: Snapshot, job: Job, pods: Sequence[Pod], course: _Course) -> int:
    """Make or remove pods; how many are active then."""
    state = course.state
    active = len(state.active)
    if job.spec.suspend:
        return _shrink(course, state.active, "the Job is suspended")
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.completions is None:
        wanted = active if state.succeeded > 0 else parallelism
    else:
        wanted = max(0, min(parallelism, job.spec.completions - state.succeeded))
    surplus = _surplus(snapshot, job, state, max(0, active - wanted))
    if surplus:
        return _shrink(course, surplus[:AT_ONCE], f"{active} pods are active, {wanted} wanted")
    missing = wanted - active - (state.terminating if replaces_only_failed(job) else 0)
    if missing <= 0:
        return active
    delay = backoff_left(job, pods, frozenset(snapshot.deleted), snapshot.now)
    if delay > 0:
        course.wake = Wake(after=delay, reason="back-off after a pod failed")
        return active
    actions = _creates(snapshot, job, pods, state, min(missing, AT_ONCE))
    if actions:
        course.pods = single(_PODS, *actions, slow_start=True, on_error=OnError.STOP_PHASE)
    return active + len(actions)


def _surplus(snapshot: Snapshot, job: Job, state: JobState, at_least: int) -> list[Pod]:
    """Pods to remove: of an Indexed Job all that double an index or have none, then the first in the usual order."""
    removed: list[Pod] = []
    left = state.active
    if is_indexed(job):
        seen: set[int] = set()
        left = []
        for pod in first_to_go(state.active, len(state.active), now=snapshot.now, beside={})[::-1]:
            index = job_indexes.index_of(pod, job.spec.completions or 0)
            if index is None or index in seen:
                removed.append(pod)
            else:
                seen.add(index)
                left.append(pod)
    missing = at_least - len(removed)
    return removed + (first_to_go(left, missing, now=snapshot.now, beside={}) if missing > 0 else [])


def _shrink(course: _Course, pods: Sequence[Pod], reason: str) -> int:
    """Remove pods that are not to be counted as failed: they lose the finalizer first."""
    state = course.state
    chains: list[Chain] = []
    for pod in pods:
        removal = _delete(pod, reason)
        chains.append((_without_finalizer(pod, reason), removal) if has_finalizer(pod) else (removal,))
    if chains:
        course.pods = Phase(name=_PODS, chains=tuple(chains), on_error=OnError.STOP_PLAN)
    state.terminating += len(pods)
    state.ready -= sum(is_ready(pod) for pod in pods)
    return len(state.active) - len(pods)


def _creates(snapshot: Snapshot, job: Job, pods: Sequence[Pod], state: JobState, count: int) -> list[Action]:
    owner = Owner.of(JOBS, job)
    template = templates.parse(job.spec.template)
    taken = [pod.metadata.name for pod in pods]
    reason = f"{len(state.active)} pods are active"
    if not is_indexed(job):
        prefix = f"{owner.name}-"
        names = choose_names(prefix, count, owner_uid=owner.uid, seed=snapshot.seed, taken=taken)
        return [_create(owner, template, name, prefix, reason) for name in names]
    completions = job.spec.completions or 0
    occupied = state.completed_indexes | {
        index
        for pod in (*state.active, *(pods if replaces_only_failed(job) else ()))
        if pod.status.phase not in ("Succeeded", "Failed")
        and (index := job_indexes.index_of(pod, completions)) is not None
    }
    template = _with_index_variable(template)
    actions = []
    for index in job_indexes.first_missing(occupied, count, completions):
        prefix = f"{owner.name[: 58 - len(str(index)) - 2]}-{index}-"
        name = choose_names(prefix, 1, owner_uid=owner.uid, seed=snapshot.seed + index, taken=taken)[0]
        indexed = {**template, "spec": {**template.get("spec", {}), "hostname": f"{owner.name}-{index}"}}
        actions.append(_create(owner, indexed, name, prefix, reason, {job_indexes.INDEX: str(index)}))
    return actions


def _create(
    owner: Owner, template: dict[str, Any], name: str, prefix: str, reason: str, index: dict[str, str] | None = None
) -> Action:
    body = templates.new_pod(
        template,
        name=name,
        namespace=owner.namespace,
        generate_name=prefix,
        owner=owner.reference(),
        more_labels=index or {},
        more_annotations=index or {},
        more_finalizers=(FINALIZER,),
    )
    return plans.create(PODS, body, reason=reason, owner_uid=owner.uid)


def _with_index_variable(template: dict[str, Any]) -> dict[str, Any]:
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{job_indexes.INDEX}']"}}
    variable = {"name": job_indexes.ENVIRONMENT_NAME, "valueFrom": source}
    spec = dict(template.get("spec") or {})
    for kind in ("initContainers", "containers"):
        if kind in spec:
            spec[kind] = [
                container
                if any(item.get("name") == job_indexes.ENVIRONMENT_NAME for item in container.get("env") or ())
                else {**container, "env": [*(container.get("env") or ()), variable]}
                for container in spec[kind]
            ]
    return {**template, "spec": spec}


def _suspension(job: Job, status: JobStatus, course: _Course, now: datetime) -> JobStatus:
    current = among.find(status.conditions, SUSPENDED)
    others = among.without(status.conditions, SUSPENDED)
    if job.spec.suspend and (current is None or current.status != "True"):
        course.events.append(EventNote(reason="Suspended", message="Job suspended"))
        shown = new_condition(SUSPENDED, "JobSuspended", "Job suspended", now)
        return evolve(status, conditions=(*others, shown))
    if not job.spec.suspend and current is not None and current.status != "False":
        course.events.append(EventNote(reason="Resumed", message="Job resumed"))
        shown = new_condition(SUSPENDED, "JobResumed", "Job resumed", now, status="False")
        # The time that a Job is suspended is none of its active time.
        return evolve(status, conditions=(*others, shown), start_time=among.whole_second(now))
    return status


# Counting


def _count(snapshot: Snapshot, job: Job, pods: Sequence[Pod], course: _Course, status: JobStatus) -> JobStatus:
    """Put the pods that ended into the status; those in it that have lost their finalizer are counted."""
    state = course.state
    status = _settle(status, {pod.metadata.uid for pod in pods if has_finalizer(pod)})
    uncounted = status.uncounted_terminated_pods
    succeeded, failed = list(uncounted.succeeded), list(uncounted.failed)
    ends_badly = course.end is not None and course.end.type != SUCCESS_CRITERIA_MET
    deleted = frozenset(snapshot.deleted)
    for pod in pods:
        if len(succeeded) + len(failed) >= AT_ONCE:
            break  # the status must not grow without bounds; the rest follows in the next pass
        uid, phase = pod.metadata.uid, pod.status.phase
        is_over = job.metadata.deletion_timestamp is not None or course.end is not None
        lost = is_failed(job, pod, deleted)
        if not has_finalizer(pod) or not (is_over or phase == "Succeeded" or lost):
            continue
        course.counted.append(pod)
        if phase == "Succeeded":
            if not is_indexed(job) and uid not in succeeded:
                succeeded.append(uid)
        elif (lost or ends_badly) and uid not in failed:
            failed.append(uid)
    changes: dict[str, Any] = {"uncounted_terminated_pods": UncountedPods(succeeded=(*succeeded,), failed=(*failed,))}
    if is_indexed(job):
        changes["succeeded"] = len(state.completed_indexes)
        changes["completed_indexes"] = job_indexes.to_text(state.completed_indexes)
    return evolve(status, **changes)


def _settle(status: JobStatus, with_finalizer: set[str]) -> JobStatus:
    """Count the pods that have lost their finalizer."""
    uncounted = status.uncounted_terminated_pods
    succeeded = tuple(uid for uid in uncounted.succeeded if uid in with_finalizer)
    failed = tuple(uid for uid in uncounted.failed if uid in with_finalizer)
    return evolve(
        status,
        succeeded=status.succeeded + len(uncounted.succeeded) - len(succeeded),
        failed=status.failed + len(uncounted.failed) - len(failed),
        uncounted_terminated_pods=UncountedPods(succeeded=succeeded, failed=failed),
    )


def _interim(course: _Course, status: JobStatus) -> JobStatus:
    """The interim condition stands before the pods may go: the reason of the end is known then whatever happens."""
    end = course.end
    if end is None or end.type not in (FAILURE_TARGET, SUCCESS_CRITERIA_MET):
        return status
    if among.find(status.conditions, end.type) is not None:
        return status
    return evolve(status, conditions=(*status.conditions, end))


def _has_new_interim(job: Job, status: JobStatus) -> bool:
    interim = (FAILURE_TARGET, SUCCESS_CRITERIA_MET)
    return {item.type for item in status.conditions if item.type in interim} != {
        item.type for item in job.status.conditions if item.type in interim
    }


# After the writes


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    job = snapshot.job
    if job is None or not _is_ours(job) or is_finished(job) is not None:
        return Conclusion()
    owner = Owner.of(JOBS, job)
    claimed = claim(owner, (*snapshot.pods, *snapshot.orphans), selector_of(job.spec.selector))
    pods = (*claimed.owned, *claimed.to_adopt)
    course = _course(snapshot, pods)
    events = [*pod_events(outcomes), *course.events]
    if any(item.result is not Result.DONE for item in outcomes if item.action.target.resource is JOBS):
        return Conclusion(events=tuple(events))  # the count did not begin, and will be made anew
    missed = sum(item.result is not Result.DONE for item in outcomes if _is(item.action, Verb.CREATE))
    kept = sum(item.result is not Result.DONE for item in outcomes if _is(item.action, Verb.DELETE))
    active = course.status.active - missed + kept
    status = evolve(course.status, active=active, terminating=(course.status.terminating or 0) - kept)
    freed = {
        item.action.uid
        for item in outcomes
        if item.result in (Result.DONE, Result.GONE) and _is(item.action, Verb.PATCH)
    }
    status = _settle(status, {pod.metadata.uid for pod in pods if has_finalizer(pod)} - freed)
    if kept == 0 and len(course.counted) < AT_ONCE:
        status = _finish(job, course, status, events, snapshot.now)
    written = course.status if any(item.action.target.resource is JOBS for item in outcomes) else job.status
    write = _status_write(job, status, "the status changed") if status != written else None
    return Conclusion(status=write, events=tuple(events))


def _is(action: Action, verb: Verb) -> bool:
    return action.target.resource is PODS and action.verb is verb


def _finish(job: Job, course: _Course, status: JobStatus, events: list[EventNote], now: datetime) -> JobStatus:
    """The last condition, once every pod is counted and gone."""
    end, uncounted = course.end, status.uncounted_terminated_pods
    if end is None or uncounted.succeeded or uncounted.failed or status.terminating:
        return status
    kind = COMPLETE if end.type == SUCCESS_CRITERIA_MET else FAILED
    final = new_condition(kind, end.reason, end.message, now)
    if kind == COMPLETE:
        wanted = job.spec.completions
        if wanted is not None and status.succeeded > wanted:
            message = "Too many succeeded pods running after completion count reached"
            events.append(EventNote(reason="TooManySucceededPods", message=message, type=EventType.WARNING))
        events.append(EventNote(reason="Completed", message="Job completed"))
        status = evolve(status, completion_time=final.last_transition_time)
    else:
        events.append(EventNote(reason=end.reason, message=end.message, type=EventType.WARNING))
    return evolve(status, conditions=(*status.conditions, final))


def _status_write(job: Job, status: JobStatus, reason: str) -> Action:
    return plans.status_patch(Target.of(JOBS, job), _to_json(status), uid=job.metadata.uid, reason=reason)


def _to_json(status: JobStatus) -> dict[str, Any]:
    uncounted = status.uncounted_terminated_pods
    body: dict[str, Any] = {}
    if status.conditions:
        body["conditions"] = [among.to_json(item) for item in status.conditions]
    for key, moment in (("startTime", status.start_time), ("completionTime", status.completion_time)):
        if moment is not None:
            body[key] = format_time(moment)
    for key, number in (("active", status.active), ("succeeded", status.succeeded), ("failed", status.failed)):
        if number:
            body[key] = number
    if status.completed_indexes:
        body["completedIndexes"] = status.completed_indexes
    body["uncountedTerminatedPods"] = {
        key: list(uids) for key, uids in (("succeeded", uncounted.succeeded), ("failed", uncounted.failed)) if uids
    }
    body["ready"] = status.ready or 0
    body["terminating"] = status.terminating or 0
    return body
