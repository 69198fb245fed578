"""How SidecarSets are watched, and what they bring to the manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kruise.admission.chain import PodStep
from kruise.admission.registry import Handler
from kruise.api.apps.definitions.sidecarset import DEFINITION
from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.meta import Key
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS, Pod
from kruise.feature import Feature, PodMutation, Settings
from kruise.machinery.mapping import selected_by
from kruise.machinery.selector_index import ALL_NAMESPACES, Selects
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, own_key
from kruise.machinery.watched import Watched
from kruise.protection.podunavailablebudget.indexes import GUARDED_INDEX
from kruise.protection.podunavailablebudget.permits import budget_sources_of, budgets_of
from kruise.sidecars.sidecarset.admission import ADMISSION, admission_in
from kruise.sidecars.sidecarset.conclude import conclude, events
from kruise.sidecars.sidecarset.decide import decide
from kruise.sidecars.sidecarset.facts import injected_sets
from kruise.sidecars.sidecarset.injecting import Injection
from kruise.sidecars.sidecarset.matching import (
    REVISIONS_OF,
    WATCHED_NAMESPACES,
    WATCHED_REVISIONS,
    WATCHED_SETS,
    set_named_by,
)
from kruise.sidecars.sidecarset.situation import Snapshot
from kruise.workloads.shared.reading import pace_of, tasks_of

NAME = "sidecarset-controller"
_INJECTED, _NAMESPACES_OF = "sidecarset-injected", "namespaces-of-sidecarset"


def _namespaces_of(sidecar_set: SidecarSet) -> Iterator[Selects]:
    if sidecar_set.spec.namespace_selector is not None:
        yield Selects(sidecar_set.spec.namespace_selector, ALL_NAMESPACES)


WATCHED_PODS = Watched(PODS, indexes={_INJECTED: injected_sets, **GUARDED_INDEX})


def _pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    """The SidecarSets whose sidecars a pod has, or had. Pods without sidecars cost nothing."""
    after = injected_sets(new) if new is not None else ()
    before = injected_sets(old) if old is not None else ()
    return [Key("", name) for name in dict.fromkeys((*before, *after))] if before or after else ()


def _revision_keys(old: ControllerRevision | None, new: ControllerRevision | None, stores: Stores) -> Iterable[Key]:
    names = (name for one in (old, new) if one is not None for name in set_named_by(one))
    return [Key("", name) for name in dict.fromkeys(names)]


class _Snapshots:
    def __init__(self, own_namespace: str) -> None:
        self._own_namespace = own_namespace

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        sidecar_set = view.store(SIDECAR_SETS).get("", key.name)
        if sidecar_set is None:
            return None
        pods = view.store(PODS)
        found = tuple(pod for pod in pods.by_index(_INJECTED, key.name) if not pods.is_terminating(pod))
        around: dict[str, dict[str, str]] = {}
        if sidecar_set.spec.namespace_selector is not None:
            namespaces = view.store(NAMESPACES)
            for name in {pod.metadata.namespace for pod in found}:
                namespace = namespaces.get("", name)
                around[name] = dict(namespace.metadata.labels) if namespace is not None else {}
        revisions = view.store(CONTROLLER_REVISIONS).by_index(REVISIONS_OF, key.name)
        return Snapshot(
            sidecar_set=sidecar_set,
            pods=found,
            namespaces=around,
            revisions=tuple(one for one in revisions if one.metadata.namespace == self._own_namespace),
            budgets=budgets_of(view, found),
            own_namespace=self._own_namespace,
            gates=dict(view.gates),
            now=view.now,
        )


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    sources: tuple[Source[Any], ...] = (
        Source(Watched(SIDECAR_SETS, selectors={**WATCHED_SETS.selectors, _NAMESPACES_OF: _namespaces_of}), own_key),
        Source(WATCHED_PODS, _pod_keys),
        Source(WATCHED_REVISIONS, _revision_keys),
        Source(WATCHED_NAMESPACES, selected_by(SIDECAR_SETS, _NAMESPACES_OF)),
        *budget_sources_of(settings, lambda pod: (Key("", name) for name in injected_sets(pod))),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=SIDECAR_SETS,
            sources=sources,
            snapshot=_Snapshots(settings.own_namespace),
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            events=events,
            workers=tasks_of(settings, "sidecarset"),
            pace=lambda snapshot: pace_of(len(snapshot.pods)),
        ),
    )


def _webhooks(settings: Settings) -> tuple[Handler, ...]:
    return admission_in(settings.own_namespace).webhooks(settings)


def _pod_mutations(settings: Settings) -> tuple[PodMutation, ...]:
    needs = (WATCHED_SETS, WATCHED_NAMESPACES, WATCHED_REVISIONS)
    return (PodMutation(PodStep.SIDECAR_SET, Injection(settings.own_namespace), needs),)


FEATURE = Feature(
    name="sidecarset",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=_webhooks,
    pod_mutations=_pod_mutations,
    conversions=(ADMISSION.conversion,),
)
