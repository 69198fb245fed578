"""What an ImagePullJob does next: which nodes get its task, when it is over, when it goes (IPJ-31 to IPJ-61). Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime

from kruise.api.apps.images import (
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_PARALLELISM,
    DEFAULT_TIMEOUT,
    FINALIZER,
    IMAGE_PULL_JOBS,
    MOST_IMAGES,
    NEVER,
    ImagePullJob,
    ImageSpec,
    NodeImage,
    ReferenceObject,
    TagPullPolicy,
    TagSpec,
)
from kruise.api.core.images import ImageReference, reference_of
from kruise.machinery import plan as plans
from kruise.machinery.causes import Cause
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct, evolve
from kruise.machinery.plan import Action, Held, OnError, Phase, Plan, Target, Wake
from kruise.machinery.times import later, next_second
from kruise.operations.images.pulljob.causes import SECRET_COPY
from kruise.operations.images.pulljob.holding import Sight, causes_of
from kruise.operations.images.tasks import (
    TaskState,
    counted_owners,
    owner_in,
    owner_of,
    spec_patch,
    state_of,
    status_of,
    task_of,
)

SPREAD, SECRETS_PHASE = "spread", "secrets"
A_DAY, SPREAD_OF_A_DAY = 86400, 600
"""A Never job pulls again after a day, give or take ten minutes, so that nodes do not do it all at once (IPJ-48)."""
NEVER_DEADLINE = 1800
SPREAD_OF_TTL = 300
SOONEST = 1.0


class Snapshot(Struct):
    """Everything that a decision depends on."""

    job: ImagePullJob
    node_images: tuple[NodeImage, ...]
    """Those that the job selects, by name, without those about to go."""
    secrets: tuple[ReferenceObject, ...]
    """The copies of its pull secrets that nodes can read."""
    awaited_secrets: tuple[str, ...]
    """Pull secrets whose copies are not there yet."""
    missing_secrets: tuple[str, ...]
    """Pull secrets that do not exist."""
    has_copies: bool
    """Some copy still says that the job needs it."""
    now: datetime
    seed: int
    belongs_to_open_list: bool = False
    """It was made by a job of several images that is not over."""
    default_ttl: int = 300
    """Seconds that tasks stay beyond what their job asks for."""
    missing_exchange: str = ""
    """The namespace in which nodes read secrets, if copies are awaited and it does not exist."""
    looked_at: int = 0
    """How many objects had to be looked at to select nodes: for the pace."""


class Memo(Struct):
    """How far the job is, before anything of the plan is done."""

    is_counted: bool = False
    """False: the job is over, and its status stays."""
    start_time: datetime | None = None
    completion_time: datetime | None = None
    desired: int = 0
    active: int = 0
    succeeded: int = 0
    failed_nodes: tuple[str, ...] = ()
    is_late: bool = False
    problem: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a job by how far they are, each in the order of names."""

    not_synced: tuple[NodeImage, ...]
    active: tuple[NodeImage, ...]
    succeeded: tuple[NodeImage, ...]
    failed: tuple[NodeImage, ...]

    @property
    def unfinished(self) -> int:
        return len(self.not_synced) + len(self.active)


def nodes_of(node_images: tuple[NodeImage, ...], image: ImageReference, uid: str) -> Nodes:
    by_state: dict[TaskState, list[NodeImage]] = {state: [] for state in TaskState}
    for node_image in node_images:
        by_state[state_of(node_image, image, uid)].append(node_image)
    return Nodes(
        not_synced=tuple(by_state[TaskState.NOT_SYNCED]),
        active=tuple(by_state[TaskState.ACTIVE]),
        succeeded=tuple(by_state[TaskState.SUCCEEDED]),
        failed=tuple(by_state[TaskState.FAILED]),
    )


def parallelism_of(job: ImagePullJob) -> int:
    """What is no number, as only an object from before can have it, counts as absent."""
    given = job.spec.parallelism
    try:
        return DEFAULT_PARALLELISM if given is None else max(0, int(given))
    except ValueError:
        return DEFAULT_PARALLELISM


