"""The events of a CloneSet's writes (CS section 14)."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import ChainOutcomes, EventNote, Outcome, Plan, Result
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.scale import SCALE
from kruise.workloads.cloneset.update import RECREATE
from kruise.workloads.shared.events import body_text, chain_events, chain_failure, in_place_event, is_over, warning
from kruise.workloads.shared.moving import IN_PLACE


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    return chain_events(
        phase,
        chain,
        update=lambda chain: _update_events(chain, plan.memo_as(Memo)),
        write=lambda outcome: _write_events(phase, outcome),
    )


def _write_events(phase: str, outcome: Outcome) -> Iterator[EventNote]:
    resource = outcome.action.target.resource
    if phase == SCALE and resource == PODS:
        yield from _pod_events(outcome)
    elif resource == PERSISTENT_VOLUME_CLAIMS and outcome.result is Result.FAILED:
        yield _claim_event(phase, outcome)


def _pod_events(outcome: Outcome) -> Iterator[EventNote]:
    action, name, done = outcome.action, outcome.action.target.name, outcome.result is Result.DONE
    if action.verb is Verb.CREATE and done:
        yield EventNote(reason="SuccessfulCreate", message=f"succeed to create pod {name}")
    elif action.verb is Verb.CREATE:
        yield warning("FailedCreate", f"failed to create pod: {outcome.message}, pod: {body_text(action.body)}")
    elif action.verb is Verb.DELETE and done:
        yield EventNote(reason="SuccessfulDelete", message=f"succeed to delete pod {name}")
    elif action.verb is Verb.DELETE:
        yield warning("FailedDelete", f"failed to delete pod {name}: {outcome.message}")


def _claim_event(phase: str, outcome: Outcome) -> EventNote:
    """Claims are spoken of only when something went wrong."""
    action, name, error = outcome.action, outcome.action.target.name, outcome.message
    if action.verb is Verb.CREATE:
        return warning("FailedCreate", f"failed to create pvc: {error}, pvc: {body_text(action.body)}")
    if action.verb is Verb.PATCH:
        return warning("FailedUpdate", f"failed to update PVC {name}: {error}")
    if phase == "claims":
        return warning("FailedDelete", f"failed to clean up PVC {name}: {error}")
    return warning("FailedDelete", f"failed to delete pvc {name}: {error}")


def _update_events(chain: ChainOutcomes, memo: Memo) -> Iterator[EventNote]:
    """One event for the whole chain of a pod: its update began, or it failed. A pod that is only prepared for it has
    none."""
    if not chain or not is_over(chain):
        return
    name, revision, failed = chain[-1].action.target.name, memo.target_revision, chain_failure(chain)
    move = memo.moves.get(name)
    if move == IN_PLACE:
        yield in_place_event(name, revision, failed)
    elif move == RECREATE:
        if failed is None:
            message = f"successfully patch pod {name} specified-delete for update(revision {revision})"
            yield EventNote(reason="SuccessfulUpdatePodReCreate", message=message)
        else:
            message = f"failed to patch pod specified-delete {name} for update(revision {revision}): {failed.message}"
            yield warning("FailedUpdatePodReCreate", message)
