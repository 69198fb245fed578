"""ContainerRecreateRequest, as it is stored (`v1beta1`)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from kruise.api.apps.shared import GROUP
from kruise.api.meta import ObjectMeta
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Struct, field

FAIL, IGNORE = "Fail", "Ignore"
PENDING, RECREATING, SUCCEEDED, FAILED, COMPLETED = "Pending", "Recreating", "Succeeded", "Failed", "Completed"
Phase = Literal["Pending", "Recreating", "Succeeded", "Failed", "Completed"]

NODE_LABEL = "crr.apps.kruise.io/node-name"
POD_LABEL = "crr.apps.kruise.io/pod-uid"
ACTIVE_LABEL = "crr.apps.kruise.io/active"
VIRTUAL_LABEL, VIRTUAL = "type", "virtual-kubelet"
UNREADY_FINALIZER = "crr.apps.kruise.io/unready-acquired"
GRACE_CONDITION = "PreRecreateGrace"

_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class ExecAction(Struct):
    """A command in the container."""

    command: Annotated[
        tuple[str, ...], About("The command and its arguments. No shell is involved.", is_atomic=True)
    ] = ()


class HttpHeader(Struct):
    """A header of a request."""

    name: Annotated[str, About("Name of the header.", required=True)] = ""
    value: Annotated[str, About("Its value.", required=True)] = ""


class HttpGetAction(Struct):
    """A request to the container."""

    host: Annotated[str, About("Where to send it. The pod's address if absent.")] = ""
    http_headers: Annotated[tuple[HttpHeader, ...], About("Headers of the request.", is_atomic=True)] = ()
    path: Annotated[str, About("Path of the request.")] = ""
    port: Annotated[int | str, About("Number or name of the port.", required=True)] = 0
    scheme: Annotated[str, About("HTTP or HTTPS. HTTP if absent.")] = ""


class TcpSocketAction(Struct):
    """A connection to the container."""

    host: Annotated[str, About("Where to connect to. The pod's address if absent.")] = ""
    port: Annotated[int | str, About("Number or name of the port.", required=True)] = 0


class Hook(Struct):
    """What is done before a container is stopped."""

    exec: Annotated[ExecAction | None, About("A command in the container.")] = None
    http_get: Annotated[HttpGetAction | None, About("A request to the container.")] = None
    tcp_socket: Annotated[TcpSocketAction | None, About("Cannot be carried out.")] = None


class Port(Struct):
    """A port of the container."""

    container_port: Annotated[Int32, About("Number of the port.", required=True)] = 0
    host_port: Annotated[Int32, About("Number of the port on the node.")] = 0
    host_ip: Annotated[str, About("Address of the node that the port is bound to.")] = field(default="", name="hostIP")
    name: Annotated[str, About("Name of the port.")] = ""
    protocol: Annotated[str, About("TCP, UDP or SCTP.", default="TCP")] = ""


class StatusContext(Struct):
    """The container at the time of the request."""

    container_id: Annotated[str, About("Its id.", required=True)] = field(default="", name="containerID")
    restart_count: Annotated[Int32, About("How often it had been restarted.", required=True)] = 0


class RecreatedContainer(Struct):
    """A container to recreate."""

    name: Annotated[str, About("Name of a container of the pod.", required=True)] = ""
    pre_stop: Annotated[Hook | None, About("The container's preStop hook. Filled in when the request is made.")] = None
    ports: Annotated[
        tuple[Port, ...], About("Ports of the container, where its hook may name one. Filled in likewise.")
    ] = ()
    status_context: Annotated[
        StatusContext | None,
        About("The container as it was when the request was made. One that is another by now is not stopped again."),
    ] = None


class Strategy(Struct):
    """How the containers are recreated."""

    failure_policy: Annotated[
        str,
        About(
            "What a container that cannot be stopped means. Fail: the request ends. Ignore: the others go on. Fail if "
            "absent.",
            shape=Literal["Fail", "Ignore"],
        ),
    ] = ""
    ordered_recreate: Annotated[
        bool, About("Whether a container is stopped only when the one before it has been recreated.")
    ] = False
    force_recreate: Annotated[
        bool, About("Whether containers are stopped that were replaced already, or are still starting.")
    ] = False
    termination_grace_period_seconds: Annotated[
        Int64 | None, About("Time for hook and end of a container. The pod's if absent.", minimum=0)
    ] = None
    unready_grace_period_seconds: Annotated[
        Int64 | None,
        About(
            "The pod is made not ready, and so long after that the first container is stopped. Needs the readiness "
            "gate KruisePodReady.",
            minimum=0,
        ),
    ] = None
    min_started_seconds: Annotated[
        Int32, About("How long a new container must have run to count as recreated. 0 if absent.", minimum=0)
    ] = 0


class RequestBase(Struct):
    """What is wanted, in both versions."""

    pod_name: Annotated[str, About("Name of the pod, in the namespace of the request.", required=True)] = ""
    containers: Annotated[
        tuple[RecreatedContainer, ...], About("The containers to recreate, in order.", required=True)
    ] = ()


class ContainerRecreateRequestSpec(RequestBase):
    """What is wanted. It cannot be changed."""

    strategy: Annotated[Strategy | None, About("How the containers are recreated.")] = None
    active_deadline_seconds: Annotated[
        Int64 | None, About("The request ends so long after it was made, whatever is done. At least 3.", minimum=0)
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, About("The request is deleted so long after its end. Never if absent.", minimum=0)
    ] = None


class RecreateState(Struct):
    """How far a container is."""

    name: Annotated[str, About("Name of the container.", required=True)] = ""
    phase: Annotated[
        str,
        About("Pending, Recreating, Succeeded or Failed.", required=True, shape=Phase),
    ] = ""
    message: Annotated[str, About("Why it waits or failed.")] = ""
    is_killed: Annotated[bool, About("Whether it has been stopped, or was found stopped.")] = False


class SyncedStatus(Struct):
    """A container of the pod that was started after the request."""

    name: Annotated[str, About("Name of the container.", required=True)] = ""
    ready: Annotated[bool, About("Whether it is ready.", required=True)] = False
    restart_count: Annotated[Int32, About("How often it has been restarted.", required=True)] = 0
    container_id: Annotated[str, About("Its id.")] = field(default="", name="containerID")


class RequestCondition(Struct):
    """Something that is worth knowing of the request as a whole."""

    type: Annotated[str, About("What the condition is about.", required=True, pattern=_TYPE)] = ""
    status: Annotated[
        str,
        About("Whether it holds: True, False or Unknown.", required=True, shape=Literal["True", "False", "Unknown"]),
    ] = ""
    reason: Annotated[str, About("Why, in one word for programs.", required=True, pattern=_REASON, min_length=1)] = ""
    message: Annotated[str, About("Why, in words for people.", required=True)] = ""
    last_transition_time: Annotated[datetime | None, About("When the status last changed.", required=True)] = None
    observed_generation: Annotated[Int64, About("The generation that was looked at.", minimum=0)] = 0


class RequestStatus(Struct):
    """What was last seen, in both versions."""

    completion_time: Annotated[datetime | None, About("When the request ended.")] = None
    message: Annotated[str, About("Why it ended before its time. Empty where all containers came to an end.")] = ""


class ContainerRecreateRequestStatus(RequestStatus):
    """What was last seen."""

    phase: Annotated[
        str,
        About(
            "Pending: another request for the pod is ahead. Recreating: containers are stopped and started. Completed: "
            "it has ended; the states tell which containers were recreated.",
            required=True,
            shape=Phase,
        ),
    ] = ""
    container_recreate_states: Annotated[
        tuple[RecreateState, ...], About("How far each container is, in the order of the spec.")
    ] = ()
    container_status_snapshot: Annotated[
        tuple[SyncedStatus, ...] | None, About("The containers that were started after the request.")
    ] = None
    conditions: Annotated[
        tuple[RequestCondition, ...],
        About("PreRecreateGrace: the pod was made not ready, and since when.", keyed_by="type"),
    ] = ()


class ContainerRecreateRequest(Struct):
    """A ContainerRecreateRequest has containers of a running pod stopped, so that they start anew while the others run
    on."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ContainerRecreateRequestSpec, About("What is wanted. It cannot be changed.")] = (
        ContainerRecreateRequestSpec()
    )
    status: Annotated[
        ContainerRecreateRequestStatus, About("What was last seen. Written by the controller and the node daemon.")
    ] = ContainerRecreateRequestStatus()

    @property
    def is_completed(self) -> bool:
        return self.status.completion_time is not None or self.status.phase == COMPLETED

    @property
    def is_over(self) -> bool:
        """It has ended, or is being deleted."""
        return self.is_completed or self.metadata.deletion_timestamp is not None

    @property
    def strategy(self) -> Strategy:
        return self.spec.strategy if self.spec.strategy is not None else _USUAL

    @property
    def grace_condition(self) -> RequestCondition | None:
        """Since when the pod is held back from traffic; None: it is not yet."""
        for item in self.status.conditions:
            if item.type == GRACE_CONDITION and item.status == "True":
                return item
        return None


_USUAL = Strategy()

REQUESTS = Resource(
    GROUP, "v1beta1", "containerrecreaterequests", "ContainerRecreateRequest", True, ContainerRecreateRequest
)