def decide(snapshot: Snapshot) -> Plan:
    job = snapshot.job
    if job.metadata.deletion_timestamp is not None:
        return Plan(phases=_released(snapshot), held=_awaiting_release(snapshot), memo=Memo())
    if job.status.completion_time is not None:
        return _completed(snapshot, job.status.completion_time)
    image = reference_of(job.spec.image)
    start = job.status.start_time or next_second(snapshot.now)
    if image is None:
        memo = Memo(is_counted=True, start_time=start, problem=f"invalid image {job.spec.image}")
        return Plan(held=_held(snapshot, Sight(job=job)), memo=memo)
    nodes = nodes_of(snapshot.node_images, image, job.metadata.uid)
    memo = _counted(snapshot, nodes, start)
    if memo.completion_time is not None:
        return Plan(held=_held(snapshot, _sight(snapshot, nodes, image)), memo=memo)
    full = frozenset(one.metadata.name for one in nodes.not_synced if is_full(one, image))
    chosen = _chosen(snapshot, nodes, full)
    phases = (
        *_finalizer(job),
        *_phase(SPREAD, tuple(_task(snapshot, image, one) for one in chosen)),
        *_phase(SECRETS_PHASE, tuple(_more_secrets(snapshot, image, nodes.active))),
    )
    sight = dataclasses.replace(
        _sight(snapshot, nodes, image), begun=frozenset(one.metadata.name for one in chosen), full=full
    )
    return Plan(phases=phases, held=_held(snapshot, sight), wakes=tuple(_wakes(snapshot, start)), memo=memo)


# How far it is


def _counted(snapshot: Snapshot, nodes: Nodes, start: datetime) -> Memo:
    """IPJ-41, IPJ-42."""
    policy = snapshot.job.spec.completion_policy
    failed = [one.metadata.name for one in nodes.failed]
    is_late = (
        policy.type != NEVER
        and policy.active_deadline_seconds is not None
        and nodes.unfinished > 0
        and snapshot.now >= later(start, policy.active_deadline_seconds)
    )
    if is_late:
        failed += [one.metadata.name for one in (*nodes.active, *nodes.not_synced)]
    is_over = is_late or (policy.type != NEVER and nodes.unfinished == 0)
    return Memo(
        is_counted=True,
        start_time=start,
        completion_time=next_second(snapshot.now) if is_over else None,
        desired=len(snapshot.node_images),
        active=0 if is_late else len(nodes.active),
        succeeded=len(nodes.succeeded),
        failed_nodes=tuple(sorted(failed)),
        is_late=is_late,
    )


def _wakes(snapshot: Snapshot, start: datetime) -> Iterator[Wake]:
    policy = snapshot.job.spec.completion_policy
    if policy.type != NEVER and policy.active_deadline_seconds is not None:
        left = (later(start, policy.active_deadline_seconds) - snapshot.now).total_seconds()
        yield Wake(after=max(left, SOONEST), reason="its activeDeadlineSeconds are over then")


def _completed(snapshot: Snapshot, ended: datetime) -> Plan:
    """The secrets go first, then the job itself when its time has come (IPJ-31, IPJ-60)."""
    job = snapshot.job
    ttl = job.spec.completion_policy.ttl_seconds_after_finished
    image = reference_of(job.spec.image)
    sight = Sight(job=job, image=image, failed=_failed_of_status(snapshot))
    held = (*_held(snapshot, sight), *_awaiting_release(snapshot))
    if ttl is None or snapshot.belongs_to_open_list:
        # A list that counts on it would only make it anew (ILPJ-19).
        return Plan(phases=_released(snapshot), held=held, memo=Memo())
    left = (later(ended, ttl) - snapshot.now).total_seconds()
    if left > 0:
        wake = Wake(after=left, reason=f"it is kept for {ttl} seconds after its end")
        return Plan(phases=_released(snapshot), held=held, wakes=(wake,), memo=Memo())
    reason = f"its ttlSecondsAfterFinished of {ttl} are over"
    gone = plans.delete(Target.of(IMAGE_PULL_JOBS, job), uid=job.metadata.uid, reason=reason, propagation="Background")
    return Plan(phases=(*_released(snapshot), plans.single("delete", gone)), memo=Memo())


