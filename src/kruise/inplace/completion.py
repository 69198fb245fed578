"""Whether an in-place update has arrived: the containers run what the pod asks for (IPU-60 to IPU-62)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from kruise.api.native.pod import Container, ContainerStatus, Pod, ResourceRequirements
from kruise.inplace import keys
from kruise.inplace.hashes import ContainerHashes, ContainersMeta, containers_meta_of, env_hash, plain_hash
from kruise.inplace.state import (
    BatchRecord,
    BrokenAnnotation,
    LastStatus,
    UpdateState,
    in_grace,
    update_state_of,
)
from kruise.machinery.quantity import QuantityError, parse_quantity


def is_complete(pod: Pod, *, vertical_scaling: bool) -> bool:
    """Whether nothing of the pod's last update is left to do or to wait for (IPU-60). True for a pod without one."""
    if in_grace(pod):
        return False
    try:
        state = update_state_of(pod)
    except BrokenAnnotation:
        # Nobody can tell. Who refreshes the pod reads the state too, and says what is wrong with it.
        return False
    if state is None:
        return True
    return not state.has_next and not unfinished(pod, state, vertical_scaling=vertical_scaling)


def unfinished(pod: Pod, state: UpdateState, *, vertical_scaling: bool) -> str:
    """What the containers of the batches applied so far still lack, in words; empty when they have arrived (IPU-61)."""
    try:
        meta = containers_meta_of(pod)
    except BrokenAnnotation as error:
        return str(error)
    statuses = {status.name: status for status in pod.status.container_statuses}
    if state.update_env_from_metadata and (awaited := _environment(pod, meta, statuses)):
        return awaited
    if vertical_scaling and state.update_resources and (awaited := _resources(pod, statuses)):
        return awaited
    if meta is not None and _all_as_created(pod, meta, statuses):
        return ""
    return _images(pod, state, statuses, meta)


def still_open(pod: Pod, state: UpdateState, *, vertical_scaling: bool) -> UpdateState:
    """What is left to wait for of an update that another one is about to overtake. The pod has not arrived where the
    new one wants it before that has happened, too: otherwise it would count as available while its containers are
    still about to restart."""
    try:
        meta = containers_meta_of(pod)
    except BrokenAnnotation:
        meta = None
    statuses = {status.name: status for status in pod.status.container_statuses}
    last = state.last_container_statuses or {}
    if meta is not None and _all_as_created(pod, meta, statuses):
        last = {}
    # Where no node tells of environments nobody can wait for them, and another update may as well go on.
    environment = state.update_env_from_metadata and meta is not None and bool(_environment(pod, meta, statuses))
    images = {name: ran for name, ran in last.items() if _image(pod, name, ran, state, statuses, meta)}
    return UpdateState(
        last_container_statuses=images or None,
        update_env_from_metadata=environment,
        update_resources=vertical_scaling and state.update_resources and bool(_resources(pod, statuses)),
        container_batches_record=tuple(_last_batches(state, images)),
    )


def _last_batches(state: UpdateState, names: Collection[str]) -> Iterator[BatchRecord]:
    """When each of the containers was changed for the last time."""
    seen: set[str] = set()
    found: list[BatchRecord] = []
    for record in reversed(state.container_batches_record):
        if concerned := tuple(name for name in record.containers if name in names and name not in seen):
            seen.update(concerned)
            found.append(BatchRecord(timestamp=record.timestamp, containers=concerned))
    yield from reversed(found)


def _environment(pod: Pod, meta: ContainersMeta | None, statuses: Mapping[str, ContainerStatus]) -> str:
    if meta is None:
        return (
            "the node has not told which environment the containers run with "
            f"(annotation {keys.CONTAINERS_META_ANNOTATION} is missing)"
        )
    stale = _inconsistent(
        pod,
        meta,
        statuses,
        lambda container, hashes: hashes.extracted_env_from_metadata_hash == env_hash(container, pod.metadata),
    )
    return f"container {stale} has not restarted with its new environment" if stale else ""


def _all_as_created(pod: Pod, meta: ContainersMeta, statuses: Mapping[str, ContainerStatus]) -> bool:
    """By the hash of kubelets since 1.31.

    Older ones hash the whole container, of which the store keeps only a part. Their number never matches, and the
    image ids decide.
    """
    return not _inconsistent(
        pod,
        meta,
        statuses,
        lambda container, hashes: hashes.plain_hash == plain_hash(container.name, container.image),
    )


def _inconsistent(
    pod: Pod,
    meta: ContainersMeta,
    statuses: Mapping[str, ContainerStatus],
    is_expected: Callable[[Container, ContainerHashes], bool],
) -> str:
    """The first container that is not known to run as expected (IPU-62); empty when all do."""
    reported = {item.name: item for item in meta.containers}
    for container in pod.spec.containers:
        status, item = statuses.get(container.name), reported.get(container.name)
        if status is None or item is None or status.container_id != item.container_id:
            return container.name
        if not is_expected(container, item.hashes):
            return container.name
    return ""


