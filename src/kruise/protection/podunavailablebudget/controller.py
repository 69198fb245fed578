"""How budgets are watched, and what they bring to the manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kruise.admission.chain import PodStep
from kruise.admission.registry import Handler, ValidatingHandler
from kruise.admission.validating_chain import PodOperation, PodValidationStep
from kruise.api.meta import Key, controller_of, key_of
from kruise.api.native.pod import Pod, is_active
from kruise.api.policy.conversion.podunavailablebudget import convert
from kruise.api.policy.definitions.podunavailablebudget import DEFINITION
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.api.policy.shared import GROUP
from kruise.api.resource import Resource
from kruise.feature import Conversion, Feature, PodMutation, PodValidation, Settings
from kruise.machinery.codec import Raw, decode, evolve
from kruise.machinery.revisions import template_labels
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, own_key
from kruise.machinery.watched import Kinds, Watched
from kruise.protection.podunavailablebudget import decide as deciding
from kruise.protection.podunavailablebudget import keys, validation
from kruise.protection.podunavailablebudget.admission import guard, mark
from kruise.protection.podunavailablebudget.availability import is_available
from kruise.protection.podunavailablebudget.booking import records_over
from kruise.protection.podunavailablebudget.conclude import conclude
from kruise.protection.podunavailablebudget.counts import Looked, asking
from kruise.protection.podunavailablebudget.decide import Snapshot
from kruise.protection.podunavailablebudget.indexes import (
    PODS_OF,
    SERVED_BUDGETS,
    TARGETS,
    WATCHED_BUDGETS,
    WATCHED_PODS,
    WATCHED_REPLICA_SETS,
    keys_over,
    target_value,
)
from kruise.protection.podunavailablebudget.members import Members, Selected, behind, members_of
from kruise.protection.podunavailablebudget.workloads import NATIVE, OPTIONAL, NotKnownYetError, owner_of, replicas_of

NAME = "podunavailablebudget-controller"
_GATES = (keys.DELETE_GATE, keys.UPDATE_GATE, keys.RESIZE_GATE)


class _Watching:
    """Which changes concern which budgets, and what a pass sees."""

    def __init__(self, settings: Settings) -> None:
        self.selected = Selected()
        self._gates = {name: settings.gates.get(name, False) for name in _GATES}
        self._resizes = self._gates[keys.RESIZE_GATE]

    def budget_keys(
        self, old: PodUnavailableBudget | None, new: PodUnavailableBudget | None, stores: Stores
    ) -> Iterable[Key]:
        if new is None and old is not None:
            self.selected.forget(key_of(old), stores)
        return own_key(old, new, stores)

    def pod_keys(self, old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        """PUB-55: only what changes the numbers, or a pod that does not know yet who guards it."""
        self.selected.note(old, new, stores)
        if not len(stores.store(POD_UNAVAILABLE_BUDGETS)):
            return ()  # nobody uses budgets: pods cost nothing
        if (
            old is not None
            and new is not None
            and old.metadata.uid == new.metadata.uid
            and self._counts_alike(old, new)
        ):
            return ()
        return dict.fromkeys((*keys_over(old, stores), *keys_over(new, stores)))

    def _counts_alike(self, old: Pod, new: Pod) -> bool:
        before, after = old.metadata, new.metadata
        return (
            before.labels == after.labels
            and before.owner_references == after.owner_references
            and keys.budget_named_by(before.annotations) == keys.budget_named_by(after.annotations)
            and is_active(old) == is_active(new)
            and is_available(old, resizes=self._resizes) == is_available(new, resizes=self._resizes)
        )

    def snapshot(self, view: View, key: Key) -> Snapshot | None:
        budget = view.store(POD_UNAVAILABLE_BUDGETS).get(*key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return None
        waits_for, members = "", Members()
        try:
            looked: Looked | None = view.outside
            members = members_of(budget, view, self.selected, looked.answers if looked is not None else None)
            over = records_over(budget.status, view.now)
            if looked is not None and over:
                members = evolve(members, behind=behind(members, looked.pods, over))
            # Of this very budget: it may have changed since somebody looked.
            version = budget.status.pods_version
            if looked is not None and members.version < version != looked.strange:
                waits_for = "the pods that were seen are older than those that the numbers are of"
        except NotKnownYetError as error:
            waits_for = str(error)
        return Snapshot(budget=budget, members=members, now=view.now, gates=self._gates, waits_for=waits_for)


def _workload_keys(resource: Resource[Any]) -> Callable[[Any, Any, Stores], Iterable[Key]]:
    """PUB-56: of workloads that come, go or are scaled. A scaled-down one lowers the floor before its pods go."""

    def keys_of(old: Any, new: Any, stores: Stores) -> Iterable[Key]:
        if old is not None and new is not None and _size(old) == _size(new):
            return ()
        changed = new if new is not None else old
        if changed is None:
            return ()
        metadata = changed.metadata
        budgets = stores.store(POD_UNAVAILABLE_BUDGETS)
        value = target_value(metadata.namespace, resource.group, resource.kind, metadata.name)
        found = list(budgets.by_index(TARGETS, value))
        above = owner_of(controller_of(changed))
        if above is not None and (old is None or new is None):
            # Of a ReplicaSet, whose pods may have been seen before it was.
            found += budgets.by_index(TARGETS, target_value(metadata.namespace, *above))
        if len(budgets):
            labels = template_labels(_template(changed.spec.template))
            found += budgets.selecting(PODS_OF, labels, metadata.namespace)
        return dict.fromkeys(key_of(budget) for budget in found)

    return keys_of


def _template(template: Any) -> Any:
    return decode(template, dict[str, Any]) if isinstance(template, Raw) else template


def _size(workload: Any) -> tuple[str, int, bool]:
    metadata = workload.metadata
    return metadata.uid, replicas_of(workload), metadata.deletion_timestamp is not None


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    if not keys.is_guarding(settings.gates):
        return ()  # PUB-50
    watching = _Watching(settings)
    sources: list[Source[Any]] = [
        Source(WATCHED_BUDGETS, watching.budget_keys),
        Source(WATCHED_PODS, watching.pod_keys),
    ]
    for resource in NATIVE:
        kind = WATCHED_REPLICA_SETS if resource == WATCHED_REPLICA_SETS.resource else Watched(resource)
        sources.append(Source(kind, _workload_keys(resource)))
    sources += [Source(Watched(resource, optional=True), _workload_keys(resource)) for resource in OPTIONAL]
    return (
        ControllerSpec(
            name=NAME,
            subject=POD_UNAVAILABLE_BUDGETS,
            sources=sources,
            snapshot=watching.snapshot,
            decide=deciding.decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            workers=settings.workers_of("podunavailablebudget"),
            outside=asking(watching.selected),
        ),
    )


_EVERY_OPERATION = {
    PodOperation.UPDATE: keys.UPDATE_GATE,
    PodOperation.DELETE: keys.DELETE_GATE,
    PodOperation.EVICTION: keys.DELETE_GATE,
}


def _webhooks(settings: Settings) -> tuple[Handler, ...]:
    """Also where both gates are off: then it refuses, with a text that names them (PUB-10)."""
    return (ValidatingHandler(validation.PATH, validation.judge, (WATCHED_BUDGETS,)),)


def _mutations(settings: Settings) -> tuple[PodMutation, ...]:
    if not keys.is_guarding(settings.gates):
        return ()
    return (PodMutation(PodStep.UNAVAILABLE_BUDGET, mark, _FOR_MARKS),)


_FOR_MARKS: Kinds = (SERVED_BUDGETS,)


def _validations(settings: Settings) -> tuple[PodValidation, ...]:
    operations = [operation for operation, gate in _EVERY_OPERATION.items() if settings.gates.get(gate, False)]
    if not operations:
        return ()
    return (PodValidation(PodValidationStep.UNAVAILABLE_BUDGET, guard, (SERVED_BUDGETS,), operations),)


FEATURE = Feature(
    name="podunavailablebudget",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=_webhooks,
    pod_mutations=_mutations,
    pod_validations=_validations,
    conversions=(Conversion(GROUP, "PodUnavailableBudget", convert),),
)
