"""The failure budget of a SidecarSet: how many updated pods may have a sidecar that does not start.

A rollout that stops stays stopped; no pod goes back by itself, since the content before may have changed in more than
images.
"""

from __future__ import annotations

import dataclasses

from kruise.machinery.causes import Cause
from kruise.sidecars.sidecarset.situation import Situation
from kruise.workloads.shared import failure_budget
from kruise.workloads.shared.failure_budget import Judgement, RolloutState
from kruise.workloads.shared.failures import cause_of


def judged(situation: Situation) -> Judgement:
    """SidecarSets without a budget cost nothing."""
    sidecar_set, facts = situation.sidecar_set, situation.facts
    budget, memory = failure_budget.budget_of(sidecar_set.metadata.annotations), sidecar_set.status.failure_budget
    if budget is None and memory is None:
        return failure_budget.UNJUDGED
    rollout = RolloutState(
        revision=situation.content.revision,
        replicas=len(facts),
        failed={fact.full_name: fact.failure for fact in facts if fact.is_updated and fact.failure},
        is_under_way=not all(fact.is_updated and fact.serves for fact in facts),
        is_complete=all(fact.is_updated and fact.serves for fact in facts),
    )
    return failure_budget.judge(budget, rollout, memory if memory is not None and memory.failed else None)


def stop_of(situation: Situation, judgement: Judgement) -> Cause | None:
    if judgement.stop is None:
        return None
    name = situation.sidecar_set.metadata.name
    remedy = (
        f"give the sidecar an image that works: kruise set image sidecarset/{name} CONTAINER=IMAGE; go back: kruise "
        f"rollout undo sidecarset/{name}; or raise or remove the annotation {failure_budget.ANNOTATION}"
    )
    return dataclasses.replace(cause_of(judgement.stop), remedy=remedy)
