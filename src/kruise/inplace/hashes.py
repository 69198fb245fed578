"""Numbers that tell whether a running container is the one that its pod asks for (IPU-62 to IPU-66).

The node agent reports for each running container two numbers, tied to the container's id: one of what it was created
from (the kubelet's own), one of the environment that it drew from the pod's metadata. The same numbers computed from
the pod as it is now tell whether the container has been replaced. Both sides use this module.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.core.go_json import go_json
from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import Container, Pod
from kruise.inplace import keys
from kruise.inplace.state import BrokenAnnotation
from kruise.machinery import codec
from kruise.machinery.codec import Struct, field
from kruise.machinery.fnv import fnv32a

_FIELD_PATH = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)


# Remembered, because the same few images and environments come again with every pod and every pass.
@functools.lru_cache(maxsize=8192)
def deep_hash(data: bytes) -> int:
    """The 32-bit FNV-1a hash of the bytes as Go prints them: `([]uint8)[1 2 3]` (IPU-64)."""
    return fnv32a(b"([]uint8)[" + b" ".join(str(byte).encode() for byte in data) + b"]")


def plain_hash(name: str, image: str) -> int:
    """What a kubelet of 1.31 or later computes for a container (IPU-64)."""
    return deep_hash(go_json({"image": image, "name": name}))


def full_container_hash(container: Mapping[str, Any]) -> int:
    """What an older kubelet computes for a container, from the whole of it as it stands in the pod (IPU-65)."""
    from kruise.api.core.values import struct_order_json  # only for older kubelets: a node agent never needs it

    return deep_hash(struct_order_json(container, "core.Container"))


def metadata_reference(field_path: str) -> tuple[str, str] | None:
    """`("labels", key)` or `("annotations", key)` of a field path such as `metadata.labels['key']`."""
    found = _FIELD_PATH.fullmatch(field_path)
    return (found[1], found[2]) if found is not None else None


def metadata_env(container: Container) -> list[tuple[str, str, str]]:
    """The variables that a container draws from its pod's metadata: their names, `labels` or `annotations`, the key."""
    drawn = []
    for variable in container.env:
        source = variable.value_from
        if variable.value or source is None or source.field_ref is None or variable.name in keys.SIDECAR_SET_ENVS:
            continue
        reference = metadata_reference(source.field_ref.field_path)
        if reference is not None:
            drawn.append((variable.name, *reference))
    return drawn


def env_hash(container: Container, metadata: ObjectMeta) -> int:
    """The hash of the variables drawn from metadata, with the values that the metadata has now (IPU-66)."""
    sources = {"labels": metadata.labels, "annotations": metadata.annotations}
    return env_values_hash((name, sources[kind].get(key, "")) for name, kind, key in metadata_env(container))


def running_env_hash(container: Container, environment: Mapping[str, str]) -> int:
    """The same hash with the values that the running container has in its environment (IPU-66)."""
    return env_values_hash((name, environment.get(name, "")) for name, _, _ in metadata_env(container))


def env_values_hash(values: Iterable[tuple[str, str]]) -> int:
    # Only by name, so that a name given twice keeps the order of the container.
    ordered = sorted(values, key=lambda pair: pair[0])
    entries = [{"name": name, "value": value} if value else {"name": name} for name, value in ordered]
    return deep_hash(go_json(entries or None))


class ContainerHashes(Struct):
    plain_hash: int = 0
    extracted_env_from_metadata_hash: int = 0
    """0 while it is not known."""


class ContainerMeta(Struct):
    """What the node agent reports about one running container."""

    name: str = ""
    container_id: str = field(default="", name="containerID")
    restart_count: int = 0
    hashes: ContainerHashes = ContainerHashes()


class ContainersMeta(Struct):
    containers: tuple[ContainerMeta, ...] = ()


_decode_meta = codec.decoder(ContainersMeta)


def containers_meta_of(pod: Pod) -> ContainersMeta | None:
    """What the node agent has reported on the pod, None where it has not. Raises BrokenAnnotation."""
    text = pod.metadata.annotations.get(keys.CONTAINERS_META_ANNOTATION)
    if text is None:
        return None
    try:
        return _decode_meta(text)
    except codec.DecodeError as error:
        raise BrokenAnnotation(pod, keys.CONTAINERS_META_ANNOTATION, error) from error


def containers_meta_json(meta: ContainersMeta) -> str:
    """The text of the annotation (IPU-63)."""
    containers = []
    for item in meta.containers:
        hashes = {"plainHash": item.hashes.plain_hash}
        if item.hashes.extracted_env_from_metadata_hash:
            hashes["extractedEnvFromMetadataHash"] = item.hashes.extracted_env_from_metadata_hash
        containers.append(
            {
                "name": item.name,
                "containerID": item.container_id,
                "restartCount": item.restart_count,
                "hashes": hashes,
            }
        )
    return codec.encode({"containers": containers}).decode()
