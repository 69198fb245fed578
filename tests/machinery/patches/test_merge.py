"""JSON merge patches: the cases of RFC 7386, and that our differences are small and right."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery.patches import merge
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.patches.values import same
from tests.machinery.patches.json_values import documents, names
from tests.support.examples import EXAMPLES

# Appendix A of RFC 7386.
RFC_CASES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "result"), RFC_CASES)
def test_the_cases_of_the_rfc(document: Any, patch: Any, result: Any) -> None:
    kept = copy.deepcopy((document, patch))
    assert same(merge.apply(document, patch), result)
    assert same([document, patch], list(kept))


def test_nulls_in_objects_of_a_new_list_are_left_out_as_on_the_server() -> None:
    assert merge.apply({"l": [1]}, {"l": [{"a": None, "b": 1}, None]}) == {"l": [{"b": 1}, None]}


def test_a_list_in_place_of_an_object_is_taken_as_it_is_as_on_the_server() -> None:
    assert merge.apply({"l": {}}, {"l": [{"a": None}]}) == {"l": [{"a": None}]}


def test_nothing_to_change_is_no_patch() -> None:
    assert merge.diff({"a": {"b": [1]}}, {"a": {"b": [1]}}) is None


def test_only_what_differs_is_in_the_patch() -> None:
    before = {"keep": 1, "spec": {"a": 1, "b": 2, "l": [1]}, "gone": {}}
    after = {"keep": 1, "spec": {"a": 1, "b": 3, "l": [1, 2]}, "new": {"x": 1}}
    assert merge.diff(before, after) == {"gone": None, "spec": {"b": 3, "l": [1, 2]}, "new": {"x": 1}}


def test_true_is_not_one() -> None:
    assert merge.diff({"a": 1}, {"a": True}) == {"a": True}


@pytest.mark.parametrize(("before", "after"), [([], {}), ({}, []), ("a", "b")])
def test_documents_must_be_objects(before: Any, after: Any) -> None:
    with pytest.raises(PatchError, match="two JSON objects"):
        merge.diff(before, after)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(st.tuples(documents(nulls=False), documents(nulls=False)))
def test_a_difference_leads_from_one_document_to_the_other(pair: tuple[Any, Any]) -> None:
    before, after = pair
    patch = merge.diff(before, after)
    assert (patch is None) == same(before, after)
    assert same(merge.apply(before, patch or {}), after)


@settings(max_examples=100, deadline=None)
@given(documents(), documents(nulls=False), st.sets(names))
def test_applying_twice_is_applying_once(document: Any, changes: dict[str, Any], removed: set[str]) -> None:
    patch = {**changes, **dict.fromkeys(removed)}
    once = merge.apply(document, patch)
    assert same(merge.apply(once, patch), once)
    assert removed.isdisjoint(once)
