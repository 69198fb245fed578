"""The way of a pod out: through its preDelete hook, whatever the workload deletes it for."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from kruise.api.apps.shared import Lifecycle
from kruise.api.native.pod import PODS, Pod
from kruise.inplace import edits, lifecycle
from kruise.inplace.lifecycle import State
from kruise.machinery.plan import Chain, Held, Target
from kruise.workloads.shared import causes


@dataclasses.dataclass(frozen=True, slots=True)
class Stay:
    """A pod that must not be deleted yet."""

    chain: Chain
    """The write that makes it prepare for its deletion; empty where it does already."""
    held: Held


def held_by_hook(pod: Pod, hooks: Lifecycle | None, *, now: datetime) -> Stay | None:
    """None: no hook holds the pod, it may be deleted (CS-86, ST-105)."""
    hook = hooks.pre_delete if hooks is not None else None
    if hook is None or not lifecycle.is_hooked(pod, hook):
        return None
    edit = lifecycle.enter(pod, State.PREPARING_DELETE, hooks, now=now)
    reason = "it is to be deleted when the preDelete hook lets it go"
    cause = causes.HOOK.cause(
        lifecycle.waiting_for(pod, hook),
        details=lifecycle.label_changes(pod, hook, on=True),
        remedy="it is deleted when the preDelete hook lets it go",
    )
    return Stay(
        chain=edits.writes(pod, edit, reason=reason) if edit is not None else (),
        held=Held(target=Target.of(PODS, pod), causes=(cause,)),
    )
