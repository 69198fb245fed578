"""A decision over objects that were read once is the one that a manager makes over its stores."""

from __future__ import annotations

import dataclasses

import pytest

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.meta import Key
from kruise.api.native.apps import CONTROLLER_REVISIONS, DEPLOYMENTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.machinery.digest import plan_to_data
from kruise.machinery.mapping import NODE, NODE_INDEX, selected_by
from kruise.machinery.offline import ReadStores, view_of
from kruise.machinery.selector_index import Selects
from kruise.machinery.spec import OWNER, OWNER_INDEX, Source, no_keys, own_key
from kruise.machinery.watched import Watched
from kruise.manager.options import Options
from kruise.workloads.cloneset.controller import controllers
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.situation import Snapshot
from tests.support.clonesets import NEW, NOW, OLD, make_cloneset, make_pod

[SPEC] = controllers(Options())
CLONESET = make_cloneset(rolling={"maxUnavailable": 1, "podUpdatePolicy": "InPlaceIfPossible"})
PODS_READ = (make_pod("a", old=True), make_pod("b", ready=False), make_pod("c", old=True))
OBJECTS = {
    CLONE_SETS: (CLONESET,),
    PODS: PODS_READ,
    CONTROLLER_REVISIONS: (OLD, NEW),
    PERSISTENT_VOLUME_CLAIMS: (),
    NODES: (),
}


def test_the_snapshot_is_made_of_what_was_read() -> None:
    view = view_of(SPEC, OBJECTS, now=NOW, gates={}, seed=7)
    snapshot = SPEC.snapshot(view, Key("demo", "web"))
    assert snapshot is not None
    assert (snapshot.pods, snapshot.now, snapshot.seed) == (PODS_READ, NOW, 7)
    expected = decide(Snapshot(cloneset=CLONESET, now=NOW, pods=PODS_READ, revisions=(OLD, NEW), seed=7))
    assert plan_to_data(SPEC.decide(snapshot)) == plan_to_data(expected)
    assert SPEC.snapshot(view, Key("demo", "other")) is None


def test_a_kind_that_was_not_read_counts_as_not_served() -> None:
    stores = ReadStores(SPEC, {kind: found for kind, found in OBJECTS.items() if kind is not NODES})
    assert not stores.store(NODES).synced
    assert stores.store(PODS).synced
    assert stores.store(PERSISTENT_VOLUME_CLAIMS).synced, "empty, but read"


def test_only_sources_can_be_asked_for() -> None:
    with pytest.raises(LookupError, match="no source of this controller"):
        ReadStores(SPEC, OBJECTS).store(DEPLOYMENTS)


def test_sources_look_with_the_same_indexes() -> None:
    """All that the sources of a kind declare, also where two of them watch the same kind."""

    def selects(cloneset: CloneSet) -> list[Selects]:
        return [Selects(cloneset.spec.selector, cloneset.metadata.namespace)]

    sources = (
        Source(Watched(CLONE_SETS, selectors={"pods": selects}), own_key),
        Source(Watched(PODS, indexes=OWNER_INDEX), selected_by(CLONE_SETS, "pods")),
        Source(Watched(PODS, indexes=NODE_INDEX), no_keys),
    )
    stores = ReadStores(dataclasses.replace(SPEC, sources=sources), OBJECTS)
    pod = PODS_READ[0]
    assert list(sources[1].keys(None, pod, stores)) == [Key("demo", "web")]
    assert stores.store(PODS).by_index(OWNER, CLONESET.metadata.uid) == PODS_READ
    assert pod in stores.store(PODS).by_index(NODE, pod.spec.node_name)
