"""When a pod counts as ready and as available (IPU-110 to IPU-112).

The API server keeps whole seconds: a condition that changed at 10:00:00.9 says 10:00:00. A wait that is counted from
such a time would end up to a second early, so a time without a fraction counts as the end of its second. Nothing here
is ever early, and nothing is later than one second.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.machinery.remembered import once_per_object

_SECOND = timedelta(seconds=1)
_AVAILABLE_STATES = frozenset({"", "Normal"})


def latest_meaning(time: datetime) -> datetime:
    """The moment by which what a timestamp tells has happened for certain."""
    return time if time.microsecond else time + _SECOND


class Readiness(NamedTuple):
    """What the conditions of a pod tell; time is left out of it."""

    is_ready: bool
    """Running, Ready, and not in the middle of an in-place update."""
    since: datetime | None
    """When it became Ready."""
    is_marked: bool
    """The conditions of ours that the pod has gates for are written, and no update is under way."""


@once_per_object
def readiness_of(pod: Pod) -> Readiness:
    status = pod.status
    is_ready = is_updating = in_place = kruise = False
    since = None
    for condition in status.conditions:
        kind = condition.type
        if kind == "Ready":
            is_ready, since = condition.status == "True", condition.last_transition_time
        elif kind == keys.IN_PLACE_READY:
            in_place = condition.status == "True"
            is_updating = not in_place
        elif kind == keys.KRUISE_POD_READY:
            kruise = True
    is_marked = in_place and kruise
    if not is_marked and not is_updating:
        gates = {gate.condition_type for gate in pod.spec.readiness_gates}
        is_marked = (in_place or keys.IN_PLACE_READY not in gates) and (kruise or keys.KRUISE_POD_READY not in gates)
    return Readiness(is_ready and not is_updating and status.phase == "Running", since, is_marked)


def is_ready_for(readiness: Readiness, seconds: int, now: datetime) -> bool:
    """Whether a pod has been ready for so long."""
    if not readiness.is_ready or seconds <= 0:
        return readiness.is_ready
    since = readiness.since
    return since is not None and now >= latest_meaning(since) + timedelta(seconds=seconds)


def is_update_ready(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Running, Ready for long enough, and not in the middle of an in-place update (IPU-111)."""
    return is_ready_for(readiness_of(pod), min_ready_seconds, now)


def serves(state: str) -> bool:
    """Whether pods in this lifecycle state are there for others."""
    return state in _AVAILABLE_STATES


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Update-ready in a lifecycle state that serves (IPU-112)."""
    if not serves(pod.metadata.labels.get(keys.STATE_LABEL, "")):
        return False
    return is_update_ready(pod, min_ready_seconds, now)


def seconds_until_available(pod: Pod, min_ready_seconds: int, now: datetime) -> float | None:
    """How long until the pod is available, where only time is missing; None where it is available already, or waits
    for something else."""
    if min_ready_seconds <= 0 or not serves(pod.metadata.labels.get(keys.STATE_LABEL, "")):
        return None
    readiness = readiness_of(pod)
    if not readiness.is_ready or readiness.since is None:
        return None
    missing = (latest_meaning(readiness.since) + timedelta(seconds=min_ready_seconds) - now).total_seconds()
    return missing if missing > 0 else None
