"""When a pod counts as available (PUB-40 to PUB-42)."""

from __future__ import annotations

from typing import Any

from kruise.api.core.images import repository_and_digest
from kruise.api.native.pod import ContainerStatus, Pod, is_active, is_ready
from kruise.inplace.completion import full_name, is_complete
from kruise.machinery import codec
from kruise.protection.podunavailablebudget import keys

_INJECTED = "kruise.io/sidecarset-injected-list"
_SIDECAR_STATE = "kruise.io/sidecarset-inplace-update-state"
_INJECTED_ENV = "IS_INJECTED"


def is_available(pod: Pod, *, resizes: bool = False) -> bool:
    """Ready, and running what its spec says. `resizes`: resized resources have to be confirmed, too."""
    return is_ready_pod(pod) and is_consistent(pod, resizes=resizes)


def is_ready_pod(pod: Pod) -> bool:
    """PUB-41."""
    return (
        pod.status.phase == "Running"
        and pod.metadata.deletion_timestamp is None
        and is_ready(pod)
        and not keys.is_marked_unavailable(pod.metadata.labels)
    )


def is_consistent(pod: Pod, *, resizes: bool = False) -> bool:
    """PUB-42: the containers run what the spec says, as far as it can be told."""
    statuses = {status.name: status for status in pod.status.container_statuses}
    by_digest = 0
    for container in pod.spec.containers:
        wanted = repository_and_digest(container.image)
        if wanted is None:
            continue
        by_digest += 1
        status = statuses.get(container.name)
        if status is None or repository_and_digest(status.image_id.rpartition("://")[2]) != wanted:
            return False
    if by_digest and by_digest == len(pod.spec.containers):
        return True  # PUB-129
    return _sidecars_arrived(pod, statuses) and is_complete(pod, vertical_scaling=resizes)


def _sidecars_arrived(pod: Pod, statuses: dict[str, ContainerStatus]) -> bool:
    """PUB-42.3: sidecars that are updated in place run their new image."""
    annotations = pod.metadata.annotations
    if not annotations.get(_INJECTED):
        return True
    images = {
        container.name: container.image
        for container in pod.spec.containers
        if any(variable.name == _INJECTED_ENV and variable.value == "true" for variable in container.env)
    }
    text = annotations.get(_SIDECAR_STATE)
    if not images or text is None:
        return True
    try:
        states = codec.decode(text, dict[str, Any])
    except codec.DecodeError:
        return False
    for state in states.values():
        before = state.get("lastContainerStatuses") if isinstance(state, dict) else None
        for name, last in (before if isinstance(before, dict) else {}).items():
            status = statuses.get(name)
            if name not in images:
                continue
            old = last.get("imageID") if isinstance(last, dict) else None
            if status is None or (status.image_id == old and full_name(status.image) != full_name(images[name])):
                return False
    return True


def why_unavailable(pod: Pod, *, resizes: bool = False) -> str:
    """In words, for people; empty where the pod is available."""
    if not is_active(pod):
        return "terminating" if pod.metadata.deletion_timestamp is not None else "finished"
    if marks := sorted(key for key in pod.metadata.labels if key.startswith(keys.UNAVAILABLE_PREFIX)):
        return f"marked by label {marks[0]}"
    if not is_ready_pod(pod):
        return "not ready"
    return "" if is_consistent(pod, resizes=resizes) else "its update in place is under way"
