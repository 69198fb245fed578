"""Which subsets cannot place their pods (UD sections 6.6 and 6.7).

The times on objects are whole seconds, cut off: what is waited for never comes too early, so a second is added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from kruise.api.apps.uniteddeployment import (
    DEFAULT_CRITICAL_SECONDS,
    DEFAULT_UNSCHEDULABLE_SECONDS,
    SubsetStatus,
    UnitedDeploymentSpec,
)
from kruise.api.meta import Condition
from kruise.api.native.pod import Pod, condition, finds_no_node, ready_since
from kruise.machinery.codec import evolve
from kruise.machinery.plan import Wake
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.children import Child, is_new

SCHEDULABLE = "Schedulable"
RESCHEDULE, RECOVER, CREATED = "reschedule", "recover", "created"
_SECOND = timedelta(seconds=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """How long is waited for what (UD-6)."""

    critical: timedelta
    unschedulable: timedelta


def times_of(spec: UnitedDeploymentSpec) -> Times:
    adaptive = spec.topology.schedule_strategy.adaptive
    critical = adaptive.reschedule_critical_seconds if adaptive is not None else None
    unschedulable = adaptive.unschedulable_duration if adaptive is not None else None
    return Times(
        timedelta(seconds=DEFAULT_CRITICAL_SECONDS if critical is None else critical),
        timedelta(seconds=DEFAULT_UNSCHEDULABLE_SECONDS if unschedulable is None else unschedulable),
    )


@dataclasses.dataclass(slots=True)
class Verdict:
    """What came out about one subset."""

    status: SubsetStatus
    """With its condition."""
    is_unschedulable: bool = False
    was_marked: bool = False
    stuck: tuple[Pod, ...] = ()
    """Pods that have waited too long for a node."""
    reserved: tuple[Pod, ...] = ()
    to_come: int = 0
    """Pods that are missing, of a subset whose pods were stuck."""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Pods whose label has to be written, with its value."""
    hopeless: int = 0
    """Reserved pods that do not serve and will not by themselves: they have an old template, or have waited too long
    for a node. One that was just made is given its time, so that an update takes no more healthy ones meanwhile."""
    wakes: list[Wake] = dataclasses.field(default_factory=list)


def schedulable(status: SubsetStatus) -> Condition | None:
    return next((item for item in status.conditions if item.type == SCHEDULABLE), None)


def is_marked(status: SubsetStatus) -> bool:
    found = schedulable(status)
    return found is not None and found.status == "False"


def marked(status: SubsetStatus, value: bool, reason: str, message: str, now: datetime) -> SubsetStatus:
    """With the condition; the same status and reason leave it as it is (UD-12)."""
    before, text = schedulable(status), str(value)
    if before is not None and (before.status, before.reason) == (text, reason):
        return status
    new = Condition(
        type=SCHEDULABLE,
        status=text,
        reason=reason,
        message=message,
        last_transition_time=now.replace(microsecond=0),
    )
    known = status.conditions
    if before is None:
        return evolve(status, conditions=(*known, new))
    return evolve(status, conditions=tuple(new if item is before else item for item in known))


def waits_for_node(pod: Pod) -> bool:
    """Whether the scheduler has said that it finds no node for the pod (UD-62)."""
    return (
        pod.metadata.deletion_timestamp is None
        and pod.status.phase in ("", "Pending")
        and not pod.spec.node_name
        and finds_no_node(pod)
    )


def _deadline(pod: Pod, times: Times, now: datetime) -> datetime:
    return (pod.metadata.creation_timestamp or now) + times.critical + _SECOND


def _wake(at: datetime, now: datetime, reason: str) -> Wake:
    return Wake(after=max((at - now).total_seconds(), 0.001), reason=reason)


# Stuck pods move on


