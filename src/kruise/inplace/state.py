"""What an in-place update changes, and how far it has come: the values, and the annotations that keep them on the pod.

`UpdateSpec` says what an update changes; while its grace period runs it is kept in the grace annotation. `UpdateState`
is the memory of an update that has begun: what the containers ran before, what was applied, what is left for later
batches. Other tools read both annotations, so their JSON is exact: order of the members, what is left out, whole
seconds (IPU sections 7 and 8).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kruise.api.core.go_json import go_json
from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.codec import Raw, Struct, field
from kruise.machinery.times import format_time

LONG_AGO = datetime.min.replace(tzinfo=UTC)


class BrokenAnnotation(ValueError):  # noqa: N818 - it names a finding, not a failure of ours
    """An annotation of the engine that nobody can read; the text names the pod, the annotation and the remedy."""

    def __init__(self, pod: Pod, annotation: str, detail: object) -> None:
        metadata = pod.metadata
        super().__init__(
            f"pod {metadata.namespace}/{metadata.name}: annotation {annotation} cannot be read ({detail}): "
            "remove the annotation, or delete the pod to have it replaced"
        )


class RefMetadata(Struct):
    """Labels and annotations that the environment of a container is made from."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Resources(Struct):
    """New amounts of a container; what is not named stays as it is."""

    limits: dict[str, str | int | float] = field(default_factory=dict)
    requests: dict[str, str | int | float] = field(default_factory=dict)


class UpdateSpec(Struct):
    """Everything that one update changes in a pod (IPU-37), the same for all pods that go the same way."""

    revision: str = ""
    container_images: dict[str, str] = field(default_factory=dict)
    container_ref_metadata: dict[str, RefMetadata] = field(default_factory=dict)
    container_resources: dict[str, Resources] = field(default_factory=dict)
    meta_data_patch: dict[str, Any] = field(default_factory=dict)
    """A strategic merge patch of the pod's metadata, decoded; on the wire it is base64."""
    update_env_from_metadata: bool = False
    grace_seconds: int = 0


class LastStatus(Struct):
    """What a container ran before its image was changed."""

    image_id: str = field(default="", name="imageID")
    overtaken: tuple[str, ...] = ()
    """Images that it was to run in between and never arrived at, because its image was changed again."""


class PreCheck(Struct):
    """What has to be so before the next batch is applied."""

    containers_required_ready: tuple[str, ...] = ()


class BatchRecord(Struct):
    timestamp: datetime = LONG_AGO
    containers: tuple[str, ...] = ()


class UpdateState(Struct):
    revision: str = ""
    update_timestamp: datetime = LONG_AGO
    """When the whole update began; later batches and the end of the grace period leave it as it is."""
    last_container_statuses: dict[str, LastStatus] | None = None
    update_env_from_metadata: bool = False
    update_resources: bool = False
    update_images: bool = False
    next_container_images: dict[str, str] = field(default_factory=dict)
    next_container_ref_metadata: dict[str, RefMetadata] = field(default_factory=dict)
    next_container_resources: dict[str, Resources] = field(default_factory=dict)
    pre_check_before_next: PreCheck | None = None
    container_batches_record: tuple[BatchRecord, ...] = ()

    @property
    def has_next(self) -> bool:
        """Whether containers wait for a later batch."""
        return bool(self.next_container_images or self.next_container_ref_metadata or self.next_container_resources)

    @property
    def later(self) -> frozenset[str]:
        """The containers that wait for a later batch."""
        return frozenset(
            (*self.next_container_images, *self.next_container_ref_metadata, *self.next_container_resources)
        )


class _Grace(Struct):
    """The grace annotation as it stands on the pod."""

    revision: str = ""
    container_images: dict[str, str] = field(default_factory=dict)
    container_ref_metadata: dict[str, RefMetadata] = field(default_factory=dict)
    container_resources: dict[str, Resources] = field(default_factory=dict)
    meta_data_patch: str = ""
    update_env_from_metadata: bool = False
    grace_seconds: int = 0


_decode_state = codec.decoder(UpdateState)
_decode_grace = codec.decoder(_Grace)


def update_state_of(pod: Pod) -> UpdateState | None:
    """The state of the pod's last update, None where it never had one. The old spelling is read too."""
    key, text = _either(pod, keys.UPDATE_STATE_ANNOTATION, keys.OLD_UPDATE_STATE_ANNOTATION)
    if not text:
        return None
    try:
        state = _decode_state(text)
    except codec.DecodeError as error:
        raise BrokenAnnotation(pod, key, error) from error
    if state.update_timestamp.tzinfo is None:
        raise BrokenAnnotation(pod, key, "updateTimestamp has no time zone")
    return state


