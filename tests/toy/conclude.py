"""What is told of a Troupe after its plan was carried out: status, conditions, events."""

from __future__ import annotations

from datetime import datetime

from kruise.api.meta import Condition
from kruise.api.native.pod import is_ready
from kruise.machinery import plan as plans
from kruise.machinery.codec import to_builtins
from kruise.machinery.plan import ChainOutcomes, Conclusion, EventNote, Outcomes, Plan, Target

from .api import TROUPES, Troupe, TroupeStatus
from .decide import Snapshot, has_image, revision_of

COMPLETE = "Complete"


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    troupe = snapshot.troupe
    status = _status(snapshot)
    write = plans.status_patch(
        Target.of(TROUPES, troupe), to_builtins(status), uid=troupe.metadata.uid, reason="its status"
    )
    return Conclusion(status=write if status != troupe.status else None)


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> list[EventNote]:
    """Of the actions that were carried out one after the other: what is worth an event."""
    created = [done.object.metadata.name for done in chain if done.object and done.action.owner_uid]
    return [EventNote(reason="SuccessfulCreate", message=f"created pod {name}") for name in created]


def _status(snapshot: Snapshot) -> TroupeStatus:
    troupe, pods = snapshot.troupe, snapshot.pods
    updated = [pod for pod in pods if has_image(troupe, pod)]
    serving = [pod for pod in updated if is_ready(pod)]
    is_complete = len(serving) == len(pods) == troupe.spec.replicas
    return TroupeStatus(
        observed_generation=troupe.metadata.generation,
        pods=len(pods),
        ready=sum(is_ready(pod) for pod in pods),
        updated=len(updated),
        update_revision=revision_of(troupe),
        conditions=(_complete(troupe, is_complete, snapshot.now),),
    )


def _complete(troupe: Troupe, is_complete: bool, now: datetime) -> Condition:
    """It keeps its time as long as it says the same."""
    status = "True" if is_complete else "False"
    before = next((one for one in troupe.status.conditions if one.type == COMPLETE), None)
    if before is not None and before.status == status:
        return before
    return Condition(type=COMPLETE, status=status, last_transition_time=now.replace(microsecond=0))
