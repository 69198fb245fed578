"""What people have made, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kruise.doctor.findings import ABOUT_NOBODY, NEVER_MET, STUCK, WAITS, Finding
from kruise.doctor.snapshot import Leaving, Snapshot
from kruise.machinery.ages import age
from kruise.machinery.causes import Act
from kruise.machinery.wording import listed
from kruise.manager.installation.documents import placed
from kruise.reasons.summary import end_of, line_of

_PATIENCE = timedelta(minutes=5)
"""For which it is normal that an object that is to go is still there, or that a budget protects nobody yet."""
_COLLECTOR = {
    "foregroundDeletion": "what it owns is still there: see what holds that",
    "orphan": "the garbage collector has not let its dependents go",
    "kubernetes": "the namespace still has objects: kubectl describe namespace tells which",
}


def rules(seen: Snapshot) -> Iterator[Finding]:
    for leaving in seen.leaving:
        if seen.now - leaving.since > _PATIENCE and leaving.finalizers:
            yield _stuck(leaving, seen)
    for answer in seen.waits:
        if answer.act is Act.SOMEBODY:
            end = end_of(answer)
            yield WAITS.found(
                placed(answer.target, answer.namespace),
                line_of(answer).partition(": ")[2],
                end.remedy if end is not None else "",
            )
    yield from _budgets(seen)
    yield from _disruption_budgets(seen)


def _stuck(leaving: Leaving, seen: Snapshot) -> Finding:
    told, remedies = [], []
    for finalizer in leaving.finalizers:
        told.append(finalizer)
        if finalizer in _COLLECTOR:
            remedies.append(_COLLECTOR[finalizer])
        elif not is_ours(finalizer):
            remedies.append(f"whoever put {finalizer} there must take it off; where they are gone: kubectl edit")
        elif seen.has_manager:
            remedies.append(f"the manager takes {finalizer} off: kruise why, and its log, say what it waits for")
        else:
            remedies.append(f"a manager takes {finalizer} off, and none is at work")
    return STUCK.found(
        leaving.about,
        f"it was deleted {age(leaving.since, seen.now)} ago and is held by {listed(told)}",
        "; ".join(remedies),
    )


def is_ours(finalizer: str) -> bool:
    domain = finalizer.partition("/")[0]
    return domain == "kruise.io" or domain.endswith(".kruise.io")


def _budgets(seen: Snapshot) -> Iterator[Finding]:
    for budget in seen.budgets:
        status, metadata = budget.status, budget.metadata
        about = placed(f"podunavailablebudget/{metadata.name}", metadata.namespace)
        if status.observed_generation < metadata.generation:
            continue  # its numbers are of an older spec
        made = metadata.creation_timestamp
        if status.total_replicas > 0 and status.desired_available >= status.total_replicas:
            yield NEVER_MET.found(
                about, _never(status.desired_available, status.total_replicas), _ROOM.format(what="delete and update")
            )
        elif not status.total_replicas and made is not None and seen.now - made > _PATIENCE:
            yield ABOUT_NOBODY.found(about, "no pod belongs to it", "correct its selector or targetRef, or delete it")


def _disruption_budgets(seen: Snapshot) -> Iterator[Finding]:
    for budget in seen.disruption_budgets:
        status, metadata = budget.status, budget.metadata
        if status.observed_generation < metadata.generation or not status.expected_pods:
            continue
        if status.desired_healthy >= status.expected_pods:
            yield NEVER_MET.found(
                placed(f"poddisruptionbudget/{metadata.name}", metadata.namespace),
                _never(status.desired_healthy, status.expected_pods),
                _ROOM.format(what="drain nodes"),
            )


_ROOM = "lower minAvailable or raise maxUnavailable by one pod, or nobody can {what} without deleting the budget"


def _never(desired: int, total: int) -> str:
    return f"{desired} of {total} pods must stay available, so none may ever go"
