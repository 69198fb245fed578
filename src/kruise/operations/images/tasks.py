"""Tasks in NodeImages: what a node is to pull, for whom, and how it went. Pure.

A NodeImage has many writers: jobs, people, the manager's own upkeep. Each write is decided over the whole spec, and
tests the generation that it was decided over: the API server raises it with every change of the spec, and with none of
the status. Who comes second decides anew.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.apps.images import (
    FAILED,
    IMAGE_PULL_JOBS,
    NODE_IMAGES,
    SUCCEEDED,
    ImagePullJob,
    ImageSpec,
    NodeImage,
    TagSpec,
    TagStatus,
    TaskOwner,
)
from kruise.api.core.images import ImageReference
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import evolve, to_builtins
from kruise.machinery.plan import Action, Target

COUNTED = "status.succeeded"
"""The part of a job that an owner reference is about once the job has counted the node as done."""


class TaskState(enum.StrEnum):
    """How far a node is, as a job sees it."""

    NOT_SYNCED = "not synced"
    """It has no task of the job."""
    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


def task_of(node_image: NodeImage, image: ImageReference) -> TagSpec | None:
    entry = node_image.spec.images.get(image.name)
    if entry is None:
        return None
    for task in entry.tags:
        if task.tag == image.tag:
            return task
    return None


def status_of(node_image: NodeImage, name: str, tag: str) -> TagStatus | None:
    entry = node_image.status.image_statuses.get(name)
    if entry is None:
        return None
    for status in entry.tags:
        if status.tag == tag:
            return status
    return None


def owner_in(task: TagSpec, uid: str) -> TaskOwner | None:
    for owner in task.owner_references:
        if owner.uid == uid:
            return owner
    return None


def is_job(owner: TaskOwner) -> bool:
    """Whether an owner is an ImagePullJob, in whatever version."""
    return owner.kind == IMAGE_PULL_JOBS.kind and owner.api_version.partition("/")[0] == IMAGE_PULL_JOBS.group


def owner_uids(node_image: NodeImage) -> Iterable[str]:
    """Index: the jobs that have a task in a NodeImage."""
    return dict.fromkeys(
        owner.uid for entry in node_image.spec.images.values() for task in entry.tags for owner in task.owner_references
    )


def state_of(node_image: NodeImage, image: ImageReference, uid: str) -> TaskState:
    """How far the node is with the task of a job (IPJ 4.9)."""
    task = task_of(node_image, image)
    owner = owner_in(task, uid) if task is not None else None
    if task is None or owner is None:
        return TaskState.NOT_SYNCED
    if owner.field_path == COUNTED:
        return TaskState.SUCCEEDED
    status = status_of(node_image, image.name, image.tag)
    if status is None or status.version != task.version:
        return TaskState.ACTIVE
    if status.phase == SUCCEEDED:
        return TaskState.SUCCEEDED
    return TaskState.FAILED if status.phase == FAILED else TaskState.ACTIVE


def owner_of(job: ImagePullJob) -> TaskOwner:
    """IPJ-47."""
    metadata = job.metadata
    return TaskOwner(
        api_version=IMAGE_PULL_JOBS.api_version,
        kind=IMAGE_PULL_JOBS.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )


def counted_owners(node_image: NodeImage, name: str, task: TagSpec) -> tuple[TaskOwner, ...]:
    """The owners of a task that is about to be pulled once more: those for whom it has succeeded keep that."""
    status = status_of(node_image, name, task.tag)
    if status is None or status.version != task.version or status.phase != SUCCEEDED:
        return task.owner_references
    return tuple(evolve(owner, field_path=COUNTED) if is_job(owner) else owner for owner in task.owner_references)


def spec_patch(node_image: NodeImage, changes: Mapping[str, ImageSpec | None], *, reason: str) -> Action:
    """The write that changes the entries of some images; None takes one away."""
    before = node_image.spec.images
    steps: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/generation", "value": node_image.metadata.generation}
    ]
    if not before or not any(name not in changes or changes[name] is not None for name in before):
        # The whole of it: a spec without any image may be no object at all.
        left = {name: _entry(entry) for name, entry in sorted(changes.items()) if entry is not None}
        steps.append({"op": "add", "path": "/spec", "value": {"images": left} if left else {}})
    else:
        for name, entry in sorted(changes.items()):
            path = f"/spec/images/{name.replace('~', '~0').replace('/', '~1')}"
            if entry is not None:
                steps.append({"op": "add", "path": path, "value": _entry(entry)})
            elif name in before:
                steps.append({"op": "remove", "path": path})
    return plans.patch(
        Target.of(NODE_IMAGES, node_image),
        steps,
        uid=node_image.metadata.uid,
        reason=reason,
        patch_type=PatchType.JSON,
    )


def _entry(entry: ImageSpec) -> dict[str, Any]:
    """With its tags in order, as everybody finds them (NI-11)."""
    written: dict[str, Any] = to_builtins(evolve(entry, tags=tuple(sorted(entry.tags, key=lambda task: task.tag))))
    return {"tags": [], **written}
