"""What is reported of the containers of a pod: from which definition and environment each one was made. Pure.

The report stands in an annotation of the pod and is compared by id: a number once found for a container stays.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from kruise.api.apps.shared import GROUP
from kruise.api.native import pod as native
from kruise.daemon.containers.situation import Seen, SeenContainer
from kruise.daemon.pods import Container, Pod
from kruise.inplace import hashes, keys
from kruise.inplace.hashes import ContainerHashes, ContainerMeta, ContainersMeta
from kruise.machinery.codec import DecodeError, decode

SIDECAR_SET_ANNOTATION = "kruise.io/sidecarset-hash"
_NOTHING = ContainersMeta()


def is_watched(pod: Pod) -> bool:
    """Pods that a workload of ours controls, or into which a SidecarSet has put containers (DMN-69)."""
    metadata = pod.metadata
    if any(owner.controller and _group(owner.api_version) == GROUP for owner in metadata.owner_references):
        return True
    return SIDECAR_SET_ANNOTATION in metadata.annotations


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


@functools.lru_cache(maxsize=512)
def _read(text: str) -> ContainersMeta:
    try:
        return decode(text, ContainersMeta)
    except DecodeError:
        # Somebody has spoilt it; it is written anew.
        return _NOTHING


def reported(pod: Pod) -> ContainersMeta:
    """What the pod says now."""
    return _read(pod.metadata.annotations.get(keys.CONTAINERS_META_ANNOTATION, ""))


def needs_report(pod: Pod, *, reads_environment: bool = True) -> bool:
    """Whether a look at the runtime may bring something new, as far as the pod tells (DMN-71)."""
    statuses = pod.status.container_statuses
    if pod.metadata.deletion_timestamp is not None or not any(status.container_id for status in statuses):
        return False
    known = reported(pod).containers
    if len(known) != len(statuses):
        return True
    if any(
        status.container_id and status.container_id != entry.container_id
        for status, entry in zip(statuses, known, strict=True)
    ):
        return True
    return reads_environment and any(True for _ in _outdated(pod, known))


def report(pod: Pod, seen: Seen, *, reads_environment: bool = True) -> ContainersMeta:
    """The containers as the runtime has them, in the order of the status (DMN-65, DMN-73, DMN-74)."""
    known = {entry.container_id: entry for entry in reported(pod).containers}
    containers = {container.name: container for container in pod.spec.containers}
    found = {container.name: container for container in seen.containers}
    entries = []
    for status in pod.status.container_statuses:
        here, container = found.get(status.name), containers.get(status.name)
        if not status.container_id or here is None or container is None:
            continue
        identity = f"{seen.runtime}://{here.id}"
        entries.append(_entry(container, here, identity, known.get(identity), reads_environment))
    return ContainersMeta(containers=tuple(entries))


def _entry(
    container: Container, here: SeenContainer, identity: str, known: ContainerMeta | None, reads_environment: bool
) -> ContainerMeta:
    if known is not None and (known.hashes.extracted_env_from_metadata_hash or not here.running):
        return known
    environment = 0
    if reads_environment and here.running and here.environment is not None:
        environment = hashes.running_env_hash(_native(container), here.environment)
    return ContainerMeta(
        name=container.name,
        container_id=identity,
        restart_count=here.restart_count,
        hashes=ContainerHashes(plain_hash=here.plain_hash, extracted_env_from_metadata_hash=environment),
    )


def with_own_variables(container: Container, environment: dict[str, str] | None) -> dict[str, str] | None:
    """What a report is made of, and nothing else: an environment may hold secrets."""
    if environment is None:
        return None
    names = {name for name, _, _ in hashes.metadata_env(_native(container))}
    return {name: value for name, value in environment.items() if name in names}


def to_restart(pod: Pod, meta: ContainersMeta) -> Iterator[ContainerMeta]:
    """Containers whose environment is out of date, during an in-place update only (DMN-76, IPU-67)."""
    condition = next((item for item in pod.status.conditions if item.type == keys.IN_PLACE_READY), None)
    if condition is None or condition.status != "False":
        return
    for entry in _outdated(pod, meta.containers):
        if entry.hashes.extracted_env_from_metadata_hash:
            yield entry


def _outdated(pod: Pod, entries: tuple[ContainerMeta, ...]) -> Iterator[ContainerMeta]:
    """Entries whose environment is not, or not known to be, what the pod's metadata say now."""
    containers = {container.name: container for container in pod.spec.containers}
    for entry in entries:
        container = containers.get(entry.name)
        if container is None:
            continue
        if hashes.env_hash(_native(container), pod.metadata) != entry.hashes.extracted_env_from_metadata_hash:
            yield entry


def _native(container: Container) -> native.Container:
    """The container as controllers read it: what the hashes are made of."""
    return native.Container(name=container.name, image=container.image, env=container.env)
