"""What nobody controls and a workload's selector matches, pods mostly: who wants it, and how it becomes its own.

An orphan says nothing about who may want it, so the sources of orphans ask the stores whose selectors match it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kruise.api.meta import Key, Object, controller_of, key_of
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.machinery import ownership
from kruise.machinery import plan as plans
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import OnError, Phase
from kruise.machinery.selector_index import Selects
from kruise.machinery.selectors import NOTHING, SelectorError, from_label_selector
from kruise.machinery.spec import OWNER_INDEX, Stores, View, owner_keys
from kruise.machinery.watched import Watched
from kruise.protection.podunavailablebudget.indexes import GUARDED_INDEX

ADOPT = "adopt"
"""The phase that makes pods of nobody its own."""
_ADOPTION = "adoption"
"""Index of the workloads by what they would adopt."""
ORPHANS = "orphans"
"""Index of the objects that nobody controls, by namespace."""


def _adopts(workload: Any) -> tuple[Selects, ...]:
    try:
        selector = from_label_selector(workload.spec.selector)
    except SelectorError:
        return ()
    return (Selects(NOTHING if selector.is_empty else selector, workload.metadata.namespace),)


ADOPTERS: Mapping[str, Callable[[Any], Iterable[Selects]]] = {_ADOPTION: _adopts}
"""For the source of a workload that adopts."""


def _orphans(obj: Object) -> tuple[str, ...]:
    return (obj.metadata.namespace,) if controller_of(obj) is None else ()


ORPHAN_INDEX: Mapping[str, Callable[[Object], Iterable[str]]] = {ORPHANS: _orphans}
WATCHED_PODS = Watched(PODS, indexes={**OWNER_INDEX, **ORPHAN_INDEX, **GUARDED_INDEX})


def wanting(workloads: Resource[Any]) -> Callable[[Object | None, Stores], Iterable[Key]]:
    """The workloads whose selector matches an orphan; nobody wants what is controlled or on its way out."""

    def keys(orphan: Object | None, stores: Stores) -> Iterable[Key]:
        if orphan is None or controller_of(orphan) is not None:
            return
        labels = orphan.metadata.labels
        if not labels or orphan.metadata.deletion_timestamp is not None:
            return
        yield from map(key_of, stores.store(workloads).selecting(_ADOPTION, labels, orphan.metadata.namespace))

    return keys


def pod_keys(workloads: Resource[Any]) -> Callable[[Pod | None, Pod | None, Stores], Iterable[Key]]:
    """The workloads that own a pod, did so before, or may adopt it."""
    owners, wanted_by = owner_keys(workloads), wanting(workloads)

    def keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        yield from owners(old, new, stores)
        yield from wanted_by(new, stores)

    return keys


def orphans_for(view: View, workload: Any) -> tuple[Pod, ...]:
    """Pods of nobody in the namespace of the workload that its selector matches."""
    selector = from_label_selector(workload.spec.selector)
    found = view.store(PODS).by_index(ORPHANS, workload.metadata.namespace)
    return tuple(pod for pod in found if selector.matches(pod.metadata.labels))


def adoption_phase(
    owner: Owner, pods: Sequence[Pod], *, generation: int, revisions: Iterable[ControllerRevision] = ()
) -> Phase:
    """`generation` is the owner's; of `revisions` those are adopted that nobody controls."""
    orphans: list[tuple[Resource[Any], Object]] = [
        (CONTROLLER_REVISIONS, revision)
        for revision in revisions
        if controller_of(revision) is None and revision.metadata.deletion_timestamp is None
    ]
    orphans += ((PODS, pod) for pod in pods)
    chains = (ownership.adoption(owner, kind, orphan, generation=generation) for kind, orphan in orphans)
    return Phase(name=ADOPT, chains=tuple(chains), on_error=OnError.STOP_PLAN)


def release_phase(owner: Owner, pods: Sequence[Pod]) -> Phase:
    """Let go of pods that the selector matches no longer."""
    return plans.single("release", *(ownership.release(PODS, pod, owner) for pod in pods), on_error=OnError.CONTINUE)
