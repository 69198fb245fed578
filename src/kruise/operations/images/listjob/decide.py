"""What an ImageListPullJob does next: an ImagePullJob for each image, and a new one where its template changed
(ILPJ-11 to ILPJ-17). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kruise.api.apps.images import (
    IMAGE_LIST_PULL_JOBS,
    IMAGE_PULL_JOBS,
    NEVER,
    PULL_IF_NOT_PRESENT,
    FailedImageStatus,
    ImageListPullJob,
    ImageListPullJobStatus,
    ImagePullJob,
    PullTemplate,
)
from kruise.machinery import plan as plans
from kruise.machinery.causes import Cause
from kruise.machinery.codec import Struct, canonical, evolve, to_builtins
from kruise.machinery.names import SUBDOMAIN_MAX, child_name, choose_suffixes, derived_suffix
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Held, OnError, Phase, Plan, Target, Wake
from kruise.machinery.times import later, next_second
from kruise.machinery.wording import listed, namespace_flag, plural
from kruise.operations.images.listjob import causes

HASH_LABEL = "controller-revision-hash"
CREATE, DELETE = "create", "delete"
_HASH_LENGTH = 10
_TEMPLATE = tuple(PullTemplate.__struct_fields__)


class Snapshot(Struct):
    """Everything that a decision depends on."""

    job: ImageListPullJob
    children: tuple[ImagePullJob, ...]
    """Those that it controls and that are not about to go."""
    now: datetime
    seed: int


class Memo(Struct):
    status: ImageListPullJobStatus | None = None
    """None: the job is over, and its status stays."""


def template_of(spec: Any) -> PullTemplate:
    return PullTemplate(**{name: getattr(spec, name) for name in _TEMPLATE})


def hash_of(template: PullTemplate) -> str:
    """Equal for equal templates, and safe as a label."""
    return derived_suffix(canonical(template).decode(), n=_HASH_LENGTH)


def decide(snapshot: Snapshot) -> Plan:
    job = snapshot.job
    if job.metadata.deletion_timestamp is not None:
        return Plan(memo=Memo())
    if job.status.completion_time is not None:
        return _completed(snapshot, job.status.completion_time)
    revision = hash_of(template_of(job.spec))
    kept, surplus = _sorted_out(snapshot, revision)
    missing = [image for image in job.spec.images if image not in kept]
    phases = (
        *_phase("label", *_label(job, revision)),
        *_phase(DELETE, *(_delete(child, reason) for child, reason in surplus)),
        *_phase(CREATE, *_creates(snapshot, missing, revision), slow_start=True),
    )
    status = _status(snapshot, kept)
    return Plan(phases=phases, held=_held(snapshot, kept), memo=Memo(status=status))


def _sorted_out(snapshot: Snapshot, revision: str) -> tuple[dict[str, ImagePullJob], list[tuple[ImagePullJob, str]]]:
    """The jobs that are as they should be, by image, and those that go, each with the reason."""
    wanted = set(snapshot.job.spec.images)
    kept: dict[str, ImagePullJob] = {}
    surplus: list[tuple[ImagePullJob, str]] = []
    for child in sorted(snapshot.children, key=lambda one: one.metadata.name):
        image = child.spec.image
        if image not in wanted:
            surplus.append((child, "its image is not wanted any more"))
        elif not _is_up_to_date(child, snapshot.job, revision):
            surplus.append((child, "the job says something else by now"))
        elif image in kept:
            surplus.append((child, "there is another job for its image"))
        else:
            kept[image] = child
    return kept, surplus


def _is_up_to_date(child: ImagePullJob, job: ImageListPullJob, revision: str) -> bool:
    """ILPJ-11: a job from before the label is compared as a whole."""
    label = child.metadata.labels.get(HASH_LABEL)
    if label is not None:
        return label == revision
    wanted, present = template_of(job.spec), template_of(child.spec)
    if not wanted.image_pull_policy:
        wanted = evolve(wanted, image_pull_policy=PULL_IF_NOT_PRESENT)
    return wanted == present


def _phase(name: str, *actions: Action, slow_start: bool = False) -> tuple[Phase, ...]:
    if not actions:
        return ()
    on_error = OnError.STOP_PHASE if slow_start else OnError.CONTINUE
    return (plans.single(name, *actions, on_error=on_error, slow_start=slow_start),)


def _label(job: ImageListPullJob, revision: str) -> Iterator[Action]:
    if job.metadata.labels.get(HASH_LABEL) != revision:
        yield plans.patch(
            Target.of(IMAGE_LIST_PULL_JOBS, job),
            {"metadata": {"labels": {HASH_LABEL: revision}}},
            uid=job.metadata.uid,
            reason="the hash of its template",
        )


def _delete(child: ImagePullJob, reason: str) -> Action:
    return plans.delete(
        Target.of(IMAGE_PULL_JOBS, child), uid=child.metadata.uid, reason=reason, propagation="Background"
    )


def _creates(snapshot: Snapshot, images: list[str], revision: str) -> Iterator[Action]:
    job = snapshot.job
    metadata = job.metadata
    base = f"{metadata.name}-"
    taken = [one.metadata.name.removeprefix(base) for one in snapshot.children]
    suffixes = choose_suffixes(len(images), owner_uid=metadata.uid, seed=snapshot.seed, taken=taken)
    template = {"completionPolicy": {}, **to_builtins(template_of(job.spec))}
    for image, suffix in zip(images, suffixes, strict=True):
        body = {
            "apiVersion": IMAGE_PULL_JOBS.api_version,
            "kind": IMAGE_PULL_JOBS.kind,
            "metadata": {
                "name": child_name(base, suffix, limit=SUBDOMAIN_MAX),
                "generateName": base,
                "namespace": metadata.namespace,
                "labels": {HASH_LABEL: revision},
                "ownerReferences": [Owner.of(IMAGE_LIST_PULL_JOBS, job).reference()],
            },
            "spec": {"image": image, **template},
        }
        yield plans.create(IMAGE_PULL_JOBS, body, reason=f"{image} is to be pulled", owner_uid=metadata.uid)


# How far it is


def _status(snapshot: Snapshot, kept: dict[str, ImagePullJob]) -> ImageListPullJobStatus:
    """ILPJ 5.2, from the jobs that were there before this pass."""
    job = snapshot.job
    begun = [child for child in kept.values() if child.status.start_time is not None]
    completed = [one for one in begun if one.status.desired == one.status.failed + one.status.succeeded]
    is_over = job.spec.completion_policy.type != NEVER and len(completed) == len(job.spec.images)
    return ImageListPullJobStatus(
        start_time=job.status.start_time or next_second(snapshot.now),
        completion_time=next_second(snapshot.now) if is_over else None,
        desired=len(job.spec.images),
        active=sum(one.status.active > 0 for one in begun),
        completed=len(completed),
        succeeded=sum(one.status.desired == one.status.succeeded for one in begun),
        failed_image_statuses=tuple(
            FailedImageStatus(image_pull_job=one.metadata.name, name=one.spec.image, message=_hint(one))
            for one in sorted(begun, key=lambda one: one.spec.image)
            if one.status.failed > 0
        ),
    )


def _hint(child: ImagePullJob) -> str:
    return f"Please check for details which nodes failed by 'kubectl get ImagePullJob {child.metadata.name}'."


def _completed(snapshot: Snapshot, ended: datetime) -> Plan:
    """ILPJ-12: what is changed from now on has no effect."""
    job = snapshot.job
    ttl = job.spec.completion_policy.ttl_seconds_after_finished
    held = _held(snapshot, {child.spec.image: child for child in snapshot.children})
    if ttl is None:
        return Plan(held=held, memo=Memo())
    left = (later(ended, ttl) - snapshot.now).total_seconds()
    if left > 0:
        wake = Wake(after=left, reason=f"it is kept for {ttl} seconds after its end")
        return Plan(held=held, wakes=(wake,), memo=Memo())
    gone = plans.delete(
        Target.of(IMAGE_LIST_PULL_JOBS, job),
        uid=job.metadata.uid,
        reason=f"its ttlSecondsAfterFinished of {ttl} are over",
        propagation="Background",
    )
    return Plan(phases=(plans.single("end", gone),), memo=Memo())


# What holds it


def _held(snapshot: Snapshot, kept: dict[str, ImagePullJob]) -> tuple[Held, ...]:
    found = tuple(_causes(snapshot.job, kept))
    return (Held(target=Target.of(IMAGE_LIST_PULL_JOBS, snapshot.job), causes=found),) if found else ()


def _causes(job: ImageListPullJob, kept: dict[str, ImagePullJob]) -> Iterator[Cause]:
    told: set[str] = set()
    flag = namespace_flag(job.metadata.namespace)
    for image, child in sorted(kept.items()):
        status = child.status
        if status.failed:
            told.add(image)
            nodes = listed(status.failed_nodes)
            yield causes.IMAGE_FAILED.cause(
                f"{plural(status.failed, 'node')} could not pull {image}: {nodes}",
                details={"image": image, "nodes": list(status.failed_nodes), "job": child.metadata.name},
                remedy=f"kruise why imagepulljob/{child.metadata.name}{flag} says what the nodes said",
            )
    # Jobs that are gone after their end have told of failures in the status.
    for failure in job.status.failed_image_statuses:
        if failure.name not in kept and failure.name not in told:
            yield causes.IMAGE_FAILED.cause(
                f"some node could not pull {failure.name}",
                details={"image": failure.name},
                remedy="correct the image, or give access to its registry; then make the job anew",
            )
    if job.status.completion_time is not None:
        return
    open_ = [image for image, child in sorted(kept.items()) if child.status.active or not _is_done(child)]
    if open_ and job.spec.parallelism in (0, "0"):
        yield causes.IMAGES_HELD.cause(
            f"parallelism is 0: no node begins to pull {listed(open_)}",
            remedy="raise spec.parallelism when they are to begin",
        )
    elif open_:
        yield causes.IMAGES_PULLED.cause(f"nodes pull {listed(open_)}", details={"images": open_})


def _is_done(child: ImagePullJob) -> bool:
    status = child.status
    return status.start_time is not None and status.desired == status.succeeded + status.failed