def _resources(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> str:
    for container in pod.spec.containers:
        status = statuses.get(container.name)
        if status is None or status.resources is None:
            return f"the resources of container {container.name} are not known yet"
        if not same_resources(container.resources, status.resources):
            return f"container {container.name} does not have its new resources yet"
    if len(pod.status.container_statuses) != len(pod.spec.containers):
        return "the containers are not all known yet"
    return ""


def same_resources(wanted: ResourceRequirements, present: ResourceRequirements) -> bool:
    """Whatever way the amounts are written."""
    return _same_amounts(wanted.limits, present.limits) and _same_amounts(wanted.requests, present.requests)


def _same_amounts(wanted: Mapping[str, str | int | float], present: Mapping[str, str | int | float]) -> bool:
    if wanted == present:
        return True
    if wanted.keys() != present.keys():
        return False
    try:
        return all(parse_quantity(amount) == parse_quantity(present[name]) for name, amount in wanted.items())
    except QuantityError:
        return False


def _images(pod: Pod, state: UpdateState, statuses: Mapping[str, ContainerStatus], meta: ContainersMeta | None) -> str:
    last = state.last_container_statuses or {}
    awaited = (_image(pod, name, ran, state, statuses, meta) for name, ran in last.items())
    return next(filter(None, awaited), "")


def _image(
    pod: Pod,
    name: str,
    last: LastStatus,
    state: UpdateState,
    statuses: Mapping[str, ContainerStatus],
    meta: ContainersMeta | None,
) -> str:
    status = statuses.get(name)
    if status is None:
        return f"container {name} has not started"
    wanted = next((container.image for container in pod.spec.containers if container.name == name), "")
    runs = full_name(status.image)
    if last.overtaken:
        # Its kubelet may still be on the way to an image in between, and look at the last one only then.
        if _is_behind(pod) or _was_made_from(last.overtaken, status, meta):
            return _not_arrived(status, wanted)
        in_between = runs in map(full_name, last.overtaken)
        has_arrived = not in_between and (runs == full_name(wanted) or status.image_id != last.image_id)
        # A name may be another one of the same image: then the times decide, or nothing ever would.
        return "" if has_arrived or _was_replaced(pod, status, state) else _not_arrived(status, wanted)
    # Two names may belong to one image: then only the name tells that the container was replaced.
    if status.image_id != last.image_id or runs == full_name(wanted):
        return ""
    return _not_arrived(status, wanted) if meta is not None or not _was_replaced(pod, status, state) else ""


def _was_made_from(images: Iterable[str], status: ContainerStatus, meta: ContainersMeta | None) -> bool:
    """Whether the node tells that the container was made from one of these images. Kubelets before 1.31 have a number
    of their own, which says nothing about it."""
    reported = next((item for item in meta.containers if item.name == status.name), None) if meta is not None else None
    if reported is None or reported.container_id != status.container_id:
        return False
    return any(reported.hashes.plain_hash == plain_hash(status.name, image) for image in images)


def _not_arrived(status: ContainerStatus, wanted: str) -> str:
    """While its new image is pulled, a container goes on as it was; one that has ended runs nothing."""
    if status.state.waiting is not None or status.state.terminated is not None:
        return f"container {status.name} has stopped, and not started with {wanted} yet"
    if not status.image:
        return f"container {status.name} has no image"
    return f"container {status.name} still runs {status.image}"


def _was_replaced(pod: Pod, status: ContainerStatus, state: UpdateState) -> bool:
    """Whether a container ended and another started since its image was changed.

    containerd reports any one of an image's names, not the one that the container was started with: between two names
    of one image nothing but these times tells them apart. They are the node's, so a clock that is off can mislead;
    where the node reports what its containers were made from, nobody asks for them.
    """
    running, ended = status.state.running, status.last_state.terminated
    if _is_behind(pod) or running is None or ended is None:
        return False
    if running.started_at is None or ended.finished_at is None:
        return False
    batches = [batch.timestamp for batch in state.container_batches_record if status.name in batch.containers]
    changed = max(batches, default=state.update_timestamp)
    return ended.finished_at >= changed and running.started_at >= changed


def _is_behind(pod: Pod) -> bool:
    """The node has not told of the spec as it is now. Kubelets before 1.34 do not say what they tell of."""
    return 0 < pod.status.observed_generation < pod.metadata.generation


def full_name(image: str) -> str:
    """The name with the parts that may be left out. Runtimes report the full name, whatever the pod says."""
    first, slash, rest = image.partition("/")
    is_registry = bool(slash) and ("." in first or ":" in first or first == "localhost")
    name = image.rpartition("/")[2]
    tagged = image if ":" in name or "@" in name else f"{image}:latest"
    if is_registry:
        return tagged
    return f"docker.io/{tagged}" if rest else f"docker.io/library/{tagged}"
