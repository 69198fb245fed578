"""What the daemon sees of a pod and its containers on the node."""

from __future__ import annotations

from datetime import datetime

from kruise.api.apps.containerrecreaterequest import Hook, Port
from kruise.daemon.kills import Kill, ending_of
from kruise.daemon.pods import Pod
from kruise.daemon.runtime import Container, ContainerState
from kruise.machinery.codec import Struct

SHORT_GRACE = 2


class SeenContainer(Struct):
    """The newest container of a name."""

    id: str
    name: str
    restart_count: int = 0
    plain_hash: int = 0
    running: bool = False
    environment: dict[str, str] | None = None
    """None: it was not asked for, or could not be read."""
    hook: Hook | None = None
    ports: tuple[Port, ...] = ()
    grace: int = SHORT_GRACE


class Seen(Struct):
    runtime: str
    containers: tuple[SeenContainer, ...] = ()


class Delay(Struct):
    """Time that a container with an old environment has before it is stopped (DMN-76)."""

    container_id: str
    seconds: float


class Restart(Kill, kw_only=True):
    """A kill of a container with an old environment."""

    pod_namespace: str
    pod_name: str
    pod_uid: str


class Job(Struct):
    """A delay or a kill that was begun."""

    name: str
    is_kill: bool
    container_id: str
    container: str = ""
    seconds: float = 0.0
    """How long a delay is."""
    ended: bool = False
    error: str = ""
    hook_error: str = ""


class Snapshot(Struct):
    pod: Pod
    node: str
    seen: Seen
    now: datetime
    reads_environment: bool = True
    """The gate InPlaceUpdateEnvFromMetadata."""
    jobs: tuple[Job, ...] = ()


def seen_container(container: Container, environment: dict[str, str] | None = None) -> SeenContainer:
    """With what the kubelet wrote down about it: who stops it knows nothing of the pod (DMN-55, DMN-57)."""
    ending = ending_of(container.annotations)
    return SeenContainer(
        id=container.id,
        name=container.container_name,
        restart_count=container.restart_count,
        plain_hash=container.plain_hash,
        running=container.state is ContainerState.RUNNING,
        environment=environment,
        hook=ending.hook,
        ports=ending.ports,
        grace=SHORT_GRACE if ending.grace is None else ending.grace,
    )
