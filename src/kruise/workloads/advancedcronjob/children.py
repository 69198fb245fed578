"""What an AdvancedCronJob makes: kinds of runs, and how one stands (ACJ-40 to ACJ-44). Pure."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kruise.api.apps.advancedcronjob import SCHEDULED_AT, ActiveReference, AdvancedCronJob, TemplateMetadata
from kruise.api.apps.broadcastjob import BROADCAST_JOBS, BroadcastJob
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS, ImageListPullJob
from kruise.api.meta import Condition, Object
from kruise.api.native.apps import JOBS, Job
from kruise.api.resource import Resource
from kruise.machinery.codec import Raw, Struct
from kruise.machinery.times import TimeError, parse_time


class State(enum.StrEnum):
    ACTIVE = "active"
    SUCCESSFUL = "successful"
    FAILED = "failed"


class Child(Struct, kw_only=True):
    """A run, as far as decisions look at it."""

    name: str
    uid: str
    resource_version: str = ""
    state: State = State.ACTIVE
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    is_leaving: bool = False
    """It is being deleted."""


class Template(Struct, kw_only=True):
    """What a run is made of."""

    metadata: TemplateMetadata
    spec: Raw


@dataclasses.dataclass(frozen=True, slots=True)
class ChildKind:
    resource: Resource[Any]
    template: Callable[[AdvancedCronJob], Any]
    state: Callable[[Any], State]
    path: tuple[str, ...]
    """Of the pod template, in an AdvancedCronJob; empty: it has none."""
    field: str = ""
    gates: tuple[str, ...] = ()
    """With one of them off, admission refuses every run."""

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def is_fixed(self) -> bool:
        """Whether a template of it can never be changed (ACJ-37): those with pods."""
        return bool(self.path)


def _by_conditions(conditions: tuple[Condition, ...]) -> State:
    for condition in conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return State.SUCCESSFUL if condition.type == "Complete" else State.FAILED
    return State.ACTIVE


def _job(job: Job) -> State:
    return _by_conditions(job.status.conditions)


def _broadcast_job(job: BroadcastJob) -> State:
    return _by_conditions(job.status.conditions)


def _image_list_pull_job(job: ImageListPullJob) -> State:
    if job.status.completion_time is None:
        return State.ACTIVE
    return State.SUCCESSFUL if job.status.succeeded == job.status.desired else State.FAILED


def _pod_template(field: str) -> tuple[str, ...]:
    return ("spec", "template", field, "spec", "template")


KINDS = (
    ChildKind(JOBS, lambda cron: cron.spec.template.job_template, _job, _pod_template("jobTemplate"), "jobTemplate"),
    ChildKind(
        IMAGE_LIST_PULL_JOBS,
        lambda cron: cron.spec.template.image_list_pull_job_template,
        _image_list_pull_job,
        (),
        "imageListPullJobTemplate",
        ("KruiseDaemon", "ImagePullJobGate"),
    ),
    ChildKind(
        BROADCAST_JOBS,
        lambda cron: cron.spec.template.broadcast_job_template,
        _broadcast_job,
        _pod_template("broadcastJobTemplate"),
        "broadcastJobTemplate",
    ),
)
"""In the order in which they are asked for (ACJ-40)."""


def closed_gate(kind: ChildKind, gates: Mapping[str, bool]) -> str:
    """The gate that lets no run of a kind be; empty: all are on. One that is not named counts as on."""
    return next((gate for gate in kind.gates if not gates.get(gate, True)), "")


def kind_of(cron: AdvancedCronJob) -> ChildKind | None:
    return next((kind for kind in KINDS if kind.template(cron) is not None), None)


def child_of(kind: ChildKind, obj: Object, *, is_leaving: bool) -> Child:
    metadata = obj.metadata
    return Child(
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        state=kind.state(obj),
        scheduled_at=_moment(metadata.annotations.get(SCHEDULED_AT, "")),
        started_at=obj.status.start_time,  # type: ignore[attr-defined]
        is_leaving=is_leaving or metadata.deletion_timestamp is not None,
    )


def _moment(text: str) -> datetime | None:
    """What cannot be read is skipped (ACJ-44)."""
    try:
        return parse_time(text) if text else None
    except TimeError:
        return None


def reference_to(kind: ChildKind, namespace: str, child: Child) -> ActiveReference:
    """ACJ-10."""
    return ActiveReference(
        api_version=kind.resource.api_version,
        kind=kind.kind,
        namespace=namespace,
        name=child.name,
        uid=child.uid,
        resource_version=child.resource_version,
    )