def in_grace(pod: Pod) -> bool:
    """Whether an update waits for its grace period to end. The presence of the annotation is all that counts."""
    annotations = pod.metadata.annotations
    return bool(annotations.get(keys.UPDATE_GRACE_ANNOTATION) or annotations.get(keys.OLD_UPDATE_GRACE_ANNOTATION))


def _either(pod: Pod, key: str, old_key: str) -> tuple[str, str]:
    """The annotation under its name or its old spelling: the name that is there, and the text."""
    annotations = pod.metadata.annotations
    text = annotations.get(key)
    return (key, text) if text else (old_key, annotations.get(old_key, ""))


def grace_of(pod: Pod) -> UpdateSpec | None:
    """The update that waits for its grace period to end. The old spelling is read too."""
    key, text = _either(pod, keys.UPDATE_GRACE_ANNOTATION, keys.OLD_UPDATE_GRACE_ANNOTATION)
    if not text:
        return None
    try:
        stored = _decode_grace(text)
        patch = _patch(stored.meta_data_patch)
    except ValueError as error:
        raise BrokenAnnotation(pod, key, error) from error
    return UpdateSpec(
        revision=stored.revision,
        container_images=stored.container_images,
        container_ref_metadata=stored.container_ref_metadata,
        container_resources=stored.container_resources,
        meta_data_patch=patch,
        update_env_from_metadata=stored.update_env_from_metadata,
        grace_seconds=stored.grace_seconds,
    )


def _patch(text: str) -> dict[str, Any]:
    if not text:
        return {}
    document = codec.decode(base64.b64decode(text, validate=True), object)
    if not isinstance(document, dict):
        raise ValueError("metaDataPatch is no object")
    return document


def state_json(state: UpdateState) -> str:
    """The text of the state annotation."""
    last = state.last_container_statuses
    members: dict[str, Any] = {
        "revision": state.revision,
        "updateTimestamp": format_time(state.update_timestamp),
        "lastContainerStatuses": {name: _last(status) for name, status in last.items()} if last else None,
    }
    check = state.pre_check_before_next
    members |= _present(
        {
            "updateEnvFromMetadata": state.update_env_from_metadata,
            "updateResources": state.update_resources,
            "updateImages": state.update_images,
            "nextContainerImages": state.next_container_images,
            "nextContainerRefMetadata": _ref_metadata(state.next_container_ref_metadata),
            "nextContainerResources": _resources(state.next_container_resources),
            "preCheckBeforeNext": {"containersRequiredReady": check.containers_required_ready} if check else None,
            "containerBatchesRecord": [
                _in_order({"timestamp": format_time(record.timestamp), "containers": record.containers})
                for record in state.container_batches_record
            ],
        }
    )
    return bytes(_in_order(members)).decode()


def _last(status: LastStatus) -> Raw:
    return _in_order({"imageID": status.image_id, **_present({"overtaken": status.overtaken})})


def grace_json(spec: UpdateSpec) -> str:
    """The text of the grace annotation."""
    patch = base64.b64encode(go_json(spec.meta_data_patch)).decode() if spec.meta_data_patch else ""
    members = {
        "revision": spec.revision,
        "containerImages": spec.container_images,
        "containerRefMetadata": _ref_metadata(spec.container_ref_metadata),
        "containerResources": _resources(spec.container_resources),
        "metaDataPatch": patch,
        "updateEnvFromMetadata": spec.update_env_from_metadata,
        "graceSeconds": spec.grace_seconds,
    }
    return bytes(_in_order(_present(members))).decode()


def _ref_metadata(containers: Mapping[str, RefMetadata]) -> dict[str, Raw]:
    return {
        name: _in_order(_present({"labels": found.labels, "annotations": found.annotations}))
        for name, found in containers.items()
    }


def _resources(containers: Mapping[str, Resources]) -> dict[str, Raw]:
    return {
        name: _in_order(_present({"limits": found.limits, "requests": found.requests}))
        for name, found in containers.items()
    }


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value}


def _in_order(members: Mapping[str, Any]) -> Raw:
    """An object with its members in this order and the maps below sorted: what Go writes for a struct of maps."""
    return Raw(b"{" + b",".join(b'"%b":%b' % (name.encode(), go_json(value)) for name, value in members.items()) + b"}")
