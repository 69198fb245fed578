"""What a SidecarSet puts into pods: its content, as plain JSON, and the hashes that tell contents apart (SCS-14 to 18).

Containers are read and written as a typed client does, in the order of the structs: the hashes are the same, byte by
byte, as those in pods of a cluster that changed over.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.apps.sidecarset import HOT_UPGRADE, PatchPodMetadata, SidecarSet
from kruise.api.core import schema, values
from kruise.api.core.go_json import go_escaped, go_json
from kruise.machinery import codec
from kruise.machinery.codec import Raw
from kruise.machinery.names import safe_encode
from kruise.machinery.remembered import once_per_object
from kruise.sidecars.sidecarset import keys

Json = dict[str, Any]

FIELD_PATH = re.compile(r"metadata\.(?P<kind>labels|annotations)\['(?P<key>[^']*)'\]")
"""Where a pod may say which of its containers variables come from."""

EXTRA_FIELDS = (
    "podInjectPolicy",
    "upgradeStrategy",
    "shareVolumePolicy",
    "shareVolumeDevicePolicy",
    "transferEnv",
    "resourcesPolicy",
)
"""Fields of a sidecar that no container of a pod has, in the order in which they are written."""
_ALWAYS_WRITTEN = ("upgradeStrategy", "shareVolumePolicy")
_ORDERS: Mapping[str, tuple[str, ...]] = {
    "upgradeStrategy": ("upgradeType", "hotUpgradeEmptyImage"),
    "shareVolumePolicy": ("type",),
    "shareVolumeDevicePolicy": ("type",),
    "resourcesPolicy": ("targetContainersMode", "targetContainersNameRegex", "resourcesExpr"),
    "resourcesExpr": ("limits", "requests"),
    "limits": ("cpu", "memory"),
    "requests": ("cpu", "memory"),
    "sourceContainerNameFrom": ("fieldRef",),
    "fieldRef": ("apiVersion", "fieldPath"),
    "transferEnv": ("sourceContainerName", "sourceContainerNameFrom", "envName", "envNames"),
}


def canonical(container: Mapping[str, Any]) -> Json:
    """A sidecar as a typed client writes it. Raises TemplateTypeError."""
    plain = values.normalise(container, schema.CONTAINER)
    extra = {name: _in_order(name, container.get(name)) for name in EXTRA_FIELDS}
    return plain | {name: value for name, value in extra.items() if value or name in _ALWAYS_WRITTEN or value == {}}


def _in_order(name: str, value: Any) -> Any:
    """Fields in the order of their struct; those that say nothing are left out."""
    if isinstance(value, list):
        return [_in_order(name, item) for item in value]
    if name in _ORDERS and not isinstance(value, Mapping):
        return {} if name in _ALWAYS_WRITTEN else value
    if not isinstance(value, Mapping):
        return value
    found = {field: _in_order(field, value.get(field)) for field in _ORDERS.get(name, tuple(value))}
    return {field: item for field, item in found.items() if item is not None and item not in ("", [])}


def hashes_of(containers: Iterable[Mapping[str, Any]], init_containers: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """The hash of what can change in running sidecars, and the one without images. Raises TemplateTypeError."""
    written = [canonical(container) for container in containers]
    first = [canonical(container) for container in init_containers]
    if not any(is_native(container) for container in first):
        first = []
    return _hash(written, first), _hash(_without_image(written), _without_image(first))


def _without_image(containers: Iterable[Json]) -> list[Json]:
    return [{name: value for name, value in container.items() if name != "image"} for container in containers]


def _hash(containers: list[Json], init_containers: list[Json]) -> str:
    document: Json = {"containers": containers or None}
    if init_containers:
        document["initContainers"] = init_containers
    return safe_encode(hashlib.sha256(go_escaped(codec.encode(document))).hexdigest())


def is_native(container: Mapping[str, Any]) -> bool:
    """An init container that goes on running beside the others."""
    return container.get("restartPolicy") == "Always"


def is_hot(container: Mapping[str, Any]) -> bool:
    strategy = container.get("upgradeStrategy")
    return isinstance(strategy, Mapping) and strategy.get("upgradeType") == HOT_UPGRADE


def name_of(container: Mapping[str, Any]) -> str:
    return str(container.get("name", ""))


def twins_of(name: str) -> tuple[str, str]:
    return f"{name}-1", f"{name}-2"


def has_twins(container: Mapping[str, Any], kind: str) -> bool:
    """`kind` is the list of a spec that it stands in. A plain init container has none (SCS-56)."""
    return is_hot(container) and (kind == "containers" or is_native(container))


def names_in_pods(container: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    """What pods call it."""
    name = name_of(container)
    return twins_of(name) if has_twins(container, kind) else (name,)


def is_injected(container: Mapping[str, Any]) -> bool:
    """Whether a SidecarSet has put a container of a pod there."""
    return any(
        isinstance(item, Mapping) and item.get("name") == keys.IS_INJECTED and item.get("value") == "true"
        for item in container.get("env") or ()
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Content:
    """What goes into pods, with what it is called by. Nobody may change what it holds."""

    owner: str
    """Name of the SidecarSet."""
    containers: tuple[Json, ...] = ()
    init_containers: tuple[Json, ...] = ()
    volumes: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    pull_secrets: tuple[str, ...] = ()
    patches: tuple[PatchPodMetadata, ...] = ()
    hash: str = ""
    hash_without_image: str = ""
    revision: str = ""
    """Name of its ControllerRevision; empty before there is one."""

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Of everything that it contributes, as the spec has it."""
        return frozenset(name_of(item) for item in (*self.containers, *self.init_containers))

    @property
    def sidecar_list(self) -> list[str]:
        native = [name_of(item) for item in self.init_containers if is_native(item)]
        return sorted([*(name_of(item) for item in self.containers), *native])


