"""How ImagePullJobs and their secrets are watched, and what they bring to the manager."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.definitions.imagepulljob import DEFINITION
from kruise.api.apps.images import (
    BATCH,
    IMAGE_LIST_PULL_JOBS,
    IMAGE_PULL_JOBS,
    MODE,
    ImagePullJob,
    ReferenceObject,
)
from kruise.api.meta import Key, controller_of, key_of
from kruise.api.native.config import SECRETS, Secret
from kruise.api.native.nodes import NAMESPACES
from kruise.api.resource import refers_to
from kruise.feature import Feature, Settings
from kruise.flags import FeatureFlag, Flag, whole
from kruise.machinery.spec import ControllerSpec, Source, View, own_key
from kruise.operations.images.pulljob import secrets
from kruise.operations.images.pulljob.admission import handlers
from kruise.operations.images.pulljob.conclude import conclude
from kruise.operations.images.pulljob.decide import Snapshot, decide
from kruise.operations.images.pulljob.selecting import selected_nodes
from kruise.operations.images.templates import DAEMON_GATE, JOBS_GATE
from kruise.operations.images.watching import (
    BY_SECRET,
    BY_SOURCE,
    BY_USER,
    WATCHED_JOBS,
    WATCHED_NODE_IMAGES,
    WATCHED_PODS,
    WATCHED_SECRETS,
    is_open,
    jobs_of_exchange,
    jobs_of_list,
    jobs_of_node,
    jobs_of_pod,
    jobs_of_secret,
    sources_of_exchange,
    sources_of_job,
    sources_of_secret,
    users_of,
)

NAME = "imagepulljob-controller"
SECRETS_NAME = "imagepulljob-secrets-controller"
TASKS_PER_WORKER = 10
LONGEST_TTL = 31 * 24 * 3600
_PACE_PER_OBJECT = 100e-6
"""Seconds: a pass over a thousand nodes gathers what changes in a tenth of a second."""


def _ttl(text: str) -> int:
    value = whole(text)
    if not 0 <= value <= LONGEST_TTL:
        raise ValueError(f"must be between 0 and {LONGEST_TTL}")
    return value


DEFAULT_TTL: FeatureFlag[int] = FeatureFlag(
    "default-ttlseconds-for-always-nodeimage", Flag(_ttl, 300, "lifetime of finished pulling tasks")
)


class _Snapshots:
    def __init__(self, settings: Settings) -> None:
        self._ttl = settings.flag(DEFAULT_TTL)
        self._exchange = settings.daemon_namespace

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        job = view.store(IMAGE_PULL_JOBS).get(*key)
        if job is None:
            return None
        nodes, looked_at = selected_nodes(view, job)
        refs, awaited, missing = self._secrets(view, job)
        return Snapshot(
            job=job,
            node_images=nodes,
            secrets=refs,
            awaited_secrets=awaited,
            missing_secrets=missing,
            missing_exchange=self._exchange if awaited and not self._has_exchange(view) else "",
            has_copies=any(map(self._is_copy, view.store(SECRETS).by_index(BY_USER, str(key)))),
            now=view.now,
            seed=view.seed,
            belongs_to_open_list=_belongs_to_open_list(view, job),
            default_ttl=self._ttl,
            looked_at=looked_at,
        )

    def _has_exchange(self, view: View) -> bool:
        """Whether copies can be made at all, as far as anybody knows (IPJ-35)."""
        namespaces = view.store(NAMESPACES)
        return not namespaces.synced or namespaces.get("", self._exchange) is not None

    def _is_copy(self, secret: Secret) -> bool:
        """Anybody may write such annotations elsewhere; nodes read here only."""
        return secret.metadata.namespace == self._exchange

    def _secrets(
        self, view: View, job: ImagePullJob
    ) -> tuple[tuple[ReferenceObject, ...], tuple[str, ...], tuple[str, ...]]:
        """References for nodes, secrets whose copies are awaited, and secrets that are missing (IPJ-33 to IPJ-39)."""
        store, namespace, user = view.store(SECRETS), job.metadata.namespace, str(key_of(job))
        refs, awaited, missing = [], [], []
        for name in dict.fromkeys(job.spec.pull_secrets) if is_open(job) else ():
            if not name:
                continue
            source = store.get(namespace, name)
            if namespace == self._exchange:
                refs.append(ReferenceObject(namespace=namespace, name=name))
                continue
            copies = [
                copy
                for copy in store.by_index(BY_SOURCE, f"{namespace}/{name}")
                if self._is_copy(copy) and user in users_of(copy) and not store.is_terminating(copy)
            ]
            if (copy := secrets.chosen(copies, (user,))) is not None:
                mode = copy.metadata.annotations.get(MODE, BATCH)
                refs.append(ReferenceObject(namespace=copy.metadata.namespace, name=copy.metadata.name, mode=mode))
            elif source is not None:
                awaited.append(name)
            else:
                missing.append(name)
        return tuple(refs), tuple(awaited), tuple(missing)


def _belongs_to_open_list(view: View, job: ImagePullJob) -> bool:
    reference = controller_of(job)
    if reference is None or not refers_to(reference, IMAGE_LIST_PULL_JOBS):
        return False
    owner = view.store(IMAGE_LIST_PULL_JOBS).get(job.metadata.namespace, reference.name)
    return owner is not None and owner.metadata.uid == reference.uid and owner.status.completion_time is None


class _SecretSnapshots:
    def __init__(self, settings: Settings) -> None:
        self._exchange = settings.daemon_namespace

    def __call__(self, view: View, key: Key) -> secrets.Snapshot | None:
        if key.namespace == self._exchange:
            return None
        store, name = view.store(SECRETS), str(key)
        copies = tuple(
            copy
            for copy in store.by_index(BY_SOURCE, name)
            if copy.metadata.namespace == self._exchange and not store.is_terminating(copy)
        )
        jobs = sorted(str(key_of(job)) for job in view.store(IMAGE_PULL_JOBS).by_index(BY_SECRET, name) if is_open(job))
        if not jobs and not copies:
            return None
        source = store.get(*key)
        return secrets.Snapshot(
            namespace=key.namespace,
            name=key.name,
            source=source if source is not None and not store.is_terminating(source) else None,
            copies=copies,
            jobs=tuple(jobs),
            exchange=self._exchange,
        )


def _pace(snapshot: Snapshot) -> float:
    return snapshot.looked_at * _PACE_PER_OBJECT


def controllers(settings: Settings) -> tuple[ControllerSpec[Any], ...]:
    if not (settings.gates.get(DAEMON_GATE, False) and settings.gates.get(JOBS_GATE, False)):
        return ()
    workers = settings.workers_of("imagepulljob") * TASKS_PER_WORKER
    jobs: ControllerSpec[Any] = ControllerSpec(
        name=NAME,
        subject=IMAGE_PULL_JOBS,
        sources=(
            Source(WATCHED_JOBS, own_key),
            Source(WATCHED_NODE_IMAGES, jobs_of_node),
            Source(WATCHED_PODS, jobs_of_pod),
            Source(WATCHED_SECRETS, jobs_of_secret),
            Source(IMAGE_LIST_PULL_JOBS, jobs_of_list),
            Source(NAMESPACES, jobs_of_exchange(settings.daemon_namespace)),
        ),
        snapshot=_Snapshots(settings),
        decide=decide,
        conclude=conclude,
        snapshot_type=Snapshot,
        workers=workers,
        pace=_pace,
    )
    copies: ControllerSpec[Any] = ControllerSpec(
        name=SECRETS_NAME,
        subject=SECRETS,
        sources=(
            Source(WATCHED_SECRETS, sources_of_secret),
            Source(WATCHED_JOBS, sources_of_job),
            Source(NAMESPACES, sources_of_exchange(settings.daemon_namespace)),
        ),
        snapshot=_SecretSnapshots(settings),
        decide=secrets.decide,
        conclude=secrets.conclude,
        snapshot_type=secrets.Snapshot,
        conceal=secrets.conceal,
        workers=workers,
    )
    return (jobs, copies)


FEATURE = Feature(
    name="imagepulljob",
    flags=(DEFAULT_TTL,),
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=lambda settings: handlers(),
)
