"""What an EphemeralJob needs, decided from a snapshot (EJ section 9)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS, FINALIZER, JOB_ENV, EphemeralJob, EphemeralJobStatus
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct
from kruise.machinery.delays import seconds_left
from kruise.machinery.plan import Action, OnError, Phase, Plan, Target, Wake, single
from kruise.workloads.ephemeraljob.pods import Seen
from kruise.workloads.ephemeraljob.situation import LONGEST_SILENCE, USUAL_TTL, Situation, Snapshot, situation_of
from kruise.workloads.ephemeraljob.status import after_the_end, deadline_of, removal_of, status_of
from kruise.workloads.ephemeraljob.waiting import failures, held

INJECT = "inject"
REMOVE = "remove"


class Memo(Struct):
    status: EphemeralJobStatus


def decide(snapshot: Snapshot) -> Plan:
    job = snapshot.job
    if job.metadata.deletion_timestamp is not None:
        # Kubernetes cannot take ephemeral containers out of a pod: there is nothing to do but to let go (EJ-50).
        return Plan(phases=(single("finalizer", _let_go(job)),)) if FINALIZER in job.metadata.finalizers else Plan()
    situation = situation_of(snapshot)
    if job.status.completion_time is not None:
        return _ended(situation, job.status.completion_time)
    status = status_of(situation)
    chosen = _chosen(situation) if _may_inject(situation, status) else ()
    inject = Phase(
        name=INJECT,
        chains=tuple((_inject(situation, one.pod),) for one in chosen),
        on_error=OnError.STOP_PHASE,
        slow_start=True,
    )
    first = () if FINALIZER in job.metadata.finalizers else (single("finalizer", _hold_on(job)),)
    return Plan(
        phases=(*first, *((inject,) if chosen else ())),
        held=held(situation, status, chosen) if status.completion_time is None else failures(situation),
        wakes=_wakes(situation, status),
        memo=Memo(status=status),
    )


def _ended(situation: Situation, ended: datetime) -> Plan:
    """EJ-33, EJ-35.4."""
    job, now = situation.job, situation.now
    memo = Memo(status=after_the_end(job.status, situation.targets))
    left = (removal_of(job, ended, USUAL_TTL) - now).total_seconds()
    if left > 0:
        wakes = (Wake(after=left, reason="it is deleted then (ttlSecondsAfterFinished)"),)
        return Plan(held=failures(situation), wakes=wakes, memo=memo)
    remove = plans.delete(
        Target.of(EPHEMERAL_JOBS, job),
        uid=job.metadata.uid,
        reason="it ended ttlSecondsAfterFinished ago",
        propagation="Background",
    )
    return Plan(phases=(single(REMOVE, remove),), memo=memo)


def _may_inject(situation: Situation, status: EphemeralJobStatus) -> bool:
    """Neither while it is paused (EJ-31), nor in the pass that ends it (EJ-45), nor without containers (EJ-34)."""
    return not situation.job.spec.paused and status.completion_time is None and bool(situation.containers)


def _chosen(situation: Situation) -> tuple[Seen, ...]:
    """As many as the parallelism leaves room for. A pod whose containers have not ended takes a place, whether they run
    or have yet to start, but not one where they may never do. One that the server refused has its next try after a
    while. One without a node waits for it."""
    room = situation.parallelism - len(situation.under_way)
    ready = [one for one in situation.candidates if one.has_node and not _is_delayed(situation, one)]
    return tuple(ready[: max(room, 0)])


def _is_delayed(situation: Situation, one: Seen) -> bool:
    refusal = situation.refusals.get(one.pod.metadata.uid)
    return refusal is not None and seconds_left(refusal.delay, situation.now) > 0


def _wakes(situation: Situation, status: EphemeralJobStatus) -> tuple[Wake, ...]:
    if status.completion_time is not None or status.start_time is None:
        return ()
    found = []
    deadline = deadline_of(situation.job, status.start_time)
    if deadline is not None and not situation.job.spec.paused and deadline > situation.now:
        left = (deadline - situation.now).total_seconds()
        found.append(Wake(after=left, reason="activeDeadlineSeconds is over then"))
    delays = [
        seconds_left(situation.refusals[one.pod.metadata.uid].delay, situation.now)
        for one in situation.candidates
        if _is_delayed(situation, one)
    ]
    if delays:
        found.append(Wake(after=min(delays), reason="a pod that refused the containers is tried again"))
    silent = [
        (since + LONGEST_SILENCE - situation.now).total_seconds()
        for one in situation.under_way
        if (since := situation.silent_since(one)) is not None
    ]
    if silent:
        found.append(Wake(after=min(silent), reason="a pod that nobody reports gives its place free then"))
    return tuple(found)


# Writes


def _inject(situation: Situation, pod: Pod) -> Action:
    """EJ-40, EJ-41: all containers in one request; those of others stay."""
    mark = {"name": JOB_ENV, "value": situation.uid}
    containers = [{**container, "env": [*_env_of(container), mark]} for container in situation.containers]
    return plans.patch(
        Target.of(PODS, pod),
        {"spec": {"ephemeralContainers": containers}},
        uid=pod.metadata.uid,
        reason="it gets the containers of the job",
        patch_type=PatchType.STRATEGIC,
        subresource="ephemeralcontainers",
    )


def _env_of(container: Any) -> list[Any]:
    env = container.get("env")
    return list(env) if isinstance(env, list) else []


def _hold_on(job: EphemeralJob) -> Action:
    """EJ-49."""
    return _finalizers(job, [*job.metadata.finalizers, FINALIZER], reason="the controller has seen it")


def _let_go(job: EphemeralJob) -> Action:
    """EJ-50. The finalizers of others stay."""
    kept = [name for name in job.metadata.finalizers if name != FINALIZER]
    return _finalizers(job, kept, reason="its containers stay in the pods, nothing is left to do")


def _finalizers(job: EphemeralJob, names: list[str], *, reason: str) -> Action:
    """Others write finalizers, too, so the very object that was looked at is changed."""
    return plans.patch(
        Target.of(EPHEMERAL_JOBS, job),
        {"metadata": {"finalizers": names or None}},
        uid=job.metadata.uid,
        resource_version=job.metadata.resource_version,
        reason=reason,
    )
