"""By what budgets and their pods are found. The same for the controller, the webhooks and the workloads that ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from kruise.api.meta import Key, controller_of, key_of
from kruise.api.native.apps import REPLICA_SETS
from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.api.policy.shared import GROUP
from kruise.machinery.selector_index import Selects
from kruise.machinery.spec import OWNER_INDEX, Stores
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.workloads import KINDS, group_of, owners_of

TARGETS = f"{GROUP}/targets"
PODS_OF = f"{GROUP}/pods"
GUARDED = f"{GROUP}/guarded"
ANY = "*"
"""In place of a name: of no workload, so it stands for all. In place of a kind: of no kind that is watched."""


def target_value(namespace: str, group: str, kind: str, name: str) -> str:
    return f"{namespace}/{group}/{kind}/{name}"


def _targets(budget: PodUnavailableBudget) -> tuple[str, ...]:
    reference = budget.spec.target_ref
    if reference is None:
        return ()
    namespace, group, kind = budget.metadata.namespace, group_of(reference.api_version), reference.kind
    found = (target_value(namespace, group, kind, reference.name), target_value(namespace, group, kind, ANY))
    return found if (group, kind) in KINDS else (*found, target_value(namespace, ANY, ANY, ANY))


def _selects(budget: PodUnavailableBudget) -> tuple[Selects, ...]:
    if budget.spec.target_ref is not None or budget.spec.selector is None:
        return ()  # a targetRef takes precedence (PUB-30)
    selector = budget.spec.selector
    if not selector.match_labels and not selector.match_expressions:
        return ()
    return (Selects(selector, budget.metadata.namespace),)


def guarded_value(namespace: str, budget: str) -> str:
    return f"{namespace}/{budget}"


def _guarded(pod: Pod) -> tuple[str, ...]:
    name = keys.budget_named_by(pod.metadata.annotations)
    return (guarded_value(pod.metadata.namespace, name),) if name else ()


GUARDED_INDEX: Mapping[str, Callable[[Pod], Iterable[str]]] = {GUARDED: _guarded}
WATCHED_BUDGETS: Watched[PodUnavailableBudget] = Watched(
    POD_UNAVAILABLE_BUDGETS, indexes={TARGETS: _targets}, selectors={PODS_OF: _selects}
)
SERVED_BUDGETS: Watched[PodUnavailableBudget] = dataclasses.replace(WATCHED_BUDGETS, optional=True)
"""For those who work without budgets, too."""
WATCHED_PODS: Watched[Pod] = Watched(PODS, indexes={**OWNER_INDEX, **GUARDED_INDEX})
WATCHED_REPLICA_SETS = Watched(REPLICA_SETS, indexes=OWNER_INDEX)


def budgets_over(pod: Pod, stores: Stores) -> list[PodUnavailableBudget]:
    """Those whose selector matches the pod, or whose workload it belongs to, by name: whatever the pod itself says."""
    budgets: Store[PodUnavailableBudget] = stores.store(POD_UNAVAILABLE_BUDGETS)
    metadata = pod.metadata
    found = list(budgets.selecting(PODS_OF, metadata.labels, metadata.namespace))
    reference = controller_of(pod)
    if reference is not None:
        for owner in owners_of(stores, reference, metadata.namespace):
            found += budgets.by_index(TARGETS, target_value(metadata.namespace, *owner))
    return sorted(found, key=lambda budget: budget.metadata.name)


def keys_over(pod: Pod | None, stores: Stores) -> list[Key]:
    """The budgets that a pod counts for, and the one that it names."""
    if pod is None:
        return []
    found = [key_of(budget) for budget in budgets_over(pod, stores)]
    name = keys.budget_named_by(pod.metadata.annotations)
    return [*found, Key(pod.metadata.namespace, name)] if name else found
