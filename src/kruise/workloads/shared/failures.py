"""The failure budget over the pods of a workload: which of them failed at their revision, and what that means.

Where no budget is asked for, nothing of this is looked at. Where one is, the current revision is the last one that all
pods worked at, so that there is something to go back to even after every pod has been moved. Before there was one, it
is the revision that is rolled out, and the status remembers that it is on trial (`failureBudget` with `failed: 0`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeVar

from kruise.api.apps.shared import FailureBudgetStatus
from kruise.api.meta import Condition
from kruise.api.native.apps import ControllerRevision
from kruise.inplace import keys
from kruise.inplace.availability import seconds_until_available
from kruise.machinery.plan import Cause, Wake
from kruise.machinery.revision_names import is_revision
from kruise.machinery.revisions import template_of
from kruise.machinery.wording import plural
from kruise.workloads.shared import causes, failure_budget
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.shared.failure_budget import Budget, Judgement, RolloutState, Stop
from kruise.workloads.shared.situation import WorkloadSituation

S = TypeVar("S", bound=WorkloadSituation)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a workload says about its rollout, as far as the budget asks."""

    annotations: Mapping[str, str]
    memory: FailureBudgetStatus | None
    """What its status keeps of a stop or a trial."""
    conditions: Iterable[Condition]
    replicas: int
    current_revision: str
    """The one that its status names, or that can be told from its pods."""
    can_go_back: bool
    """Whether pods may be moved at all."""
    deadline_seconds: int = failure_budget.DEFAULT_DEADLINE
    """For a pod to become ready."""
    names_current: bool = True
    """Its status names the current revision. Otherwise nothing can be told of revisions before, and that a rollout has
    not ended is remembered as a trial."""

    @property
    def budget(self) -> Budget | None:
        return failure_budget.budget_of(self.annotations)

    @property
    def stopped(self) -> FailureBudgetStatus | None:
        """What is remembered of a stop; without failed pods it is the memory of a trial."""
        return self.memory if self.memory is not None and self.memory.failed else None

    @property
    def is_on_trial(self) -> bool:
        """No revision has ever been rolled out completely, and the one that the status names is remembered as such."""
        remembered = self.memory.revision if self.memory is not None else ""
        return self.names_current and self.current_revision in ("", remembered)


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


def believed(situation: S, asked: Asked) -> S:
    """With a budget, the current revision is one that is worth going back to.

    When another template comes, that is the revision that all pods have and work at, however short the time since they
    came to it: whoever is not believed yet is better than an older one, and than none. Where nothing has ever worked,
    there is nothing to go back to.
    """
    if asked.budget is None or situation.is_at_one_revision:
        return situation
    current = _worked_at(situation, asked) or (situation.update if asked.is_on_trial else situation.current)
    templates = {revision.metadata.name: template_of(revision) or {} for revision in (current, situation.update)}
    return dataclasses.replace(situation, current=current, templates=templates)


def _worked_at(situation: WorkloadSituation, asked: Asked) -> ControllerRevision | None:
    """The earlier revision that all pods carry, available and without having failed at it."""
    observed = situation.observed
    if not observed or len(observed) != asked.replicas or not all(fact.is_available for fact in observed):
        return None
    labels = {fact.pod.metadata.labels.get(keys.REVISION_LABEL, "") for fact in observed}
    found = [item for item in situation.history if all(is_revision(label, item.metadata.name) for label in labels)]
    if not found or found[0].metadata.name == situation.update.metadata.name:
        return None
    looks = (
        failure_budget.look_at(fact.pod, deadline_seconds=asked.deadline_seconds, now=situation.now)
        for fact in observed
    )
    return None if any(look.failure for look in looks) else found[0]


def failures_of(situation: WorkloadSituation, asked: Asked) -> Failures:
    """Of a situation that `believed` has seen."""
    budget = asked.budget
    if budget is not None:
        return _judged(situation, asked, budget)
    if asked.memory is None and not _is_told(asked):
        return NO_BUDGET
    return Failures(judgement=failure_budget.judge(None, _rollout(situation, asked, {}), asked.stopped))


def _is_told(asked: Asked) -> bool:
    return any(item.type == FAILURE_BUDGET for item in asked.conditions)


def _judged(situation: WorkloadSituation, asked: Asked, budget: Budget) -> Failures:
    update = situation.update.metadata.name
    broken: set[str] = set()
    failed: dict[str, str] = {}
    due: list[tuple[float, str]] = []
    for fact in situation.observed:  # a pod that is still written to shows what became of the revision before
        look = failure_budget.look_at(fact.pod, deadline_seconds=asked.deadline_seconds, now=situation.now)
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
    rollout = _rollout(situation, asked, failed)
    if (arrival := _last_arrival(situation, asked.replicas)) is not None:
        due.append((arrival, "the rollout is complete if no pod fails until then"))
    wakes: tuple[Wake, ...] = ()
    if due and rollout.is_under_way:
        after, reason = min(due)
        wakes = (Wake(after=after, reason=reason),)
    judgement = failure_budget.judge(budget, rollout, asked.stopped, is_told=_is_told(asked))
    if rollout.is_first and situation.is_at_one_revision and not rollout.is_complete:
        judgement = dataclasses.replace(judgement, trial=FailureBudgetStatus(revision=update))
    elif not asked.names_current and rollout.is_under_way and not rollout.is_complete:
        # Once every pod has moved, nothing else would tell that the rollout has not ended yet.
        judgement = dataclasses.replace(judgement, trial=FailureBudgetStatus(revision=update))
    return Failures(
        budget=budget,
        broken=frozenset(broken),
        judgement=judgement,
        current_revision=update if rollout.is_complete else situation.current.metadata.name,
        wakes=wakes,
    )


def _rollout(situation: WorkloadSituation, asked: Asked, failed: dict[str, str]) -> RolloutState:
    update, facts = situation.update.metadata.name, situation.facts
    return RolloutState(
        revision=update,
        replicas=asked.replicas,
        failed=failed,
        is_under_way=asked.current_revision != update or asked.is_on_trial or not all(fact.is_new for fact in facts),
        is_complete=_is_everybody_there(situation, asked.replicas)
        and all(failure_budget.has_arrived(fact.pod, situation.now) for fact in facts),
        back_to=situation.current.metadata.name if asked.can_go_back and not situation.is_at_one_revision else "",
        is_first=asked.is_on_trial,
    )


def _is_everybody_there(situation: WorkloadSituation, replicas: int) -> bool:
    facts = situation.facts
    return len(facts) == replicas and all(fact.is_new and fact.is_available for fact in facts)


def _last_arrival(situation: WorkloadSituation, replicas: int) -> float | None:
    """Seconds until the rollout is complete, where only time is missing."""
    if not _is_everybody_there(situation, replicas):
        return None
    waits = (seconds_until_available(fact.pod, failure_budget.ARRIVAL, situation.now) for fact in situation.facts)
    return max((seconds for seconds in waits if seconds is not None), default=None)


def cause_of(stop: Stop) -> Cause:
    what = "updated pods go back" if stop.rolls_back else "no further pod is updated"
    return causes.FAILURE_BUDGET.cause(
        f"{plural(stop.failed, 'pod')} failed at revision {stop.revision}, {stop.allowed} may: {stop.pods}; {what}",
        details={
            "revision": stop.revision,
            "failed": stop.failed,
            "allowed": stop.allowed,
            "action": stop.reason,
        },
        remedy=stop.remedy,
    )
