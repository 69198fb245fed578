"""The upkeep of NodeImages: one for each node, with its labels; tasks that are over or that nobody wants any more
leave; a node that does not answer has failed (NI-17 to NI-24). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kruise.api.apps.images import (
    BATCH,
    FAILED,
    FAKE_LABEL,
    NODE_IMAGES,
    PULLING,
    SUCCEEDED,
    ImageSpec,
    ImageStatus,
    NodeImage,
    ReferenceObject,
    TagSpec,
    TagStatus,
    TaskOwner,
)
from kruise.api.meta import Condition
from kruise.api.native.nodes import Node
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct, evolve, field
from kruise.machinery.plan import Action, OnError, Plan, Target, Wake, single
from kruise.machinery.times import later, next_second
from kruise.operations.images.causes import NO_ANSWER
from kruise.operations.images.nodeimage.holding import held
from kruise.operations.images.tasks import is_job, spec_patch, status_of

VIRTUAL_LABEL, VIRTUAL = "type", "virtual-kubelet"
"""Of nodes that have no runtime, and no daemon."""
SILENCE = timedelta(minutes=10)
"""How long a node may leave a task unanswered, and how long past its deadline."""
LATE = "pulling exceeds the activeDeadlineSeconds"
SOONEST = 3.0
"""Seconds: nothing here is in such a hurry that it is looked at more often."""


class Snapshot(Struct):
    """Everything that a decision depends on."""

    name: str
    node_image: NodeImage | None
    node: Node | None
    """None: there is none, or it is about to go."""
    jobs: frozenset[str]
    """UIDs of the jobs that are among the owners of tasks and exist."""
    gone_secrets: frozenset[str]
    """`namespace/name` of secrets that tasks name and that do not exist."""
    now: datetime
    creation_delay: float = 30.0
    """Seconds for which a node must have been ready before it gets a NodeImage."""
    open_jobs: frozenset[str] = frozenset()
    """Those of the jobs that will end and have not: they still count what nodes have pulled."""


class Failure(Struct):
    """A task that the manager gives up on."""

    image: str
    tag: str
    message: str
    owners: tuple[TaskOwner, ...] = ()


class Memo(Struct):
    """What `conclude` needs: the statuses to write, and whom to tell."""

    statuses: dict[str, ImageStatus] | None = None
    failures: tuple[Failure, ...] = field(default=())


def is_virtual(node: Node) -> bool:
    return node.metadata.labels.get(VIRTUAL_LABEL) == VIRTUAL


def ready_since(node: Node) -> datetime | None:
    """When a node became ready; None: it is not."""
    found: Condition | None = next((one for one in node.status.conditions if one.type == "Ready"), None)
    if found is None or found.status != "True":
        return None
    return found.last_transition_time or node.metadata.creation_timestamp


def seconds_until_due(node: Node, now: datetime, delay: float) -> float | None:
    """How long until a node gets its NodeImage; None: not as long as it is not ready (NI-15)."""
    since = ready_since(node)
    if since is None:
        return None
    return max(0.0, delay - (now - since).total_seconds())


def decide(snapshot: Snapshot) -> Plan:
    node_image, node = snapshot.node_image, snapshot.node
    if node_image is None:
        return _creation(snapshot)
    if node_image.metadata.deletion_timestamp is not None or (node is not None and is_virtual(node)):
        return Plan(memo=Memo())
    if node is None and FAKE_LABEL not in node_image.metadata.labels:
        gone = plans.delete(Target.of(NODE_IMAGES, node_image), uid=node_image.metadata.uid, reason="its node is gone")
        return Plan(phases=(single("delete", gone),), memo=Memo())
    wakes: list[Wake] = []
    changes = dict(_changed_entries(snapshot, node_image, wakes))
    actions = [*_labels(node, node_image)]
    if changes:
        actions.append(spec_patch(node_image, changes, reason="tasks are over, or nobody wants them any more"))
    if actions:
        # Labels and spec in one chain: both are patches of the same object.
        return Plan(phases=(plans.Phase(name="upkeep", chains=(tuple(actions),)),), memo=Memo())
    memo = _silence(snapshot, node_image, wakes)
    return Plan(wakes=tuple(wakes), memo=memo, held=held(node_image))


def _creation(snapshot: Snapshot) -> Plan:
    """NI-18."""
    node = snapshot.node
    if node is None or is_virtual(node):
        return Plan(memo=Memo())
    left = seconds_until_due(node, snapshot.now, snapshot.creation_delay)
    if left is None:
        return Plan(memo=Memo())
    if left > 0:
        return Plan(wakes=(Wake(after=left, reason="the node has just become ready"),), memo=Memo())
    body = {
        "apiVersion": NODE_IMAGES.api_version,
        "kind": NODE_IMAGES.kind,
        "metadata": {"name": snapshot.name, "labels": dict(node.metadata.labels)},
        "spec": {},
    }
    created = plans.create(NODE_IMAGES, body, reason="the node has none")
    return Plan(phases=(single("create", created, on_error=OnError.CONTINUE),), memo=Memo())


def _labels(node: Node | None, node_image: NodeImage) -> Iterator[Action]:
    """They are those of the node, and no others (NI-20)."""
    if node is None or node.metadata.labels == node_image.metadata.labels:
        return
    wanted, present = node.metadata.labels, node_image.metadata.labels
    labels = {**{name: None for name in present if name not in wanted}, **wanted}
    yield plans.patch(
        Target.of(NODE_IMAGES, node_image),
        {"metadata": {"labels": labels}},
        uid=node_image.metadata.uid,
        reason="the labels of the node",
    )


def _changed_entries(
    snapshot: Snapshot, node_image: NodeImage, wakes: list[Wake]
) -> Iterator[tuple[str, ImageSpec | None]]:
    for name, entry in node_image.spec.images.items():
        tags = tuple(
            kept for task in entry.tags if (kept := _kept_task(snapshot, node_image, name, task, wakes)) is not None
        )
        secrets = tuple(one for one in entry.pull_secrets if _is_kept(one, snapshot.gone_secrets))
        if not tags:
            yield name, None
        elif tags != entry.tags or secrets != entry.pull_secrets:
            yield name, evolve(entry, tags=tags, pull_secrets=secrets)


def _kept_task(
    snapshot: Snapshot, node_image: NodeImage, name: str, task: TagSpec, wakes: list[Wake]
) -> TagSpec | None:
    """The task with the owners that it still has; None: it leaves."""
    if task.created_at is None:
        return None
    owners = tuple(one for one in task.owner_references if not is_job(one) or one.uid in snapshot.jobs)
    if task.owner_references and not owners:
        return None
    policy = task.pull_policy
    ttl = policy.ttl_seconds_after_finished if policy is not None else None
    status = status_of(node_image, name, task.tag)
    if ttl is not None and status is not None and status.version == task.version and status.completion_time is not None:
        # The end is told by the clock of the node, which may be behind: no task ends before it was made. The first one
        # is taken at its word: whoever sets its end back wants the node to pull once more.
        ended = max(status.completion_time, task.created_at) if task.version else status.completion_time
        left = (later(ended, ttl) - snapshot.now).total_seconds()
        if left <= 0 and not any(one.uid in snapshot.open_jobs for one in owners):
            return None
        # A job on many nodes may take longer than that. Without the task it would have the node pull once more, and so
        # never come to its end. When it ends, the node is looked at again.
        if left > 0:
            wakes.append(_wake(left, f"task {name}:{task.tag} is kept for {ttl} seconds after its end"))
    return task if owners == task.owner_references else evolve(task, owner_references=owners)


def _is_kept(secret: ReferenceObject, gone: frozenset[str]) -> bool:
    """NI-21."""
    return secret.mode == BATCH or f"{secret.namespace}/{secret.name}" not in gone


def _silence(snapshot: Snapshot, node_image: NodeImage, wakes: list[Wake]) -> Memo:
    """Tasks that the node does not answer, or does not end in time, have failed (NI-22)."""
    failures: list[Failure] = []
    statuses: dict[str, ImageStatus] = {}
    now = snapshot.now
    for name, entry in node_image.spec.images.items():
        found: list[TagStatus] = []
        for task in entry.tags:
            status = status_of(node_image, name, task.tag)
            if task.created_at is None:
                continue
            text, ends = _deadline(task, status)
            if ends is not None and now >= ends:
                failures.append(_failure(name, task, text))
                failed = status if status is not None else TagStatus(tag=task.tag)
                status = evolve(
                    failed,
                    phase=FAILED,
                    completion_time=next_second(now),
                    version=task.version,
                    message=text,
                    image_id="",
                )
            elif ends is not None:
                wakes.append(_wake((ends - now).total_seconds(), f"the node has to answer for {name}:{task.tag}"))
            if status is not None:
                found.append(status)
        if found:
            statuses[name] = ImageStatus(tags=tuple(sorted(found, key=lambda one: one.tag)))
    return Memo(statuses=statuses, failures=tuple(failures)) if failures else Memo()


def _deadline(task: TagSpec, status: TagStatus | None) -> tuple[str, datetime | None]:
    """When the manager gives a task up, and what it says then; None: never."""
    began = task.created_at
    if began is None:
        return "", None
    if status is None or status.version != task.version:
        return NO_ANSWER, began + SILENCE
    deadline = task.pull_policy.active_deadline_seconds if task.pull_policy is not None else None
    if status.completion_time is not None or deadline is None:
        return "", None
    return LATE, later(began, deadline) + SILENCE


def _failure(name: str, task: TagSpec, message: str) -> Failure:
    return Failure(image=name, tag=task.tag, message=message, owners=task.owner_references)


def _wake(after: float, reason: str) -> Wake:
    return Wake(after=max(after, SOONEST), reason=reason)


def counts(statuses: dict[str, ImageStatus]) -> dict[str, int]:
    phases = [status.phase for entry in statuses.values() for status in entry.tags]
    return {
        "succeeded": phases.count(SUCCEEDED),
        "failed": phases.count(FAILED),
        "pulling": phases.count(PULLING),
    }
