"""How a UnitedDeployment is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kruise.api.apps.definitions.uniteddeployment import DEFINITION
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS, UnitedDeployment
from kruise.api.meta import Key, Object, controller_of
from kruise.api.native.pod import PODS, Pod, condition
from kruise.api.resource import refers_to
from kruise.feature import Feature, Settings
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, Stores, View, own_key, owner_keys
from kruise.machinery.watched import Watched
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.admission import ADMISSION
from kruise.spread.uniteddeployment.children import KINDS, ChildKind, by_child, child_of, index_value
from kruise.spread.uniteddeployment.conclude import conclude
from kruise.spread.uniteddeployment.decide import decide
from kruise.spread.uniteddeployment.situation import Snapshot, selector_problem
from kruise.workloads.shared.adoption import ADOPTERS, wanting
from kruise.workloads.shared.reading import WATCHED_REVISIONS, pace_of, revisions_near, tasks_of

NAME = "uniteddeployment-controller"
_CHILD = "united-child"
"""Index of pods by the child that they belong to; only pods of subsets are in it."""
_ORPHANS = "united-orphans"
"""Index of what has the label of a subset and belongs to nobody, by namespace."""


def _orphans(obj: Object) -> tuple[str, ...]:
    if keys.SUBSET not in obj.metadata.labels or controller_of(obj) is not None:
        return ()
    return (obj.metadata.namespace,)


def _child_keys() -> Callable[[Object | None, Object | None, Stores], Iterable[Key]]:
    """A child concerns its owner; one of a subset that nobody controls, those that may adopt it."""
    owners, wanted_by = owner_keys(UNITED_DEPLOYMENTS), wanting(UNITED_DEPLOYMENTS)

    def concerned(old: Object | None, new: Object | None, stores: Stores) -> Iterable[Key]:
        yield from owners(old, new, stores)
        if new is not None and keys.SUBSET in new.metadata.labels:
            yield from wanted_by(new, stores)

    return concerned


def _meaning(pod: Pod | None) -> tuple[object, ...]:
    """What decisions read of a pod: a write that changes nothing of it wakes nobody."""
    if pod is None:
        return ()
    scheduled, ready = condition(pod, "PodScheduled"), condition(pod, "Ready")
    return (
        pod.metadata.uid,
        pod.metadata.deletion_timestamp is not None,
        pod.metadata.labels.get(keys.REVISION),
        pod.metadata.labels.get(keys.RESERVED),
        pod.status.phase,
        bool(pod.spec.node_name),
        (scheduled.status, scheduled.reason) if scheduled is not None else None,
        ready is not None and ready.status == "True",
    )


def _pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    pod = new if new is not None else old
    found = child_of(pod) if pod is not None else None
    if pod is None or found is None or _meaning(old) == _meaning(new):
        return
    for kind in KINDS:
        if found[0] == f"{kind.resource.group}/{kind.resource.kind}":
            child = stores.store(kind.resource).get(pod.metadata.namespace, found[1])
            owner = controller_of(child) if child is not None else None
            if owner is not None and refers_to(owner, UNITED_DEPLOYMENTS):
                yield Key(pod.metadata.namespace, owner.name)


def _children(view: View, united: UnitedDeployment, kind: ChildKind) -> tuple[Any, ...]:
    store = view.store(kind.resource)
    if not store.synced:
        return ()
    owned = store.by_index(OWNER, united.metadata.uid)
    return (*owned, *store.by_index(_ORPHANS, united.metadata.namespace))


def snapshot(view: View, key: Key) -> Snapshot | None:
    united = view.store(UNITED_DEPLOYMENTS).get(*key)
    if united is None:
        return None
    if selector_problem(united):
        return Snapshot(united=united, now=view.now)  # there is nothing to look at
    stateful, advanced, clones, deployed = (_children(view, united, kind) for kind in KINDS)
    pods: list[Pod] = []
    store = view.store(PODS)
    for kind, found in zip(KINDS, (stateful, advanced, clones, deployed), strict=True):
        for child in found:
            pods += store.by_index(_CHILD, index_value(key.namespace, kind, child.metadata.name))
    return Snapshot(
        united=united,
        stateful_sets=stateful,
        advanced_stateful_sets=advanced,
        clone_sets=clones,
        deployments=deployed,
        pods=tuple(pods),
        revisions=revisions_near(view, united),
        gates=dict(view.gates),
        now=view.now,
        seed=view.seed,
    )


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    indexes = {**OWNER_INDEX, _ORPHANS: _orphans}
    children = tuple(Source(Watched(kind.resource, indexes=indexes), _child_keys()) for kind in KINDS)
    sources: tuple[Source[Any], ...] = (
        Source(Watched(UNITED_DEPLOYMENTS, selectors=ADOPTERS), own_key),
        *children,
        Source(Watched(PODS, indexes={_CHILD: by_child}), _pod_keys),
        Source(WATCHED_REVISIONS, owner_keys(UNITED_DEPLOYMENTS)),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=UNITED_DEPLOYMENTS,
            sources=sources,
            snapshot=snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            workers=tasks_of(settings, "uniteddeployment"),
            pace=lambda seen: pace_of(len(seen.pods)),
        ),
    )


FEATURE = Feature(
    name="uniteddeployment",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=ADMISSION.webhooks,
    conversions=(ADMISSION.conversion,),
)
