"""What follows for a UnitedDeployment once its plan was carried out: status, conditions and events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.meta import Condition
from kruise.machinery.plan import Conclusion, EventNote, Outcome, Outcomes, Plan, Result
from kruise.machinery.wording import shortened
from kruise.spread.uniteddeployment import decide as phases
from kruise.spread.uniteddeployment.face import progress
from kruise.spread.uniteddeployment.holding import PROVISIONED, SUBSETS_UPDATED
from kruise.spread.uniteddeployment.memo import Memo
from kruise.spread.uniteddeployment.situation import UPDATED, Snapshot
from kruise.spread.uniteddeployment.status import effect_of, status_of, wire_form
from kruise.workloads.shared import conditions
from kruise.workloads.shared.conditions import LONGEST_MESSAGE
from kruise.workloads.shared.events import warning
from kruise.workloads.shared.rollout_revisions import REVISION
from kruise.workloads.shared.statuses import status_write, telling

_INEFFECTIVE = "Specified subset replicas is ineffective"


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None:
        return Conclusion()
    memo, united = plan.memo_as(Memo), snapshot.united
    failed = [outcome for outcome in outcomes.within(REVISION) if outcome.result is Result.FAILED]
    if failed:
        return Conclusion(events=(warning("FailedRevisionProvision", failed[0].message),))
    if any(outcome.result is not Result.DONE for outcome in outcomes.within(REVISION)):
        return Conclusion()
    before = united.status
    found = _conditions({item.type: item for item in before.conditions}, memo, outcomes, snapshot.now)
    status = status_of(
        before,
        memo,
        observed_generation=united.metadata.generation,
        conditions=conditions.changed(before.conditions, found),
    )
    status = telling(progress, united, status, wire_form, snapshot.now)
    return Conclusion(
        status=status_write(UNITED_DEPLOYMENTS, united, status, wire_form),
        events=tuple(_events(memo, outcomes)),
        effect=effect_of(before, status),
    )


# Conditions


def _conditions(
    known: dict[str, Condition], memo: Memo, outcomes: Outcomes, now: datetime
) -> dict[str, Condition | None]:
    provisioning = _failure(memo, outcomes, phases.DUPLICATES, phases.CREATE, phases.DELETE)
    if memo.refused:
        provisioning = f"{_INEFFECTIVE}: {memo.refused}"
    elif memo.misshapen:
        provisioning = "; ".join(f"subset {name}: {why}" for name, why in sorted(memo.misshapen.items()))
    updating = _failure(memo, outcomes, phases.LABELS, phases.UPDATE)
    has_provisioned = any(outcome.result is Result.DONE for outcome in outcomes.within(phases.CREATE, phases.DELETE))
    found: dict[str, Condition | None] = {
        UPDATED: _updated(known.get(UPDATED), memo, now, has_failed=bool(provisioning or updating))
    }
    if provisioning:
        found[PROVISIONED] = _set(known.get(PROVISIONED), PROVISIONED, False, "Error", provisioning, now)
    elif has_provisioned or PROVISIONED in known:
        found[PROVISIONED] = _set(known.get(PROVISIONED), PROVISIONED, True, "", "", now)
    updated = (False, "Error", updating) if updating else (True, "", "")
    found[SUBSETS_UPDATED] = _set(known.get(SUBSETS_UPDATED), SUBSETS_UPDATED, *updated, now)
    found["SubsetFailure"] = None
    return found


def _updated(before: Condition | None, memo: Memo, now: datetime, *, has_failed: bool) -> Condition:
    """Its time is when an update began or ended (UD-10). What the API refused is not updated."""
    revision = memo.update_revision
    if memo.current_revision == revision and not has_failed:
        status, reason, message = "True", "UnitedDeploymentRevisionUpdated", f"updated to revision {revision}"
    else:
        status, reason, message = "False", "UnitedDeploymentRevisionUpdating", f"updating to revision {revision}"
    since = before.last_transition_time if before is not None and before.status == status else None
    return Condition(
        type=UPDATED,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since or now.replace(microsecond=0),
    )


def _set(before: Condition | None, kind: str, value: bool, reason: str, message: str, now: datetime) -> Condition:
    """UD-9; but the text is the newest: it says what is wrong now."""
    since = before.last_transition_time if before is not None and before.status == str(value) else None
    return Condition(
        type=kind,
        status=str(value),
        reason=reason,
        message=shortened(message, LONGEST_MESSAGE),
        last_transition_time=since or now.replace(microsecond=0),
    )


def _failure(memo: Memo, outcomes: Outcomes, *names: str) -> str:
    """The first refusal, with the subset that it is about."""
    for outcome in outcomes.within(*names):
        if outcome.result is Result.FAILED:
            return f"{_about(memo, outcome)}: {outcome.message}"
    return ""


def _about(memo: Memo, outcome: Outcome) -> str:
    target = outcome.action.target
    subset = memo.subset_of.get(target.name, "")
    named = f"{target.resource.kind} {target.name}"
    return f"subset {subset} ({named})" if subset else named


# Events


def _events(memo: Memo, outcomes: Outcomes) -> Iterator[EventNote]:
    """UD section 8."""
    if memo.refused:
        yield warning("Failed SpecifySubsetReplicas", f"{_INEFFECTIVE}: {memo.refused}")
    for name, why in sorted(memo.misshapen.items()):
        yield warning("FailedUpdateSubset", f"subset {name}: {why}")
    for outcome in outcomes.within(phases.DUPLICATES):
        if outcome.result is Result.FAILED:
            yield warning("FailedDeleteDuplicatedSubsets", outcome.message)
    for outcome in outcomes.within(phases.ADOPT):
        if outcome.result is Result.FAILED:
            yield warning("FailedFindSubsets", outcome.message)
    for name, verb in ((phases.CREATE, "Create"), (phases.DELETE, "Delete")):
        done = list(outcomes.within(name))
        if done and all(outcome.result is Result.DONE for outcome in done):
            message = f"{verb} {len(done)} Subset ({memo.word})"
            yield EventNote(reason="SuccessfulUpdateSubset", message=message)
    for outcome in outcomes.within(phases.CREATE, phases.DELETE, phases.LABELS):
        if outcome.result is Result.FAILED:
            yield warning("FailedUpdateSubset", f"{_about(memo, outcome)}: {outcome.message}")
    for outcome in outcomes.within(phases.UPDATE):
        if outcome.result is Result.FAILED:
            name = outcome.action.target.name
            text = f"Error updating PodSet ({memo.word}) {name} when updating: {outcome.message}"
            yield warning("FailedUpdateSubset", text)
