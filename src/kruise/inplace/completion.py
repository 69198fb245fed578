"""Whether an in-place update has arrived: the containers run what the pod asks for (IPU-60 to IPU-62)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Self

from kruise.api.native.pod import Container, ContainerStatus, Pod, ResourceRequirements
from kruise.inplace import keys
from kruise.inplace.hashes import (
    ContainerHashes,
    ContainerMeta,
    ContainersMeta,
    containers_meta_of,
    env_hash,
    plain_hash,
)
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
    """What the containers of the batches applied so far still lack, in words; empty when they have arrived (IPU-61).

    Nothing is expected of containers whose batch is still to come: an overtaken update may have broken them, and that
    batch is what repairs them.
    """
    try:
        meta = containers_meta_of(pod)
    except BrokenAnnotation as error:
        return str(error)
    seen = _Seen.of(pod, meta)
    due = [container for container in pod.spec.containers if container.name not in state.later]
    if state.update_env_from_metadata and (awaited := seen.environment(due)):
        return awaited
    if vertical_scaling and state.update_resources and (awaited := seen.resources(due)):
        return awaited
    if seen.are_all_as_created:
        return ""
    last = state.last_container_statuses or {}
    awaits = (seen.image(name, ran, state) for name, ran in last.items() if name not in state.later)
    return next(filter(None, awaits), "")


def still_open(pod: Pod, state: UpdateState, *, vertical_scaling: bool) -> UpdateState:
    """What is left to wait for of an update that another one is about to overtake. The pod has not arrived where the
    new one wants it before that has happened, too: otherwise it would count as available while its containers are
    still about to restart."""
    try:
        meta = containers_meta_of(pod)
    except BrokenAnnotation:
        meta = None
    seen, everyone = _Seen.of(pod, meta), pod.spec.containers
    last = {} if seen.are_all_as_created else state.last_container_statuses or {}
    images = {name: ran for name, ran in last.items() if seen.image(name, ran, state)}
    # Where no node tells of environments nobody can wait for them, and another update may as well go on.
    environment = state.update_env_from_metadata and meta is not None and bool(seen.environment(everyone))
    return UpdateState(
        last_container_statuses=images or None,
        update_env_from_metadata=environment,
        update_resources=vertical_scaling and state.update_resources and bool(seen.resources(everyone)),
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


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen:
    """A pod as its node tells of it. Each method says what is still awaited, in words; empty: nothing."""

    pod: Pod
    statuses: Mapping[str, ContainerStatus]
    meta: Mapping[str, ContainerMeta] | None
    """What containers were made from, by name; None: the node does not tell."""

    @classmethod
    def of(cls, pod: Pod, meta: ContainersMeta | None) -> Self:
        reported = {item.name: item for item in meta.containers} if meta is not None else None
        return cls(pod, {status.name: status for status in pod.status.container_statuses}, reported)

    def environment(self, containers: Iterable[Container]) -> str:
        if self.meta is None:
            return (
                "the node has not told which environment the containers run with "
                f"(annotation {keys.CONTAINERS_META_ANNOTATION} is missing)"
            )
        for container in containers:
            hashes = self._made_from(container.name)
            if hashes is None or hashes.extracted_env_from_metadata_hash != env_hash(container, self.pod.metadata):
                return f"container {container.name} has not restarted with its new environment"
        return ""

    def resources(self, containers: Iterable[Container]) -> str:
        for container in containers:
            status = self.statuses.get(container.name)
            if status is None or status.resources is None:
                return f"the resources of container {container.name} are not known yet"
            if not same_resources(container.resources, status.resources):
                return f"container {container.name} does not have its new resources yet"
        if len(self.statuses) != len(self.pod.spec.containers):
            return "the containers are not all known yet"
        return ""

    @property
    def are_all_as_created(self) -> bool:
        """By the hash of kubelets since 1.31.

        Older ones hash the whole container, of which the store keeps only a part. Their number never matches, and the
        image ids decide. They do so, too, while the kubelet is behind: it may be about to stop what runs now.
        """
        return (
            self.meta is not None
            and not _is_behind(self.pod)
            and all(self._was_made_from(container.name, (container.image,)) for container in self.pod.spec.containers)
        )

    def image(self, name: str, last: LastStatus, state: UpdateState) -> str:
        status = self.statuses.get(name)
        if status is None:
            return f"container {name} has not started"
        wanted = next((container.image for container in self.pod.spec.containers if container.name == name), "")
        return "" if self._has_arrived(status, wanted, last, state) else _not_arrived(status, wanted)

    def _has_arrived(self, status: ContainerStatus, wanted: str, last: LastStatus, state: UpdateState) -> bool:
        runs = full_name(status.image)
        # Two names may belong to one image: then only the name tells that the container was replaced.
        tells = status.image_id != last.image_id or runs == full_name(wanted)
        if not last.overtaken:
            return tells or (self.meta is None and _was_replaced(self.pod, status, state))
        # Its kubelet may still be on the way to an image in between, and look at the last one only then.
        if _is_behind(self.pod) or self._was_made_from(status.name, last.overtaken):
            return False
        # A name may be another one of the same image: then the times decide, or nothing ever would.
        return (tells and runs not in map(full_name, last.overtaken)) or _was_replaced(self.pod, status, state)

    def _was_made_from(self, name: str, images: Iterable[str]) -> bool:
        """Whether the node tells that the container was made from one of these images."""
        hashes = self._made_from(name)
        return hashes is not None and any(hashes.plain_hash == plain_hash(name, image) for image in images)

    def _made_from(self, name: str) -> ContainerHashes | None:
        """What the node tells of the container that runs now (IPU-62)."""
        status, reported = self.statuses.get(name), (self.meta or {}).get(name)
        if status is None or reported is None or status.container_id != reported.container_id:
            return None
        return reported.hashes


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
