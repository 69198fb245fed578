"""The graph of owners and the verdict over an object: both pure."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.local.collector.graph import Graph
from kruise.local.collector.judging import (
    Delete,
    Keep,
    OwnerState,
    Release,
    judge,
    state_of,
    unblocking,
    without_finalizer,
    without_owners,
)
from kruise.local.collector.objects import Owned, OwnedMeta, Reference, reference_of
from kruise.machinery.client.discovery import ServedResource

MAPS = ServedResource(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
NODES = ServedResource(group="", version="v1", plural="nodes", kind="Node", namespaced=False)


def owner(uid: str, *, kind: str = "ConfigMap", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "name": uid, "uid": uid, **more}


def thing(uid: str, *owners: Any, namespace: str = "n", deleted: bool = False, finalizers: Any = ()) -> Owned:
    references = tuple(owner(each) if isinstance(each, str) else each for each in owners)
    about = OwnedMeta(
        name=uid,
        namespace=namespace,
        uid=uid,
        resource_version="7",
        deletion_timestamp="2030-01-01T00:00:00Z" if deleted else None,
        finalizers=tuple(finalizers),
        owner_references=references,
    )
    return Owned(api_version="v1", kind="ConfigMap", metadata=about)


class TestGraph:
    def test_a_new_object_of_a_known_owner_needs_no_look(self) -> None:
        graph = Graph()
        assert graph.seen(MAPS, thing("a")).uids == ()
        assert graph.seen(MAPS, thing("b", "a")).uids == ()
        assert [node.uid for node in graph.dependents("a")] == ["b"]

    def test_an_unknown_owner_is_looked_for(self) -> None:
        graph = Graph()
        assert graph.seen(MAPS, thing("b", "a")).uids == ("b",)
        assert graph.seen(MAPS, thing("b", "a")).uids == (), "once"

    def test_the_end_of_an_owner_concerns_its_dependents(self) -> None:
        graph = Graph()
        for obj in (thing("a"), thing("b", "a"), thing("c", "a")):
            graph.seen(MAPS, obj)
        assert graph.gone("a").uids == ("b", "c")
        assert graph.gone("a").uids == ()

    def test_an_owner_that_waits_is_looked_at_when_a_dependent_goes(self) -> None:
        graph = Graph()
        graph.seen(MAPS, thing("a", deleted=True, finalizers=["foregroundDeletion"]))
        graph.seen(MAPS, thing("b", "a"))
        assert graph.gone("b").uids == ("a",)
        assert graph.dependents("a") == []

    def test_a_deletion_in_the_foreground_concerns_the_owner_and_all_dependents(self) -> None:
        graph = Graph()
        for obj in (thing("a"), thing("b", "a")):
            graph.seen(MAPS, obj)
        waiting = thing("a", deleted=True, finalizers=["foregroundDeletion"])
        assert graph.seen(MAPS, waiting).uids == ("b", "a")
        assert graph.seen(MAPS, waiting).uids == ()

    def test_a_dependent_that_shows_up_late_is_looked_at_if_its_owner_waits(self) -> None:
        graph = Graph()
        graph.seen(MAPS, thing("a", deleted=True, finalizers=["foregroundDeletion"]))
        assert graph.seen(MAPS, thing("b", "a")).uids == ("b",)

    def test_a_deletion_that_orphans_concerns_the_owner_alone(self) -> None:
        graph = Graph()
        for obj in (thing("a"), thing("b", "a")):
            graph.seen(MAPS, obj)
        assert graph.seen(MAPS, thing("a", deleted=True, finalizers=["orphan"])).uids == ("a",)

    def test_an_owner_that_is_no_longer_blocked_is_looked_at(self) -> None:
        graph = Graph()
        graph.seen(MAPS, thing("a"))
        graph.seen(MAPS, thing("b", owner("a", blockOwnerDeletion=True)))
        assert [node.uid for node in graph.blocking("a")] == ["b"]
        assert graph.seen(MAPS, thing("b", "a")).uids == ("a",)
        graph.seen(MAPS, thing("b", owner("a", blockOwnerDeletion=True)))
        assert graph.seen(MAPS, thing("b")).uids == ("a",)

    def test_an_owner_in_another_namespace_is_astray_whoever_comes_first(self) -> None:
        for order in (("a", "b"), ("b", "a")):
            graph = Graph()
            objects = {"a": thing("a", namespace="other"), "b": thing("b", "a")}
            looks = [graph.seen(MAPS, objects[name]) for name in order]
            assert [(node.uid, reference.uid) for look in looks for node, reference in look.astray] == [("b", "a")]
            assert "b" in looks[1].uids

    def test_a_reference_with_a_wrong_name_or_kind_is_looked_into(self) -> None:
        graph = Graph()
        graph.seen(MAPS, thing("a"))
        assert graph.seen(MAPS, thing("b", {**owner("a"), "name": "x"})).uids == ("b",)
        assert graph.seen(MAPS, thing("c", {**owner("a"), "kind": "Secret"})).uids == ("c",)
        assert graph.seen(MAPS, thing("d", {**owner("a"), "apiVersion": "apps/v1"})).uids == ("d",)

    def test_cluster_scoped_owners_are_found_from_anywhere(self) -> None:
        graph = Graph()
        graph.seen(NODES, thing("n1", namespace=""))
        assert graph.seen(MAPS, thing("b", owner("n1", kind="Node"))).uids == ()

    def test_a_kind_that_is_not_served_any_more_condemns_nobody(self) -> None:
        graph = Graph()
        graph.seen(NODES, thing("n1", namespace=""))
        graph.seen(MAPS, thing("b", owner("n1", kind="Node")))
        graph.forget_kind(NODES)
        assert graph.get("n1") is None
        assert graph.get("b") is not None


def verdict(obj: Owned, *states: OwnerState, dependents: bool = False, waits: bool = False) -> Any:
    references = [reference_of(each) for each in obj.metadata.owner_references]
    return judge(obj, dict(zip(references, states, strict=True)), has_dependents=dependents, dependent_waits=waits)


SOLID, WAITING, ABSENT = OwnerState.SOLID, OwnerState.WAITING, OwnerState.ABSENT


class TestVerdict:
    def test_without_owners_an_object_stays(self) -> None:
        assert verdict(thing("x")) == Keep()

    def test_one_solid_owner_is_enough_and_the_others_are_dropped(self) -> None:
        assert verdict(thing("x", "a"), SOLID) == Keep()
        assert verdict(thing("x", "a", "b", "c"), ABSENT, SOLID, WAITING) == Release(("a", "c"))

    def test_without_a_solid_owner_it_goes_in_the_background(self) -> None:
        assert verdict(thing("x", "a", "b"), ABSENT, ABSENT) == Delete("Background")
        assert verdict(thing("x", "a"), WAITING) == Delete("Background")

    def test_finalizers_that_it_has_already_are_honoured(self) -> None:
        assert verdict(thing("x", "a", finalizers=["orphan"]), ABSENT) == Delete("Orphan")
        assert verdict(thing("x", "a", finalizers=["foregroundDeletion"]), ABSENT) == Delete("Foreground")

    def test_what_has_dependents_itself_goes_in_the_foreground_if_its_owner_waits(self) -> None:
        assert verdict(thing("x", "a"), WAITING, dependents=True) == Delete("Foreground")
        assert verdict(thing("x", "a"), ABSENT, dependents=True) == Delete("Background")

    def test_a_circle_is_cut(self) -> None:
        assert verdict(thing("x", "a"), WAITING, dependents=True, waits=True) == Delete("Foreground", True)

    @given(st.lists(st.sampled_from(list(OwnerState)), min_size=1, max_size=4), st.booleans(), st.booleans())
    @settings(max_examples=100)
    def test_a_solid_owner_always_saves_it(self, states: list[OwnerState], dependents: bool, waits: bool) -> None:
        obj = thing("x", *(f"o{number}" for number in range(len(states))))
        said = verdict(obj, *states, dependents=dependents, waits=waits)
        assert isinstance(said, Delete) == (SOLID not in states)

    def test_another_object_of_the_owners_name_is_not_the_owner(self) -> None:
        assert state_of(None, "a") is ABSENT
        assert state_of(thing("a"), "b") is ABSENT
        assert state_of(thing("a"), "a") is SOLID
        assert state_of(thing("a", deleted=True), "a") is SOLID
        assert state_of(thing("a", deleted=True, finalizers=["foregroundDeletion"]), "a") is WAITING


class TestPatches:
    def test_what_stays_is_written_back_as_it_was(self) -> None:
        kept = owner("b", controller=True)
        guard = {"uid": "x", "resourceVersion": "7"}
        assert without_owners(thing("x", "a", kept), ("a",)) == {"metadata": {**guard, "ownerReferences": [kept]}}
        assert without_owners(thing("x", "a"), ("a",)) == {"metadata": {**guard, "ownerReferences": None}}
        assert without_finalizer(thing("x", finalizers=["orphan", "a/b"]), "orphan") == {
            "metadata": {**guard, "finalizers": ["a/b"]}
        }
        (reference,) = unblocking(thing("x", owner("a", blockOwnerDeletion=True)))["metadata"]["ownerReferences"]  # type: ignore[index]
        assert reference["blockOwnerDeletion"] is False

    def test_references_name_kind_and_uid(self) -> None:
        assert reference_of(owner("a")) == Reference("v1", "ConfigMap", "a", "a")
