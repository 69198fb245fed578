"""Events about pulls that have come to their end (NI-E2, NI-E3). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.daemon.images.decide import STATUS, Ending, Memo, Snapshot
from kruise.machinery.plan import Conclusion, EventNote, EventType, Outcomes, Plan, Result, Target
from kruise.machinery.times import format_go_duration

SUCCEED, FAILED = "PullImageSucceed", "PullImageFailed"


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    """Told once, when the status that says the same is written."""
    if not any(outcome.result is Result.DONE for outcome in outcomes.within(STATUS)):
        return Conclusion()
    endings = plan.memo_as(Memo).endings
    return Conclusion(events=tuple(note for ending in endings for note in _events(ending)))


def _events(ending: Ending) -> Iterator[EventNote]:
    if not ending.error:
        # Spelt as people have always searched for it.
        message = f"Image {ending.image}, ecalpsedTime {format_go_duration(ending.seconds)}"
        yield EventNote(reason=SUCCEED, message=message)
        return
    message = f"Image {ending.image} {ending.error}"
    for owner in ending.owners:
        if owner.kind == IMAGE_PULL_JOBS.kind:
            target = Target(IMAGE_PULL_JOBS, owner.namespace, owner.name)
            yield EventNote(reason=FAILED, message=message, type=EventType.WARNING, target=target, uid=owner.uid)
    yield EventNote(reason=FAILED, message=message, type=EventType.WARNING)
