"""How NodeImages are watched, and what they bring to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.apps.definitions.nodeimage import DEFINITION
from kruise.api.apps.images import BATCH, IMAGE_PULL_JOBS, NEVER, NODE_IMAGES, ImagePullJob, NodeImage
from kruise.api.meta import Key, key_of
from kruise.api.native.config import SECRETS, Secret
from kruise.api.native.nodes import NODES, Node
from kruise.feature import Feature, Settings
from kruise.flags import FeatureFlag, Flag, duration
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, own_key
from kruise.operations.images.nodeimage.admission import handlers
from kruise.operations.images.nodeimage.conclude import conclude
from kruise.operations.images.nodeimage.decide import Snapshot, decide, is_virtual, ready_since
from kruise.operations.images.tasks import is_job
from kruise.operations.images.templates import DAEMON_GATE, JOBS_GATE
from kruise.operations.images.watching import BY_JOB, WATCHED_JOBS, WATCHED_NODE_IMAGES, WATCHED_SECRETS

NAME = "nodeimage-controller"
TASKS_PER_WORKER = 10
CREATION_DELAY: FeatureFlag[float] = FeatureFlag(
    "nodeimage-creation-delay", Flag(duration, 30.0, "wait after a node is ready before its NodeImage is made")
)


def _node_keys(old: Node | None, new: Node | None, stores: Stores) -> Iterable[Key]:
    """A node matters where it has no NodeImage, where its labels changed, and where it goes (NI-15). A thousand nodes
    that only tell that they live cost nothing."""
    node = new if new is not None else old
    if node is None or is_virtual(node):
        return ()
    key = Key("", node.metadata.name)
    node_image = stores.store(NODE_IMAGES).get(*key)
    if new is None or new.metadata.deletion_timestamp is not None:
        return (key,) if node_image is not None else ()
    if node_image is None:
        return (key,) if ready_since(new) is not None else ()
    return (key,) if new.metadata.labels != node_image.metadata.labels else ()


def _job_keys(old: ImagePullJob | None, new: ImagePullJob | None, stores: Stores) -> Iterable[Key]:
    """A job that is gone leaves its tasks to be removed, wherever it has any (NI-16, IPJ-61); one that has ended does
    not need those any more whose time is over."""
    if old is None or (new is not None and _is_open(old) == _is_open(new)):
        return ()
    return [key_of(one) for one in stores.store(NODE_IMAGES).by_index(BY_JOB, old.metadata.uid)]


def _is_open(job: ImagePullJob) -> bool:
    """Whether it still counts on its tasks. One that never ends pulls anew when the time of a task is over (IPJ-43)."""
    return job.spec.completion_policy.type != NEVER and job.status.completion_time is None


def _no_secret_keys(old: Secret | None, new: Secret | None, stores: Stores) -> tuple[()]:
    return ()


class _Snapshots:
    def __init__(self, settings: Settings) -> None:
        self._delay = settings.flag(CREATION_DELAY)
        self._knows_secrets = settings.gates.get(JOBS_GATE, False)

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        node_image, node = view.store(NODE_IMAGES).get(*key), view.store(NODES).get(*key)
        if node is not None and view.store(NODES).is_terminating(node):
            node = None
        if node_image is None and node is None:
            return None
        if node_image is not None and view.store(NODE_IMAGES).is_terminating(node_image):
            return None
        jobs = {job.metadata.uid: job for job in self._jobs(view, node_image)}
        return Snapshot(
            name=key.name,
            node_image=node_image,
            node=node,
            jobs=frozenset(jobs),
            open_jobs=frozenset(uid for uid, job in jobs.items() if _is_open(job)),
            gone_secrets=frozenset(self._gone_secrets(view, node_image)),
            now=view.now,
            creation_delay=self._delay,
        )

    def _jobs(self, view: View, node_image: NodeImage | None) -> Iterable[ImagePullJob]:
        store = view.store(IMAGE_PULL_JOBS)
        for entry in node_image.spec.images.values() if node_image is not None else ():
            for owner in (one for task in entry.tags for one in task.owner_references if is_job(one)):
                job = store.get(owner.namespace, owner.name)
                if job is not None and job.metadata.uid == owner.uid:
                    yield job

    def _gone_secrets(self, view: View, node_image: NodeImage | None) -> Iterable[str]:
        """Those of copies are the business of jobs; nobody looks at the others where no job can run (NI-21)."""
        if node_image is None or not self._knows_secrets:
            return
        store = view.store(SECRETS)
        for entry in node_image.spec.images.values():
            for secret in entry.pull_secrets:
                if secret.mode != BATCH and store.get(secret.namespace, secret.name) is None:
                    yield f"{secret.namespace}/{secret.name}"


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    if not settings.gates.get(DAEMON_GATE, False):
        return ()
    sources: tuple[Source[Any], ...] = (
        Source(WATCHED_NODE_IMAGES, own_key),
        Source(NODES, _node_keys),
        Source(WATCHED_JOBS, _job_keys),
    )
    if settings.gates.get(JOBS_GATE, False):
        sources = (*sources, Source(WATCHED_SECRETS, _no_secret_keys))
    return (
        ControllerSpec(
            name=NAME,
            subject=NODE_IMAGES,
            sources=sources,
            snapshot=_Snapshots(settings),
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            workers=settings.workers_of("nodeimage") * TASKS_PER_WORKER,
        ),
    )


FEATURE = Feature(
    name="nodeimage",
    flags=(CREATION_DELAY,),
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=lambda settings: handlers(),
)
