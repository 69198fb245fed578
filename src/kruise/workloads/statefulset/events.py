"""The events of a StatefulSet's writes (ST section 11)."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.native.ordinals import ordinal_of, pod_name
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import UNDECIDED, ChainOutcomes, EventNote, Outcome, Plan, Result
from kruise.workloads.shared.events import (
    PULL_JOBS,
    chain_failure,
    in_place_event,
    is_over,
    pull_job_events,
    warning,
)
from kruise.workloads.shared.moving import IN_PLACE, UPDATE
from kruise.workloads.statefulset.memo import Memo
from kruise.workloads.statefulset.scale import CREATE, DELETE, IDENTITY
from kruise.workloads.statefulset.volumes import VOLUMES

_ALREADY_EXISTS = "AlreadyExists"
_VERBS = {
    (CREATE, Verb.CREATE): ("Create", "create"),
    (DELETE, Verb.DELETE): ("Delete", "delete"),
    (UPDATE, Verb.DELETE): ("Delete", "delete"),
    (IDENTITY, Verb.PATCH): ("Update", "update"),
}


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    """The events of a chain that has ended."""
    memo = plan.memo_as(Memo)
    if phase == UPDATE and chain and memo.moves.get(chain[-1].action.target.name) == IN_PLACE:
        if is_over(chain):
            yield in_place_event(chain[-1].action.target.name, memo.target_revision, chain_failure(chain))
        return
    for outcome in chain:
        if outcome.result in UNDECIDED:
            continue
        if phase == PULL_JOBS:
            yield from pull_job_events(outcome)
        elif outcome.action.target.resource == PERSISTENT_VOLUME_CLAIMS:
            yield from _claim_events(phase, outcome, memo.owner)
        else:
            yield from _pod_events(phase, outcome, memo.owner)


def _pod_events(phase: str, outcome: Outcome, owner: str) -> Iterator[EventNote]:
    words = _VERBS.get((phase, outcome.action.verb))
    if words is None or outcome.error_reason == _ALREADY_EXISTS:
        return
    name, (reason, verb) = outcome.action.target.name, words
    if outcome.result is Result.DONE:
        yield EventNote(reason=f"Successful{reason}", message=f"{verb} Pod {name} in StatefulSet {owner} successful")
        return
    yield warning(f"Failed{reason}", f"{verb} Pod {name} in StatefulSet {owner} failed error: {outcome.message}")


def _claim_events(phase: str, outcome: Outcome, owner: str) -> Iterator[EventNote]:
    """Claims that are made or grow; what becomes of their owners is spoken of only when it fails."""
    name, done = outcome.action.target.name, outcome.result is Result.DONE
    ordinal = ordinal_of(name)
    pod = pod_name(owner, ordinal) if ordinal is not None else ""
    if outcome.action.verb is Verb.CREATE:
        reason, verb = "Create", "create"
    elif phase == VOLUMES:
        reason, verb = "Resize", "resize"
    elif not done:
        yield warning("FailedUpdate", f"update owners of Claim {name} Pod {pod} failed error: {outcome.message}")
        return
    else:
        return
    if done:
        message = f"{verb} Claim {name} Pod {pod} in StatefulSet {owner} success"
        yield EventNote(reason=f"Successful{reason}", message=message)
    elif outcome.error_reason != _ALREADY_EXISTS:
        message = f"{verb} Claim {name} for Pod {pod} in StatefulSet {owner} failed error: {outcome.message}"
        yield warning(f"Failed{reason}", message)
