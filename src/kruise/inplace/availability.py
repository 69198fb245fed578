"""When a pod counts as ready and as available (IPU-110 to IPU-112).

The API server keeps whole seconds: a condition that changed at 10:00:00.9 says 10:00:00. A wait that is counted from
such a time would end up to a second early, so a time without a fraction counts as the end of its second. Nothing here
is ever early, and nothing is later than one second.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kruise.api.native.pod import Pod
from kruise.inplace import keys

_SECOND = timedelta(seconds=1)
_AVAILABLE_STATES = frozenset({"", "Normal"})


def latest_meaning(time: datetime) -> datetime:
    """The moment by which what a timestamp tells has happened for certain."""
    return time if time.microsecond else time + _SECOND


def is_update_ready(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Running, Ready for long enough, and not in the middle of an in-place update (IPU-111)."""
    is_ready, since = _readiness(pod)
    if not is_ready:
        return False
    if min_ready_seconds <= 0:
        return True
    return since is not None and now >= latest_meaning(since) + timedelta(seconds=min_ready_seconds)


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
    is_ready, since = _readiness(pod)
    if not is_ready or since is None:
        return None
    missing = (latest_meaning(since) + timedelta(seconds=min_ready_seconds) - now).total_seconds()
    return missing if missing > 0 else None


def _readiness(pod: Pod) -> tuple[bool, datetime | None]:
    """Whether the pod is update-ready but for the time, and since when it is Ready."""
    if pod.status.phase != "Running":
        return False, None
    is_ready, since = False, None
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            is_ready, since = condition.status == "True", condition.last_transition_time
        elif condition.type == keys.IN_PLACE_READY and condition.status != "True":
            return False, None
    return is_ready, since
