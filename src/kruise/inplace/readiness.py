"""The two readiness conditions of a pod: `InPlaceUpdateReady` and `KruisePodReady`, and what they mean for `Ready`.

`InPlaceUpdateReady` is False while a pod is updated in place. `KruisePodReady` is False as long as somebody has a
reason against the pod; its message lists these writers and their reasons (IPU-82).

The engine moves `Ready` to False at once, together with the condition that causes it, so that no request is sent to a
pod that is about to restart. Only the kubelet moves it to True (IPU-74).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kruise.api.meta import Condition
from kruise.api.native.pod import Container, Pod, condition
from kruise.inplace import keys
from kruise.inplace.edits import PodEdit
from kruise.machinery import codec
from kruise.machinery.codec import Struct

if TYPE_CHECKING:
    from kruise.inplace.state import UpdateSpec

TRUE, FALSE = "True", "False"
STARTED = "StartInPlaceUpdate"
GATES_NOT_READY = "ReadinessGatesNotReady"


def has_gate(pod: Pod, kind: str) -> bool:
    return any(gate.condition_type == kind for gate in pod.spec.readiness_gates)


def not_ready(pod: Pod, *, now: datetime) -> PodEdit:
    """`InPlaceUpdateReady` False, and `Ready` with it (IPU-40).

    It is written even where the condition looks False already: what we see may be old, and an update must not begin on
    a pod that counts as ready.
    """
    return PodEdit(conditions=_with_ready(pod, _set(pod, keys.IN_PLACE_READY, FALSE, now=now, reason=STARTED)))


def ready(pod: Pod, *, now: datetime) -> PodEdit | None:
    """`InPlaceUpdateReady` True (IPU-72); None where the pod has no such gate, or it is so already (IPU-73).

    The end of an update is exact: it must not make a pod ready that has begun another one meanwhile. A pod that never
    had the condition is in no update.
    """
    if not has_gate(pod, keys.IN_PLACE_READY):
        return None
    seen = condition(pod, keys.IN_PLACE_READY)
    if seen is not None and seen.status == TRUE:
        return None
    return PodEdit(conditions=(_set(pod, keys.IN_PLACE_READY, TRUE, now=now),), exact=seen is not None)


def kruise_ready(pod: Pod, *, now: datetime) -> PodEdit | None:
    """`KruisePodReady` True for a pod that has the gate but no condition yet (IPU-81)."""
    if not has_gate(pod, keys.KRUISE_POD_READY) or condition(pod, keys.KRUISE_POD_READY) is not None:
        return None
    return PodEdit(conditions=(_set(pod, keys.KRUISE_POD_READY, TRUE, now=now),))


def needs_unready(pod: Pod, spec: UpdateSpec, *, vertical_scaling: bool) -> bool:
    """Whether an update takes the pod out of service while it runs (IPU-41)."""
    if not has_gate(pod, keys.IN_PLACE_READY):
        return False
    only_resources = bool(spec.container_resources) and not spec.container_images and not spec.container_ref_metadata
    if not (vertical_scaling and only_resources):
        return True
    for container in pod.spec.containers:
        changed = spec.container_resources.get(container.name)
        if changed is not None and _restarts(container, {*changed.limits, *changed.requests}):
            return True
    return False


def _restarts(container: Container, changed: Collection[str]) -> bool:
    return any(
        policy.restart_policy == "RestartContainer" and policy.resource_name in changed
        for policy in container.resize_policy
    )


class Writer(NamedTuple):
    """Somebody who has a reason against a pod's readiness (IPU-82)."""

    user_agent: str
    key: str


PRE_DELETE = Writer("Lifecycle", "preDeleteHook")
PRE_UPDATE = Writer("Lifecycle", "preUpdateHook")


class _Entry(Struct):
    user_agent: str = ""
    key: str = ""


def writers_of(pod: Pod) -> tuple[Writer, ...]:
    """The writers that keep `KruisePodReady` False. A message that is no such list names nobody."""
    seen = condition(pod, keys.KRUISE_POD_READY)
    if seen is None or not seen.message:
        return ()
    try:
        entries = codec.decode(seen.message, tuple[_Entry, ...])
    except codec.DecodeError:
        return ()
    return tuple(Writer(entry.user_agent, entry.key) for entry in entries)


def add_writer(pod: Pod, writer: Writer, *, now: datetime) -> PodEdit | None:
    """Put a reason against the pod; None where it is there already, or the pod does not have the gate."""
    if not has_gate(pod, keys.KRUISE_POD_READY):
        return None
    seen = condition(pod, keys.KRUISE_POD_READY)
    writers = writers_of(pod)
    if seen is not None and writer in writers and seen.status != TRUE:
        return None
    wanted = _set(pod, keys.KRUISE_POD_READY, FALSE, now=now, message=_message((*writers, writer)))
    # Every reason restarts the clock, also where the pod was not ready before (IPU-82).
    return PodEdit(conditions=_with_ready(pod, codec.evolve(wanted, last_transition_time=now)))


def remove_writer(pod: Pod, writer: Writer, *, now: datetime) -> PodEdit | None:
    """Take a reason away; the pod is ready again only when none is left. None where there is nothing to write."""
    return remove_writers(pod, (writer,), now=now)


def remove_writers(pod: Pod, writers: Collection[Writer], *, now: datetime) -> PodEdit | None:
    if not has_gate(pod, keys.KRUISE_POD_READY):
        return None
    there = writers_of(pod)
    left = tuple(writer for writer in there if writer not in writers)
    if len(left) == len(there):
        return None
    status = FALSE if left else TRUE
    return PodEdit(conditions=(_set(pod, keys.KRUISE_POD_READY, status, now=now, message=_message(left)),))


def _message(writers: Iterable[Writer]) -> str:
    entries = [{"userAgent": writer.user_agent, "key": writer.key} for writer in sorted(set(writers))]
    return codec.encode(entries).decode()


def _set(pod: Pod, kind: str, status: str, *, now: datetime, reason: str = "", message: str = "") -> Condition:
    """The condition with a new status. Its time tells when the status changed, so it stays where that does not."""
    seen = condition(pod, kind)
    if seen is None:
        return Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=now)
    time = seen.last_transition_time if seen.status == status else now
    return codec.evolve(seen, status=status, reason=reason, message=message, last_transition_time=time)


def _with_ready(pod: Pod, changed: Condition) -> tuple[Condition, ...]:
    """The changed condition, and `Ready` as it follows from it (IPU-93).

    Where containers are not ready, or `Ready` is False already, the kubelet has said all there is to say. The time is
    left empty: the kubelet sets it when it comes to the same result.
    """
    seen, containers = condition(pod, "Ready"), condition(pod, "ContainersReady")
    if seen is None or seen.status == FALSE or containers is None or containers.status != TRUE:
        return (changed,)
    statuses = {item.type: item.status for item in pod.status.conditions}
    statuses[changed.type] = changed.status
    failing = [
        words for gate in pod.spec.readiness_gates if (words := _failing(gate.condition_type, statuses)) is not None
    ]
    if not failing:
        return (changed,)
    wanted = codec.evolve(
        seen, status=FALSE, reason=GATES_NOT_READY, message=", ".join(failing), last_transition_time=None
    )
    return (changed, wanted)


def _failing(gate: str, statuses: dict[str, str]) -> str | None:
    status = statuses.get(gate)
    if status is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    if status != TRUE:
        return f'the status of pod readiness gate "{gate}" is not "True", but {status}'
    return None
