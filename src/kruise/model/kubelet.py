"""What scheduler and kubelet make of a pod, one step each: a pod in, the pod or its status after it out. Pure.

`nodes` takes these steps in their time; a test may take them in its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from kruise.api.core import images
from kruise.api.meta import Condition
from kruise.api.native.container_reasons import INVALID_IMAGE_NAME
from kruise.api.native.pod import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
    ResourceRequirements,
)
from kruise.inplace.resizing import RESIZE_IN_PROGRESS, RESIZE_PENDING, RefusedResize
from kruise.machinery import codec
from kruise.model import podstates
from kruise.model.images import digest

_BEFORE_CONTAINERS = ("PodReadyToStartContainers", "Initialized")
"""Conditions that hold when containers start."""


def bound(pod: Pod, node: str, now: datetime) -> Pod:
    """It has a node."""
    scheduled = podstates.with_conditions(pod, [Condition(type="PodScheduled", status="True")], now)
    status = codec.evolve(pod.status, phase="Pending", conditions=scheduled)
    return codec.evolve(pod, spec=codec.evolve(pod.spec, node_name=node), status=status)


def unscheduled(pod: Pod, message: str, now: datetime) -> Pod:
    """No node takes it, and the scheduler says why."""
    waiting = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
    conditions = podstates.with_conditions(pod, [waiting], now)
    return codec.evolve(pod, status=codec.evolve(pod.status, phase="Pending", conditions=conditions))


def started(
    pod: Pod,
    container: Container,
    before: ContainerStatus | None,
    *,
    began: datetime,
    ended: datetime,
    image_id: str,
    is_ready: bool,
    failure: ContainerStateWaiting | None = None,
    resources: ResourceRequirements | None = None,
) -> ContainerStatus:
    """A container that runs since `began`, in the place of the one before it, which ran until `ended`; or one that
    fails to run, and why. `resources`: what it has, where that is not what it asks for."""
    count = before.restart_count + 1 if before is not None else 0
    last = _ended(before, ended) if before is not None else ContainerState()
    state = ContainerState(running=ContainerStateRunning(started_at=_whole(began)))
    if failure is not None:
        state = ContainerState(waiting=failure)
    return ContainerStatus(
        name=container.name,
        image=container.image,
        image_id=image_id,
        container_id=f"containerd://{digest(f'{pod.metadata.uid}/{container.name}/{count}/{began}')}",
        ready=is_ready,
        started=is_ready,
        restart_count=count,
        state=state,
        last_state=last,
        resources=resources if resources is not None else container.resources,
    )


def unreadable(containers: Iterable[Container]) -> ContainerStateWaiting | None:
    """What a kubelet says of the first of these whose image has a name that it cannot read."""
    for container in containers:
        if text := images.problem(container.image):
            return ContainerStateWaiting(reason=INVALID_IMAGE_NAME, message=text)
    return None


def without_image(before: ContainerStatus, waiting: ContainerStateWaiting, ended: datetime) -> ContainerStatus:
    """A container that was ended to be replaced, and whose new image cannot be had."""
    return codec.evolve(
        before, ready=False, started=False, state=ContainerState(waiting=waiting), last_state=_ended(before, ended)
    )


def _ended(before: ContainerStatus, at: datetime) -> ContainerState:
    """The end of a container that ran until then."""
    running = before.state.running
    if running is None:
        return ContainerState()
    end = ContainerStateTerminated(
        started_at=running.started_at, finished_at=_whole(at), container_id=before.container_id
    )
    return ContainerState(terminated=end)


def with_containers(
    pod: Pod, statuses: Iterable[ContainerStatus], now: datetime, *, is_running: bool = True
) -> PodStatus:
    """The status of a pod whose containers are so. `is_running` False: none has ever run."""
    status = pod.status
    conditions = status.conditions
    known = {item.type for item in conditions if item.status == "True"}
    missing = [Condition(type=kind, status="True") for kind in _BEFORE_CONTAINERS if kind not in known]
    if missing:
        conditions = podstates.with_conditions(pod, missing, now)
    return codec.evolve(
        status,
        phase="Running" if is_running else "Pending",
        start_time=status.start_time or _whole(now),
        container_statuses=tuple(statuses),
        conditions=conditions,
        observed_generation=pod.metadata.generation if status.observed_generation else 0,
    )


def stopped(pod: Pod, names: Collection[str]) -> PodStatus:
    """These containers serve nobody any more."""
    statuses = tuple(
        codec.evolve(status, ready=False) if status.name in names else status
        for status in pod.status.container_statuses
    )
    return codec.evolve(pod.status, container_statuses=statuses)


def resized(pod: Pod) -> PodStatus:
    """Every container has the resources that the spec says."""
    wanted = {container.name: container.resources for container in pod.spec.containers}
    statuses = tuple(
        codec.evolve(status, resources=wanted.get(status.name, status.resources))
        for status in pod.status.container_statuses
    )
    return codec.evolve(pod.status, container_statuses=statuses, conditions=_without_resize(pod), resize="")


def not_resized(pod: Pod, refused: RefusedResize, now: datetime) -> PodStatus:
    """The containers keep what they have, and the node says why."""
    pending = Condition(
        type=RESIZE_PENDING,
        status="True",
        reason=refused.reason,
        message=refused.message,
        observed_generation=pod.metadata.generation,
    )
    return codec.evolve(pod.status, conditions=podstates.with_conditions(pod, [pending], now), resize="")


def _without_resize(pod: Pod) -> tuple[Condition, ...]:
    return tuple(item for item in pod.status.conditions if item.type not in (RESIZE_PENDING, RESIZE_IN_PROGRESS))


def _whole(moment: datetime) -> datetime:
    """Times on objects have whole seconds."""
    return moment.replace(microsecond=0)
