"""Events that workloads of every kind have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import UNDECIDED, ChainOutcomes, EventNote, EventType, Outcome, Result
from kruise.machinery.wording import shortened
from kruise.workloads.shared.conditions import FAILURE_BUDGET, LONGEST_MESSAGE
from kruise.workloads.shared.failure_budget import Judgement
from kruise.workloads.shared.moving import UPDATE

PULL_JOBS = "pull-jobs"
"""The phase that makes ImagePullJobs."""


def warning(reason: str, message: str) -> EventNote:
    return EventNote(type=EventType.WARNING, reason=reason, message=shortened(message, LONGEST_MESSAGE))


def body_text(body: Any) -> str:
    return codec.encode(body).decode()


def chain_failure(chain: ChainOutcomes) -> Outcome | None:
    return next((outcome for outcome in chain if outcome.result is Result.FAILED), None)


def is_over(chain: ChainOutcomes) -> bool:
    """Whether a chain was carried out or has failed; otherwise it says nothing yet."""
    return chain_failure(chain) is not None or all(outcome.result is Result.DONE for outcome in chain)


def in_place_event(name: str, revision: str, failure: Outcome | None) -> EventNote:
    """`revision` is named in brackets, where the kind names it."""
    suffix = f"(revision {revision})" if revision else ""
    if failure is None:
        message = f"successfully update pod {name} in-place{suffix}"
        return EventNote(reason="SuccessfulUpdatePodInPlace", message=message)
    return warning("FailedUpdatePodInPlace", f"failed to update pod {name} in-place{suffix}: {failure.message}")


def come_and_gone(
    chain: ChainOutcomes, *, made: str, refused: str, deleted: str, told: str = ""
) -> Iterator[EventNote]:
    """Of the pods or runs that a job makes and deletes: the words, which a name or an error follows. A deletion that
    fails is no news, since it is tried again, nor is a refusal that was `told` already."""
    for outcome in chain:
        name, done = outcome.action.target.name, outcome.result is Result.DONE
        if outcome.result in UNDECIDED:
            continue
        if outcome.action.verb is Verb.CREATE:
            if done:
                yield EventNote(reason="SuccessfulCreate", message=f"{made} {name}")
            elif outcome.message != told:
                yield warning("FailedCreate", f"{refused} {outcome.message}")
        elif done:
            yield EventNote(reason="SuccessfulDelete", message=f"{deleted} {name}")


def pull_job_events(outcome: Outcome) -> Iterator[EventNote]:
    """Both kinds are Normal (IPU-153): a rollout goes on without its images pulled ahead."""
    action = outcome.action
    if action.target.resource != IMAGE_PULL_JOBS or action.verb is not Verb.CREATE:
        return
    name, image = action.target.name, action.body.get("spec", {}).get("image", "")
    if outcome.result is Result.DONE:
        yield EventNote(reason="CreatedImagePullJob", message=f"created ImagePullJob {name} for image: {image}")
    else:
        message = f"failed to create ImagePullJob {name} for image: {image}: {outcome.message}"
        yield EventNote(reason="FailedCreateImagePullJob", message=shortened(message, LONGEST_MESSAGE))


def chain_events(
    phase: str,
    chain: ChainOutcomes,
    *,
    update: Callable[[ChainOutcomes], Iterator[EventNote]],
    write: Callable[[Outcome], Iterator[EventNote]],
) -> Iterator[EventNote]:
    """The events of a chain that has ended: an update is told as a whole, any other write for itself."""
    if phase == UPDATE:
        yield from update(chain)
        return
    for outcome in chain:
        if outcome.result not in UNDECIDED:
            yield from pull_job_events(outcome) if phase == PULL_JOBS else write(outcome)


def budget_events(judgement: Judgement | None) -> Iterator[EventNote]:
    if judgement is None:
        return
    if judgement.stop is not None and judgement.stop.is_new:
        yield warning(FAILURE_BUDGET, judgement.stop.message)
    elif judgement.ended:
        yield EventNote(reason="FailureBudgetCleared", message=f"the rollout may go on: {judgement.ended}")
