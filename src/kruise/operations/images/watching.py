"""How image kinds are found: by the images, secrets, nodes and pods that jobs name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from kruise.api.apps.images import (
    IMAGE_PULL_JOBS,
    NODE_IMAGES,
    REFERENCES,
    SOURCE_KEY,
    ImageListPullJob,
    ImagePullJob,
    NodeImage,
)
from kruise.api.core.images import reference_of
from kruise.api.meta import Key, Object, key_of
from kruise.api.native.config import SECRETS, Secret
from kruise.api.native.nodes import Namespace
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.machinery.selector_index import ALL_NAMESPACES, Selects
from kruise.machinery.selectors import EVERYTHING
from kruise.machinery.spec import OWNER, OWNER_INDEX, Stores
from kruise.machinery.watched import Watched
from kruise.operations.images.tasks import owner_uids

BY_IMAGE, BY_IMAGE_NAME, BY_SECRET, BY_NODE, BY_PODS = "image", "image-name", "secret", "node-name", "by-pods"
NODES_OF, PODS_OF = "nodes", "pods-of-images"
BY_JOB, BY_SOURCE, BY_USER = "job", "source", "user"
ANY = "any"


def is_open(job: ImagePullJob) -> bool:
    """Whether a job still has something to do on nodes."""
    return job.status.completion_time is None and job.metadata.deletion_timestamp is None


def _images(job: ImagePullJob) -> tuple[str, ...]:
    found = reference_of(job.spec.image) if is_open(job) else None
    return (str(found),) if found is not None else ()


def _image_names(job: ImagePullJob) -> tuple[str, ...]:
    found = reference_of(job.spec.image) if is_open(job) else None
    return (found.name,) if found is not None else ()


def _secrets(job: ImagePullJob) -> tuple[str, ...]:
    return tuple(f"{job.metadata.namespace}/{name}" for name in dict.fromkeys(job.spec.pull_secrets) if name)


def _node_names(job: ImagePullJob) -> tuple[str, ...]:
    selector = job.spec.selector
    return (selector.names or ()) if selector is not None and is_open(job) else ()


def _by_pods(job: ImagePullJob) -> tuple[str, ...]:
    return (ANY,) if job.spec.pod_selector is not None and is_open(job) else ()


def _nodes(job: ImagePullJob) -> Iterator[Selects]:
    """The labels of nodes; who names them, or goes by pods, is found otherwise."""
    spec = job.spec
    if not is_open(job) or spec.pod_selector is not None:
        return
    if spec.selector is None:
        yield Selects(EVERYTHING, ALL_NAMESPACES)
    elif spec.selector.names is None:
        yield Selects(spec.selector, ALL_NAMESPACES)


def _pods(job: ImagePullJob) -> Iterator[Selects]:
    if is_open(job) and job.spec.pod_selector is not None:
        yield Selects(job.spec.pod_selector, job.metadata.namespace)


def _sources(secret: Secret) -> tuple[str, ...]:
    source = secret.metadata.annotations.get(SOURCE_KEY)
    return (source,) if source else ()


def users_of(secret: Secret) -> tuple[str, ...]:
    """The jobs that a copy is for, `namespace/name` (IPJ-36)."""
    return tuple(one for one in secret.metadata.annotations.get(REFERENCES, "").split(",") if one)


WATCHED_JOBS = Watched(
    IMAGE_PULL_JOBS,
    indexes={
        **OWNER_INDEX,
        BY_IMAGE: _images,
        BY_IMAGE_NAME: _image_names,
        BY_SECRET: _secrets,
        BY_NODE: _node_names,
        BY_PODS: _by_pods,
    },
    selectors={NODES_OF: _nodes, PODS_OF: _pods},
)
WATCHED_NODE_IMAGES = Watched(NODE_IMAGES, indexes={BY_JOB: owner_uids})
WATCHED_SECRETS = Watched(SECRETS, indexes={BY_SOURCE: _sources, BY_USER: users_of})
WATCHED_PODS = Watched(PODS)


def jobs_of_node(old: NodeImage | None, new: NodeImage | None, stores: Stores) -> Iterable[Key]:
    """The jobs that a change of a NodeImage concerns (IPJ-71): those that select it where it comes or goes or has other
    labels, otherwise those whose very image changed in it."""
    jobs = stores.store(IMAGE_PULL_JOBS)
    if old is None or new is None or _is_leaving(old) != _is_leaving(new):
        present = new if new is not None else old
        found = list(_selecting(present, stores)) if present is not None else []
        return dict.fromkeys((*found, *(key_of(job) for job in jobs.by_index(BY_PODS, ANY))))
    keys: dict[Key, None] = {}
    if old.metadata.labels != new.metadata.labels:
        before, after = set(_selecting(old, stores)), set(_selecting(new, stores))
        keys.update(dict.fromkeys(sorted(before ^ after)))
    for index, value in _changed_images(old, new):
        for job in jobs.by_index(index, value):
            names = job.spec.selector.names if job.spec.selector is not None else None
            if names is None or new.metadata.name in names:
                keys[key_of(job)] = None
    return keys


def _is_leaving(node_image: NodeImage) -> bool:
    return node_image.metadata.deletion_timestamp is not None


def _selecting(node_image: NodeImage, stores: Stores) -> Iterator[Key]:
    jobs = stores.store(IMAGE_PULL_JOBS)
    for job in jobs.selecting(NODES_OF, node_image.metadata.labels):
        yield key_of(job)
    for job in jobs.by_index(BY_NODE, node_image.metadata.name):
        yield key_of(job)


def _changed_images(old: NodeImage, new: NodeImage) -> Iterator[tuple[str, str]]:
    """What to look up jobs by."""
    before, after = old.spec.images, new.spec.images
    for name in before.keys() | after.keys() if before is not after else ():
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        if was is None or now is None or was.pull_secrets != now.pull_secrets:
            yield BY_IMAGE_NAME, name
            continue
        for tag in _differing({one.tag: one for one in was.tags}, {one.tag: one for one in now.tags}):
            yield BY_IMAGE, _joined(name, tag)
    told, tells = old.status.image_statuses, new.status.image_statuses
    for name in told.keys() | tells.keys() if told is not tells else ():
        said = {one.tag: (one.phase, one.version) for one in told[name].tags} if name in told else {}
        says = {one.tag: (one.phase, one.version) for one in tells[name].tags} if name in tells else {}
        for tag in _differing(said, says):
            yield BY_IMAGE, _joined(name, tag)


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    return (tag for tag in before.keys() | after.keys() if before.get(tag) != after.get(tag))


def _joined(name: str, tag: str) -> str:
    return f"{name}@{tag}" if ":" in tag else f"{name}:{tag}"


def jobs_of_pod(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    """The jobs that go by a pod, where its node, its labels or its end may change what they select (IPJ-72)."""
    if _place(old) == _place(new):
        return ()
    jobs = stores.store(IMAGE_PULL_JOBS)
    return dict.fromkeys(
        key_of(job)
        for pod in (old, new)
        if pod is not None and pod.spec.node_name
        for job in jobs.selecting(PODS_OF, pod.metadata.labels, pod.metadata.namespace)
    )


def _place(pod: Pod | None) -> tuple[object, ...] | None:
    if pod is None or not pod.spec.node_name or not is_active(pod):
        return None
    return pod.spec.node_name, pod.metadata.labels


def jobs_of_secret(old: Secret | None, new: Secret | None, stores: Stores) -> Iterable[Key]:
    """The jobs that a copy is for, and those that wait for a secret to be there."""
    jobs = stores.store(IMAGE_PULL_JOBS)
    keys: dict[Key, None] = {}
    for secret in (old, new):
        for user in users_of(secret) if secret is not None else ():
            namespace, _, name = user.partition("/")
            keys[Key(namespace, name)] = None
    if old is None or new is None:
        secret = new if new is not None else old
        if secret is not None:
            keys.update((key_of(job), None) for job in jobs.by_index(BY_SECRET, str(key_of(secret))) if is_open(job))
    return keys


def jobs_of_list(old: ImageListPullJob | None, new: ImageListPullJob | None, stores: Stores) -> Iterable[Key]:
    """The jobs that a job of several images has made, when it is over or gone: they may go now."""
    if old is None or (new is not None and old.status.completion_time == new.status.completion_time):
        return ()
    return [key_of(job) for job in stores.store(IMAGE_PULL_JOBS).by_index(OWNER, old.metadata.uid)]


def sources_of_job(old: ImagePullJob | None, new: ImagePullJob | None, stores: Stores) -> Iterable[Key]:
    """The secrets that a job names, where it comes, goes or ends: for the copies of these."""
    if old is not None and new is not None and is_open(old) == is_open(new) and _secrets(old) == _secrets(new):
        return ()
    return dict.fromkeys(
        Key(job.metadata.namespace, name)
        for job in (old, new)
        if job is not None
        for name in job.spec.pull_secrets
        if name
    )


_NamespaceKeys = Callable[[Namespace | None, Namespace | None, Stores], Iterable[Key]]


def jobs_of_exchange(exchange: str) -> _NamespaceKeys:
    """Jobs with pull secrets, when the namespace of the copies comes or goes (IPJ-35)."""

    def keys(old: Namespace | None, new: Namespace | None, stores: Stores) -> Iterable[Key]:
        return [key_of(job) for job in _waiting_jobs(exchange, old, new, stores)]

    return keys


def sources_of_exchange(exchange: str) -> _NamespaceKeys:
    """Likewise, the secrets that these jobs name."""

    def keys(old: Namespace | None, new: Namespace | None, stores: Stores) -> Iterable[Key]:
        jobs = _waiting_jobs(exchange, old, new, stores)
        return dict.fromkeys(Key(job.metadata.namespace, name) for job in jobs for name in job.spec.pull_secrets)

    return keys


def _waiting_jobs(
    exchange: str, old: Namespace | None, new: Namespace | None, stores: Stores
) -> Iterable[ImagePullJob]:
    changed = new if new is not None else old
    if changed is None or changed.metadata.name != exchange or (old is not None and new is not None):
        return ()
    return [job for job in stores.store(IMAGE_PULL_JOBS).list() if job.spec.pull_secrets and is_open(job)]


def sources_of_secret(old: Secret | None, new: Secret | None, stores: Stores) -> Iterable[Key]:
    """A copy concerns its source; a source concerns itself, if a job names it."""
    keys: dict[Key, None] = {}
    for secret in (old, new):
        for source in _sources(secret) if secret is not None else ():
            namespace, _, name = source.partition("/")
            keys[Key(namespace, name)] = None
    present: Object | None = new if new is not None else old
    if present is not None and stores.store(IMAGE_PULL_JOBS).by_index(BY_SECRET, str(key_of(present))):
        keys[key_of(present)] = None
    return keys
