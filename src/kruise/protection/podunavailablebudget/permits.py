"""What workloads ask budgets before they take a pod away themselves (IPU-160, PUB-100).

A pass collects what it needs. For updates in place all of it is written into each budget at once, before the first pod
is touched: an update makes its pod unready by a write that no webhook sees. So that write is good only for the version
of the pod that was decided about, and only as long as the record of the budget. Deletions are only looked at here: the
webhook takes the unit when it comes, and refuses where others were faster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from kruise.api.meta import Key, controller_of, key_of
from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import (
    DELETE,
    POD_UNAVAILABLE_BUDGETS,
    UPDATE,
    PodUnavailableBudget,
    PodUnavailableBudgetStatus,
)
from kruise.api.resource import Resource, refers_to
from kruise.feature import Settings
from kruise.machinery.causes import Cause
from kruise.machinery.codec import evolve
from kruise.machinery.plan import Chain, OnError, Phase
from kruise.machinery.spec import Source, Stores, View
from kruise.protection.podunavailablebudget import causes, keys
from kruise.protection.podunavailablebudget.booking import (
    Freedom,
    Refused,
    Taken,
    book,
    good_until,
    is_closed,
    remedy,
    shortage,
    write,
)
from kruise.protection.podunavailablebudget.indexes import GUARDED, SERVED_BUDGETS, guarded_value

BUDGET_PHASE = "budget"


class Permits:
    """One pass's view of the budgets over its pods."""

    def __init__(self, budgets: Iterable[PodUnavailableBudget], *, gates: Mapping[str, bool], now: datetime) -> None:
        self._known = {key_of(budget): budget for budget in budgets}
        self._left = dict(self._known)
        """With what this pass has asked for so far."""
        self._booked: dict[Key, list[Pod]] = {}
        self._gates = gates
        self._now = now
        self._until: datetime | None = None

    def may_update(self, pod: Pod) -> Cause | None:
        """None: a unit is taken for it, or none is needed. Otherwise why it has to wait."""
        return self._ask(pod, UPDATE) if self._gates.get(keys.UPDATE_GATE, False) else None

    def may_delete(self, pod: Pod) -> Cause | None:
        return self._ask(pod, DELETE) if self._gates.get(keys.DELETE_GATE, False) else None

    def _ask(self, pod: Pod, operation: str) -> Cause | None:
        key = Key(pod.metadata.namespace, keys.budget_named_by(pod.metadata.annotations))
        budget = self._left.get(key)
        if budget is None:
            return None
        said = book(budget, pod, operation, gates=self._gates, now=self._now)
        if isinstance(said, Refused):
            return self._cause(key)
        if isinstance(said, Taken):
            self._left[key] = evolve(budget, status=said.status)
            if operation == UPDATE:
                self._booked.setdefault(key, []).append(pod)
        if operation == UPDATE and (isinstance(said, Taken) or said is Freedom.RECORDED):
            until = good_until(self._left[key].status, pod)
            self._until = until if self._until is None else min(self._until, until)
        return None

    def guarded(self, pod: Pod, chain: Chain) -> Chain:
        """The writes of an update that was asked about. Those to a pod of a budget begin in its very version: whoever
        gives a unit back gives the pod another one."""
        key = Key(pod.metadata.namespace, keys.budget_named_by(pod.metadata.annotations))
        if key not in self._known or not chain or not self._gates.get(keys.UPDATE_GATE, False):
            return chain
        first, *others = chain
        return (dataclasses.replace(first, resource_version=pod.metadata.resource_version), *others)

    @property
    def good_until(self) -> datetime | None:
        """When the first of the units is nearly over: nothing is begun from then on."""
        return self._until

    def _cause(self, key: Key) -> Cause:
        budget, details = self._known[key], {"budget": key.name}
        if is_closed(budget.status):
            message = f"budget {key.name} lets no pod be unavailable ({shortage(budget)})"
            return causes.CLOSED_BUDGET.cause(message, details=details, remedy=remedy(budget))
        message = f"budget {key.name} is used up ({shortage(self._left[key])})"
        return causes.BUDGET.cause(message, details=details, remedy=remedy(budget))

    @property
    def phase(self) -> Phase:
        """What has to be written before the first pod is touched. One write for each budget, however many pods."""
        chains = tuple(
            (write(self._known[key], self._status(key, pods), f"update of {len(pods)} pods"),)
            for key, pods in sorted(self._booked.items())
        )
        return Phase(name=BUDGET_PHASE, chains=chains, on_error=OnError.STOP_PLAN)

    def _status(self, key: Key, pods: Iterable[Pod]) -> PodUnavailableBudgetStatus:
        budget = self._known[key]
        for pod in pods:
            said = book(budget, pod, UPDATE, gates=self._gates, now=self._now)
            budget = evolve(budget, status=said.status) if isinstance(said, Taken) else budget
        return budget.status


def is_asked(gates: Mapping[str, bool]) -> bool:
    return keys.is_guarding(gates)


def budgets_of(view: View, pods: Iterable[Pod]) -> tuple[PodUnavailableBudget, ...]:
    """Those that the pods name. A cluster that serves no budgets has none."""
    named = {(pod.metadata.namespace, keys.budget_named_by(pod.metadata.annotations)) for pod in pods}
    named = {(namespace, name) for namespace, name in named if name}
    if not named or not is_asked(view.gates):
        return ()
    store = view.store(POD_UNAVAILABLE_BUDGETS)
    found = (store.get(namespace, name) for namespace, name in sorted(named))
    return tuple(budget for budget in found if budget is not None)


def budget_sources(settings: Settings, workloads: Resource[Any]) -> tuple[Source[PodUnavailableBudget], ...]:
    """For controllers that ask about pods of their own."""

    def owner_of(pod: Pod) -> tuple[Key, ...]:
        owner = controller_of(pod)
        is_theirs = owner is not None and refers_to(owner, workloads)
        return (Key(pod.metadata.namespace, owner.name),) if owner is not None and is_theirs else ()

    return budget_sources_of(settings, owner_of)


def budget_sources_of(
    settings: Settings, who_asks: Callable[[Pod], Iterable[Key]]
) -> tuple[Source[PodUnavailableBudget], ...]:
    """A budget that has more to give lets those go on that it held: whoever asks about one of its pods."""
    if not is_asked(settings.gates):
        return ()

    def keys_of(old: PodUnavailableBudget | None, new: PodUnavailableBudget | None, stores: Stores) -> Iterable[Key]:
        if old is not None and new is not None and not _opens(old, new):
            return ()
        changed = new if new is not None else old
        if changed is None:
            return ()
        guarded = stores.store(PODS).by_index(GUARDED, guarded_value(*key_of(changed)))
        return dict.fromkeys(key for pod in guarded for key in who_asks(pod))

    return (Source(SERVED_BUDGETS, keys_of),)


def _opens(old: PodUnavailableBudget, new: PodUnavailableBudget) -> bool:
    return (
        new.status.unavailable_allowed > old.status.unavailable_allowed
        or new.metadata.generation != old.metadata.generation
        or new.status.desired_available < old.status.desired_available
    )
