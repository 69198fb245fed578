"""The barrier: an environment variable that a container waits for, and the ConfigMap that holds its keys (CLP A1)."""

from __future__ import annotations

import re

from kruise.api.native.pod import Container, ContainerStatus, Pod
from kruise.inplace import keys

DONE = "apps.kruise.io/container-launch-priority-completed"
CONFIG_ERROR = "CreateContainerConfigError"
_KEY = re.compile(r"p_([+-]?[0-9]{1,18})", re.ASCII)


def config_name(pod: str) -> str:
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


def is_done(pod: Pod) -> bool:
    return pod.metadata.annotations.get(DONE) == "true"


def lets_others_start(pod: Pod, status: ContainerStatus | None) -> bool:
    """Whether a container holds up none of lower priority: it is ready (CLP-11), or has run to a good end in a pod that
    does not start it again, and so will never be ready."""
    if status is None or status.ready:
        return status is not None
    ended = status.state.terminated
    return ended is not None and ended.exit_code == 0 and pod.spec.restart_policy in ("Never", "OnFailure")
