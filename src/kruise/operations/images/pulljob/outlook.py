"""What an ImagePullJob will do: which nodes pull the image, in which order. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.images import MOST_IMAGES, NEVER, NODE_IMAGES, ImagePullJob, NodeImage
from kruise.api.core.images import ImageReference, reference_of
from kruise.api.native.pod import PODS
from kruise.faces.outlook import Outlook, OutlookFacts, Seen
from kruise.machinery.codec import convert, evolve
from kruise.machinery.documents import Json
from kruise.machinery.offline import ReadStores
from kruise.machinery.wording import plural
from kruise.operations.images.pulljob.decide import Nodes, is_full, nodes_of, parallelism_of
from kruise.operations.images.pulljob.selecting import selected_nodes
from kruise.operations.images.tasks import status_of

_NOT_THERE_YET = "a job that does not exist yet"
"""Stands for its uid: no task can be of it."""


def _outlook(document: Json, seen: Seen) -> Outlook:
    job = convert(document, ImagePullJob)
    if not job.metadata.uid:
        job = evolve(job, metadata=evolve(job.metadata, uid=_NOT_THERE_YET))
    image = reference_of(job.spec.image)
    if image is None:
        raise ValueError(f"{job.spec.image} is no image: nothing can be pulled")
    selected, _ = selected_nodes(ReadStores(None, seen.objects), job)
    nodes = nodes_of(selected, image, job.metadata.uid)
    limit, is_over = parallelism_of(job), job.status.completion_time is not None
    rows = [(one.metadata.name, "-", "has the image", "") for one in nodes.succeeded]
    rows += ((one.metadata.name, "-", "failed", _message(one, image)) for one in nodes.failed)
    rows += ((one.metadata.name, "-", "pulls", _message(one, image)) for one in nodes.active)
    waiting = [one for one in nodes.not_synced if not is_full(one, image)]
    room = max(limit - len(nodes.active), 0)
    for place, one in enumerate(waiting):
        turn = "never" if is_over or limit <= 0 else str(1 if place < room else 2 + (place - room) // limit)
        rows.append((one.metadata.name, turn, "to come", ""))
    full = f"it has tasks for {MOST_IMAGES} images already, and takes no more"
    rows += ((one.metadata.name, "-", "left out", full) for one in nodes.not_synced if is_full(one, image))
    facts = (
        ("Image", str(image)),
        ("Nodes", f"{len(selected)} of {len(seen.objects.get(NODE_IMAGES, ()))}"),
        ("Parallelism", "no limit" if limit >= len(selected) else f"{limit} at a time"),
        ("Pulls", f"{len(waiting)} to come, {len(nodes.active)} under way"),
    )
    notes = tuple(_notes(job, nodes, limit, is_over=is_over))
    return Outlook(facts=facts, header=("NODE", "TURN", "STATE", "WHY"), rows=tuple(rows), notes=notes)


def _message(node_image: NodeImage, image: ImageReference) -> str:
    status = status_of(node_image, image.name, image.tag)
    return status.message if status is not None else ""


def _notes(job: ImagePullJob, nodes: Nodes, limit: int, *, is_over: bool) -> Iterator[str]:
    if is_over:
        yield "it has ended: no further node begins"
        return
    if not (nodes.unfinished or nodes.succeeded or nodes.failed):
        yield "it selects no node" + ("" if job.spec.completion_policy.type == NEVER else ", and ends at once")
    if limit <= 0:
        yield "parallelism is 0: no further node begins"
    if job.spec.completion_policy.type == NEVER:
        yield "it does not end: nodes that come later pull the image, too, and all of them again about once a day"
    if job.spec.pull_secrets:
        yield f"{plural(len(job.spec.pull_secrets), 'pull secret')} first, so that nodes can read what they need"


OUTLOOK = OutlookFacts(reads=lambda document: (NODE_IMAGES, PODS), is_selecting=True, outlook=_outlook)
