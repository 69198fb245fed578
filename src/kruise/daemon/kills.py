"""Which container to stop, and how it is told: the values of `kruise.daemon.killing`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from kruise.api.apps.containerrecreaterequest import Hook, Port
from kruise.daemon.runtime import CONTAINER_PORTS, DELETION_GRACE, PRE_STOP_HANDLER, TERMINATION_GRACE
from kruise.machinery.codec import DecodeError, Struct, decode
from kruise.machinery.plan import EventNote, EventType, Target

T = TypeVar("T")

USUAL_GRACE = 30
FAILED_HOOK = "FailedPreStopHook"


class Kill(Struct):
    """What to stop."""

    node: str
    runtime: str
    container_id: str
    """The runtime's own."""
    container: str
    grace: int
    hook: Hook | None = None
    ports: tuple[Port, ...] = ()
    pod_ip: str = ""


class Ending(Struct):
    """How a container is to be stopped, as the kubelet wrote it down."""

    hook: Hook | None = None
    ports: tuple[Port, ...] = ()
    grace: int | None = None


def ending_of(notes: Mapping[str, str]) -> Ending:
    """From the annotations of a container: who stops it knows nothing of the pod (DMN-55, DMN-57)."""
    return Ending(
        hook=_decoded(notes.get(PRE_STOP_HANDLER, ""), Hook),
        ports=_decoded(notes.get(CONTAINER_PORTS, ""), tuple[Port, ...]) or (),
        grace=_grace(notes),
    )


def _grace(notes: Mapping[str, str]) -> int | None:
    for key in (DELETION_GRACE, TERMINATION_GRACE):
        text = notes.get(key, "")
        if text.isascii() and text.isdecimal():
            return int(text)
    return None


def _decoded(text: str, kind: type[T]) -> T | None:
    try:
        return decode(text, kind) if text else None
    except DecodeError:
        return None


class Killed(Struct):
    """It has stopped."""

    hook_error: str = ""


def killing_note(pods: Any, namespace: str, name: str, uid: str, container: str, text: str) -> EventNote:
    """DMN-56."""
    return EventNote(
        reason="Killing",
        message=text,
        target=Target(pods, namespace, name),
        uid=uid,
        field_path=f"spec.containers{{{container}}}",
    )


def failed_hook_note(pods: Any, namespace: str, name: str, uid: str, container: str, error: str) -> EventNote:
    return EventNote(
        reason=FAILED_HOOK,
        message=f"preStop hook of container {container} failed: {error}",
        type=EventType.WARNING,
        target=Target(pods, namespace, name),
        uid=uid,
        field_path=f"spec.containers{{{container}}}",
    )
