"""What a node pulls next, when it tries again, and when it gives up (DMN-31 to DMN-42). Pure.

Each attempt is a job of its own. How often a task was tried is how many jobs of it there are: a daemon that starts
again knows none, and begins unfinished tasks anew (DMN-34).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kruise.api.apps.images import (
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_TIMEOUT,
    FAILED,
    PULLING,
    SUCCEEDED,
    WAITING,
    ImageSpec,
    ImageStatus,
    NodeImageStatus,
    ReferenceObject,
    TagPullPolicy,
    TagSpec,
    TagStatus,
    TaskOwner,
)
from kruise.api.core.images import ImageReference
from kruise.daemon.images.objects import NODE_IMAGES, NodeImage
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct, evolve, field, to_builtins
from kruise.machinery.plan import Job, Phase, Plan, Target, Wake
from kruise.machinery.times import later, next_second

LATE = "pulling exceeds the activeDeadlineSeconds"
LONGEST_PAUSE = 30.0
REPORT_AFTER = 1.0
"""Seconds: a task that is over by then is told of once, and not twice."""
STATUS = "status"


class Attempt(Struct):
    """A job: pull an image once."""

    node: str
    name: str
    tag: str
    only_if_absent: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    secrets: tuple[ReferenceObject, ...] = ()


class Attempted(Struct):
    """How a job stands."""

    began: datetime
    ended: datetime | None = None
    image_id: str = ""
    error: str = ""
    timed_out: bool = False


class Snapshot(Struct):
    """Everything that a decision depends on."""

    node_image: NodeImage
    attempts: dict[str, Attempted]
    """By the name of the job."""
    now: datetime
    limit: int = 0
    """Tasks at a time; 0: no limit."""


class Ending(Struct):
    """A task that has come to its end in this pass."""

    image: str
    seconds: float = 0.0
    error: str = ""
    owners: tuple[TaskOwner, ...] = ()


class Memo(Struct):
    endings: tuple[Ending, ...] = ()


class Task(Struct):
    """A task, and all that is known about it."""

    image: str
    spec: TagSpec
    entry: ImageSpec
    attempts: tuple[Attempted, ...]
    told: TagStatus | None
    """What the API has about this very version of it."""

    @property
    def reference(self) -> ImageReference:
        return ImageReference(self.image, self.spec.tag)

    @property
    def policy(self) -> TagPullPolicy:
        return self.spec.pull_policy or TagPullPolicy()

    @property
    def is_over(self) -> bool:
        return self.told is not None and self.told.completion_time is not None

    @property
    def retries(self) -> int:
        limit = self.policy.backoff_limit
        return DEFAULT_BACKOFF_LIMIT if limit is None or limit < 0 else limit

    @property
    def ends_by(self) -> datetime | None:
        """Its deadline, once it has begun."""
        seconds = self.policy.active_deadline_seconds
        return later(self.attempts[0].began, seconds) if self.attempts and seconds is not None else None

    def job(self, number: int) -> str:
        return f"{self.spec.version} {self.reference} {number}"


def tasks_of(snapshot: Snapshot) -> Iterator[Task]:
    told = snapshot.node_image.status or NodeImageStatus()
    for name, entry in sorted(snapshot.node_image.spec.images.items()):
        known = {one.tag: one for one in told.image_statuses[name].tags} if name in told.image_statuses else {}
        for spec in sorted(entry.tags, key=lambda one: one.tag):
            status = known.get(spec.tag)
            task = Task(
                image=name,
                spec=spec,
                entry=entry,
                attempts=(),
                told=status if status is not None and status.version == spec.version else None,
            )
            yield evolve(task, attempts=tuple(_attempts(task, snapshot.attempts)))


def _attempts(task: Task, known: dict[str, Attempted]) -> Iterator[Attempted]:
    number = 0
    while (found := known.get(task.job(number))) is not None:
        yield found
        number += 1


def decide(snapshot: Snapshot) -> Plan:
    node = snapshot.node_image.metadata.name
    looked = [_Look(task, node, snapshot.now) for task in tasks_of(snapshot)]
    begun = [look for look in looked if look.task.attempts and not look.is_final]
    room = max(0, snapshot.limit - len(begun)) if snapshot.limit > 0 else len(looked)
    fresh = sorted((look for look in looked if look.is_fresh), key=lambda look: look.turn)[:room]
    for look in fresh:
        look.begin()
    wanted = {name for look in looked for name in look.names}
    statuses = {look.task.image: ImageStatus() for look in looked}
    for image in statuses:
        statuses[image] = ImageStatus(tags=tuple(look.status for look in looked if look.task.image == image))
    return Plan(
        phases=tuple(_status(snapshot, looked, statuses)),
        jobs=tuple(look.job for look in looked if look.job is not None),
        drops=tuple(sorted(snapshot.attempts.keys() - wanted)),
        wakes=tuple(wake for look in looked for wake in look.wakes),
        memo=Memo(endings=tuple(look.ending for look in looked if look.ending is not None)),
    )


class _Look:
    """What becomes of one task now."""

    def __init__(self, task: Task, node: str, now: datetime) -> None:
        self.task = task
        self.node = node
        self.now = now
        self.job: Job | None = None
        self.wakes: tuple[Wake, ...] = ()
        self.status = TagStatus(tag=task.spec.tag, phase=WAITING, version=task.spec.version)
        self.ending: Ending | None = None
        self.names: tuple[str, ...] = tuple(task.job(number) for number in range(len(task.attempts)))
        """Jobs that are still of use."""
        if task.is_over and task.told is not None:
            self.status, self.names = task.told, ()
        elif task.attempts:
            self._go_on()

    @property
    def is_fresh(self) -> bool:
        return not self.task.is_over and not self.task.attempts

    @property
    def is_final(self) -> bool:
        return self.status.completion_time is not None

    @property
    def turn(self) -> tuple[datetime, str, str]:
        """Who waits longest goes first."""
        return self.task.spec.created_at or self.now, self.task.image, self.task.spec.tag

    @property
    def is_quiet(self) -> bool:
        """It began so lately that its end may be told together with its beginning. One that waits for its turn is told
        at once: nobody knows how long it will (DMN-35)."""
        if self.status.phase != PULLING:
            return False
        since = self.task.attempts[0].began if self.task.attempts else self.now
        told = self.task.told
        is_new = told is None or told.phase != self.status.phase
        return is_new and _is_within(self.now - since, REPORT_AFTER)

    def begin(self) -> None:
        self._pulling(self.now)
        self._attempt(0, self.now)

    def _pulling(self, since: datetime) -> None:
        self.status = TagStatus(
            tag=self.task.spec.tag, phase=PULLING, version=self.task.spec.version, start_time=next_second(since)
        )

    def _attempt(self, number: int, began: datetime) -> None:
        task = self.task
        seconds = task.policy.timeout_seconds
        limit = float(DEFAULT_TIMEOUT if seconds is None else seconds)
        deadline = task.policy.active_deadline_seconds
        if deadline is not None:
            limit = min(limit, deadline - (self.now - began).total_seconds())
        sandbox = task.entry.sandbox_config
        self.job = Job(
            name=task.job(number),
            call=Attempt(
                node=self.node,
                name=task.image,
                tag=task.spec.tag,
                only_if_absent=task.spec.image_pull_policy == "IfNotPresent",
                labels=sandbox.labels if sandbox is not None else {},
                annotations=sandbox.annotations if sandbox is not None else {},
                secrets=task.entry.pull_secrets,
            ),
            seconds=max(0.0, limit),
        )
        self.names = (*self.names, self.job.name)
        self.wakes = (Wake(after=REPORT_AFTER, reason="it is told that the node pulls"),)

    def _go_on(self) -> None:
        first, last = self.task.attempts[0], self.task.attempts[-1]
        self._pulling(first.began)
        if last.ended is None:
            if _is_within(self.now - first.began, REPORT_AFTER):
                left = REPORT_AFTER - (self.now - first.began).total_seconds()
                self.wakes = (Wake(after=left, reason="it is told that the node pulls"),)
        elif not last.error:
            self._end(SUCCEEDED, last.ended, image_id=last.image_id)
        elif len(self.task.attempts) > self.task.retries:
            self._end(FAILED, last.ended, error=self._error(last))
        else:
            self._pause(first.began, last.ended)

    def _pause(self, began: datetime, failed: datetime) -> None:
        """Between two attempts (DMN-38)."""
        number = len(self.task.attempts)
        pause = min(2.0 ** min(number - 1, 8), LONGEST_PAUSE)
        due = failed + timedelta(seconds=pause)
        ends = self.task.ends_by
        if ends is not None and self.now >= ends:
            self._end(FAILED, self.now, error=LATE)
        elif not _is_within(self.now - failed, pause):
            self._attempt(number, began)
        else:
            wakes = [Wake(after=(due - self.now).total_seconds(), reason="it is tried again")]
            if ends is not None and ends < due:
                wakes.append(Wake(after=(ends - self.now).total_seconds(), reason="its deadline is over"))
            self.wakes = tuple(wakes)

    def _error(self, last: Attempted) -> str:
        return f"pulling image {self.task.reference} is canceled" if last.timed_out else last.error

    def _end(self, phase: str, ended: datetime, *, error: str = "", image_id: str = "") -> None:
        task = self.task
        began = task.attempts[0].began
        self.status = TagStatus(
            tag=task.spec.tag,
            phase=phase,
            version=task.spec.version,
            progress=100 if phase == SUCCEEDED else 0,
            start_time=next_second(began),
            completion_time=next_second(ended),
            image_id=f"{task.image}@{image_id}" if image_id else "",
            message=error,
        )
        self.ending = Ending(
            image=str(task.reference),
            seconds=max(0.0, (ended - began).total_seconds()),
            error=error,
            owners=task.spec.owner_references,
        )


def _is_within(elapsed: timedelta, seconds: float) -> bool:
    """Below zero, the clock was put back: nobody waits for it to catch up."""
    return 0 <= elapsed.total_seconds() < seconds


def _status(snapshot: Snapshot, looked: list[_Look], statuses: dict[str, ImageStatus]) -> Iterator[Phase]:
    node_image = snapshot.node_image
    phases = [look.status.phase for look in looked]
    before = node_image.status
    status = NodeImageStatus(
        desired=len(looked),
        succeeded=phases.count(SUCCEEDED),
        failed=phases.count(FAILED),
        pulling=phases.count(PULLING),
        waiting=phases.count(WAITING),
        image_statuses=statuses,
        first_sync_status=before.first_sync_status if before is not None else None,
    )
    if status == before:
        return
    if before is not None and _can_wait(looked, before, status):
        return
    zeros = dict.fromkeys(("desired", "succeeded", "failed", "pulling", "waiting"), 0)
    yield plans.single(
        STATUS,
        plans.status_patch(
            Target.of(NODE_IMAGES, node_image),
            {**zeros, **to_builtins(status)},
            uid=node_image.metadata.uid,
            reason="what the node has pulled",
            resource_version=node_image.metadata.resource_version,
        ),
    )


def _can_wait(looked: list[_Look], before: NodeImageStatus, status: NodeImageStatus) -> bool:
    """Whether nothing is new but tasks that have just begun."""
    if any(look.ending is not None for look in looked) or not any(look.is_quiet for look in looked):
        return False
    loud = {(look.task.image, look.task.spec.tag): look.status for look in looked if not look.is_quiet}
    known = {(name, one.tag): one for name, entry in before.image_statuses.items() for one in entry.tags}
    present = {(look.task.image, look.task.spec.tag) for look in looked}
    return known.keys() <= present and all(known.get(key) == one for key, one in loud.items())
