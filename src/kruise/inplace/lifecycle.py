"""Lifecycle states of a pod and the hooks that hold it (IPU section 13).

A hook is made of labels and finalizers. Before an in-place update or a deletion the pod is held as long as any of them
is on it, so that somebody else can do their part first. After the update, and before a new pod counts as normal, it is
held until all of them are on it.

    PreparingNormal -> Normal -> PreparingUpdate -> Updating -> Updated -> Normal
                          any -> PreparingDelete -> (deleted, or back to PreparingNormal)
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from datetime import datetime

from kruise.api.apps.shared import Lifecycle, LifecycleHook
from kruise.api.native.pod import Pod
from kruise.inplace import keys, readiness
from kruise.inplace.edits import NO_EDIT, PodEdit
from kruise.machinery.causes import LABEL_CHANGES
from kruise.machinery.times import format_time


class State(enum.StrEnum):
    PREPARING_NORMAL = "PreparingNormal"
    NORMAL = "Normal"
    PREPARING_UPDATE = "PreparingUpdate"
    UPDATING = "Updating"
    UPDATED = "Updated"
    PREPARING_DELETE = "PreparingDelete"


class Turn(enum.Enum):
    """What becomes of a pod that was picked for an in-place update."""

    UPDATE = "update"
    """Nothing holds it: go on now."""
    HOLD = "hold"
    """Still hooked: nothing is sent."""
    PREPARE = "prepare"
    """Hooked: it enters PreparingUpdate."""
    REHOOK = "rehook"
    """Updated before and not yet back to normal: the hook is put on again, and it enters PreparingUpdate."""
    REFUSE = "refuse"
    """It is on its way out, or in a state that nobody knows."""


def lifecycle_state_of(pod: Pod) -> str:
    """The state as the label says it; empty where the pod has none."""
    return pod.metadata.labels.get(keys.STATE_LABEL, "")


def is_hooked(pod: Pod, hook: LifecycleHook | None) -> bool:
    """Any part of the hook is on the pod (IPU-2)."""
    return hook is not None and any(is_on for _, is_on in _parts(pod, hook))


def is_fully_hooked(pod: Pod, hook: LifecycleHook | None) -> bool:
    """Every part of the hook is on the pod (IPU-2). A hook without parts holds nobody, no hook is never complete."""
    return hook is not None and all(is_on for _, is_on in _parts(pod, hook))


def waiting_for(pod: Pod, hook: LifecycleHook | None) -> str:
    """What must happen to a pod that is held before an update or a deletion, in words; empty where nothing must."""
    return _in_words(pod, hook, on=True, verb="removed")


def lacking(pod: Pod, hook: LifecycleHook | None) -> str:
    """What must happen to a pod that waits to become normal, in words; empty where nothing must."""
    return _in_words(pod, hook, on=False, verb="added")


def label_changes(pod: Pod, hook: LifecycleHook | None, *, on: bool) -> dict[str, list[str]]:
    """How the labels that hold a pod (`on`), or those that it lacks, are changed: details of a cause, empty where more
    than labels has to change."""
    if hook is None or any((name in pod.metadata.finalizers) is on for name in hook.finalizers_handler):
        return {}
    labels = pod.metadata.labels
    concerned = {name: text for name, text in hook.labels_handler.items() if (labels.get(name) == text) is on}
    changes = [f"{name}-" if on else f"{name}={text}" for name, text in concerned.items()]
    if not on and any(name in labels for name in concerned):
        changes.append("--overwrite")
    return {LABEL_CHANGES: changes} if changes else {}


def _in_words(pod: Pod, hook: LifecycleHook | None, *, on: bool, verb: str) -> str:
    parts = [words for words, is_on in _parts(pod, hook) if is_on is on] if hook is not None else []
    return f"{' and '.join(parts)} must be {verb}" if parts else ""


def _parts(pod: Pod, hook: LifecycleHook) -> Iterator[tuple[str, bool]]:
    for name, value in hook.labels_handler.items():
        yield f"label {name}={value}", pod.metadata.labels.get(name) == value
    for finalizer in hook.finalizers_handler:
        yield f"finalizer {finalizer}", finalizer in pod.metadata.finalizers


def in_place_hook(lifecycle: Lifecycle | None) -> LifecycleHook | None:
    return lifecycle.in_place_update if lifecycle is not None else None


def marked(pod: Pod, state: str, *, now: datetime) -> PodEdit | None:
    """The state label and the time of its writing (IPU-100); None where the label says so already."""
    if lifecycle_state_of(pod) == state:
        return None
    return PodEdit(labels={keys.STATE_LABEL: str(state)}, annotations={keys.STATE_TIME_ANNOTATION: format_time(now)})


def enter(pod: Pod, state: str, lifecycle: Lifecycle | None, *, now: datetime) -> PodEdit | None:
    """Enter a state: its label, and what it means for readiness (IPU-100); None where there is nothing to write.

    Reasons against the pod are taken away wherever the state that gave them is left (IPU-101), whatever the hook says
    by now: nobody else would ever do it.
    """
    label, mark = marked(pod, state, now=now), _readiness(pod, state, lifecycle, now)
    if label is None or mark is None:
        return label or mark
    return mark.merged(label)


def _readiness(pod: Pod, state: str, lifecycle: Lifecycle | None, now: datetime) -> PodEdit | None:
    match state:
        case State.PREPARING_DELETE:
            hook = lifecycle.pre_delete if lifecycle is not None else None
            return readiness.add_writer(pod, readiness.PRE_DELETE, now=now) if _marks_not_ready(hook) else None
        case State.PREPARING_UPDATE:
            hook = in_place_hook(lifecycle)
            return readiness.add_writer(pod, readiness.PRE_UPDATE, now=now) if _marks_not_ready(hook) else None
        case State.UPDATED:
            return readiness.remove_writer(pod, readiness.PRE_UPDATE, now=now)
        case State.NORMAL | State.PREPARING_NORMAL:
            return readiness.remove_writers(pod, (readiness.PRE_UPDATE, readiness.PRE_DELETE), now=now)
    return None


def _marks_not_ready(hook: LifecycleHook | None) -> bool:
    return hook is not None and hook.mark_pod_not_ready


def refreshed(
    pod: Pod, lifecycle: Lifecycle | None, *, complete: Callable[[], bool], at_update_revision: bool
) -> State | None:
    """The state that a pod goes to by itself; None: it stays.

    `complete` says whether its in-place update is over (IPU-60), and is asked only where that matters.
    """
    match lifecycle_state_of(pod):
        case State.PREPARING_NORMAL:
            # Some schedulers are confused by labels that change before the pod has a node (IPU-104).
            is_normal = pod.spec.node_name != "" and not awaits_pre_normal(pod, lifecycle) and complete()
            return State.NORMAL if is_normal else None
        case State.PREPARING_UPDATE if at_update_revision:
            return _after_update(pod, lifecycle)
        case State.UPDATING if complete():
            return _after_update(pod, lifecycle)
        case State.UPDATED if _after_update(pod, lifecycle) is State.NORMAL:
            return State.NORMAL
    return None


def _after_update(pod: Pod, lifecycle: Lifecycle | None) -> State:
    """Updated, unless nothing is left to wait for.

    Without an in-place hook the original passes through Updated for a moment (IPU-102); here that write is saved.
    """
    hook = in_place_hook(lifecycle)
    return State.NORMAL if hook is None or is_fully_hooked(pod, hook) else State.UPDATED


def called_off(pod: Pod, lifecycle: Lifecycle | None) -> State:
    """Where a pod goes whose update is prepared and not wanted any more: the hook is gone through as after an update,
    so that what its owner undid for the update is done again."""
    return _after_update(pod, lifecycle)


def awaits_pre_normal(pod: Pod, lifecycle: Lifecycle | None) -> bool:
    """Whether the preNormal hook holds a pod back that has not been normal yet."""
    hook = lifecycle.pre_normal if lifecycle is not None else None
    return hook is not None and lifecycle_state_of(pod) == State.PREPARING_NORMAL and not is_fully_hooked(pod, hook)


def before_update(pod: Pod, lifecycle: Lifecycle | None) -> Turn:
    """What to do with a pod that was picked for an in-place update."""
    hook = in_place_hook(lifecycle)
    match lifecycle_state_of(pod):
        case State.UPDATING:
            return Turn.UPDATE
        case State.PREPARING_UPDATE:
            return Turn.HOLD if is_hooked(pod, hook) else Turn.UPDATE
        case State.UPDATED:
            has_parts = hook is not None and (hook.labels_handler or hook.finalizers_handler)
            return Turn.REHOOK if has_parts else Turn.UPDATE
        case "" | State.NORMAL | State.PREPARING_NORMAL:
            # A pod that still waits for preNormal serves nobody: there is nothing to prepare.
            return Turn.PREPARE if is_hooked(pod, hook) and not awaits_pre_normal(pod, lifecycle) else Turn.UPDATE
    return Turn.REFUSE


def state_during_update(pod: Pod, lifecycle: Lifecycle | None) -> State | None:
    """The state to write along with an in-place update; None: it keeps the one it has.

    A pod that waits for preNormal, or for a node, goes on waiting: the update must not carry it past that.
    """
    is_unplaced = lifecycle_state_of(pod) == State.PREPARING_NORMAL and not pod.spec.node_name
    return None if is_unplaced or awaits_pre_normal(pod, lifecycle) else State.UPDATING


def rehook(pod: Pod, lifecycle: Lifecycle | None, *, now: datetime) -> PodEdit:
    """Back to PreparingUpdate with the hook put on again, so that its owner goes through it anew."""
    hook = in_place_hook(lifecycle)
    parts = NO_EDIT
    if hook is not None:
        parts = PodEdit(labels=dict(hook.labels_handler), add_finalizers=hook.finalizers_handler)
    entered = enter(pod, State.PREPARING_UPDATE, lifecycle, now=now)
    return parts if entered is None else parts.merged(entered)
