"""What the manager does for a request: it keeps the pod out of traffic, tells the daemon how containers are, ends the
request when its time is over, and cleans up after it. Stopping containers is the daemon's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kruise.api.apps.containerrecreaterequest import (
    ACTIVE_LABEL,
    COMPLETED,
    GRACE_CONDITION,
    RECREATING,
    REQUESTS,
    UNREADY_FINALIZER,
    ContainerRecreateRequest,
    StatusContext,
    SyncedStatus,
)
from kruise.api.apps.conversion.containerrecreaterequest import grace_condition
from kruise.api.native.pod import ContainerStatus, Pod
from kruise.inplace import keys
from kruise.inplace.edits import writes
from kruise.inplace.readiness import Writer, add_writer, has_gate, remove_writer
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import to_builtins
from kruise.machinery.documents import Json
from kruise.machinery.plan import Action, Cause, Chain, Conclusion, Held, Outcomes, Phase, Plan, Target, Wake
from kruise.machinery.times import format_time, later, next_second
from kruise.operations.recreate.situation import Snapshot
from kruise.operations.recreate.waiting import GONE, SILENT, TOO_LATE, causes_of

USER_AGENT = "ContainerRecreateRequest"
SILENCE = timedelta(minutes=1)
"""How long a daemon has to take up a request (CRR-27)."""
WHOLE_SECOND = timedelta(seconds=1)
"""Times on objects are cut to whole seconds: so much later at most was it really."""


def decide(seen: Snapshot) -> Plan:
    request = seen.request
    if request.is_over:
        return _end(seen)
    if seen.living_pod is None:
        return _complete(seen, GONE)
    phase = request.status.phase
    wakes: list[Wake] = []
    created = request.metadata.creation_timestamp or seen.now
    if not phase:
        left = (created + SILENCE + WHOLE_SECOND - seen.now).total_seconds()
        if left <= 0:
            return _complete(seen, SILENT)
        wakes.append(Wake(after=left, reason="the node daemon may not answer"))
    limit = request.spec.active_deadline_seconds
    if limit is not None:
        left = (later(created, limit) + WHOLE_SECOND - seen.now).total_seconds()
        if left <= 0:
            return _complete(seen, TOO_LATE)
        wakes.append(Wake(after=left, reason="activeDeadlineSeconds"))
    held = tuple(_held(seen))
    if phase != RECREATING:
        return Plan(wakes=tuple(wakes), held=held)
    chains = tuple(chain for chain in (_snapshot(seen, seen.living_pod), _unready(seen, seen.living_pod)) if chain)
    return Plan(phases=(Phase(name="prepare", chains=chains),) if chains else (), wakes=tuple(wakes), held=held)


def conclude(seen: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    return Conclusion()


# The end


def _complete(seen: Snapshot, message: str) -> Plan:
    """CRR-29: nothing else of the status is touched, and not the end that the daemon has told meanwhile."""
    status = {"phase": COMPLETED, "completionTime": format_time(seen.now), "message": message}
    return Plan(phases=(plans.single("complete", _status(seen.request, status, message, same_phase=True)),))


def _end(seen: Snapshot) -> Plan:
    """CRR-22."""
    request = seen.request
    if UNREADY_FINALIZER in request.metadata.finalizers:
        return Plan(phases=(Phase(name="release", chains=(tuple(_release(seen)),)),))
    if request.metadata.deletion_timestamp is not None:
        return Plan()
    held = tuple(_held(seen))
    if ACTIVE_LABEL in request.metadata.labels:
        patch = {"metadata": {"labels": {ACTIVE_LABEL: None}}}
        return Plan(phases=(plans.single("inactive", _patch(request, patch, "it has ended")),), held=held)
    limit = request.spec.ttl_seconds_after_finished
    if limit is None:
        return Plan(held=held)
    ended = request.status.completion_time or seen.now
    left = (later(ended, limit) + (WHOLE_SECOND if limit else timedelta()) - seen.now).total_seconds()
    if left > 0:
        return Plan(wakes=(Wake(after=left, reason="ttlSecondsAfterFinished"),), held=held)
    target, uid = Target.of(REQUESTS, request), request.metadata.uid
    return Plan(phases=(plans.single("delete", plans.delete(target, uid=uid, reason="ttlSecondsAfterFinished")),))


def _release(seen: Snapshot) -> Iterator[Action]:
    """Give the pod back to traffic, then let the request go."""
    pod, request = seen.living_pod, seen.request
    edit = remove_writer(pod, _writer(request), now=seen.now) if pod is not None else None
    if pod is not None and edit is not None:
        yield from writes(pod, edit, reason="its containers are recreated, or nobody wants it any more")
    left = [name for name in request.metadata.finalizers if name != UNREADY_FINALIZER]
    yield _patch(request, {"metadata": {"finalizers": left}}, "the pod is released", exact=True)


# While containers are recreated


def _snapshot(seen: Snapshot, pod: Pod) -> Chain:
    """Tell the daemon of containers that were started since, in the order of the request (CRR-31)."""
    request = seen.request
    created = request.metadata.creation_timestamp or seen.now
    statuses = {status.name: status for status in pod.status.container_statuses}
    contexts = {container.name: container.status_context for container in request.spec.containers}
    wanted = dict.fromkeys(contexts)
    found = [
        {
            "name": status.name,
            "ready": status.ready,
            "restartCount": status.restart_count,
            "containerID": status.container_id,
        }
        for status in (statuses[name] for name in wanted if name in statuses)
        if _is_new(status, contexts.get(status.name), created)
    ]
    known = request.status.container_status_snapshot
    if known is not None and (not found or [_plain(item) for item in known] == found):
        return ()
    reason = "containers have started" if found else "no container has started yet"
    return (_status(request, {"containerStatusSnapshot": found}, reason),)


def _is_new(status: ContainerStatus, context: StatusContext | None, created: datetime) -> bool:
    """Whether it runs and is not the container that was there when it was asked for. When it started is told by the
    clock of the node, which may be behind: another container is another one, whenever it says that it started."""
    running = status.state.running
    if running is None:
        return False
    if running.started_at is not None and running.started_at >= created:
        return True
    return context is not None and status.container_id not in ("", context.container_id)


def _plain(item: SyncedStatus) -> Json:
    return {
        "name": item.name,
        "ready": item.ready,
        "restartCount": item.restart_count,
        "containerID": item.container_id,
    }


def _unready(seen: Snapshot, pod: Pod) -> Chain:
    """Take the pod out of traffic; when that is done, say since when (CRR-32 to CRR-34). The finalizer comes first, so
    that the pod is released whatever happens."""
    request = seen.request
    if request.strategy.unready_grace_period_seconds is None or request.grace_condition is not None:
        return ()
    chain: list[Action] = []
    reason = "unreadyGracePeriodSeconds"
    if has_gate(pod, keys.KRUISE_POD_READY):
        if UNREADY_FINALIZER not in request.metadata.finalizers:
            finalizers = [*request.metadata.finalizers, UNREADY_FINALIZER]
            chain.append(_patch(request, {"metadata": {"finalizers": finalizers}}, reason, exact=True))
        edit = add_writer(pod, _writer(request), now=seen.now)
        if edit is not None:
            chain.extend(writes(pod, edit, reason=reason))
    others = [to_builtins(item) for item in request.status.conditions if item.type != GRACE_CONDITION]
    condition = grace_condition(next_second(seen.now))
    chain.append(_status(request, {"conditions": [*others, condition]}, reason))
    return tuple(chain)


def _writer(request: ContainerRecreateRequest) -> Writer:
    return Writer(USER_AGENT, f"{request.metadata.namespace}/{request.metadata.name}")


# Why it waits


def _held(seen: Snapshot) -> Iterator[Held]:
    found: tuple[Cause, ...] = tuple(causes_of(seen.request, seen.now))
    if found:
        yield Held(target=Target.of(REQUESTS, seen.request), causes=found)


# Writes


def _status(request: ContainerRecreateRequest, parts: Json, reason: str, *, same_phase: bool = False) -> Action:
    """Only these parts of the status: the daemon writes others at the same time (CRR-72)."""
    known = request.status
    if not known.phase:
        # There may be no status at all. Nobody else writes one that is not seen here: the guard sees to that.
        return plans.status_patch(
            Target.of(REQUESTS, request),
            parts,
            uid=request.metadata.uid,
            reason=reason,
            resource_version=request.metadata.resource_version,
        )
    operations = [{"op": "add", "path": f"/status/{name}", "value": value} for name, value in parts.items()]
    if same_phase:
        operations.insert(0, {"op": "test", "path": "/status/phase", "value": known.phase})
    return plans.patch(
        Target.of(REQUESTS, request),
        operations,
        uid=request.metadata.uid,
        reason=reason,
        patch_type=PatchType.JSON,
        subresource="status",
    )


def _patch(request: ContainerRecreateRequest, body: Json, reason: str, *, exact: bool = False) -> Action:
    """`exact`: a list is written, so nobody else may have changed it meanwhile."""
    return plans.patch(
        Target.of(REQUESTS, request),
        body,
        uid=request.metadata.uid,
        reason=reason,
        resource_version=request.metadata.resource_version if exact else "",
    )
