"""A changed object is mapped to those it concerns, and to those it did concern."""

from __future__ import annotations

from typing import Any

from kruise.api.meta import Key, LabelSelector, ObjectMeta, PartialObject
from kruise.api.native.nodes import NAMESPACES, NODES, Namespace, Node
from kruise.api.native.pod import PODS, Pod, PodSpec
from kruise.api.resource import Resource
from kruise.machinery.codec import evolve
from kruise.machinery.mapping import NODE_INDEX, found_by, own_name, pods_on_node, selected_by
from kruise.machinery.selector_index import ALL_NAMESPACES, Selects
from kruise.machinery.spec import Stores
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched


class Budget(PartialObject):
    selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    named: str = ""


BUDGETS = Resource("test.kruise.io", "v1", "budgets", "Budget", True, Budget)
POD = "pod"
SPACE = "space"
NAME = "name"
WATCHED_BUDGETS = Watched(
    BUDGETS,
    indexes={NAME: lambda budget: (budget.named,)},
    selectors={
        POD: lambda budget: [Selects(budget.selector, budget.metadata.namespace, budget.namespace_selector)],
        SPACE: lambda budget: [Selects(budget.namespace_selector, ALL_NAMESPACES)],
    },
)


class Filled(Stores):
    def __init__(self, *filled: Store[Any]) -> None:
        self._stores = {store.resource: store for store in filled}

    def store(self, resource: Resource[Any]) -> Store[Any]:
        return self._stores[resource]


def store_of(kind: Any, *objects: Any) -> Store[Any]:
    store: Store[Any] = Store(kind)
    store.replace(objects, 1)
    return store


def meta(name: str, namespace: str = "", **labels: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}/{name}", resource_version="1", labels=labels)


def pod(name: str = "p", namespace: str = "ns", node: str = "", **labels: str) -> Pod:
    return Pod(metadata=meta(name, namespace, **labels), spec=PodSpec(node_name=node))


def budget(name: str, namespace: str = "ns", spaces: LabelSelector | None = None, **labels: str) -> Budget:
    selector = LabelSelector(match_labels=labels)
    return Budget(metadata=meta(name, namespace), selector=selector, namespace_selector=spaces, named=name)


def test_a_pod_is_mapped_to_those_who_select_it_or_did() -> None:
    budgets = store_of(WATCHED_BUDGETS, budget("a", app="a"), budget("b", app="b"), budget("c", "other", app="a"))
    stores = Filled(budgets)
    keys = selected_by(BUDGETS, POD)
    a, b = pod(app="a"), pod(app="b")
    assert list(keys(None, a, stores)) == [Key("ns", "a")]
    assert list(keys(a, a, stores)) == [Key("ns", "a")], "its status may have changed"
    assert list(keys(a, b, stores)) == [Key("ns", "a"), Key("ns", "b")]
    assert list(keys(a, None, stores)) == [Key("ns", "a")]
    assert list(keys(None, None, stores)) == []


def test_a_budget_that_selects_before_and_after_comes_once() -> None:
    stores = Filled(store_of(WATCHED_BUDGETS, budget("a", app="a")))
    assert list(selected_by(BUDGETS, POD)(pod(app="a"), pod(app="a", more="x"), stores)) == [Key("ns", "a")]


def test_labels_of_the_namespace_count_where_selectors_ask_for_them() -> None:
    picky = budget("a", "ns", LabelSelector(match_labels={"env": "prod"}), app="a")
    namespaces = store_of(NAMESPACES, Namespace(metadata=meta("ns", env="prod")))
    stores = Filled(store_of(WATCHED_BUDGETS, picky), namespaces)
    keys = selected_by(BUDGETS, POD, by_namespace_labels=True)
    assert list(keys(None, pod(app="a"), stores)) == [Key("ns", "a")]
    namespaces.event("MODIFIED", Namespace(metadata=evolve(meta("ns", env="test"), resource_version="2")))
    assert list(keys(None, pod(app="a"), stores)) == []
    namespaces.replace([], 3)
    assert list(keys(None, pod(app="a"), stores)) == [], "nobody knows its labels"


def test_a_namespace_is_mapped_to_those_who_select_it_or_did() -> None:
    prod = budget("a", "ns", LabelSelector(match_labels={"env": "prod"}))
    stores = Filled(store_of(WATCHED_BUDGETS, prod, budget("b", "ns")))
    keys = selected_by(BUDGETS, SPACE)
    before, after = Namespace(metadata=meta("shop", env="prod")), Namespace(metadata=meta("shop"))
    assert list(keys(before, after, stores)) == [Key("ns", "a")]
    assert list(keys(after, after, stores)) == []


def test_a_node_is_mapped_to_the_pods_on_it() -> None:
    pods = store_of(Watched(PODS, indexes=NODE_INDEX), pod("a", node="n1"), pod("b", node="n2"), pod("c"))
    node = Node(metadata=meta("n1"))
    assert list(pods_on_node(PODS)(node, node, Filled(pods))) == [Key("ns", "a")]


def test_an_object_is_mapped_to_those_who_name_it_or_what_it_was() -> None:
    stores = Filled(store_of(WATCHED_BUDGETS, budget("a"), budget("b")), store_of(NODES))
    keys = found_by(BUDGETS, NAME, own_name)
    assert list(keys(pod("a"), pod("b"), stores)) == [Key("ns", "a"), Key("ns", "b")]
