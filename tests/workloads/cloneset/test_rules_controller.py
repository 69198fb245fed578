"""What makes a CloneSet be looked at, and what a pass sees of the stores (CS-60 to CS-65)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.meta import Key
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.client.discovery import ServerVersion
from kruise.machinery.spec import ControllerSpec, View
from kruise.machinery.store import Store
from kruise.manager.options import Options
from kruise.workloads.cloneset.controller import controllers
from kruise.workloads.cloneset.situation import Snapshot
from tests.support.clonesets import NEW, NOW, UID, make_claim, make_cloneset, make_pod
from tests.support.no_stores import NO_STORES

WEB = Key("demo", "web")
OTHER = Key("demo", "other")


def the_controller(**options: Any) -> ControllerSpec[Snapshot]:
    [spec] = controllers(Options(**options))
    return spec


def keys_of(resource: Resource[Any], old: Any, new: Any) -> list[Key]:
    [source] = [source for source in the_controller().sources if source.resource == resource]
    return list(source.keys(old, new, NO_STORES))


def owned_by(pod: Pod, name: str, uid: str, **reference: Any) -> Pod:
    changed = codec.evolve(pod.metadata.owner_references[0], name=name, uid=uid, **reference)
    return codec.evolve(pod, metadata=codec.evolve(pod.metadata, owner_references=(changed,)))


class Stores:
    """The stores as the controller has them, filled by hand."""

    def __init__(self, spec: ControllerSpec[Snapshot]) -> None:
        self._stores: dict[Resource[Any], Store[Any]] = {CLONE_SETS: Store(CLONE_SETS)}
        for source in spec.sources:
            self._stores[source.resource] = Store(source.kind)

    def store(self, resource: Resource[Any]) -> Store[Any]:
        return self._stores[resource]

    def fill(self, resource: Resource[Any], objects: Iterable[Any]) -> None:
        self._stores[resource].replace(objects, 100)


def seen(
    cloneset: CloneSet | None,
    pods: Iterable[Pod] = (),
    *,
    version: ServerVersion | None = None,
    stores: Stores | None = None,
    **options: Any,
) -> Snapshot | None:
    spec = the_controller(**options)
    stores = stores or Stores(spec)
    stores.fill(CLONE_SETS, [cloneset] if cloneset is not None else [])
    stores.fill(PODS, pods)
    view = View(stores, now=NOW, seed=7, gates={"G": True}, server_version=version)  # type: ignore[arg-type]
    return spec.snapshot(view, WEB)


# Triggers


def test_a_pod_that_comes_changes_or_goes() -> None:  # CS-60
    pod = make_pod("a")
    assert keys_of(PODS, None, pod) == [WEB]
    assert keys_of(PODS, pod, make_pod("a", ready=False)) == [WEB]
    assert keys_of(PODS, pod, make_pod("a", terminating=True)) == [WEB]
    assert keys_of(PODS, pod, None) == [WEB]


def test_a_pod_that_changes_hands_concerns_both() -> None:  # CS-60
    assert keys_of(PODS, make_pod("a"), owned_by(make_pod("a"), "other", "uid-2")) == [WEB, OTHER]


def test_a_pod_of_nobody_concerns_nobody() -> None:  # CS-60, CS-67: it would not be adopted anyway
    pod = make_pod("a")
    orphan = codec.evolve(pod, metadata=codec.evolve(pod.metadata, owner_references=()))
    assert keys_of(PODS, None, orphan) == []
    assert keys_of(PODS, pod, orphan) == [WEB]


def test_a_deletion_cost_alone_makes_nobody_look_unless_pods_are_too_many() -> None:  # CS-91
    """It decides who goes, and nothing else. While some are to go but are held back, it may be others."""
    spec = the_controller()
    [source] = [source for source in spec.sources if source.resource == PODS]
    before, after = make_pod("a"), costing(make_pod("a"), "100")

    def keys(old: Pod, new: Pod, *others: Pod, replicas: int = 2) -> list[Key]:
        stores = Stores(spec)
        stores.fill(CLONE_SETS, [make_cloneset(replicas=replicas)])
        stores.fill(PODS, [new, *others])
        return list(source.keys(old, new, stores))

    assert keys(before, after, make_pod("b")) == []
    assert keys(after, before, make_pod("b")) == []
    assert keys(before, after, make_pod("b"), make_pod("c")) == [WEB]
    assert keys(before, after, make_pod("b"), replicas=1) == [WEB]
    # Whatever else changed with it is looked at.
    assert keys(before, costing(make_pod("a", ready=False), "100")) == [WEB]
    assert keys(before, costing(make_pod("a", labels={"b": "c"}), "100")) == [WEB]
    assert keys(costing(before, "100"), codec.evolve(after, spec=codec.evolve(after.spec, node_name="other"))) == [WEB]


def costing(pod: Pod, cost: str) -> Pod:
    annotations = {**pod.metadata.annotations, "controller.kubernetes.io/pod-deletion-cost": cost}
    return codec.evolve(pod, metadata=codec.evolve(pod.metadata, annotations=annotations, resource_version="9"))


@pytest.mark.parametrize(
    ("reference", "keys"),
    [
        ({"api_version": "apps.kruise.io/v1alpha1"}, [WEB]),
        ({"api_version": "apps.kruise.io/v1beta1"}, [WEB]),
        ({"api_version": "apps/v1"}, []),
        ({"kind": "StatefulSet"}, []),
    ],
)
def test_owners_are_known_by_group_and_kind(reference: dict[str, str], keys: list[Key]) -> None:  # CS-60, CS-153
    assert keys_of(PODS, None, owned_by(make_pod("a"), "web", UID, **reference)) == keys


def test_claims_and_revisions_concern_their_owner() -> None:  # CS-60
    assert keys_of(PERSISTENT_VOLUME_CLAIMS, None, make_claim("a")) == [WEB]
    assert keys_of(PERSISTENT_VOLUME_CLAIMS, make_claim("a"), None) == [WEB]
    assert keys_of(CONTROLLER_REVISIONS, None, NEW) == [WEB]


@pytest.mark.parametrize("gate", [False, True])
def test_every_change_is_looked_at_whatever_the_gate(gate: bool) -> None:  # CS-61: more events are always allowed
    [source] = [
        source
        for source in the_controller(gates={"CloneSetEventHandlerOptimization": gate}).sources
        if source.resource == PODS
    ]
    assert list(source.keys(make_pod("a"), make_pod("a"), NO_STORES)) == [WEB]


def test_workers() -> None:  # CS-62, CS-141
    """The flag counts as the original's does; a worker is ten tasks here."""
    assert the_controller().workers == 30
    assert the_controller(workers={"cloneset": 8}).workers == 80