def _failed_of_status(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    """The nodes that had failed when the job ended, with what is known of them by now."""
    known = {one.metadata.name: one for one in snapshot.node_images}
    image = reference_of(snapshot.job.spec.image)
    return tuple((name, _message(known.get(name), image)) for name in snapshot.job.status.failed_nodes)


def _message(node_image: NodeImage | None, image: ImageReference | None) -> str:
    status = status_of(node_image, image.name, image.tag) if node_image is not None and image is not None else None
    return status.message if status is not None else ""


# Who gets a task


def is_full(node_image: NodeImage, image: ImageReference) -> bool:
    return image.name not in node_image.spec.images and len(node_image.spec.images) >= MOST_IMAGES


def _chosen(snapshot: Snapshot, nodes: Nodes, full: frozenset[str]) -> tuple[NodeImage, ...]:
    """As many nodes as may begin, in the order of names (IPJ-45). Only those that pull count, not those that have done
    so."""
    budget = parallelism_of(snapshot.job) - len(nodes.active)
    if budget <= 0 or snapshot.awaited_secrets:
        return ()
    return tuple(one for one in nodes.not_synced if one.metadata.name not in full)[:budget]


def _task(snapshot: Snapshot, image: ImageReference, node_image: NodeImage) -> Action:
    """IPJ-46."""
    job = snapshot.job
    entry = node_image.spec.images.get(image.name, ImageSpec())
    known = task_of(node_image, image)
    owner, now = owner_of(job), next_second(snapshot.now)
    if known is not None:
        owners = counted_owners(node_image, image.name, known)
        task = evolve(
            known,
            version=known.version + 1,
            owner_references=(*owners, owner),
            created_at=now,
            image_pull_policy=job.spec.image_pull_policy,
        )
    else:
        before = status_of(node_image, image.name, image.tag)
        task = TagSpec(
            tag=image.tag,
            version=before.version + 1 if before is not None else 0,
            pull_policy=pull_policy_of(snapshot),
            owner_references=(owner,),
            created_at=now,
            image_pull_policy=job.spec.image_pull_policy,
        )
    others = tuple(one for one in entry.tags if one.tag != image.tag)
    changed = ImageSpec(
        tags=(*others, task),
        pull_secrets=(*entry.pull_secrets, *_lacking(entry, snapshot.secrets)),
        sandbox_config=job.spec.sandbox_config,
    )
    return spec_patch(node_image, {image.name: changed}, reason=f"{image} is to be pulled")


def _more_secrets(snapshot: Snapshot, image: ImageReference, active: tuple[NodeImage, ...]) -> Iterator[Action]:
    """Nodes that have not pulled yet get secrets that came later (IPJ-38)."""
    for node_image in active if snapshot.secrets else ():
        entry = node_image.spec.images[image.name]
        if lacking := _lacking(entry, snapshot.secrets):
            changed = evolve(entry, pull_secrets=(*entry.pull_secrets, *lacking))
            yield spec_patch(node_image, {image.name: changed}, reason="a pull secret has come")


def _lacking(entry: ImageSpec, wanted: tuple[ReferenceObject, ...]) -> tuple[ReferenceObject, ...]:
    present = {(one.namespace, one.name) for one in entry.pull_secrets}
    return tuple(one for one in wanted if (one.namespace, one.name) not in present)


def pull_policy_of(snapshot: Snapshot) -> TagPullPolicy:
    """IPJ-48. The draw is the same for all tasks of a pass, and another in the next."""
    spec = snapshot.job.spec
    given, completion = spec.pull_policy, spec.completion_policy
    timeout = DEFAULT_TIMEOUT if given is None or given.timeout_seconds is None else given.timeout_seconds
    retries = DEFAULT_BACKOFF_LIMIT if given is None or given.backoff_limit is None else given.backoff_limit
    if completion.type == NEVER:
        ttl = A_DAY - SPREAD_OF_A_DAY + snapshot.seed % (2 * SPREAD_OF_A_DAY)
        deadline: int | None = max(NEVER_DEADLINE, timeout)
    else:
        deadline = completion.active_deadline_seconds
        base = completion.ttl_seconds_after_finished
        if base is None:
            base = deadline if deadline is not None else timeout * retries
        ttl = min(max(0, base) + snapshot.default_ttl + snapshot.seed % SPREAD_OF_TTL, 2**31 - 1)
    return TagPullPolicy(
        timeout_seconds=timeout,
        backoff_limit=retries,
        ttl_seconds_after_finished=ttl,
        active_deadline_seconds=deadline,
    )


def _phase(name: str, actions: tuple[Action, ...]) -> tuple[Phase, ...]:
    """What one node refuses is no reason to leave out the others."""
    return (plans.single(name, *actions, on_error=OnError.CONTINUE),) if actions else ()


# Its finalizer


def _finalizer(job: ImagePullJob) -> tuple[Phase, ...]:
    if FINALIZER in job.metadata.finalizers:
        return ()
    return (_finalizers(job, (*job.metadata.finalizers, FINALIZER), "its secrets are given back before it goes"),)


def _released(snapshot: Snapshot) -> tuple[Phase, ...]:
    job = snapshot.job
    if FINALIZER not in job.metadata.finalizers or snapshot.has_copies:
        return ()
    left = tuple(one for one in job.metadata.finalizers if one != FINALIZER)
    return (_finalizers(job, left, "it holds no secrets any more"),)


def _finalizers(job: ImagePullJob, wanted: tuple[str, ...], reason: str) -> Phase:
    step = {"op": "add", "path": "/metadata/finalizers", "value": list(wanted)}
    write = plans.patch(
        Target.of(IMAGE_PULL_JOBS, job),
        [step],
        uid=job.metadata.uid,
        reason=reason,
        patch_type=PatchType.JSON,
        resource_version=job.metadata.resource_version,
    )
    return plans.single("finalizer", write)


# What holds it


def _sight(snapshot: Snapshot, nodes: Nodes, image: ImageReference) -> Sight:
    return Sight(
        job=snapshot.job,
        image=image,
        parallelism=parallelism_of(snapshot.job),
        desired=len(snapshot.node_images),
        not_synced=tuple(one.metadata.name for one in nodes.not_synced),
        active=tuple((one.metadata.name, _phase_of(one, image, snapshot.job.metadata.uid)) for one in nodes.active),
        failed=tuple((one.metadata.name, _message(one, image)) for one in nodes.failed),
        awaited_secrets=snapshot.awaited_secrets,
        missing_secrets=snapshot.missing_secrets,
        missing_exchange=snapshot.missing_exchange,
    )


def _phase_of(node_image: NodeImage, image: ImageReference, uid: str) -> str:
    """What the node says of the task; empty: nothing yet."""
    task, status = task_of(node_image, image), status_of(node_image, image.name, image.tag)
    if task is None or status is None or status.version != task.version or owner_in(task, uid) is None:
        return ""
    return f"{status.phase} {status.progress}%" if status.progress else status.phase


def _held(snapshot: Snapshot, sight: Sight) -> tuple[Held, ...]:
    found: tuple[Cause, ...] = tuple(causes_of(sight))
    return (Held(target=Target.of(IMAGE_PULL_JOBS, snapshot.job), causes=found),) if found else ()


def _awaiting_release(snapshot: Snapshot) -> tuple[Held, ...]:
    if not snapshot.has_copies or FINALIZER not in snapshot.job.metadata.finalizers:
        return ()
    cause = SECRET_COPY.cause("its copies of pull secrets are being given back")
    return (Held(target=Target.of(IMAGE_PULL_JOBS, snapshot.job), causes=(cause,)),)
