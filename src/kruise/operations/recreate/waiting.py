"""What a request waits for, as far as it tells itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kruise.api.apps.containerrecreaterequest import (
    NODE_LABEL,
    PENDING,
    RECREATING,
    SUCCEEDED,
    ContainerRecreateRequest,
    RecreateState,
)
from kruise.machinery.causes import Cause
from kruise.machinery.times import later
from kruise.machinery.wording import listed
from kruise.operations.recreate.causes import (
    ANOTHER_REQUEST,
    IN_ORDER,
    NO_DAEMON,
    NOT_ON_NODE,
    NOT_RECREATED,
    STARTING,
    STOPPING,
    UNREADY_GRACE,
)

GONE = "pod has gone"
SILENT = "daemon has not responded for a long time"
TOO_LATE = "recreating has exceeded the activeDeadlineSeconds"
"""Why a request ends before its time (CRR-26 to CRR-29)."""
RESTART_POLICY = "restartPolicy"
"""In what a daemon says of a container that has ended for good."""


def causes_of(request: ContainerRecreateRequest, now: datetime) -> Iterator[Cause]:
    """What a request waits for, as far as it tells; of one that has ended, what it did not get done."""
    if request.is_over:
        yield from _not_recreated(request)
    elif not request.status.phase:
        node = request.metadata.labels.get(NODE_LABEL, "")
        yield NO_DAEMON.cause(f"the daemon of node {node} has not taken it up", remedy=_look_for_daemon(request))
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


# What has ended without success


def _not_recreated(request: ContainerRecreateRequest) -> Iterator[Cause]:
    pod, namespace = request.spec.pod_name, request.metadata.namespace
    states = {state.name: state for state in request.status.container_recreate_states}
    names = dict.fromkeys(container.name for container in request.spec.containers)
    left = [name for name in names if name not in states or states[name].phase != SUCCEEDED]
    if not left:
        return
    if request.status.message == GONE:
        yield NOT_RECREATED.cause(
            f"pod {pod} went before {listed(left)} had been recreated",
            remedy="nothing is left to restart: a pod that is made anew has new containers",
        )
    elif request.status.message == SILENT:
        node = request.metadata.labels.get(NODE_LABEL, "")
        yield NOT_RECREATED.cause(
            f"the daemon of node {node} did not take it up in time", remedy=_look_for_daemon(request)
        )
    else:
        again = f"kruise restart {pod} -n {namespace} -c"
        for name in left:
            yield _missed(name, states.get(name), f"kruise why pod/{pod} -n {namespace}", f"{again} {name}")


def _missed(name: str, state: RecreateState | None, look: str, again: str) -> Cause:
    details = {"container": name}
    if state is not None and state.phase == RECREATING:
        return NOT_RECREATED.cause(
            f"container {name} was stopped, and had not been started and ready for long enough when the time was over",
            details=details,
            remedy=f"see what keeps it from that: {look}",
        )
    said = (state.message if state is not None else "") or "it was not stopped"
    remedy = f"ask once more: {again}" if RESTART_POLICY not in said else "nothing starts it again: make the pod anew"
    return NOT_RECREATED.cause(f"container {name}: {said}", details=details, remedy=remedy)


def _look_for_daemon(request: ContainerRecreateRequest) -> str:
    node = request.metadata.labels.get(NODE_LABEL, "")
    return f"see whether kruise-daemon runs there: kubectl get pods -n kruise-system -o wide | grep {node}"