def judged(child: Child, status: SubsetStatus, times: Times, now: datetime) -> Verdict:
    """UD-61."""
    name = status.name
    verdict = Verdict(status, was_marked=is_marked(status))
    if verdict.was_marked:
        found = schedulable(status)
        since = found.last_transition_time if found is not None else None
        until = (since or now) + times.unschedulable + _SECOND
        if now < until:
            verdict.is_unschedulable = True
            verdict.wakes.append(_wake(until, now, f"subset {name} may get pods again"))
        else:
            seconds = times.unschedulable.total_seconds()
            message = f"unschedulable subset recovered after {seconds:.6f} seconds"
            verdict.status = marked(status, True, RECOVER, message, now)
    if child.ready >= child.replicas:
        return verdict
    waiting = [pod for pod in child.pods if waits_for_node(pod)]
    verdict.stuck = tuple(pod for pod in waiting if _deadline(pod, times, now) <= now)
    later = [_deadline(pod, times, now) for pod in waiting if pod not in verdict.stuck]
    if later:
        verdict.wakes.append(_wake(min(later), now, f"a pod of subset {name} has waited too long for a node"))
    if verdict.stuck:
        verdict.is_unschedulable = True
        verdict.status = marked(verdict.status, False, RESCHEDULE, "timeout pending pods found", now)
        until = now + times.unschedulable + _SECOND
        verdict.wakes.append(_wake(until, now, f"subset {name} may get pods again"))
    return verdict


# Stuck pods stay


def reserving(
    child: Child, status: SubsetStatus, times: Times, update_began: datetime | None, now: datetime
) -> Verdict:
    """UD-68, UD-69. `update_began` is when the present template came; None: all pods have it."""
    verdict = Verdict(status, was_marked=is_marked(status))
    labels: dict[str, str] = {}
    reserved: list[Pod] = []
    for pod in child.pods:
        known = pod.metadata.labels.get(keys.RESERVED)
        if verdict.was_marked and known is None:
            is_reserved, at = True, None
        else:
            is_reserved, at = _state(pod, child.revision, times, update_began, now)
        if at is None and is_reserved and waits_for_node(pod) and _deadline(pod, times, now) > now:
            at = _deadline(pod, times, now)
        if at is not None:
            verdict.wakes.append(_wake(at, now, f"whether pods of subset {status.name} are stuck"))
        if is_reserved:
            reserved.append(pod)
            verdict.hopeless += _is_hopeless(pod, child.revision, times, now)
        if known != str(is_reserved).lower():
            labels[pod.metadata.name] = str(is_reserved).lower()
    verdict.reserved = tuple(reserved)
    verdict.stuck = tuple(pod for pod in reserved if waits_for_node(pod))
    verdict.labels = labels
    # While pods are made anew, nobody can say that those to come will find a node: they count as stuck until they do.
    verdict.to_come = max(child.size - len(child.pods), 0) if verdict.was_marked else 0
    verdict.is_unschedulable = bool(reserved or verdict.to_come)
    text = "reserved pods found" if verdict.is_unschedulable else "no reserved pods"
    verdict.status = marked(status, not verdict.is_unschedulable, RESCHEDULE, text, now)
    return verdict


def _state(
    pod: Pod, revision: str, times: Times, update_began: datetime | None, now: datetime
) -> tuple[bool, datetime | None]:
    """Whether a pod is reserved, and when to look again."""
    if pod.metadata.labels.get(keys.RESERVED) == "true":
        is_ready, since = ready_since(pod)
        if pod.status.phase != "Running" or not is_new(pod, revision) or not is_ready:
            return True, None  # a change of the pod brings us back
        until = (since or now) + times.unschedulable + _SECOND
        return now < until, until if now < until else None
    if is_new(pod, revision):
        if not waits_for_node(pod):
            return False, None
        until = _deadline(pod, times, now)
    elif update_began is None or ready_since(pod)[0]:
        return False, None  # one that serves is not stuck, however long the update takes
    else:
        until = update_began + times.critical + _SECOND
    return now >= until, until if now < until else None


def _is_hopeless(pod: Pod, revision: str, times: Times, now: datetime) -> bool:
    if ready_since(pod)[0]:
        return False
    return not is_new(pod, revision) or (waits_for_node(pod) and _deadline(pod, times, now) <= now)


def scheduler_words(pods: Iterable[Pod]) -> str:
    """What the scheduler says about the first of these pods."""
    for pod in pods:
        scheduled = condition(pod, "PodScheduled")
        if scheduled is not None and scheduled.message:
            return scheduled.message
    return ""
