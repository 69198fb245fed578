"""Taking one unit of a budget, as a value: whether it has to be taken, whether there is one, and what is written then.

The same decision for all who take a pod away: the webhook for every client, and our own controllers before they update
a pod in place (PUB section 12, PUB-100). What is written carries the resourceVersion of the budget that was decided
about: of several who decide at the same time one succeeds, the others decide again (PUB-64).
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from kruise.api.native.pod import Pod
from kruise.api.policy.podunavailablebudget import (
    EVICT,
    POD_UNAVAILABLE_BUDGETS,
    UPDATE,
    PodIdentity,
    PodUnavailableBudget,
    PodUnavailableBudgetStatus,
)
from kruise.machinery import plan as plans
from kruise.machinery.codec import evolve
from kruise.machinery.plan import Action, Target
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.times import format_time
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.availability import is_available
from kruise.protection.podunavailablebudget.operations import guarded_operations

MOST_RECORDS = 2000
DISRUPTION_LASTS = timedelta(seconds=20)
UPDATE_LASTS = timedelta(seconds=10)
_ROUNDING = timedelta(seconds=1)
"""Times are written in whole seconds: a record never ends early."""
_SEEN_WITHIN = timedelta(seconds=2)
"""How long it usually takes at the most until what was let through is done, and seen."""
_DONE_WITHIN = timedelta(seconds=10)
"""How long it can take: an API server waits so long for an answer."""

REFUSAL = "pub unavailable allowed is negative"
TOO_MANY = "DisruptedPods and UnavailablePods map too big - too many pods were let through and not confirmed by the pub"


class Freedom(enum.Enum):
    """Why a pod needs no unit of the budget (PUB-61)."""

    NO_BUDGET = "there is no such budget"
    EXEMPT = "it is exempt by annotation"
    UNAVAILABLE = "it is not available anyway"
    IGNORED = "ignoredPodSelector matches it"
    NO_FLOOR = "no pod has to stay available"
    UNGUARDED = "the budget does not guard this operation"
    RECORDED = "a unit was taken for it already"


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    message: str
    remedy: str = ""
    """What would free it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """A unit is the pod's now, or still: what the status is then."""

    status: PodUnavailableBudgetStatus


Booking = Freedom | Refused | Taken


def book(
    budget: PodUnavailableBudget, pod: Pod, operation: str, *, gates: Mapping[str, bool], now: datetime
) -> Booking:
    """What an operation on a pod means for its budget. Nothing is changed."""
    status = budget.status
    free = freedom(budget, pod, operation, gates=gates, now=now)
    if free is Freedom.RECORDED and operation == EVICT and _ends_soon(status, pod, now):
        return Taken(_recorded(status, pod, operation, now))
    if free is Freedom.RECORDED and _is_of_older_version(status, pod, now):
        return Taken(_identified(status, pod))
    if free is not None:
        return free
    if status.unavailable_allowed <= 0:
        return Refused(f"{REFUSAL} ({shortage(budget)})", remedy(budget))
    if len(status.disrupted_pods) + len(status.unavailable_pods) > MOST_RECORDS:
        return Refused(TOO_MANY, "it goes on when some of them are over")
    return Taken(taken(status, pod, operation, now))


def freedom(
    budget: PodUnavailableBudget, pod: Pod, operation: str, *, gates: Mapping[str, bool], now: datetime
) -> Freedom | None:
    """Why nothing has to be taken; None: a unit has to be. The first reason counts."""
    if keys.is_exempt(pod.metadata.annotations):
        return Freedom.EXEMPT
    if not is_available(pod, resizes=gates.get(keys.RESIZE_GATE, False)):
        return Freedom.UNAVAILABLE
    if is_ignored(budget, pod):
        return Freedom.IGNORED
    if budget.status.desired_available == 0:
        return Freedom.NO_FLOOR
    if operation not in guarded_operations(budget, gates):
        return Freedom.UNGUARDED
    return Freedom.RECORDED if is_let_through(budget.status, pod, now) else None


def is_ignored(budget: PodUnavailableBudget, pod: Pod) -> bool:
    try:
        selector = from_label_selector(budget.spec.ignored_pod_selector)
    except SelectorError:
        return False  # admission refuses it; nobody is ignored by one from before
    return not selector.selects_nothing and not selector.is_empty and selector.matches(pod.metadata.labels)


def is_recorded(status: PodUnavailableBudgetStatus, pod: Pod) -> bool:
    """By uid: another pod of the same name has no share in what was let through for its predecessor."""
    name = pod.metadata.name
    if name not in status.disrupted_pods and name not in status.unavailable_pods:
        return False
    known = status.identities.get(name)
    return known is None or known.uid == pod.metadata.uid


def is_let_through(status: PodUnavailableBudgetStatus, pod: Pod, now: datetime) -> bool:
    """One whose record is over has no share in it, whoever has not noticed yet: a copy of the budget may be old, and as
    long as the record runs nobody drops it while the pod is there. Nor has one whose record is nearly over: what is let
    through now must be seen before the record is dropped."""
    if not is_recorded(status, pod):
        return False
    return now < good_until(status, pod)


def good_until(status: PodUnavailableBudgetStatus, pod: Pod) -> datetime:
    """Of a pod that has a record."""
    return _end(status, pod.metadata.name) - _SEEN_WITHIN


