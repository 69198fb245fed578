"""The failure budget of a CloneSet: which pods failed at their revision, and what a stopped rollout means for the rest.

Where no budget is asked for, nothing of this is looked at. Where one is, the current revision is the last one that was
rolled out completely, so that there is something to go back to even after every pod has been moved.
"""

from __future__ import annotations

import dataclasses

from kruise.api.meta import Condition
from kruise.inplace import keys
from kruise.inplace.availability import seconds_until_available
from kruise.machinery.plan import Cause, Wake
from kruise.machinery.revision_names import is_revision
from kruise.workloads.cloneset.progress import NO_DEADLINE
from kruise.workloads.cloneset.situation import Situation
from kruise.workloads.shared import causes, failure_budget
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.shared.failure_budget import Budget, Judgement, RolloutState, Stop


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    budget: Budget | None = None
    """None: nobody asked for one."""
    broken: frozenset[str] = frozenset()
    """Pods that failed at the revision that they carry, whichever it is."""
    judgement: Judgement = failure_budget.UNJUDGED
    current_revision: str | None = None
    """What the status names as current; None: as without a budget."""
    wakes: tuple[Wake, ...] = ()

    @property
    def stop(self) -> Stop | None:
        return self.judgement.stop


NO_BUDGET = Failures()


def known_stop(situation: Situation) -> Condition | None:
    conditions = situation.cloneset.status.conditions
    return next((item for item in conditions if item.type == FAILURE_BUDGET), None)


def failures_of(situation: Situation) -> Failures:
    budget = failure_budget.budget_of(situation.cloneset.metadata.annotations)
    if budget is not None:
        return _judged(situation, budget)
    memory = situation.cloneset.status.failure_budget
    if memory is None and known_stop(situation) is None:
        return NO_BUDGET
    return Failures(judgement=failure_budget.judge(None, _rollout(situation, {}), memory))


def _judged(situation: Situation, budget: Budget) -> Failures:
    deadline, update = _deadline(situation), situation.update.metadata.name
    broken: set[str] = set()
    failed: dict[str, str] = {}
    due: list[tuple[float, str]] = []
    for fact in situation.observed:  # a pod that is still written to shows what became of the revision before
        look = failure_budget.look_at(fact.pod, deadline_seconds=deadline, now=situation.now)
        if look.failure:
            if not fact.is_available:
                broken.add(fact.name)
            if fact.is_new:
                failed[fact.name] = look.failure
        elif look.due_after is not None and fact.is_new:
            due.append((look.due_after, f"pod {fact.name} counts as failed if it is not ready by then"))
    for pod in situation.inactive:
        if (
            pod.metadata.deletion_timestamp is None
            and failure_budget.is_lost(pod)
            and is_revision(pod.metadata.labels.get(keys.REVISION_LABEL, ""), update)
        ):
            failed[pod.metadata.name] = pod.status.reason or "the pod failed"
    rollout = _rollout(situation, failed)
    if (arrival := _last_arrival(situation)) is not None:
        due.append((arrival, "the rollout is complete if no pod fails until then"))
    wakes: tuple[Wake, ...] = ()
    if due and rollout.is_under_way:
        after, reason = min(due)
        wakes = (Wake(after=after, reason=reason),)
    return Failures(
        budget=budget,
        broken=frozenset(broken),
        judgement=failure_budget.judge(
            budget,
            rollout,
            situation.cloneset.status.failure_budget,
            is_told=known_stop(situation) is not None,
        ),
        current_revision=_current_revision(situation, rollout),
        wakes=wakes,
    )


def _deadline(situation: Situation) -> int:
    seconds = situation.cloneset.spec.progress_deadline_seconds
    return failure_budget.DEFAULT_DEADLINE if seconds is None or seconds == NO_DEADLINE else seconds


def _rollout(situation: Situation, failed: dict[str, str]) -> RolloutState:
    update, current = situation.update.metadata.name, situation.current.metadata.name
    facts, replicas = situation.facts, situation.replicas
    can_go_back = current != update and not situation.is_on_delete
    return RolloutState(
        revision=update,
        replicas=replicas,
        failed=failed,
        is_under_way=situation.cloneset.status.current_revision != update or not all(fact.is_new for fact in facts),
        is_complete=_is_everybody_there(situation)
        and all(failure_budget.has_arrived(fact.pod, situation.now) for fact in facts),
        back_to=current if can_go_back else "",
    )


def _is_everybody_there(situation: Situation) -> bool:
    facts = situation.facts
    return len(facts) == situation.replicas and all(fact.is_new and fact.is_available for fact in facts)


def _last_arrival(situation: Situation) -> float | None:
    """Seconds until the rollout is complete, where only time is missing."""
    if not _is_everybody_there(situation):
        return None
    waits = (seconds_until_available(fact.pod, failure_budget.ARRIVAL, situation.now) for fact in situation.facts)
    return max((seconds for seconds in waits if seconds is not None), default=None)


def _current_revision(situation: Situation, rollout: RolloutState) -> str:
    """Empty while the very first revision has not been rolled out."""
    if rollout.is_complete:
        return rollout.revision
    return situation.current.metadata.name if situation.cloneset.status.current_revision else ""


def stopped(situation: Situation, failures: Failures) -> Situation:
    """The situation under a stop: as if the partition kept all pods, so that new ones are made at the current revision
    and those of the stopped one are the first to be scaled in."""
    stop = failures.stop
    if stop is None:
        return situation
    limits = dataclasses.replace(
        situation.limits,
        partition=situation.replicas,
        max_surge=situation.limits.max_surge if stop.rolls_back else 0,
        is_stopped=True,
        rolls_back=stop.rolls_back,
    )
    return dataclasses.replace(situation, limits=limits)


def cause_of(stop: Stop) -> Cause:
    what = "updated pods go back" if stop.rolls_back else "no further pod is updated"
    pods = "1 pod" if stop.failed == 1 else f"{stop.failed} pods"
    return causes.FAILURE_BUDGET.cause(
        f"{pods} failed at revision {stop.revision}, {stop.allowed} may: {stop.pods}; {what}",
        details={
            "revision": stop.revision,
            "failed": stop.failed,
            "allowed": stop.allowed,
            "action": stop.reason,
        },
        remedy=failure_budget.REMEDY,
    )
