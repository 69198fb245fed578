"""What an EphemeralJob sees in a pod: its own containers, those in their way, and how far its own have got (EJ-20 to
EJ-25). Pure."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kruise.api.apps.ephemeraljob import JOB_ENV
from kruise.api.native import container_reasons
from kruise.api.native.pod import ContainerStatus, EphemeralContainer, Pod

RUN_ERROR = "RunContainerError"
"""The only reason to wait that counts as a failure: the container exists and will never run (EJ-24)."""


class State(enum.StrEnum):
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    RUNNING = "running"
    WAITING = "waiting"
    UNKNOWN = "unknown"


OVER = frozenset({State.FAILED, State.SUCCEEDED})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A pod, as far as the job is concerned."""

    pod: Pod
    own: tuple[str, ...] = ()
    """Names of the containers that this job has put into it."""
    state: State = State.UNKNOWN
    statuses: tuple[ContainerStatus, ...] = ()
    """Of its own containers, as far as the node has reported them."""

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def is_served(self) -> bool:
        return bool(self.own)

    @property
    def has_node(self) -> bool:
        """Without one, containers would begin nobody knows when, beside as many others."""
        return bool(self.pod.spec.node_name)

    @property
    def is_under_way(self) -> bool:
        """It has the containers, and they have not ended."""
        return self.is_served and self.state not in OVER

    @property
    def stuck(self) -> ContainerStatus | None:
        """A container that waits for something that does not come by itself."""
        for status in self.statuses:
            waiting = status.state.waiting
            if waiting is not None and waiting.reason not in container_reasons.GOING_WELL:
                return status
        return None


def seen(pod: Pod, uid: str) -> Seen:
    """The pod as the job with this uid sees it."""
    if not pod.spec.ephemeral_containers:
        return Seen(pod=pod)
    own = tuple(container.name for container in pod.spec.ephemeral_containers if is_own(container, uid))
    statuses = tuple(status for status in pod.status.ephemeral_container_statuses if status.name in own)
    return Seen(pod=pod, own=own, state=_state(statuses, len(own)), statuses=statuses)


def is_own(container: EphemeralContainer, uid: str) -> bool:
    return any(entry.name == JOB_ENV and entry.value == uid for entry in container.env)


class Obstacle(enum.StrEnum):
    NAME = "it has a container called {}"
    TARGET = "it has no container called {}"
    VOLUME = "it has no volume called {}"


def obstacle(pod: Pod, containers: Iterable[Mapping[str, Any]]) -> tuple[Obstacle, str] | None:
    """Why the API server would not add containers to a pod that has none of the job yet, and the name that it is about:
    nothing of a pod that it looks at ever changes, but for the ephemeral containers. None: it may add them."""
    own = {one.name for one in (*pod.spec.containers, *pod.spec.init_containers)}
    taken = own.union(one.name for one in pod.spec.ephemeral_containers)
    volumes = {one.name for one in pod.spec.volumes}
    for container in containers:
        if (name := str(container.get("name"))) in taken:
            return Obstacle.NAME, name
        if (target := container.get("targetContainerName")) and target not in own:
            return Obstacle.TARGET, str(target)
        for volume in _volumes_of(container):
            if volume not in volumes:
                return Obstacle.VOLUME, volume
    return None


def _volumes_of(container: Mapping[str, Any]) -> list[str]:
    mounts = container.get("volumeMounts")
    given = mounts if isinstance(mounts, list) else []
    return [str(mount.get("name")) for mount in given if isinstance(mount, Mapping)]


def taken_names(pod: Pod, names: Collection[str], uid: str) -> tuple[str, ...]:
    """Names of the template that another ephemeral container of the pod has (EJ-20)."""
    return tuple(
        container.name
        for container in pod.spec.ephemeral_containers
        if container.name in names and not is_own(container, uid)
    )


def _state(statuses: Collection[ContainerStatus], wanted: int) -> State:
    """EJ-25: a mix of successes and of what is not reported yet is unknown."""
    states = [container_state(status) for status in statuses]
    if State.FAILED in states:
        return State.FAILED
    if wanted and states.count(State.SUCCEEDED) == wanted:
        return State.SUCCEEDED
    for one in (State.RUNNING, State.WAITING):
        if one in states:
            return one
    return State.UNKNOWN


def container_state(status: ContainerStatus) -> State:
    """EJ-24."""
    state = status.state
    if state.terminated is not None:
        if state.terminated.exit_code != 0:
            return State.FAILED
        if state.terminated.finished_at is not None:
            return State.SUCCEEDED
    if state.running is not None:
        return State.RUNNING
    if state.waiting is not None:
        return State.FAILED if state.waiting.reason == RUN_ERROR else State.WAITING
    return State.UNKNOWN