def _ends_soon(status: PodUnavailableBudgetStatus, pod: Pod, now: datetime) -> bool:
    """The API server asks about an eviction once, and may act on the answer as long as it waits for one: another
    version of the pod does not make it ask again. So the record has to last for as long."""
    return now >= good_until(status, pod) - _DONE_WITHIN


def _is_of_older_version(status: PodUnavailableBudgetStatus, pod: Pod, now: datetime) -> bool:
    """Whoever drops a record has to know which version of the pod was let go last (see `decide`), unless that is long
    done by then."""
    known = status.identities.get(pod.metadata.name)
    is_older = known is not None and known.resource_version != pod.metadata.resource_version
    return is_older and now >= _end(status, pod.metadata.name) - _DONE_WITHIN


def _end(status: PodUnavailableBudgetStatus, name: str) -> datetime:
    records = ((status.disrupted_pods, DISRUPTION_LASTS), (status.unavailable_pods, UPDATE_LASTS))
    return max(ends(known[name], lasts) for known, lasts in records if name in known)


def _identified(status: PodUnavailableBudgetStatus, pod: Pod) -> PodUnavailableBudgetStatus:
    identity = PodIdentity(uid=pod.metadata.uid, resource_version=pod.metadata.resource_version)
    return evolve(status, identities={**status.identities, pod.metadata.name: identity})


def taken(status: PodUnavailableBudgetStatus, pod: Pod, operation: str, now: datetime) -> PodUnavailableBudgetStatus:
    recorded = _recorded(status, pod, operation, now)
    return evolve(recorded, unavailable_allowed=status.unavailable_allowed - 1)


def _recorded(
    status: PodUnavailableBudgetStatus, pod: Pod, operation: str, now: datetime
) -> PodUnavailableBudgetStatus:
    name = pod.metadata.name
    disrupted = {key: value for key, value in status.disrupted_pods.items() if key != name}
    updated = {key: value for key, value in status.unavailable_pods.items() if key != name}
    (updated if operation == UPDATE else disrupted)[name] = now.replace(microsecond=0)
    return evolve(_identified(status, pod), disrupted_pods=disrupted, unavailable_pods=updated)


def ends(since: datetime, lasts: timedelta) -> datetime:
    """When a record is over."""
    return since + lasts + _ROUNDING


def records_over(status: PodUnavailableBudgetStatus, now: datetime) -> list[str]:
    """The pods whose records have run out, by name."""
    records = ((status.disrupted_pods, DISRUPTION_LASTS), (status.unavailable_pods, UPDATE_LASTS))
    return sorted(name for known, lasts in records for name, since in known.items() if now >= ends(since, lasts))


def shortage(budget: PodUnavailableBudget) -> str:
    """What it would take, in words."""
    status = budget.status
    under_way = len({*status.disrupted_pods, *status.unavailable_pods})
    text = (
        f"{status.current_available} of {status.total_replicas} pods are available, {status.desired_available} must be"
    )
    if under_way:
        text += f", {under_way} let through just now"
    return text


def is_closed(status: PodUnavailableBudgetStatus) -> bool:
    """It has nothing to give although no pod is missing: no wait opens it."""
    is_whole = status.current_available >= status.total_replicas
    return is_whole and status.unavailable_allowed <= 0 and status.current_available <= status.desired_available


def remedy(budget: PodUnavailableBudget) -> str:
    """What would free it."""
    name = budget.metadata.name
    if is_closed(budget.status):
        return (
            f"change maxUnavailable or minAvailable of podunavailablebudget/{name}, or add replicas;"
            f" a single pod is let through by annotation {keys.NO_PROTECT}=true"
        )
    return f"it goes on when more pods are available; kruise why pub/{name} names those that are not"


def write(budget: PodUnavailableBudget, status: PodUnavailableBudgetStatus, reason: str) -> Action:
    """Never without the resourceVersion."""
    return plans.status_patch(
        Target.of(POD_UNAVAILABLE_BUDGETS, budget),
        wire_form(status),
        uid=budget.metadata.uid,
        reason=reason,
        resource_version=budget.metadata.resource_version,
    )


def wire_form(status: PodUnavailableBudgetStatus) -> dict[str, Any]:
    """The four numbers are always there, the rest only where there is something."""
    document: dict[str, Any] = {
        "unavailableAllowed": status.unavailable_allowed,
        "currentAvailable": status.current_available,
        "desiredAvailable": status.desired_available,
        "totalReplicas": status.total_replicas,
    }
    if status.observed_generation:
        document["observedGeneration"] = status.observed_generation
    if status.disrupted_pods:
        document["disruptedPods"] = _times(status.disrupted_pods.items())
    if status.unavailable_pods:
        document["unavailablePods"] = _times(status.unavailable_pods.items())
    if status.pods_version:
        document["podsVersion"] = status.pods_version
    if status.identities:
        document["identities"] = {
            name: {"uid": pod.uid, "resourceVersion": pod.resource_version}
            for name, pod in sorted(status.identities.items())
        }
    return document


def _times(records: Iterable[tuple[str, datetime]]) -> dict[str, str]:
    return {name: format_time(time) for name, time in sorted(records)}
