"""What stands between a pod and its removal: budgets of both kinds, as one value each. Pure.

Ours decide with the code that decides in admission; the rule of Kubernetes' own is that of its eviction.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.api.native.pod import Pod, is_ready
from kruise.api.native.policy import PodDisruptionBudget
from kruise.api.policy.podunavailablebudget import EVICT, PodUnavailableBudget
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.booking import Freedom, freedom

FINISHED = ("Succeeded", "Failed")


@dataclasses.dataclass(slots=True)
class Guard:
    """A budget, and how many of its pods may still go. It changes while a drain is played."""

    name: str
    """`podunavailablebudget/web`."""
    namespace: str
    allowed: int
    """Below 0: so many pods have to become available before there is one to give."""
    needs: str
    """What it insists on, in words."""
    is_never_free: bool = False
    """All the pods that there should be must be available, so waiting gives nothing."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A budget whose pods go without anybody asking it."""

    name: str
    namespace: str
    needed: int
    """So many of its pods must be available."""
    left: int
    """So many are."""

    @property
    def lacks(self) -> int:
        return self.needed - self.left


class Guards:
    """All budgets that were read."""

    def __init__(
        self,
        unavailable: Iterable[PodUnavailableBudget],
        disruption: Iterable[PodDisruptionBudget],
        *,
        gates: Mapping[str, bool],
        now: datetime,
    ) -> None:
        self._gates = {keys.DELETE_GATE: True, **gates}
        self.now = now
        self._ours = {(one.metadata.namespace, one.metadata.name): (one, _ours(one)) for one in unavailable}
        self._natives = [(one, _native(one)) for one in disruption]

    def against(self, pod: Pod, operation: str = EVICT) -> list[Guard]:
        """Those that have to give something for this. None: nobody minds."""
        found: list[Guard] = []
        name = keys.budget_named_by(pod.metadata.annotations)
        known = self._ours.get((pod.metadata.namespace, name))
        is_asked = self._gates.get(keys.DELETE_GATE, False) and pod.metadata.namespace != KUBE_SYSTEM
        if known is not None and is_asked:
            budget, guard = known
            if freedom(budget, pod, operation, gates=self._gates, now=self.now) is None:
                found.append(guard)
        if operation == EVICT:
            found += self._natives_over(pod)
        return found

    def over(self, pod: Pod) -> list[Guard]:
        """Those that have one more to give when the pod becomes available."""
        known = self._ours.get((pod.metadata.namespace, keys.budget_named_by(pod.metadata.annotations)))
        found = [known[1]] if known is not None else []
        natives = (item for item in self._natives if item[0].metadata.namespace == pod.metadata.namespace)
        return [*found, *(guard for native, guard in natives if _matches(native, pod.metadata.labels))]

    def breaches(self, lost: Iterable[Pod], others: Iterable[Pod] = ()) -> list[Breach]:
        """The budgets over the pods of a workload that are not kept when these, and others, go at once; by name."""
        found: list[Breach] = []
        for (namespace, name), (ours, guard) in self._ours.items():
            over = functools.partial(_names, namespace, name)
            found += _breach(guard, over, lost, others, ours.status.current_available, ours.status.desired_available)
        for native, guard in self._natives:
            over = functools.partial(_selects, native)
            found += _breach(guard, over, lost, others, native.status.current_healthy, native.status.desired_healthy)
        return sorted(found, key=lambda breach: (breach.namespace, breach.name))

    def why_free(self, pod: Pod, operation: str) -> Freedom | None:
        known = self._ours.get((pod.metadata.namespace, keys.budget_named_by(pod.metadata.annotations)))
        return freedom(known[0], pod, operation, gates=self._gates, now=self.now) if known is not None else None

    def _natives_over(self, pod: Pod) -> list[Guard]:
        metadata = pod.metadata
        if pod.status.phase in ("Pending", *FINISHED) or metadata.deletion_timestamp is not None:
            return []
        found = []
        for budget, guard in self._natives:
            if budget.metadata.namespace != metadata.namespace or not _matches(budget, metadata.labels):
                continue
            status = budget.status
            if not is_ready(pod):
                is_free = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
                if is_free or status.current_healthy >= status.desired_healthy > 0:
                    continue
            found.append(guard)
        return found


def _breach(
    guard: Guard,
    over: Callable[[Pod], bool],
    lost: Iterable[Pod],
    others: Iterable[Pod],
    available: int,
    needed: int,
) -> list[Breach]:
    gone = sum(map(over, lost))
    left = max(available - gone - sum(map(over, others)), 0)
    if not gone or left >= needed:
        return []
    return [Breach(name=guard.name, namespace=guard.namespace, needed=needed, left=left)]


def _names(namespace: str, name: str, pod: Pod) -> bool:
    """Whether a pod that is available names one of our budgets."""
    is_here = pod.metadata.namespace == namespace and is_ready(pod)
    return is_here and keys.budget_named_by(pod.metadata.annotations) == name


def _selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    is_here = pod.metadata.namespace == budget.metadata.namespace and is_ready(pod)
    return is_here and _matches(budget, pod.metadata.labels)


def _matches(budget: PodDisruptionBudget, labels: Mapping[str, str]) -> bool:
    try:
        return from_label_selector(budget.spec.selector).matches(labels)
    except SelectorError:
        return False


def _ours(budget: PodUnavailableBudget) -> Guard:
    status = budget.status
    needs = f"{status.current_available} of {status.total_replicas} pods available, {status.desired_available} must be"
    allowed = status.unavailable_allowed or min(0, status.current_available - status.desired_available)
    is_never_free = status.desired_available >= status.total_replicas > 0
    return Guard(_named("podunavailablebudget", budget), budget.metadata.namespace, allowed, needs, is_never_free)


def _native(budget: PodDisruptionBudget) -> Guard:
    status = budget.status
    needs = f"{status.current_healthy} of {status.expected_pods} pods healthy, {status.desired_healthy} must be"
    allowed = status.disruptions_allowed or min(0, status.current_healthy - status.desired_healthy)
    return Guard(_named("poddisruptionbudget", budget), budget.metadata.namespace, allowed, needs)


def _named(kind: str, budget: PodUnavailableBudget | PodDisruptionBudget) -> str:
    return f"{kind}/{budget.metadata.name}"


def names(guards: Sequence[Guard]) -> str:
    return " and ".join(guard.name for guard in guards)
