"""Answering lifecycle hooks in the place of whoever does it in the cluster."""

from __future__ import annotations

from kruise.api.apps.shared import Lifecycle, LifecycleHook
from kruise.api.native.pod import Pod
from kruise.inplace.edits import PodEdit
from kruise.inplace.lifecycle import State, lifecycle_state_of


def answer(pod: Pod, lifecycle: Lifecycle | None) -> PodEdit:
    """What takes a pod past the hook that holds it in its present state."""
    if lifecycle is None:
        return PodEdit()
    match lifecycle_state_of(pod):
        case State.PREPARING_UPDATE:
            return _without(pod, lifecycle.in_place_update)
        case State.PREPARING_DELETE:
            return _without(pod, lifecycle.pre_delete)
        case State.UPDATED:
            return _with(lifecycle.in_place_update)
        case State.PREPARING_NORMAL:
            return _with(lifecycle.pre_normal)
    return PodEdit()


def let_go(pod: Pod, lifecycle: Lifecycle | None) -> PodEdit:
    """What lets a pod go whose deletion has begun: whoever puts finalizers on pods takes them off such ones."""
    if lifecycle is None or pod.metadata.deletion_timestamp is None:
        return PodEdit()
    own = [
        name
        for hook in (lifecycle.in_place_update, lifecycle.pre_delete, lifecycle.pre_normal)
        if hook is not None
        for name in hook.finalizers_handler
    ]
    return PodEdit(remove_finalizers=tuple(name for name in dict.fromkeys(own) if name in pod.metadata.finalizers))


def _without(pod: Pod, hook: LifecycleHook | None) -> PodEdit:
    if hook is None:
        return PodEdit()
    labels = {name: None for name, value in hook.labels_handler.items() if pod.metadata.labels.get(name) == value}
    return PodEdit(labels=labels, remove_finalizers=hook.finalizers_handler)


def _with(hook: LifecycleHook | None) -> PodEdit:
    if hook is None:
        return PodEdit()
    return PodEdit(labels=dict(hook.labels_handler), add_finalizers=hook.finalizers_handler)
