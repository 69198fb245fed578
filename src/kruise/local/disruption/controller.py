"""How disruption budgets are watched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kruise.api.meta import Key, OwnerReference, controller_of
from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS, PodDisruptionBudget
from kruise.local.disruption import decide
from kruise.machinery.mapping import selected_by
from kruise.machinery.selector_index import Selects
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, own_key
from kruise.machinery.watched import Watched

NAME = "disruption-controller"
_SELECTED = "disruption/pods"

Scale = Callable[[OwnerReference, str], tuple[str, int] | str]
"""Uid and size of the workload at the top of a controller in a namespace, or why that cannot be told."""


def _selects(budget: PodDisruptionBudget) -> tuple[Selects, ...]:
    return (Selects(budget.spec.selector, budget.metadata.namespace),)


def specs(scale: Scale) -> tuple[ControllerSpec[Any], ...]:
    of_pod = selected_by(POD_DISRUPTION_BUDGETS, _SELECTED)

    def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        if not len(stores.store(POD_DISRUPTION_BUDGETS)) or (old is not None and new is not None and _alike(old, new)):
            return ()
        return of_pod(old, new, stores)

    def snapshot(view: View, key: Key) -> decide.Snapshot | None:
        budget = view.store(POD_DISRUPTION_BUDGETS).get(*key)
        if budget is None:
            return None
        try:
            selector = from_label_selector(budget.spec.selector)
        except SelectorError:
            return None
        pods = tuple(pod for pod in view.store(PODS).list(key.namespace) if selector.matches(pod.metadata.labels))
        scales, error = _scales(pods, scale)
        return decide.Snapshot(budget=budget, pods=pods, scales=scales, error=error, now=view.now)

    return (
        ControllerSpec(
            name=NAME,
            subject=POD_DISRUPTION_BUDGETS,
            sources=(
                Source(Watched(POD_DISRUPTION_BUDGETS, selectors={_SELECTED: _selects}), own_key),
                Source(PODS, pod_keys),
            ),
            snapshot=snapshot,
            decide=decide.decide,
            conclude=decide.conclude,
            snapshot_type=decide.Snapshot,
            workers=1,
        ),
    )


def _scales(pods: Iterable[Pod], scale: Scale) -> tuple[dict[str, int], str]:
    sizes: dict[str, int] = {}
    seen: set[str] = set()
    for pod in pods:
        reference = controller_of(pod)
        if reference is None or reference.uid in seen:
            continue
        seen.add(reference.uid)
        found = scale(reference, pod.metadata.namespace)
        if isinstance(found, str):
            return {}, found or f'found no controllers for pod "{pod.metadata.name}"'
        sizes[found[0]] = found[1]
    return sizes, ""


def _alike(old: Pod, new: Pod) -> bool:
    before, after = old.metadata, new.metadata
    return (
        before.uid == after.uid
        and before.labels == after.labels
        and before.owner_references == after.owner_references
        and (before.deletion_timestamp is None) == (after.deletion_timestamp is None)
        and is_ready(old) == is_ready(new)
    )
