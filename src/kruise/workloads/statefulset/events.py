"""The events of a StatefulSet's writes (ST section 11)."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.native.ordinals import ordinal_of, pod_name
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import ChainOutcomes, EventNote, Outcome, Plan, Result
from kruise.workloads.shared.events import chain_events, chain_failure, in_place_event, is_over, warning
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
    memo = plan.memo_as(Memo)

    def write(outcome: Outcome) -> Iterator[EventNote]:
        is_claim = outcome.action.target.resource == PERSISTENT_VOLUME_CLAIMS
        return (_claim_events if is_claim else _pod_events)(phase, outcome, memo.owner)

    return chain_events(phase, chain, update=lambda chain: _update_events(chain, memo), write=write)


def _update_events(chain: ChainOutcomes, memo: Memo) -> Iterator[EventNote]:
    """One for an update in place as a whole; a pod that is only prepared has none, and one that is made anew goes."""
    if not chain or not is_over(chain):
        return
    name = chain[-1].action.target.name
    if memo.moves.get(name) == IN_PLACE:
        yield in_place_event(name, memo.target_revision, chain_failure(chain))
        return
    for outcome in chain:
        yield from _pod_events(UPDATE, outcome, memo.owner)


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
