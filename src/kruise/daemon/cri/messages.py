"""The messages of CRI v1 that the daemon sends and reads (DMN-16). Pure. Numbers are those of the protocol."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kruise.daemon.cri.wire import (
    Fields,
    fields,
    get_bytes,
    get_mapping,
    get_message,
    get_messages,
    get_number,
    get_text,
    get_texts,
    mapping,
    message,
    number,
    text,
    texts,
)
from kruise.daemon.runtime import (
    POD_UID,
    Auth,
    Container,
    ContainerState,
    ContainerStatus,
    ExecResult,
    Image,
    SandboxConfig,
)

RUNTIME, IMAGE = "/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/"
_STATES = (ContainerState.CREATED, ContainerState.RUNNING, ContainerState.EXITED, ContainerState.UNKNOWN)


def version_request(version: str = "0.1.0") -> bytes:
    return text(1, version)


def runtime_name(raw: bytes) -> str:
    return get_text(fields(raw), 2)


def list_containers_request(*, pod_uid: str = "", container_id: str = "") -> bytes:
    """Raises ValueError without a pod and an id: that would mean all containers of the node."""
    if not pod_uid and not container_id:
        raise ValueError("containers of no pod are asked for")
    selector = mapping(4, {POD_UID: pod_uid}) if pod_uid else b""
    return message(1, text(1, container_id) + selector)


def containers(raw: bytes) -> tuple[Container, ...]:
    return tuple(_container(found) for found in get_messages(fields(raw), 1))


def _container(found: Fields) -> Container:
    metadata = get_message(found, 3)
    return Container(
        id=get_text(found, 1),
        name=get_text(metadata, 1),
        attempt=get_number(metadata, 2),
        image=get_text(get_message(found, 4), 1),
        image_ref=get_text(found, 5),
        state=_state(get_number(found, 6)),
        created_at=get_number(found, 7),
        labels=get_mapping(found, 8),
        annotations=get_mapping(found, 9),
    )


def container_status_request(container_id: str, *, verbose: bool) -> bytes:
    return text(1, container_id) + number(2, verbose)


def container_status(raw: bytes) -> ContainerStatus:
    answer = fields(raw)
    found = get_message(answer, 1)
    metadata = get_message(found, 2)
    return ContainerStatus(
        id=get_text(found, 1),
        name=get_text(metadata, 1),
        attempt=get_number(metadata, 2),
        state=_state(get_number(found, 3)),
        created_at=get_number(found, 4),
        started_at=get_number(found, 5),
        finished_at=get_number(found, 6),
        exit_code=get_number(found, 7),
        image=get_text(get_message(found, 8), 1),
        image_ref=get_text(found, 9),
        reason=get_text(found, 10),
        message=get_text(found, 11),
        labels=get_mapping(found, 12),
        annotations=get_mapping(found, 13),
        environment=environment(get_mapping(answer, 2).get("info", "")),
    )


def environment(info: str) -> dict[str, str] | None:
    """The environment of the first process, out of the runtime spec that containerd and CRI-O tell (DMN-75); None:
    it is not told."""
    if not info:
        return None
    try:
        process = json.loads(info)["runtimeSpec"]["process"]
        pairs = (str(item).partition("=") for item in process.get("env") or ())
        return {name: value for name, _, value in pairs}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _state(value: int) -> ContainerState:
    return _STATES[value] if 0 <= value < len(_STATES) else ContainerState.UNKNOWN


def stop_request(container_id: str, grace: int) -> bytes:
    return text(1, container_id) + number(2, grace)


def exec_request(container_id: str, command: Sequence[str], seconds: int) -> bytes:
    return text(1, container_id) + texts(2, command) + number(3, seconds)


def exec_result(raw: bytes) -> ExecResult:
    found = fields(raw)
    return ExecResult(stdout=get_bytes(found, 1), stderr=get_bytes(found, 2), exit_code=get_number(found, 3))


def images(raw: bytes) -> tuple[Image, ...]:
    return tuple(
        Image(
            id=get_text(found, 1),
            repo_tags=get_texts(found, 2),
            repo_digests=get_texts(found, 3),
            size=get_number(found, 4),
        )
        for found in get_messages(fields(raw), 1)
    )


def pull_request(reference: str, sandbox: SandboxConfig, auth: Auth | None) -> bytes:
    login = b""
    if auth is not None:
        parts = (
            auth.username,
            auth.password,
            auth.auth,
            auth.server_address,
            auth.identity_token,
            auth.registry_token,
        )
        login = message(2, *(text(number_, value) for number_, value in enumerate(parts, 1)))
    config = message(3, mapping(6, sandbox.labels), mapping(7, sandbox.annotations))
    return message(1, text(1, reference)) + login + config


def image_ref(raw: bytes) -> str:
    return get_text(fields(raw), 1)
