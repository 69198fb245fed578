"""What the node agent tells of a pod's containers: what they were made from. Pure.

Controllers wait for it where a container's environment comes from the pod's metadata.
"""

from __future__ import annotations

from collections.abc import Iterable

from kruise.api.native.pod import Container, ContainerStatus, Pod
from kruise.inplace import keys
from kruise.inplace.hashes import (
    ContainerHashes,
    ContainerMeta,
    ContainersMeta,
    containers_meta_json,
    containers_meta_of,
    env_hash,
    plain_hash,
)
from kruise.inplace.state import BrokenAnnotation
from kruise.machinery import codec


def reporting(pod: Pod) -> Pod:
    """The pod with what the node agent tells of its containers; the same pod where it says so already."""
    known = {item.container_id: item for item in _reported(pod).containers}
    containers = {container.name: container for container in pod.spec.containers}
    entries = tuple(
        known.get(status.container_id) or _entry(pod, containers[status.name], status)
        for status in pod.status.container_statuses
        if status.container_id and status.name in containers
    )
    text = containers_meta_json(ContainersMeta(containers=entries))
    if pod.metadata.annotations.get(keys.CONTAINERS_META_ANNOTATION) == text:
        return pod
    annotations = {**pod.metadata.annotations, keys.CONTAINERS_META_ANNOTATION: text}
    return codec.evolve(pod, metadata=codec.evolve(pod.metadata, annotations=annotations))


def has_agent(pods: Iterable[Pod]) -> bool:
    """Whether there is somebody on the nodes who tells what containers were made from. Where no pod says so and there
    are pods, there is none."""
    found = [keys.CONTAINERS_META_ANNOTATION in pod.metadata.annotations for pod in pods]
    return not found or any(found)


def _entry(pod: Pod, container: Container, status: ContainerStatus) -> ContainerMeta:
    return ContainerMeta(
        name=container.name,
        container_id=status.container_id,
        restart_count=status.restart_count,
        hashes=ContainerHashes(
            plain_hash=plain_hash(container.name, container.image),
            extracted_env_from_metadata_hash=env_hash(container, pod.metadata),
        ),
    )


def _reported(pod: Pod) -> ContainersMeta:
    try:
        return containers_meta_of(pod) or ContainersMeta()
    except BrokenAnnotation:
        return ContainersMeta()


def out_of_date(pod: Pod) -> list[str]:
    """Containers of which the agent has told another environment than the pod's metadata give now."""
    reported = {item.name: item.hashes.extracted_env_from_metadata_hash for item in _reported(pod).containers}
    return [
        container.name
        for container in pod.spec.containers
        if reported.get(container.name) and reported[container.name] != env_hash(container, pod.metadata)
    ]
