"""What is said about a CloneSet once its plan was carried out: status, events, when to look again.

Of the plan's notes it reads `figures` (what was counted), `events` (those that do not depend on the writes),
`update_error` (why updating cannot go on, whatever the writes do), `moves` (how the pods of phase `update` move),
`target_revision` (where they move), `failure_budget` (whether too many pods failed) and `waiting` (what is stuck).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet, CloneSetStatus
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.meta import Condition
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Conclusion, EventNote, EventType, Outcome, Outcomes, Phase, Plan, Result, Target, Wake
from kruise.machinery.wording import shortened
from kruise.workloads import failure_budget, waiting
from kruise.workloads.cloneset.progress import PROGRESSING, deadline_of
from kruise.workloads.cloneset.scale import SCALE
from kruise.workloads.cloneset.situation import Snapshot
from kruise.workloads.cloneset.status import (
    LONGEST_MESSAGE,
    Figures,
    must_write,
    status_of,
    weight_of,
    wire_form,
)
from kruise.workloads.cloneset.update import IN_PLACE, RECREATE, REFRESH, UPDATE
from kruise.workloads.conditions import FAILURE_BUDGET

ChainOutcomes = tuple[Outcome, ...]
ByPhase = Mapping[str, tuple[ChainOutcomes, ...]]

# What happens while others write, or while this process ends, is nobody's failure: the next pass decides anew.
_UNDECIDED = frozenset({Result.MOVED, Result.GONE, Result.UNKNOWN, Result.SKIPPED, Result.DEFERRED, Result.UNDER_WAY})


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    by_phase = outcomes_by_phase(plan, outcomes)
    if any(outcome.result is not Result.DONE for outcome in _all(by_phase, "revision")):
        # Nothing else was done, and a status must not name a revision that is not there.
        return Conclusion()
    cloneset, counted = snapshot.cloneset, plan.notes["figures"]
    failed_scale = snapshot.scale_failed_before or failure_of(_all(by_phase, SCALE))
    failed_update = plan.notes.get("update_error") or snapshot.failed_before
    failed_update = failed_update or failure_of(_all(by_phase, REFRESH, UPDATE))
    if cloneset.metadata.deletion_timestamp is not None:
        failed_scale = failed_update = None  # neither is tried any more
    status = status_of(
        cloneset,
        counted,
        now=snapshot.now,
        failed_scale=failed_scale,
        failed_update=failed_update,
        standing=_standing(snapshot, plan),
    )
    return Conclusion(
        status=_status_write(cloneset, status),
        events=(
            *plan.notes.get("events", ()),
            *_budget_events(plan),
            *_events(by_phase, plan.notes.get("moves", {}), _target_revision(plan)),
        ),
        wakes=tuple(_wakes(snapshot, counted, status)),
        weight=weight_of(cloneset.status, status),
    )


def outcomes_by_phase(plan: Plan, outcomes: Outcomes) -> dict[str, tuple[ChainOutcomes, ...]]:
    """The outcomes of each phase, chain by chain. They come in plan order, one for each action."""
    remaining = iter(outcomes)
    paired: dict[str, tuple[ChainOutcomes, ...]] = {}
    for phase in plan.phases:
        paired[phase.name] = tuple(tuple(_next(remaining, phase.name) for _ in chain) for chain in phase.chains)
    if next(remaining, None) is not None:
        raise ValueError("there are more outcomes than actions: conclude with the plan that they belong to")
    return paired


def _next(remaining: Iterator[Outcome], phase: str) -> Outcome:
    outcome = next(remaining, None)
    if outcome is None:
        raise ValueError(f"an outcome of phase {phase} is missing: conclude with the plan that was carried out")
    return outcome


def _all(by_phase: ByPhase, *names: str) -> list[Outcome]:
    return [outcome for name in names for chain in by_phase.get(name, ()) for outcome in chain]


def failure_of(outcomes: Iterable[Outcome]) -> str | None:
    """Why a phase failed; empty: it worked out; None: it was overtaken or not carried out, so nobody can tell."""
    undecided = False
    for outcome in outcomes:
        if outcome.result is Result.FAILED:
            return _error(outcome)
        undecided |= outcome.result in _UNDECIDED
    return None if undecided else ""


def _error(outcome: Outcome) -> str:
    return outcome.error or f"{outcome.action.verb.value} of {outcome.action.target} failed, no reason was given"


def _target_revision(plan: Plan) -> str:
    revision: str = plan.notes.get("target_revision") or plan.notes["figures"].update_revision
    return revision


def _status_write(cloneset: CloneSet, status: CloneSetStatus) -> plans.Action | None:
    if not must_write(cloneset.status, status):
        return None
    target = Target.of(CLONE_SETS, cloneset)
    return plans.status_patch(target, wire_form(status), uid=cloneset.metadata.uid, reason="the status changed")


def _standing(snapshot: Snapshot, plan: Plan) -> dict[str, Condition | None]:
    """Conditions that the plan itself decides. A plan that says nothing about them leaves them as they are."""
    known = {item.type: item for item in snapshot.cloneset.status.conditions}
    found: dict[str, Condition | None] = {}
    if (judgement := plan.notes.get("failure_budget")) is not None:
        kind = FAILURE_BUDGET
        found[kind] = failure_budget.condition_of(judgement.stop, known.get(kind), snapshot.now)
    if "waiting" in plan.notes:
        found[waiting.CONDITION] = waiting.condition_of(
            plan.notes["waiting"], known.get(waiting.CONDITION), snapshot.now
        )
    return found


def _budget_events(plan: Plan) -> Iterator[EventNote]:
    judgement: failure_budget.Judgement = plan.notes.get("failure_budget") or failure_budget.UNJUDGED
    if judgement.stop is not None and judgement.stop.is_new:
        yield _warning(FAILURE_BUDGET, judgement.stop.message)
    elif judgement.ended:
        yield EventNote(reason="FailureBudgetCleared", message=f"the rollout may go on: {judgement.ended}")


def _wakes(snapshot: Snapshot, counted: Figures, status: CloneSetStatus) -> Iterator[Wake]:
    """The moments at which time alone changes something: CS-69a and CS-118."""
    if counted.next_available_after is not None:
        reason = f"pod {counted.next_available} becomes available after minReadySeconds"
        yield Wake(after=counted.next_available_after, reason=reason)
    condition = next((item for item in status.conditions if item.type == PROGRESSING), None)
    ends = deadline_of(condition, snapshot.cloneset.spec.progress_deadline_seconds)
    if ends is not None:
        yield Wake(after=max(0.0, (ends - snapshot.now).total_seconds()), reason="progressDeadlineSeconds ends")


def _events(by_phase: ByPhase, moves: Mapping[str, str], target_revision: str) -> Iterator[EventNote]:
    """The events of CS section 14, in plan order."""
    for phase, chains in by_phase.items():
        for chain in chains:
            yield from _chain_events(phase, chain, moves, target_revision)


def events_of_chain(plan: Plan, phase: Phase, chain: ChainOutcomes) -> Iterator[EventNote]:
    """The events of a chain that ended after its pass."""
    yield from _chain_events(phase.name, chain, plan.notes.get("moves", {}), _target_revision(plan))


def _chain_events(
    phase: str, chain: ChainOutcomes, moves: Mapping[str, str], target_revision: str
) -> Iterator[EventNote]:
    if phase == UPDATE:
        yield from _update_events(chain, moves, target_revision)
        return
    for outcome in chain:
        if outcome.result not in _UNDECIDED:
            yield from _write_events(phase, outcome)


def _write_events(phase: str, outcome: Outcome) -> Iterator[EventNote]:
    resource = outcome.action.target.resource
    if phase == "pull-jobs":
        if resource == IMAGE_PULL_JOBS and outcome.action.verb is Verb.CREATE:
            yield _pull_job_event(outcome)
    elif phase == SCALE and resource == PODS:
        yield from _pod_events(outcome)
    elif resource == PERSISTENT_VOLUME_CLAIMS and outcome.result is Result.FAILED:
        yield _claim_event(phase, outcome)


def _pod_events(outcome: Outcome) -> Iterator[EventNote]:
    action, name, done = outcome.action, outcome.action.target.name, outcome.result is Result.DONE
    if action.verb is Verb.CREATE and done:
        yield EventNote(reason="SuccessfulCreate", message=f"succeed to create pod {name}")
    elif action.verb is Verb.CREATE:
        yield _warning("FailedCreate", f"failed to create pod: {_error(outcome)}, pod: {_json(action.body)}")
    elif action.verb is Verb.DELETE and done:
        yield EventNote(reason="SuccessfulDelete", message=f"succeed to delete pod {name}")
    elif action.verb is Verb.DELETE:
        yield _warning("FailedDelete", f"failed to delete pod {name}: {_error(outcome)}")


def _claim_event(phase: str, outcome: Outcome) -> EventNote:
    """Claims are spoken of only when something went wrong."""
    action, name, error = outcome.action, outcome.action.target.name, _error(outcome)
    if action.verb is Verb.CREATE:
        return _warning("FailedCreate", f"failed to create pvc: {error}, pvc: {_json(action.body)}")
    if action.verb is Verb.PATCH:
        return _warning("FailedUpdate", f"failed to update PVC {name}: {error}")
    if phase == "claims":
        return _warning("FailedDelete", f"failed to clean up PVC {name}: {error}")
    return _warning("FailedDelete", f"failed to delete pvc {name}: {error}")


def _pull_job_event(outcome: Outcome) -> EventNote:
    """Both kinds are Normal (IPU-153): a rollout goes on without its images pulled ahead."""
    name, image = outcome.action.target.name, outcome.action.body.get("spec", {}).get("image", "")
    if outcome.result is Result.DONE:
        return EventNote(reason="CreatedImagePullJob", message=f"created ImagePullJob {name} for image: {image}")
    message = f"failed to create ImagePullJob {name} for image: {image}: {_error(outcome)}"
    return EventNote(reason="FailedCreateImagePullJob", message=shortened(message, LONGEST_MESSAGE))


def _update_events(chain: ChainOutcomes, moves: Mapping[str, str], revision: str) -> Iterator[EventNote]:
    """One event for the whole chain of a pod: its update began, or it failed. A pod that is only prepared for it has
    none."""
    if not chain:
        return
    name = chain[-1].action.target.name
    move = moves.get(name)
    failed = next((outcome for outcome in chain if outcome.result is Result.FAILED), None)
    if failed is None and any(outcome.result is not Result.DONE for outcome in chain):
        return
    if move == IN_PLACE:
        if failed is None:
            message = f"successfully update pod {name} in-place(revision {revision})"
            yield EventNote(reason="SuccessfulUpdatePodInPlace", message=message)
        else:
            message = f"failed to update pod {name} in-place(revision {revision}): {_error(failed)}"
            yield _warning("FailedUpdatePodInPlace", message)
    elif move == RECREATE:
        if failed is None:
            message = f"successfully patch pod {name} specified-delete for update(revision {revision})"
            yield EventNote(reason="SuccessfulUpdatePodReCreate", message=message)
        else:
            message = f"failed to patch pod specified-delete {name} for update(revision {revision}): {_error(failed)}"
            yield _warning("FailedUpdatePodReCreate", message)


def _warning(reason: str, message: str) -> EventNote:
    return EventNote(type=EventType.WARNING, reason=reason, message=shortened(message, LONGEST_MESSAGE))


def _json(body: Any) -> str:
    return codec.encode(body).decode()
