"""What follows once the copies were written: the status (RD section 3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kruise.api.apps.resourcedistribution import (
    RESOURCE_DISTRIBUTIONS,
    DistributionCondition,
    ResourceDistributionStatus,
)
from kruise.machinery import plan as plans
from kruise.machinery.codec import to_builtins
from kruise.machinery.plan import Conclusion, Outcome, Outcomes, Plan, Result, StatusEffect, Target
from kruise.machinery.times import format_time
from kruise.operations.resourcedistribution.decide import CREATE, CREATE_FAILED, DELETE, UPDATE, UPDATE_FAILED, Memo
from kruise.operations.resourcedistribution.snapshot import Snapshot

GET_FAILED, DELETE_FAILED = "GetResourceFailed", "DeleteResourceFailed"
CONFLICT, NO_NAMESPACE = "ConflictOccurred", "NamespaceNotExists"
TYPES = (GET_FAILED, CREATE_FAILED, UPDATE_FAILED, DELETE_FAILED, CONFLICT, NO_NAMESPACE)
"""RD-2: always all, in this order."""
SUCCEEDED = "Succeeded"
CONFLICT_TEXT = "conflict with existing resources because of the same namespace, group, version, kind and name"
NO_NAMESPACE_TEXT = "namespace not found or is terminating"


class _Failure(NamedTuple):
    reason: str
    namespaces: tuple[str, ...]


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is None or outcomes.must_decide_again:
        return Conclusion()
    memo, failures = plan.memo_as(Memo), _failures(plan.memo_as(Memo), outcomes)
    done = sum(outcome.result is Result.DONE for outcome in outcomes.within(CREATE, UPDATE))
    status = _status(snapshot, memo.desired, memo.kept + done, failures)
    # RD-31: what cannot be copied is not tried again before it is changed.
    retry = "" if memo.problem else "; ".join(failures[kind].reason for kind in TYPES[:4] if kind in failures)
    if status == snapshot.distribution.status:
        return Conclusion(retry=retry)
    write = plans.status_patch(
        Target.of(RESOURCE_DISTRIBUTIONS, snapshot.distribution),
        _wire_form(status),
        uid=snapshot.distribution.metadata.uid,
        reason="the status changed",
    )
    return Conclusion(status=write, retry=retry, effect=StatusEffect.INFORMS)


def _failures(memo: Memo, outcomes: Outcomes) -> Mapping[str, _Failure]:
    """By type of condition."""
    created = [outcome for outcome in outcomes.within(CREATE) if outcome.result is Result.FAILED]
    # Somebody else was faster: the store will tell of it.
    taken = [outcome for outcome in created if outcome.error_reason == "AlreadyExists"]
    refused = [outcome for outcome in created if outcome.error_reason != "AlreadyExists"]
    conflicts = (*memo.conflicts, *(outcome.action.target.namespace for outcome in taken))
    found = {
        CREATE_FAILED: _Failure(memo.problem, memo.unfit) if memo.problem else _failure(refused),
        UPDATE_FAILED: _failure(outcomes.within(UPDATE)),
        DELETE_FAILED: _failure(outcomes.within(DELETE)),
        CONFLICT: _Failure(CONFLICT_TEXT, tuple(sorted(conflicts))),
        NO_NAMESPACE: _Failure(NO_NAMESPACE_TEXT, memo.missing),
    }
    return {kind: failure for kind, failure in found.items() if failure.namespaces}


def _failure(outcomes: Iterable[Outcome]) -> _Failure:
    failed = [outcome for outcome in outcomes if outcome.result is Result.FAILED]
    names = tuple(sorted(outcome.action.target.namespace for outcome in failed))
    return _Failure(failed[-1].message if failed else "", names)


def _status(
    snapshot: Snapshot, desired: int, succeeded: int, failures: Mapping[str, _Failure]
) -> ResourceDistributionStatus:
    distribution = snapshot.distribution
    known = distribution.status.conditions
    before = {item.type: item for item in known} if len(known) == len(TYPES) else {}  # RD-76
    now = snapshot.now.replace(microsecond=0)

    def condition(kind: str) -> DistributionCondition:
        failure, previous = failures.get(kind), before.get(kind)
        status = "True" if failure is not None else "False"
        unchanged = previous is not None and previous.status == status
        return DistributionCondition(
            type=kind,
            status=status,
            last_transition_time=previous.last_transition_time if previous is not None and unchanged else now,  # RD-3
            reason=failure.reason if failure is not None else SUCCEEDED,
            failed_namespaces=failure.namespaces if failure is not None else (),
        )

    return ResourceDistributionStatus(
        desired=desired,
        succeeded=succeeded,
        failed=desired - succeeded,
        observed_generation=distribution.metadata.generation,
        conditions=tuple(condition(kind) for kind in TYPES),
    )


def _wire_form(status: ResourceDistributionStatus) -> dict[str, Any]:
    # Zeros, too: a column that says nothing could mean anything.
    document: dict[str, Any] = {"desired": 0, "succeeded": 0, "failed": 0, **to_builtins(status)}
    for item, condition in zip(document["conditions"], status.conditions, strict=True):
        if condition.last_transition_time is not None:
            item["lastTransitionTime"] = format_time(condition.last_transition_time)
    return document
