"""What the daemon sees of the requests for one pod."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kruise.api.apps.containerrecreaterequest import (
    PENDING,
    POD_LABEL,
    RECREATING,
    ContainerRecreateRequest,
    RecreatedContainer,
    RecreateState,
)
from kruise.daemon.kills import Kill
from kruise.daemon.runtime import ContainerStatus, split_id
from kruise.machinery.codec import Struct

_ORDER = {RECREATING: 0, PENDING: 1}


class Seen(Struct):
    """The pod's containers on the node, the newest first; or why they cannot be seen."""

    runtime: str = ""
    containers: tuple[ContainerStatus, ...] = ()
    problem: str = ""
    """Nothing can be done about the request, for this reason (CRR-44)."""


class StopContainer(Kill, kw_only=True):
    """A kill on behalf of a request."""

    pod_uid: str
    request: str
    request_uid: str
    states: tuple[RecreateState, ...]
    """As they were when it began: the request may be out of sight when it ends."""


class Stop(Struct):
    """A kill that was begun."""

    name: str
    """Of the job."""
    call: StopContainer
    ended: bool = False
    error: str = ""
    hook_error: str = ""


class Snapshot(Struct):
    namespace: str
    pod_name: str
    node: str
    requests: tuple[ContainerRecreateRequest, ...]
    """Those that are not over."""
    seen: Seen
    now: datetime
    stops: tuple[Stop, ...] = ()
    pod_ip: str = ""
    restart_policy: str = ""
    """Empty: not known."""
    unready_for: float | None = None
    """Seconds since this daemon saw for the first time that the pod is kept out of traffic."""
    saw_it_leave: bool = False
    """Whether it saw before that it was not: then it has seen when that was."""

    @property
    def picked(self) -> ContainerRecreateRequest | None:
        """The one that is worked on (CRR-41)."""
        return self.requests[0] if self.requests else None


def in_turn(requests: Sequence[ContainerRecreateRequest]) -> tuple[ContainerRecreateRequest, ...]:
    """Requests for a pod that are not over, in the order in which they are worked on."""

    def turn(request: ContainerRecreateRequest) -> tuple[object, ...]:
        created = request.metadata.creation_timestamp
        return (
            _ORDER.get(request.status.phase, 2),
            created.timestamp() if created is not None else 0.0,
            request.metadata.name,
        )

    return tuple(sorted((request for request in requests if not request.is_over), key=turn))


def containers_of(request: ContainerRecreateRequest) -> tuple[RecreatedContainer, ...]:
    """Each container once, whatever the list says."""
    found: dict[str, RecreatedContainer] = {}
    for container in request.spec.containers:
        found.setdefault(container.name, container)
    return tuple(found.values())


def runtime_of(request: ContainerRecreateRequest) -> str:
    """The name of the runtime that has the containers. Raises ValueError (CRR-44)."""
    names = set()
    for container in containers_of(request):
        if container.status_context is None:
            raise ValueError(f"container {container.name} has no statusContext")
        names.add(split_id(container.status_context.container_id)[0])
    if len(names) != 1:
        raise ValueError(f"the containers are in several runtimes: {', '.join(sorted(names))}")
    return names.pop()


def pod_uid(request: ContainerRecreateRequest) -> str:
    return request.metadata.labels.get(POD_LABEL, "")
