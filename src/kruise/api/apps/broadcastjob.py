"""BroadcastJob, the same in `v1alpha1` and `v1beta1` (BJ-2)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kruise.api.apps.shared import GROUP, IntOrPercent
from kruise.api.meta import Condition, ObjectMeta
from kruise.api.native.apps import EMPTY_OBJECT
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Raw, Struct

ALWAYS, NEVER = "Always", "Never"
"""Completion policies."""
FAIL_FAST, CONTINUE, PAUSE = "FailFast", "Continue", "Pause"
"""Failure policies."""
RUNNING, PAUSED, COMPLETED, FAILED = "running", "paused", "completed", "failed"
"""Phases."""
COMPLETE_CONDITION, FAILED_CONDITION = "Complete", "Failed"

NAME_LABEL = "broadcastjob-name"
UID_LABEL = "broadcastjob-controller-uid"
"""Labels of its pods (BJ-55)."""


class CompletionPolicy(Struct):
    """When the job is over."""

    type: Annotated[
        str,
        About(
            "Always: the job completes when its pods on all nodes have finished. Never: it goes on for nodes that come "
            "later. Always if absent."
        ),
    ] = ""
    active_deadline_seconds: Annotated[
        Int64 | None,
        About("With Always: how many seconds the job may take. After that it fails, and its running pods are deleted."),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None,
        About("With Always: the job is deleted so many seconds after it has finished. If absent, it stays."),
    ] = None


class FailurePolicy(Struct):
    """What follows when a pod fails."""

    type: Annotated[
        str,
        About(
            "FailFast: the job fails, and its running pods are deleted. Continue: other nodes go on. Pause: no more "
            "pods are made until the failed ones are deleted. FailFast if absent."
        ),
    ] = ""
    restart_limit: Annotated[
        Int32,
        About("How often the containers of a pod with restartPolicy OnFailure may restart before it counts as failed."),
    ] = 0


class BroadcastJobSpec(Struct):
    """What is wanted."""

    parallelism: Annotated[
        IntOrPercent | None,
        About(
            "How many pods run at most at a time: a number, or a percentage of the nodes, rounded up. No limit if "
            "absent."
        ),
    ] = None
    template: Annotated[
        Raw, About("The pod to run on each node. Its restartPolicy must be Never or OnFailure.", required=True)
    ] = EMPTY_OBJECT
    completion_policy: Annotated[CompletionPolicy, About("When the job is over.")] = CompletionPolicy()
    paused: Annotated[bool, About("Whether no more pods are made. Pods that run go on. False if absent.")] = False
    failure_policy: Annotated[FailurePolicy, About("What follows when a pod fails.")] = FailurePolicy()


class JobCondition(Struct):
    """How a job ended."""

    type: Annotated[str, About("Complete or Failed.", required=True)] = ""
    status: Annotated[str, About("True.", required=True)] = ""
    last_probe_time: Annotated[datetime | None, About("When it was last looked at.")] = None
    last_transition_time: Annotated[datetime | None, About("When it came to be so.")] = None
    reason: Annotated[str, About("The type again.")] = ""
    message: Annotated[str, About("In words.")] = ""


class BroadcastJobStatus(Struct):
    """What was last seen."""

    conditions: Annotated[tuple[Condition, ...], About("How the job ended.", shape=tuple[JobCondition, ...])] = ()
    start_time: Annotated[datetime | None, About("When the job began.")] = None
    completion_time: Annotated[datetime | None, About("When it completed or failed.")] = None
    active: Annotated[Int32, About("Pods that have not finished.")] = 0
    succeeded: Annotated[Int32, About("Pods that have succeeded.")] = 0
    failed: Annotated[Int32, About("Pods that have failed, and those that were deleted when the job failed.")] = 0
    desired: Annotated[Int32, About("Nodes that the job runs on.")] = 0
    phase: Annotated[str, About("running, paused, completed or failed.")] = ""


class BroadcastJob(Struct):
    """A BroadcastJob runs a pod to completion on each node that suits it."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[BroadcastJobSpec, About("What is wanted.")] = BroadcastJobSpec()
    status: Annotated[BroadcastJobStatus, About("What was last seen. Written by the controller.")] = (
        BroadcastJobStatus()
    )


BROADCAST_JOBS = Resource(GROUP, "v1beta1", "broadcastjobs", "BroadcastJob", True, BroadcastJob)
