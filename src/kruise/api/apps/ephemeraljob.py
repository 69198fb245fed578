"""EphemeralJob, which has one version (`v1alpha1`)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kruise.api.apps.shared import GROUP
from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Raw, Struct

FINALIZER = "apps.kruise.io/ephemeralcontainers-cleanup"
"""Of every EphemeralJob that the controller has seen (EJ-49)."""
JOB_ENV = "KRUISE_EJOB_ID"
"""The variable of an injected container that holds the uid of its job (EJ-21, EJ-41)."""
NO_CONTAINERS = Raw(b"[]")


class EphemeralJobCondition(Struct):
    """Something that is worth knowing of the job."""

    type: Annotated[str, About("Initialized, MatchedEmpty, JobSucceeded, JobFailed or JobError.", required=True)] = ""
    status: Annotated[str, About("Always True: a condition that does not hold is not there.", required=True)] = ""
    reason: Annotated[str, About("Why, in one word for programs.")] = ""
    message: Annotated[str, About("Why, in words for people.")] = ""
    last_probe_time: Annotated[datetime | None, About("When it was set.")] = None
    last_transition_time: Annotated[datetime | None, About("When it was set.")] = None


class EphemeralContainerTemplate(Struct):
    """The containers to inject."""

    ephemeral_containers: Annotated[
        Raw,
        About(
            "A list of ephemeral containers, as in the spec of a pod. Each pod gets all of them. name, image, "
            "imagePullPolicy and terminationMessagePolicy have to be given.",
            required=True,
        ),
    ] = NO_CONTAINERS


class EphemeralJobSpec(Struct):
    """What is wanted."""

    selector: Annotated[
        LabelSelector | None,
        About(
            "The pods of the job's namespace that get the containers, by their labels. An empty selector means all of "
            "them.",
            required=True,
        ),
    ] = None
    replicas: Annotated[
        Int32 | None, About("How many of the pods get the containers at most, the oldest first. All if absent.")
    ] = None
    parallelism: Annotated[
        Int32 | None, About("In how many pods containers of the job may be under way at once. 1 if absent.")
    ] = None
    template: Annotated[EphemeralContainerTemplate, About("The containers to inject.", required=True)] = (
        EphemeralContainerTemplate()
    )
    paused: Annotated[bool, About("Whether no further pod gets the containers. False if absent.")] = False
    active_deadline_seconds: Annotated[
        Int64 | None,
        About(
            "Seconds after the start in which the job has to end; after that it has failed. Containers that run then "
            "run on. No limit if absent."
        ),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, About("Seconds after its end at which the job is deleted; 0: at once. 1800 if absent.")
    ] = None


class EphemeralJobStatus(Struct):
    """What was last seen. The numbers count pods, not containers."""

    conditions: Annotated[
        tuple[Condition, ...],
        About("What is worth knowing of the job.", shape=tuple[EphemeralJobCondition, ...]),
    ] = ()
    start_time: Annotated[datetime | None, About("When the controller first saw the job.")] = None
    completion_time: Annotated[datetime | None, About("When the job ended: all pods done, or its deadline.")] = None
    phase: Annotated[
        str, About("Waiting, Running, Succeeded, Failed, Paused, Error, or Unknown: nothing of these.")
    ] = ""
    match: Annotated[Int32, About("Pods that get the containers, or have them.")] = 0
    running: Annotated[Int32, About("Pods in which a container of the job runs.")] = 0
    succeeded: Annotated[Int32, About("Pods in which all containers of the job ended well.")] = 0
    waiting: Annotated[Int32, About("Pods in which a container of the job has not started yet.")] = 0
    failed: Annotated[Int32, About("Pods in which a container of the job failed.")] = 0


class EphemeralJob(Struct):
    """An EphemeralJob adds ephemeral containers to running pods, a few at a time, and reports how they ended."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[EphemeralJobSpec, About("What is wanted.")] = EphemeralJobSpec()
    status: Annotated[EphemeralJobStatus, About("What was last seen. Written by the controller.")] = (
        EphemeralJobStatus()
    )


EPHEMERAL_JOBS = Resource(GROUP, "v1alpha1", "ephemeraljobs", "EphemeralJob", True, EphemeralJob)
