"""One pod's way through an in-place update: how it begins, and what it needs at each later look.

Three writes and no more for an ordinary update: not ready, then the spec together with the revision label, the state
annotation and the lifecycle label, and at the end ready again. Resources go through a door of their own. Later batches
and the end of a grace period are further spec writes, decided at the next looks.

A write that fails leaves the pod not ready but otherwise as it was, and the same decision is made again (IPU-44).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod
from kruise.inplace import batches, completion, keys, lifecycle, readiness
from kruise.inplace import state as states
from kruise.inplace.availability import readiness_of
from kruise.inplace.difference import InPlaceOptions
from kruise.inplace.edits import NO_EDIT, PodEdit, writes
from kruise.inplace.lifecycle import State
from kruise.inplace.resizing import RefusedResize, refused_resize
from kruise.inplace.state import BrokenAnnotation, UpdateSpec, UpdateState
from kruise.machinery.plan import Chain
from kruise.machinery.remembered import once_per_object
from kruise.machinery.revision_names import is_revision
from kruise.machinery.times import next_second


def begin(
    pod: Pod,
    spec: UpdateSpec,
    *,
    labels: Mapping[str, str],
    state: str | None,
    options: InPlaceOptions,
    now: datetime,
    new: ControllerRevision,
    resize_subresource: bool = True,
) -> Chain:
    """The writes that begin an update (IPU-40 to IPU-43), in order.

    `labels` are the revision labels to write, `state` the lifecycle state to write along (None: leave it), `new` the
    revision that the pod goes to.
    """
    previous = _overtaken(pod)
    overtaken = batches.NOTHING_OPEN
    if previous is not None:
        # Whatever it has left undone belongs to the new update (IPU-38), and whatever it still waits for does, too.
        spec = batches.carried_over(spec, previous, new)
        overtaken = completion.still_open(pod, previous, vertical_scaling=options.vertical_scaling)
    chain: Chain = ()
    if readiness.needs_unready(pod, spec, vertical_scaling=options.vertical_scaling):
        chain = writes(pod, readiness.not_ready(pod, now=now), reason=f"out of service for {spec.revision}")
    if spec.grace_seconds > 0:
        edit = batches.grace_start(pod, spec, now=next_second(now), overtaken=overtaken)
        reason = f"update to {spec.revision} in place after {spec.grace_seconds} s of grace"
    else:
        edit = batches.first_batch(pod, spec, now=now, previous=None, overtaken=overtaken)
        reason = f"update to {spec.revision} in place"
    edit = edit.merged(PodEdit(labels=dict(labels), exact=True))
    if state is not None:
        edit = edit.merged(lifecycle.marked(pod, state, now=now) or NO_EDIT)
    return (*chain, *writes(pod, edit, reason=reason, resize_subresource=resize_subresource))


def _overtaken(pod: Pod) -> UpdateState | None:
    """The last update of the pod, which may not be over."""
    try:
        return states.update_state_of(pod)
    except BrokenAnnotation:
        return None  # it says nothing, and is about to be replaced


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What one look at a pod found."""

    edit: PodEdit = NO_EDIT
    wake_after: float | None = None
    """Seconds until the grace period is over."""
    awaiting: str = ""
    """What the update still waits for, in words; empty: nothing."""
    refused: RefusedResize | None = None
    """The node has not granted the resources that the update waits for."""
    stepped: bool = False
    """The edit carries the update itself on (end of the grace period, next batch): look at its state afterwards."""
    error: str = ""
    """Why nothing can be said about the pod; the text names the remedy."""


def refresh(pod: Pod, *, options: InPlaceOptions, now: datetime) -> Refreshed:
    """Carry an update on, or end it: one look at an active pod (IPU-70 to IPU-73)."""
    try:
        state = states.update_state_of(pod)
        if states.in_grace(pod):
            return _in_grace(pod, state, now)
    except BrokenAnnotation as error:
        return Refreshed(error=str(error))
    if state is not None:
        awaiting = completion.unfinished(pod, state, vertical_scaling=options.vertical_scaling)
        if awaiting:
            refused = refused_resize(pod) if options.vertical_scaling and state.update_resources else None
            return Refreshed(awaiting=awaiting if refused is None else str(refused), refused=refused)
        if state.has_next:
            return _next_batch(pod, state, now)
    return Refreshed(edit=_ready(pod, now))


_WHENEVER = datetime.min.replace(tzinfo=UTC)
"""Where only it matters whether something would be written, not when."""


@once_per_object
def is_settled(pod: Pod) -> bool:
    """Whether a look would find nothing to do: the pod is Normal or has no state, has its conditions, and no update is
    under way. A quick answer for the many pods of a workload that rest; False says nothing."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if states.in_grace(pod):
        return False
    if keys.STATE_LABEL in labels:
        return readiness_of(pod).is_marked and labels[keys.STATE_LABEL] == State.NORMAL
    # Of a kind whose pods have no states: no state tells that an update is under way.
    return keys.UPDATE_STATE_ANNOTATION not in annotations and _ready(pod, _WHENEVER).is_empty


def _in_grace(pod: Pod, state: UpdateState | None, now: datetime) -> Refreshed:
    spec = states.grace_of(pod)
    if spec is None or state is None:
        name = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
        return Refreshed(
            error=f"{name} has the annotation {keys.UPDATE_GRACE_ANNOTATION} but not {keys.UPDATE_STATE_ANNOTATION}, "
            "so nobody knows when its grace period began: remove the annotation"
        )
    if not is_revision(pod.metadata.labels.get(keys.REVISION_LABEL, ""), spec.revision):
        # Somebody gave the pod another revision: what was prepared for this one must not be applied.
        return Refreshed(edit=PodEdit(annotations=batches.without_grace(pod), exact=True), stepped=True)
    remaining = (state.update_timestamp + timedelta(seconds=spec.grace_seconds) - now).total_seconds()
    if remaining > 0:
        # Rounded up to milliseconds, so that a wake-up never comes just before its time.
        after = math.ceil(remaining * 1000) / 1000
        return Refreshed(wake_after=after, awaiting=f"the end of its grace period of {spec.grace_seconds} s")
    return Refreshed(edit=batches.first_batch(pod, spec, now=now, previous=state), stepped=True)


def _next_batch(pod: Pod, state: UpdateState, now: datetime) -> Refreshed:
    required = state.pre_check_before_next
    ready = {status.name for status in pod.status.container_statuses if status.ready}
    unready = [name for name in (required.containers_required_ready if required else ()) if name not in ready]
    if unready:
        return Refreshed(awaiting=f"container {', '.join(unready)} to be ready before the next batch")
    return Refreshed(edit=batches.next_batch(pod, state, now=now), stepped=True)


def _ready(pod: Pod, now: datetime) -> PodEdit:
    """Both conditions in one write. They come with the binding: until then the pod serves nobody, and it has not been
    told to anyone who could mind."""
    if not pod.spec.node_name:
        return NO_EDIT
    edit = readiness.ready(pod, now=now) or NO_EDIT
    return edit.merged(readiness.kruise_ready(pod, now=now) or NO_EDIT)
