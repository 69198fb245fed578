"""ContainerRecreateRequest in `v1alpha1`: the same spec, without limits in its schema, and less in the status.

No controller reads this version; the structs are the source of its schema. `conversion.containerrecreaterequest` maps
it to the stored version.
"""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps import containerrecreaterequest as stored
from kruise.api.meta import ObjectMeta
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Struct


class Strategy(Struct):
    """How the containers are recreated."""

    failure_policy: Annotated[
        str,
        About(
            "What a container that cannot be stopped means. Fail: the request ends. Ignore: the others go on. Fail if "
            "absent."
        ),
    ] = ""
    ordered_recreate: Annotated[
        bool, About("Whether a container is stopped only when the one before it has been recreated.")
    ] = False
    force_recreate: Annotated[
        bool, About("Whether containers are stopped that were replaced already, or are still starting.")
    ] = False
    termination_grace_period_seconds: Annotated[
        Int64 | None, About("Time for hook and end of a container. The pod's if absent.")
    ] = None
    unready_grace_period_seconds: Annotated[
        Int64 | None,
        About(
            "The pod is made not ready, and so long after that the first container is stopped. Needs the readiness "
            "gate KruisePodReady."
        ),
    ] = None
    min_started_seconds: Annotated[
        Int32, About("How long a new container must have run to count as recreated. 0 if absent.")
    ] = 0


class ContainerRecreateRequestSpec(stored.RequestBase):
    """What is wanted. It cannot be changed."""

    strategy: Annotated[Strategy | None, About("How the containers are recreated.")] = None
    active_deadline_seconds: Annotated[
        Int64 | None, About("The request ends so long after it was made, whatever is done. At least 3.")
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, About("The request is deleted so long after its end. Never if absent.")
    ] = None


class RecreateState(Struct):
    """How far a container is."""

    name: Annotated[str, About("Name of the container.", required=True)] = ""
    phase: Annotated[str, About("Pending, Recreating, Succeeded or Failed.", required=True)] = ""
    message: Annotated[str, About("Why it waits or failed.")] = ""
    is_killed: Annotated[bool, About("Whether it has been stopped, or was found stopped.")] = False


class ContainerRecreateRequestStatus(stored.RequestStatus):
    """What was last seen."""

    phase: Annotated[
        str,
        About(
            "Pending: another request for the pod is ahead. Recreating: containers are stopped and started. Completed: "
            "it has ended; the states tell which containers were recreated.",
            required=True,
        ),
    ] = ""
    container_recreate_states: Annotated[
        tuple[RecreateState, ...], About("How far each container is, in the order of the spec.")
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
