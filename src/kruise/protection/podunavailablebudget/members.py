"""Which pods count for a budget, and how many there should be (PUB-30 to PUB-35).

The pods of a selector are not looked for in the whole namespace at every pass: whoever watches pods notes which of them
come and go for each budget, and only a budget that is new is looked for once.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kruise.api.meta import Key, controller_of, key_of
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.machinery.codec import Struct
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import Stores
from kruise.machinery.store import Store
from kruise.protection.podunavailablebudget import workloads
from kruise.protection.podunavailablebudget.indexes import PODS_OF
from kruise.protection.podunavailablebudget.operations import total_replicas
from kruise.protection.podunavailablebudget.workloads import Owner


class Members(Struct):
    """What a budget is about, right now."""

    pods: tuple[Pod, ...] = ()
    """Active ones (PUB-32), by name."""
    strays: tuple[Pod, ...] = ()
    """Pods that have a record, and a controller that is not known yet: they are ours or not, that will be seen."""
    gone: tuple[str, ...] = ()
    """Uids of pods that are finished or on their way out."""
    total: int = 0
    """How many pods there should be; below 0: nobody tells."""
    is_target_missing: bool = False
    is_abandoned: bool = False
    """There are pods, and the workloads of all of them are gone: nobody wants them any more."""
    uncounted: tuple[str, ...] = ()
    """Workloads that do not tell how many pods they should have."""
    is_asked: bool = False
    """A workload had to be asked: nobody hears when it is scaled."""
    version: int = 0
    """The newest version of a pod that was seen."""
    behind: tuple[str, ...] = ()
    """Pods of records that are over, and of which not all has been seen yet."""


class Selected:
    """The pods of each budget with a selector, kept up to date with the changes of pods."""

    def __init__(self) -> None:
        self._stores: weakref.WeakKeyDictionary[Store[Any], dict[Key, tuple[str, set[str]]]] = (
            weakref.WeakKeyDictionary()
        )

    def note(self, old: Pod | None, new: Pod | None, stores: Stores) -> None:
        """A pod has changed."""
        if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
            return
        known = self._stores.setdefault(stores.store(PODS), {})
        if not known:
            return
        for pod, is_member in ((old, False), (new, True)):
            if pod is None:
                continue
            for budget in _selecting(pod, stores):
                found = known.get(key_of(budget))
                if found is not None and found[0] == budget.metadata.uid:
                    (found[1].add if is_member else found[1].discard)(pod.metadata.name)

    def forget(self, budget: Key, stores: Stores) -> None:
        self._stores.setdefault(stores.store(PODS), {}).pop(budget, None)

    def pods_of(self, budget: PodUnavailableBudget, stores: Stores) -> tuple[Pod, ...]:
        pods = stores.store(PODS)
        namespace = budget.metadata.namespace
        known = self._stores.get(pods)
        if known is None:
            return tuple(_matching(budget, pods.list(namespace)))  # nobody tells of changes here: a single look
        found = known.get(key_of(budget))
        if found is None or found[0] != budget.metadata.uid:
            names = {pod.metadata.name for pod in _matching(budget, pods.list(namespace))}
            found = known[key_of(budget)] = (budget.metadata.uid, names)
        there = (pods.get(namespace, name) for name in sorted(found[1]))
        return tuple(pod for pod in there if pod is not None)


def _selecting(pod: Pod, stores: Stores) -> Iterable[PodUnavailableBudget]:
    metadata = pod.metadata
    return stores.store(POD_UNAVAILABLE_BUDGETS).selecting(PODS_OF, metadata.labels, metadata.namespace)


def _matching(budget: PodUnavailableBudget, pods: Iterable[Pod]) -> Iterable[Pod]:
    try:
        selector = from_label_selector(budget.spec.selector)
    except SelectorError:
        return ()
    if selector.is_empty:
        return ()
    return (pod for pod in pods if selector.matches(pod.metadata.labels))


def owners_to_ask(
    budget: PodUnavailableBudget, stores: Stores, selected: Selected, answers: workloads.Answers
) -> tuple[Owner, ...]:
    """The workloads behind a budget of which only the API server can tell, beyond what it said already: those of kinds
    that nobody watches, and those that a store does not have."""
    namespace, target = budget.metadata.namespace, workloads.owner_of(budget.spec.target_ref)
    looks: list[Callable[[], object]]
    if target is not None:
        looks = [functools.partial(workloads.find, stores, target, namespace, answers)]
    else:
        live = [pod for pod in selected.pods_of(budget, stores) if is_active(pod)]
        looks = [
            functools.partial(workloads.counted_by, stores, controller, where, answers)
            for controller, where in workloads.controllers_of(live)
        ]
    found: dict[Owner, None] = {}
    for look in looks:
        try:
            look()
        except workloads.NotAskedYetError as error:
            found[error.owner] = None
        except workloads.NotKnownYetError:
            continue  # it is waited for
    return tuple(found)


def members_of(
    budget: PodUnavailableBudget, stores: Stores, selected: Selected, answers: workloads.Answers | None = None
) -> Members:
    """`answers`: of the workloads that had to be asked; None: nobody could ask. Raises NotKnownYetError as long as it
    cannot be told."""
    namespace, target = budget.metadata.namespace, workloads.owner_of(budget.spec.target_ref)
    is_missing = is_abandoned = False
    uncounted: tuple[str, ...] = ()
    if target is None:
        found = selected.pods_of(budget, stores)
        live = [pod for pod in found if is_active(pod)]
        counted = workloads.counted_over(stores, live, answers)
        is_abandoned = not counted and bool(live) and all(controller_of(pod) is not None for pod in live)
        total = sum(item.replicas for item in counted)
        uncounted = tuple(item.name for item in counted if item.replicas < 0)
    else:
        workload = workloads.find(stores, target, namespace, answers)
        is_missing = workload is None and (target.is_watched or answers is not None)
        if target.is_watched:
            total = 0 if is_missing else workloads.replicas_of(workload)
            found = workloads.pods_of(stores, workload, target.kind) if total != 0 else ()
        else:
            total = _total(budget, workload, answers)
            found = workloads.pods_of_asked(stores, target, workload, namespace) if total != 0 else ()
            uncounted = (str(target),) if total < 0 else ()
    own = total_replicas(budget)
    store = stores.store(PODS)
    active = [pod for pod in found if is_active(pod) and not store.is_terminating(pod)]
    return Members(
        pods=tuple(sorted(active, key=lambda pod: pod.metadata.name)),
        strays=tuple(_strays(budget, stores, {pod.metadata.name for pod in found})),
        gone=tuple(sorted(pod.metadata.uid for pod in found if not is_active(pod) or store.is_terminating(pod))),
        total=own if own is not None and not is_missing else total,
        is_target_missing=is_missing,
        is_abandoned=is_abandoned and own is None,
        uncounted=uncounted if own is None else (),
        is_asked=any(not owner.is_watched for owner in answers or ()),
        version=store.watermark,
    )


def _strays(budget: PodUnavailableBudget, stores: Stores, known: Collection[str]) -> Iterable[Pod]:
    store = stores.store(PODS)
    for name in sorted({*budget.status.disrupted_pods, *budget.status.unavailable_pods}.difference(known)):
        pod = store.get(budget.metadata.namespace, name)
        if pod is None or not is_active(pod) or store.is_terminating(pod):
            continue
        if workloads.is_unknown(stores, controller_of(pod), pod.metadata.namespace):
            yield pod


def behind(members: Members, pods: Mapping[str, int | None], over: Iterable[str]) -> tuple[str, ...]:
    """Those of which the store does not know yet what the API server does, or of which nobody has asked it. `pods`:
    their versions there; None: gone. `over`: the pods whose records are over."""
    there = {pod.metadata.name for pod in members.pods}
    late = (name for name, version in pods.items() if (name in there if version is None else version > members.version))
    return tuple(sorted({*late, *(name for name in over if name not in pods)}))


def _total(budget: PodUnavailableBudget, asked: workloads.Asked | None, answers: workloads.Answers | None) -> int:
    """Of a workload that nobody watches. Where nobody could ask, what the manager found last."""
    if asked is not None:
        return asked.replicas
    if answers is not None:
        return 0
    return budget.status.total_replicas if budget.status.observed_generation else workloads.UNKNOWN
