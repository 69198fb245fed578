"""The barrier of a container: an environment variable that it waits for before it starts (CLP A1). Pure.

The webhook puts barriers into pods whose containers start in order, and the manager opens them. What everybody else
must know of them: a container that waits for its turn has not failed.
"""

from __future__ import annotations

import re

from kruise.api.native.pod import Container, ContainerStatus, Pod
from kruise.inplace import keys

CONFIG_ERROR = "CreateContainerConfigError"
_KEY = re.compile(r"p_([+-]?[0-9]{1,18})", re.ASCII)


def config_name(pod: str) -> str:
    """The ConfigMap with the keys that containers of the pod wait for."""
    return f"{pod}-barrier"


def key_of(priority: int) -> str:
    return f"p_{priority}"


def priority_of(container: Container) -> int | None:
    """None: the container does not wait, or nobody can tell for what (CLP-10)."""
    for variable in container.env:
        if variable.name == keys.BARRIER_ENV:
            reference = variable.value_from.config_map_key_ref if variable.value_from is not None else None
            found = _KEY.fullmatch(reference.key) if reference is not None else None
            return int(found[1]) if found is not None else None
    return None


def waits_for_turn(pod: Pod, status: ContainerStatus) -> bool:
    """Whether a container is not created only because its barrier is not open, or not known to its kubelet yet (CLP-8).
    While a pod starts in order, that is as it should be."""
    waiting = status.state.waiting
    if waiting is None or waiting.reason != CONFIG_ERROR or config_name(pod.metadata.name) not in waiting.message:
        return False
    return any(one.name == status.name and priority_of(one) is not None for one in pod.spec.containers)