def _documents(parts: Iterable[Raw]) -> tuple[Json, ...]:
    found = [codec.decode(part, object) for part in parts]
    return tuple(part for part in found if isinstance(part, dict))


@once_per_object
def content_of(sidecar_set: SidecarSet) -> Content:
    """The present content."""
    spec, metadata = sidecar_set.spec, sidecar_set.metadata
    containers, first = _documents(spec.containers), _documents(spec.init_containers)
    known = metadata.annotations.get(keys.HASH, ""), metadata.annotations.get(keys.HASH_WITHOUT_IMAGE, "")
    full, without_image = known if all(known) else hashes_of(containers, first)
    return Content(
        owner=metadata.name,
        containers=containers,
        init_containers=first,
        volumes={str(volume.get("name", "")): volume for volume in _documents(spec.volumes)},
        pull_secrets=tuple(secret.name for secret in spec.image_pull_secrets),
        patches=spec.patch_pod_metadata,
        hash=full,
        hash_without_image=without_image,
        revision=sidecar_set.status.latest_revision,
    )


def revision_data(sidecar_set: SidecarSet) -> bytes:
    """The data of the ControllerRevision of the present content (SCS-71)."""
    spec = sidecar_set.spec
    parts: dict[str, Any] = {
        "$patch": "replace",
        "containers": [canonical(item) for item in _documents(spec.containers)] or None,
        "imagePullSecrets": [{"name": secret.name} for secret in spec.image_pull_secrets] or None,
        "initContainers": [canonical(item) for item in _documents(spec.init_containers)] or None,
        "patchPodMetadata": [codec.to_builtins(item) for item in spec.patch_pod_metadata] or None,
        "volumes": list(_documents(spec.volumes)) or None,
    }
    return go_json({"spec": parts})


class _Recorded(codec.Struct):
    containers: tuple[Raw, ...] | None = None
    init_containers: tuple[Raw, ...] | None = None
    volumes: tuple[Raw, ...] | None = None
    image_pull_secrets: tuple[dict[str, str], ...] | None = None
    patch_pod_metadata: tuple[PatchPodMetadata, ...] | None = None


class _Data(codec.Struct):
    spec: _Recorded = _Recorded()


def recorded_content(owner: str, name: str, data: bytes | Raw, annotations: Mapping[str, str]) -> Content:
    """The content that a revision holds (SCS-80)."""
    spec = codec.decode(data, _Data).spec
    containers, first = _documents(spec.containers or ()), _documents(spec.init_containers or ())
    known = annotations.get(keys.HASH, ""), annotations.get(keys.HASH_WITHOUT_IMAGE, "")
    full, without_image = known if all(known) else hashes_of(containers, first)
    return Content(
        owner=owner,
        containers=containers,
        init_containers=first,
        volumes={str(volume.get("name", "")): volume for volume in _documents(spec.volumes or ())},
        pull_secrets=tuple(secret.get("name", "") for secret in spec.image_pull_secrets or ()),
        patches=spec.patch_pod_metadata or (),
        hash=full,
        hash_without_image=without_image,
        revision=name,
    )
