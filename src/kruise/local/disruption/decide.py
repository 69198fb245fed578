"""What a PodDisruptionBudget allows, as the disruption controller of Kubernetes works it out (decisions)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kruise.api.meta import Condition
from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS, PodDisruptionBudget, PodDisruptionBudgetStatus
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct, evolve, field
from kruise.machinery.intorpercent import IntOrPercentError, is_percent, scaled
from kruise.machinery.plan import Conclusion, EventNote, EventType, Outcomes, Plan, Target, Wake
from kruise.machinery.times import format_time

DELETION_TIMEOUT = timedelta(minutes=2)
_ALLOWED = "DisruptionAllowed"


class Snapshot(Struct, kw_only=True):
    budget: PodDisruptionBudget
    pods: tuple[Pod, ...]
    """That its selector matches, whatever they do."""
    scales: dict[str, int] = field(default_factory=dict)
    """How many pods the controllers of the pods should have, by their uids."""
    error: str = ""
    """Why that cannot be told."""
    now: datetime


class Memo(Struct):
    status: PodDisruptionBudgetStatus
    error: str = ""
    events: tuple[EventNote, ...] = ()


def decide(snapshot: Snapshot) -> Plan:
    budget = snapshot.budget
    if budget.metadata.deletion_timestamp is not None:
        return Plan()
    events: list[EventNote] = []
    if not snapshot.pods:
        events.append(EventNote(reason="NoPods", message="No matching pods found"))
    try:
        expected, desired = _wanted(snapshot)
    except (IntOrPercentError, LookupError) as error:
        return Plan(memo=_fail_safe(snapshot, str(error).strip("'\"")))
    disrupted, wake = _disrupted(snapshot, events)
    healthy = sum(
        pod.metadata.deletion_timestamp is None and pod.metadata.name not in disrupted and is_ready(pod)
        for pod in snapshot.pods
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status = PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disrupted_pods=disrupted,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        conditions=_conditions(snapshot, allowed),
    )
    return Plan(wakes=wake, memo=Memo(status=status, events=tuple(events)))


def _wanted(snapshot: Snapshot) -> tuple[int, int]:
    """How many there should be, and how many must be healthy."""
    spec, there = snapshot.budget.spec, len(snapshot.pods)
    if spec.max_unavailable is None and not is_percent(spec.min_available):
        return there, int(spec.min_available or 0) if spec.min_available is not None else 0
    if snapshot.error:
        raise LookupError(snapshot.error)
    expected = sum(snapshot.scales.values())
    if spec.max_unavailable is not None:
        return expected, max(0, expected - scaled(spec.max_unavailable, expected, round_up=True))
    return expected, scaled(spec.min_available, expected, round_up=True)


def _disrupted(snapshot: Snapshot, events: list[EventNote]) -> tuple[dict[str, datetime], tuple[Wake, ...]]:
    """Evictions that were granted and whose pods have not gone yet; after a while nobody believes in them any more."""
    there = {pod.metadata.name: pod for pod in snapshot.pods}
    kept: dict[str, datetime] = {}
    for name, since in snapshot.budget.status.disrupted_pods.items():
        pod = there.get(name)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            continue
        if since + DELETION_TIMEOUT <= snapshot.now:
            where = f"{snapshot.budget.metadata.namespace}/{snapshot.budget.metadata.name}"
            message = f"Pod was expected by PDB {where} to be deleted but it wasn't"
            target = Target.of(PODS, pod)
            note = EventNote(
                reason="NotDeleted", message=message, type=EventType.WARNING, target=target, uid=pod.metadata.uid
            )
            events.append(note)
            continue
        kept[name] = since
    if not kept:
        return kept, ()
    after = (min(kept.values()) + DELETION_TIMEOUT - snapshot.now).total_seconds()
    return kept, (Wake(after=max(0.0, after), reason="an eviction that did not happen"),)


def _conditions(snapshot: Snapshot, allowed: int, *, error: str = "") -> tuple[Condition, ...]:
    reason = "SyncFailed" if error else "SufficientPods" if allowed > 0 else "InsufficientPods"
    status = "True" if allowed > 0 else "False"
    others = tuple(item for item in snapshot.budget.status.conditions if item.type != _ALLOWED)
    before = next((item for item in snapshot.budget.status.conditions if item.type == _ALLOWED), None)
    since = snapshot.now.replace(microsecond=0)
    if before is not None and before.status == status and before.last_transition_time is not None:
        since = before.last_transition_time
    return (
        *others,
        Condition(
            type=_ALLOWED,
            status=status,
            reason=reason,
            message=error,
            observed_generation=snapshot.budget.metadata.generation,
            last_transition_time=since,
        ),
    )


def _fail_safe(snapshot: Snapshot, error: str) -> Memo:
    """Where nobody can tell how many there should be, nothing is allowed."""
    status = evolve(
        snapshot.budget.status,
        disruptions_allowed=0,
        observed_generation=snapshot.budget.metadata.generation,
        conditions=_conditions(snapshot, 0, error=error),
    )
    message = f"Failed to calculate the number of expected pods: {error}"
    note = EventNote(reason="CalculateExpectedPodCountFailed", message=message, type=EventType.WARNING)
    return Memo(status=status, error=error, events=(note,))


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    memo, budget = plan.memo_as(Memo), snapshot.budget
    write = None
    if memo.status != budget.status:
        # Evictions write here as well.
        write = plans.status_patch(
            Target.of(POD_DISRUPTION_BUDGETS, budget),
            _wire_form(memo.status),
            uid=budget.metadata.uid,
            reason="the numbers changed",
            resource_version=budget.metadata.resource_version,
        )
    wakes = (Wake(after=15.0, reason=memo.error),) if memo.error else ()
    return Conclusion(status=write, events=memo.events, wakes=wakes)


def _wire_form(status: PodDisruptionBudgetStatus) -> dict[str, Any]:
    document: dict[str, Any] = {
        "observedGeneration": status.observed_generation,
        "disruptionsAllowed": status.disruptions_allowed,
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "conditions": [
            {
                "type": item.type,
                "status": item.status,
                "reason": item.reason,
                "message": item.message,
                "observedGeneration": item.observed_generation,
                "lastTransitionTime": format_time(item.last_transition_time) if item.last_transition_time else None,
            }
            for item in status.conditions
        ],
    }
    if status.disrupted_pods:
        document["disruptedPods"] = {name: format_time(time) for name, time in status.disrupted_pods.items()}
    return document
