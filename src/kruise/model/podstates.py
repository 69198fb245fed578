"""The state of a pod as its status tells it, and the conditions that follow. Pure values."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kruise.api.meta import Condition
from kruise.api.native.container_reasons import GOING_WELL, INVALID_IMAGE_NAME
from kruise.api.native.pod import (
    Container,
    ContainerStatus,
    Pod,
    ResourceRequirements,
    condition,
)
from kruise.inplace.barriers import waits_for_turn
from kruise.machinery import codec

PATIENCE = timedelta(minutes=5)
"""A pod that is under way for longer than this is taken to be stuck."""
_SLOWNESS = 3
_SHORTEST_PATIENCE = 60.0
_SECOND = timedelta(seconds=1)
"""Times on objects are cut to whole seconds."""


def homeless(pod: Pod) -> str:
    """Why no node takes a pod, in words; empty: one does, or nobody has looked for one yet."""
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return scheduled.message or "it has no node"
    return ""


def nameless(pod: Pod) -> str:
    """Why its node cannot read the name of an image, in words; empty: it can."""
    for status in pod.status.container_statuses:
        if status.state.waiting is not None and status.state.waiting.reason == INVALID_IMAGE_NAME:
            return status.state.waiting.message
    return ""


def trouble(pod: Pod) -> str:
    """Why a pod is down for good, in words; empty where its status names no trouble."""
    if without_node := homeless(pod):
        return without_node
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting, ended = status.state.waiting, status.state.terminated
        if waiting is not None and waiting.reason not in GOING_WELL and not waits_for_turn(pod, status):
            return f"container {status.name}: {waiting.reason}"
        if ended is not None and not status.ready and status in pod.status.container_statuses:
            return f"container {status.name} has ended with code {ended.exit_code}"
    return ""


def is_hopeful(pod: Pod, now: datetime) -> bool:
    """Whether a pod that is not ready is on its way: nothing speaks against it, and it has not taken too long."""
    if trouble(pod):
        return False
    since = pod.metadata.creation_timestamp
    for item in pod.status.conditions:
        if item.last_transition_time is not None and (since is None or item.last_transition_time > since):
            since = item.last_transition_time
    return since is None or now - since <= PATIENCE


def started_at(statuses: Iterable[ContainerStatus]) -> datetime | None:
    """When the last of these containers began to run; None where one does not."""
    moments = []
    for status in statuses:
        if status.state.running is None or status.state.running.started_at is None:
            return None
        moments.append(status.state.running.started_at)
    return max(moments, default=None)


def until_ready(pod: Pod, usual: float, now: datetime) -> float | None:
    """Seconds until a pod that runs becomes ready, where its containers usually take so long from their start; None:
    it was ready since and fell back, or it takes so long already that nobody can say."""
    started, ready = started_at(pod.status.container_statuses), condition(pod, "Ready")
    if started is None:
        return None
    changed = ready.last_transition_time if ready is not None else None
    if changed is not None and changed > started + _SECOND:
        return None
    passed = (now - started).total_seconds()
    return max(usual - passed, 0.0) if passed <= max(_SLOWNESS * usual, _SHORTEST_PATIENCE) else None


def is_starting(pod: Pod) -> bool:
    """No container has run yet."""
    return all(
        status.state.running is None and status.state.terminated is None and status.last_state.terminated is None
        for status in pod.status.container_statuses
    )


def containers_ready(pod: Pod) -> bool:
    statuses = pod.status.container_statuses
    return len(statuses) >= len(pod.spec.containers) and all(status.ready for status in statuses)


def restarts_for(before: ResourceRequirements, container: Container) -> bool:
    """Whether a container that has had these resources restarts for those that it asks for now."""
    changed = {
        name
        for old, new in (
            (before.limits, container.resources.limits),
            (before.requests, container.resources.requests),
        )
        for name in old.keys() | new.keys()
        if old.get(name) != new.get(name)
    }
    return any(
        policy.restart_policy == "RestartContainer" and policy.resource_name in changed
        for policy in container.resize_policy
    )


def with_readiness(pod: Pod, now: datetime) -> Pod:
    """The pod with the conditions that a kubelet makes of its containers and readiness gates; the same pod where it
    has them already."""
    if not pod.spec.node_name or pod.status.phase in ("Succeeded", "Failed") or not pod.status.container_statuses:
        return pod
    ready = containers_ready(pod)
    statuses = {item.type: item.status for item in pod.status.conditions}
    wanted = [_containers_condition(pod, ready)]
    failing = [gate for gate in pod.spec.readiness_gates if statuses.get(gate.condition_type) != "True"]
    if not ready:
        wanted.append(codec.evolve(wanted[0], type="Ready"))
    elif failing:
        names = ", ".join(gate.condition_type for gate in failing)
        message = f"readiness gates are not True: {names}"
        wanted.append(Condition(type="Ready", status="False", reason="ReadinessGatesNotReady", message=message))
    else:
        wanted.append(Condition(type="Ready", status="True"))
    if all(statuses.get(item.type) == item.status for item in wanted):
        return pod
    return codec.evolve(pod, status=codec.evolve(pod.status, conditions=with_conditions(pod, wanted, now)))


def _containers_condition(pod: Pod, ready: bool) -> Condition:
    if ready:
        return Condition(type="ContainersReady", status="True")
    names = " ".join(status.name for status in pod.status.container_statuses if not status.ready)
    message = f"containers with unready status: [{names}]"
    return Condition(type="ContainersReady", status="False", reason="ContainersNotReady", message=message)


def with_conditions(pod: Pod, wanted: Iterable[Condition], now: datetime) -> tuple[Condition, ...]:
    """The pod's conditions with these in their places. A transition time moves only with the status."""
    found = {item.type: item for item in pod.status.conditions}
    for item in wanted:
        known = found.get(item.type)
        if known is None or known.status != item.status or known.last_transition_time is None:
            found[item.type] = codec.evolve(item, last_transition_time=now.replace(microsecond=0))
        else:
            found[item.type] = codec.evolve(item, last_transition_time=known.last_transition_time)
    return tuple(found.values())
