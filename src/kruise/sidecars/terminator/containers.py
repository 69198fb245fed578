"""Which containers of a pod are sidecars, and whether the others are done (JST B1, B2). Pure."""

from __future__ import annotations

import dataclasses

from kruise.api.native.pod import Container, ContainerStatus, Pod
from kruise.machinery.remembered import once_per_object

KILL = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
IMAGE = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
IGNORE = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
ENVS = (KILL, IMAGE, IGNORE)
TERMINAL = ("Succeeded", "Failed")


@dataclasses.dataclass(frozen=True, slots=True)
class Sidecar:
    name: str
    is_killed: bool
    """By the node daemon, on nodes that have one."""
    ignores_exit: bool
    image: str
    """That replaces its own on virtual nodes."""


def _value(container: Container, name: str) -> str:
    """Only what is written there counts, the last time that it is (JST-1)."""
    found = [item for item in container.env if item.name == name]
    return found[-1].value if found and found[-1].value_from is None else ""


def _is_true(text: str) -> bool:
    return text.lower() == "true"


@once_per_object
def sidecars_of(pod: Pod) -> tuple[Sidecar, ...]:
    """JST-2; none where the pod never ends (JST-3)."""
    if pod.spec.restart_policy not in ("Never", "OnFailure"):
        return ()
    found = []
    for container in pod.spec.containers:
        is_killed, image = _is_true(_value(container, KILL)), _value(container, IMAGE)
        if is_killed or image:
            ignores = is_killed and _is_true(_value(container, IGNORE))
            found.append(Sidecar(container.name, is_killed, ignores, image))
    return tuple(found)


def statuses_of(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in pod.status.container_statuses}


def is_terminated(status: ContainerStatus | None) -> bool:
    return status is not None and status.state.terminated is not None


def main_statuses(pod: Pod) -> list[ContainerStatus]:
    beside = {sidecar.name for sidecar in sidecars_of(pod)}
    return [status for status in pod.status.container_statuses if status.name not in beside]


def is_due(pod: Pod) -> bool:
    """Whether the main containers are done while a sidecar runs (JST-4)."""
    sidecars = sidecars_of(pod)
    if not sidecars or pod.metadata.deletion_timestamp is not None or pod.status.phase in ("", "Pending"):
        return False
    statuses = statuses_of(pod)
    if len(pod.status.container_statuses) != len(pod.spec.containers):
        return False
    if all(is_terminated(statuses.get(sidecar.name)) for sidecar in sidecars):
        return False
    needs_success = pod.spec.restart_policy == "OnFailure"
    return all(
        status.state.terminated is not None and not (needs_success and status.state.terminated.exit_code)
        for status in main_statuses(pod)
    )


def verdict(pod: Pod) -> str:
    """The phase that the main containers make (JST-21)."""
    ended = [status.state.terminated for status in main_statuses(pod)]
    return "Succeeded" if all(state is not None and state.exit_code == 0 for state in ended) else "Failed"


def request_name(pod: Pod) -> str:
    """Of the ContainerRecreateRequest that ends its sidecars."""
    return f"sidecar-termination-{pod.metadata.uid}"
