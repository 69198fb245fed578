"""What a request waits for, as far as it tells itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kruise.api.apps.containerrecreaterequest import (
    NODE_LABEL,
    PENDING,
    RECREATING,
    ContainerRecreateRequest,
    RecreateState,
)
from kruise.machinery.causes import Cause
from kruise.machinery.times import later
from kruise.operations.recreate.causes import (
    ANOTHER_REQUEST,
    IN_ORDER,
    NO_DAEMON,
    NOT_ON_NODE,
    STARTING,
    STOPPING,
    UNREADY_GRACE,
)


def causes_of(request: ContainerRecreateRequest, now: datetime) -> Iterator[Cause]:
    """What a request waits for, as far as it tells."""
    node = request.metadata.labels.get(NODE_LABEL, "")
    if not request.status.phase:
        yield NO_DAEMON.cause(
            f"the daemon of node {node} has not taken it up",
            remedy=f"see whether kruise-daemon runs there: kubectl get pods -n kruise-system -o wide | grep {node}",
        )
    elif request.status.phase == PENDING:
        yield ANOTHER_REQUEST.cause(f"another request for pod {request.spec.pod_name} is ahead")
    elif (drains := _drains(request, now)) is not None:
        yield drains
    else:
        yield from _containers(request)


def _drains(request: ContainerRecreateRequest, now: datetime) -> Cause | None:
    seconds = request.strategy.unready_grace_period_seconds
    if seconds is None:
        return None
    condition = request.grace_condition
    if condition is None or condition.last_transition_time is None:
        return UNREADY_GRACE.cause("the pod is being made not ready")
    left = (later(condition.last_transition_time, seconds) - now).total_seconds()
    return UNREADY_GRACE.cause(f"its containers are stopped in {left:.0f} s") if left > 0 else None


def _containers(request: ContainerRecreateRequest) -> Iterator[Cause]:
    strategy = request.strategy
    ahead = ""
    for state in request.status.container_recreate_states:
        if state.phase not in (PENDING, RECREATING):
            continue
        yield _container(state, request, ahead if strategy.ordered_recreate else "")
        ahead = ahead or state.name


def _container(state: RecreateState, request: ContainerRecreateRequest, ahead: str) -> Cause:
    pod, details = request.spec.pod_name, {"container": state.name}
    if ahead:
        return IN_ORDER.cause(f"container {state.name} is stopped when {ahead} has been recreated", details=details)
    if state.phase == RECREATING:
        at_least = request.strategy.min_started_seconds
        lasting = f" for {at_least} s" if at_least else ""
        return STARTING.cause(
            f"container {state.name} was stopped; it has to be started and ready{lasting}",
            details=details,
            remedy=f"see what keeps it from that: kruise why pod/{pod} -n {request.metadata.namespace}",
        )
    if state.message.startswith("not found"):
        return NOT_ON_NODE.cause(
            f"node {request.metadata.labels.get(NODE_LABEL, '')} has no container {state.name} of the pod",
            details=details,
            remedy=f"see the pod: kubectl describe pod {pod} -n {request.metadata.namespace}",
        )
    return STOPPING.cause(f"container {state.name} is to be stopped, or is stopping", details=details)
