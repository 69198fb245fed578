"""The events of a DaemonSet's writes (DS section 14)."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import ChainOutcomes, EventNote, Outcome, Plan, Result
from kruise.workloads.daemonset.memo import Memo
from kruise.workloads.daemonset.update import CREATE, DELETE
from kruise.workloads.shared.events import chain_events, chain_failure, in_place_event, is_over, warning
from kruise.workloads.shared.moving import IN_PLACE


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    def update(chain: ChainOutcomes) -> Iterator[EventNote]:
        return _update_events(chain, plan.memo_as(Memo))

    return chain_events(phase, chain, update=update, write=lambda outcome: _pod_events(phase, outcome))


def _pod_events(phase: str, outcome: Outcome) -> Iterator[EventNote]:
    if phase not in (CREATE, DELETE):
        return
    verb, name, done = outcome.action.verb, outcome.action.target.name, outcome.result is Result.DONE
    if verb is Verb.CREATE:
        if done:
            yield EventNote(reason="SuccessfulCreate", message=f"Created pod: {name}")
        elif not _namespace_goes(outcome):
            yield warning("FailedCreate", f"Error creating: {outcome.message}")
    elif verb is Verb.DELETE:
        if done:
            yield EventNote(reason="SuccessfulDelete", message=f"Deleted pod: {name}")
        else:
            yield warning("FailedDelete", f"Error deleting: {outcome.message}")


def _namespace_goes(outcome: Outcome) -> bool:
    """What cannot come to be any more is no news (DS-45)."""
    return outcome.error_code == 403 and "because it is being terminated" in outcome.error


def _update_events(chain: ChainOutcomes, memo: Memo) -> Iterator[EventNote]:
    """A success names no revision, a failure does."""
    if not chain or not is_over(chain):
        return
    name, failure = chain[-1].action.target.name, chain_failure(chain)
    if memo.moves.get(name) == IN_PLACE:
        yield in_place_event(name, "" if failure is None else memo.target_revision, failure)
