"""Who selects something with these labels: the same answer as trying every selector, with far fewer tries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Key, LabelSelector, LabelSelectorRequirement, ObjectMeta, PartialObject, key_of
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct
from kruise.machinery.selector_index import ALL_NAMESPACES, Selects
from kruise.machinery.selectors import Selector, SelectorError, from_label_selector, parse
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched
from tests.support.examples import EXAMPLES


class Choice(Struct):
    selector: LabelSelector | None = None
    namespace: str = ALL_NAMESPACES
    namespaces: LabelSelector | None = None


class Chooser(PartialObject):
    choices: tuple[Choice, ...] = ()


CHOOSERS = Resource("test.kruise.io", "v1", "choosers", "Chooser", True, Chooser)


def selects(chooser: Chooser) -> tuple[Selects, ...]:
    return tuple(Selects(choice.selector, choice.namespace, choice.namespaces) for choice in chooser.choices)


BY_POD = Watched(CHOOSERS, selectors={"pods": selects})


def chooser(name: str, version: int, *choices: Choice, namespace: str = "ns", uid: str = "") -> Chooser:
    metadata = ObjectMeta(name=name, namespace=namespace, uid=uid or name, resource_version=str(version))
    return Chooser(metadata=metadata, choices=choices)


def labels(**wanted: str) -> LabelSelector:
    return LabelSelector(match_labels=wanted)


def expressions(*items: tuple[str, str, tuple[str, ...]]) -> LabelSelector:
    return LabelSelector(
        match_expressions=tuple(LabelSelectorRequirement(key=k, operator=o, values=v) for k, o, v in items)
    )


def store_of(*choosers: Chooser) -> Store[Chooser]:
    store = Store(BY_POD)
    store.replace(choosers, 1)
    return store


def names(store: Store[Chooser], wanted: Mapping[str, str], namespace: str = "ns", around: Any = None) -> list[str]:
    return [item.metadata.name for item in store.selecting("pods", wanted, namespace, around)]


# The same as trying every selector

KEYS = ("a", "b", "c")
VALUES = ("x", "y", "z")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
EXPRESSIONS = st.one_of(
    st.tuples(
        st.sampled_from(KEYS),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=3).map(tuple),
    ),
    st.tuples(st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
    st.tuples(st.sampled_from(["a", "no key!"]), st.sampled_from(["Nonsense", "In"]), st.just(())),  # invalid
)
SELECTORS = st.builds(
    lambda wanted, items: LabelSelector(match_labels=wanted, match_expressions=expressions(*items).match_expressions),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2),
    st.lists(EXPRESSIONS, max_size=2),
)
NAMESPACES = st.sampled_from(["one", "two"])
CHOICES = st.lists(
    st.builds(
        Choice,
        selector=st.none() | SELECTORS,
        namespace=st.just(ALL_NAMESPACES) | NAMESPACES,
        namespaces=st.none() | SELECTORS,
    ),
    max_size=3,
).map(tuple)
NAMES = st.sampled_from(["m", "n", "o", "p"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, CHOICES),
        st.tuples(st.just("anew"), NAMES, CHOICES),
        st.tuples(st.just("delete"), NAMES, st.just(())),
        st.tuples(st.just("relist"), st.dictionaries(NAMES, CHOICES), st.just(())),
    ),
    max_size=12,
)
QUESTIONS = st.lists(st.tuples(LABELS, st.just("") | NAMESPACES, st.none() | LABELS), min_size=1, max_size=6)


def matches(selector: LabelSelector | None, wanted: Mapping[str, str]) -> bool:
    try:
        return from_label_selector(selector).matches(wanted)
    except SelectorError:
        return False


def chosen(choice: Choice, wanted: Mapping[str, str], namespace: str, around: Mapping[str, str] | None) -> bool:
    if choice.namespace and choice.namespace != namespace:
        return False
    if choice.namespaces is not None and (around is None or not matches(choice.namespaces, around)):
        return False
    try:
        from_label_selector(choice.namespaces)
    except SelectorError:
        return False
    return matches(choice.selector, wanted)


@given(steps=STEPS, questions=QUESTIONS)
@settings(max_examples=75 * EXAMPLES)
def test_the_answer_is_that_of_trying_all(steps: list[Any], questions: list[Any]) -> None:
    store = Store(BY_POD)
    store.replace((), 1)
    there: dict[str, Chooser] = {}
    for version, (step, what, choices) in enumerate(steps, start=2):
        if step == "relist":
            there = {name: chooser(name, version, *found) for name, found in what.items()}
            store.replace(there.values(), version)
        elif step == "delete":
            store.event("DELETED", chooser(what, version))
            there.pop(what, None)
        else:
            uid = f"{what}-{version}" if step == "anew" or what not in there else there[what].metadata.uid
            there[what] = chooser(what, version, *choices, uid=uid)
            store.event("MODIFIED", there[what])
        for wanted, namespace, around in questions:
            expected = [
                item
                for _, item in sorted(there.items())
                if any(chosen(choice, wanted, namespace, around) for choice in item.choices)
            ]
            assert list(store.selecting("pods", wanted, namespace, around)) == expected


def test_the_newest_object_is_found_in_the_order_of_keys() -> None:
    everywhere = Choice(selector=labels(app="web"))
    store = store_of(chooser("b", 1, everywhere), chooser("a", 1, everywhere), chooser("c", 1, namespace="aa"))
    store.event("MODIFIED", chooser("b", 2, everywhere, Choice(selector=labels(app="db"))))
    store.event("MODIFIED", chooser("c", 3, everywhere, namespace="aa"))
    assert [key_of(item) for item in store.selecting("pods", {"app": "web"}, "x")] == [
        Key("aa", "c"),
        Key("ns", "a"),
        Key("ns", "b"),
    ]
    assert [item.metadata.resource_version for item in store.selecting("pods", {"app": "db"}, "x")] == ["2"]


def test_a_selector_of_namespaces_needs_their_labels() -> None:  # SCS-35
    pinned = Choice(selector=labels(app="web"), namespaces=labels(**{"kubernetes.io/metadata.name": "shop"}))
    store = store_of(chooser("pinned", 1, pinned), chooser("free", 1, Choice(selector=labels(app="web"))))
    assert names(store, {"app": "web"}, "shop", {"kubernetes.io/metadata.name": "shop"}) == ["free", "pinned"]
    assert names(store, {"app": "web"}, "bar", {"kubernetes.io/metadata.name": "bar"}) == ["free"]
    assert names(store, {"app": "web"}, "shop") == ["free"]


def test_an_invalid_selector_selects_nothing_and_breaks_nobody() -> None:
    invalid = Choice(selector=expressions(("a", "Nonsense", ())))
    store = store_of(chooser("bad", 1, invalid, Choice(selector=labels(a="x"))), chooser("worse", 1, invalid))
    assert names(store, {"a": "x"}) == ["bad"]


def test_selectors_in_text_form_are_found_too() -> None:
    kind = Watched(CHOOSERS, selectors={"large": lambda item: [Selects(parse("size>3,tier!=test"), "ns")]})
    store = Store(kind)
    store.replace([chooser("a", 1)], 1)
    assert [len(store.selecting("large", {"size": size}, "ns")) for size in ("3", "4")] == [0, 1]
    assert not store.selecting("large", {"size": "4", "tier": "test"}, "ns")


def test_an_unknown_selector_index_is_named_and_a_second_function_refused() -> None:
    store = store_of()
    with pytest.raises(LookupError, match=r"has no selector index 'nodes' \(it has: pods\)"):
        store.selecting("nodes", {})
    store.add_indexes(BY_POD)
    with pytest.raises(ValueError, match=r"'pods' of choosers\.test\.kruise\.io exists with another function"):
        store.add_indexes(Watched(CHOOSERS, selectors={"pods": lambda item: ()}))


def test_an_index_added_later_covers_what_is_there() -> None:
    store = Store(CHOOSERS)
    store.replace([chooser("a", 1, Choice(selector=labels(app="web")))], 1)
    store.add_indexes(BY_POD)
    assert names(store, {"app": "web"}) == ["a"]


def test_a_function_that_fails_is_reported_and_the_object_stays_readable() -> None:
    def broken(item: Chooser) -> list[Selects]:
        raise RuntimeError("odd")

    reports: list[str] = []
    store = Store(Watched(CHOOSERS, selectors={"bad": broken}), report=lambda what, error: reports.append(what))
    store.replace([chooser("a", 1)], 1)
    assert store.get("ns", "a") is not None
    assert store.selecting("bad", {}, "ns") == ()
    (said,) = reports
    assert "broken on choosers.test.kruise.io ns/a" in said


# Far fewer tries


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Selector]:
    calls: list[Selector] = []
    original = Selector.matches

    def counting(self: Selector, wanted: Mapping[str, str]) -> bool:
        calls.append(self)
        return original(self, wanted)

    monkeypatch.setattr(Selector, "matches", counting)
    return calls


def test_a_thousand_selectors_and_ten_thousand_pods_are_not_ten_million_tries(tried: list[Selector]) -> None:
    store = store_of(
        *(chooser(f"c-{number:04}", 1, Choice(labels(aaa="same", app=f"app-{number}"))) for number in range(1000))
    )
    found = 0
    for number in range(10_000):
        wanted = {"aaa": "same", "app": f"app-{number % 2000}", "pod": str(number)}
        found += len(store.selecting("pods", wanted, "ns"))
    assert found == 5_000, "every other pod has a selector of its own"
    assert len(tried) <= found + 10_000, "one selector was filed under the label that all share, the first one"


def test_selectors_of_the_same_labels_in_other_namespaces_are_not_tried(tried: list[Selector]) -> None:
    def own(number: int) -> Choice:
        if number % 2:
            return Choice(labels(app="web"), namespace=f"ns-{number}")
        return Choice(labels(app="web"), namespaces=labels(**{"kubernetes.io/metadata.name": f"ns-{number}"}))

    store = store_of(*(chooser(f"c-{number}", 1, own(number)) for number in range(400)))
    for number in range(400):
        around = {"kubernetes.io/metadata.name": f"ns-{number}"}
        assert names(store, {"app": "web"}, f"ns-{number}", around) == [f"c-{number}"]
    assert len(tried) <= 400 * 3, "two for a match by labels of the namespace, and the first that was filed"
