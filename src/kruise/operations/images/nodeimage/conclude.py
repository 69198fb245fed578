"""What is told about a NodeImage: tasks that the manager has given up on. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.images import IMAGE_PULL_JOBS, NODE_IMAGES
from kruise.api.core.images import ImageReference
from kruise.machinery import plan as plans
from kruise.machinery.codec import to_builtins
from kruise.machinery.plan import Conclusion, EventNote, EventType, Outcomes, Plan, StatusEffect, Target
from kruise.operations.images.nodeimage.decide import Failure, Memo, Snapshot, counts
from kruise.operations.images.tasks import is_job

PULL_FAILED = "PullImageFailed"


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    """NI-23, NI-E1."""
    memo, node_image = plan.memo_as(Memo), snapshot.node_image
    if node_image is None or memo.statuses is None:
        return Conclusion()
    before = node_image.status
    status = {
        "desired": sum(len(entry.tags) for entry in node_image.spec.images.values()),
        **counts(memo.statuses),
        "waiting": before.waiting,
        "imageStatuses": to_builtins(memo.statuses),
    }
    if before.first_sync_status is not None:
        status["firstSyncStatus"] = to_builtins(before.first_sync_status)
    # The daemon writes it, too: what it has said meanwhile counts more.
    write = plans.status_patch(
        Target.of(NODE_IMAGES, node_image),
        status,
        uid=node_image.metadata.uid,
        reason="the node does not answer",
        resource_version=node_image.metadata.resource_version,
    )
    events = tuple(note for failure in memo.failures for note in _events(snapshot.name, failure))
    return Conclusion(status=write, events=events, effect=StatusEffect.REQUEUES)


def _events(node: str, failure: Failure) -> Iterator[EventNote]:
    image = ImageReference(failure.image, failure.tag)
    message = f"Failed to pull image {image} on node {node} for {failure.message}"
    for job in filter(is_job, failure.owners):
        target = Target(IMAGE_PULL_JOBS, job.namespace, job.name)
        yield EventNote(reason=PULL_FAILED, message=message, type=EventType.WARNING, target=target, uid=job.uid)
    yield EventNote(reason=PULL_FAILED, message=message, type=EventType.WARNING)
