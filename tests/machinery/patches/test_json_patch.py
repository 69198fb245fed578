"""JSON patches: what the server's library does with them, and that our differences are small and right."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery.patches import json_patch
from kruise.machinery.patches.errors import PatchError, TestFailedError
from kruise.machinery.patches.values import same
from tests.machinery.patches.json_values import documents
from tests.support.examples import EXAMPLES

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())["json"]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: json.dumps(case["operations"])[:60])
def test_does_what_the_api_servers_library_did(case: dict[str, Any]) -> None:
    """Results and error texts recorded from the library that the API server uses."""
    document, operations = copy.deepcopy(case["document"]), copy.deepcopy(case["operations"])
    if "error" in case:
        with pytest.raises(PatchError) as caught:
            json_patch.apply(document, operations)
        assert str(caught.value) == case["error"]
    else:
        assert same(json_patch.apply(document, operations), case["result"])
    assert same(document, case["document"])
    assert same(operations, case["operations"])


def test_a_failed_test_is_told_apart_from_other_errors() -> None:
    with pytest.raises(TestFailedError, match="testing value /a failed: test failed"):
        json_patch.apply({"a": 1}, [{"op": "test", "path": "/a", "value": 2}])


@pytest.mark.parametrize(("found", "expected"), [(1, True), (True, 1), (1, 1.0), (0, False), ("1", 1), (None, 0)])
def test_a_test_minds_the_type(found: Any, expected: Any) -> None:
    with pytest.raises(TestFailedError):
        json_patch.apply({"a": found}, [{"op": "test", "path": "/a", "value": expected}])


def test_a_missing_member_passes_a_test_for_null() -> None:
    assert json_patch.apply({}, [{"op": "test", "path": "/a", "value": None}]) == {}


def test_replacing_a_missing_member_sets_it() -> None:
    assert json_patch.apply({}, [{"op": "replace", "path": "/a", "value": 1}]) == {"a": 1}


def test_adding_below_a_missing_parent_fails() -> None:
    with pytest.raises(PatchError, match='doc is missing path: "/metadata/labels/x": missing value'):
        json_patch.apply({"metadata": {}}, [{"op": "add", "path": "/metadata/labels/x", "value": "1"}])


def test_lists_take_a_dash_an_index_and_an_index_from_the_end() -> None:
    document = {"l": [1, 2]}
    assert json_patch.apply(document, [{"op": "add", "path": "/l/-", "value": 3}]) == {"l": [1, 2, 3]}
    assert json_patch.apply(document, [{"op": "add", "path": "/l/1", "value": 3}]) == {"l": [1, 3, 2]}
    assert json_patch.apply(document, [{"op": "add", "path": "/l/-1", "value": 3}]) == {"l": [1, 2, 3]}
    assert json_patch.apply(document, [{"op": "remove", "path": "/l/-1"}]) == {"l": [1]}


@pytest.mark.parametrize("index", ["3", "-4", "9" * 5000])
def test_an_index_outside_of_the_list_fails(index: str) -> None:
    with pytest.raises(PatchError, match="invalid index referenced"):
        json_patch.apply({"l": [1, 2]}, [{"op": "add", "path": f"/l/{index}", "value": 0}])


def test_a_copied_value_and_its_source_change_apart() -> None:
    operations = [
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/x", "value": 2},
        {"op": "add", "path": "/a/x", "value": 3},
    ]
    assert json_patch.apply({"a": {}}, operations) == {"a": {"x": 3}, "b": {"x": 2}}


def test_a_value_of_the_patch_is_not_changed_by_later_operations() -> None:
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": "/a", "value": {"l": []}},
        {"op": "add", "path": "/a/l/-", "value": 1},
    ]
    assert json_patch.apply({}, operations) == {"a": {"l": [1]}}
    assert operations[0]["value"] == {"l": []}


def test_unchanged_parts_are_shared() -> None:
    document = {"big": {"x": [1]}, "small": 1}
    result = json_patch.apply(document, [{"op": "replace", "path": "/small", "value": 2}])
    assert result["big"] is document["big"]


@pytest.mark.parametrize(
    "operations", [{"op": "add"}, "add", [1], [{"path": "/a"}], [{"op": 5, "path": "/a"}], [{"op": "add", "path": 5}]]
)
def test_what_is_no_patch_is_refused(operations: Any) -> None:
    with pytest.raises(PatchError):
        json_patch.apply({}, operations)


def test_a_document_nested_without_end_is_refused_not_a_crash() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    other: Any = [1]
    for _ in range(100_000):
        other = [other]
    with pytest.raises(PatchError, match="nested too deeply"):
        json_patch.diff({"a": deep}, {"a": other})


def test_pointers_escape_slash_and_tilde() -> None:
    assert json_patch.pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"


PAIRS = st.tuples(documents(), documents())


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(PAIRS)
def test_a_difference_leads_from_one_document_to_the_other(pair: tuple[Any, Any]) -> None:
    before, after = pair
    kept = copy.deepcopy(before)
    operations = json_patch.diff(before, after)
    assert same(json_patch.apply(before, operations), after)
    assert same(before, kept)
    assert (operations == []) == same(before, after)


@settings(max_examples=100, deadline=None)
@given(PAIRS)
def test_another_implementation_reads_our_differences_the_same(pair: tuple[Any, Any]) -> None:
    before, after = pair
    assert jsonpatch.apply_patch(before, json_patch.diff(before, after)) == after


@settings(max_examples=100, deadline=None)
@given(PAIRS)
def test_we_read_the_differences_of_another_implementation(pair: tuple[Any, Any]) -> None:
    before, after = pair
    operations = jsonpatch.make_patch(before, after).patch
    # The other implementation may put a test on the root or replace it; both are the same to us.
    assert json_patch.apply(before, operations) == after


@settings(max_examples=100, deadline=None)
@given(documents(), st.integers(0, 3), st.integers(0, 3))
def test_an_element_put_anywhere_into_a_list_is_one_operation(element: Any, length: int, place: int) -> None:
    before = [{"name": f"n{index}", "image": "i"} for index in range(length)]
    after = copy.deepcopy(before)
    after.insert(place, {**element, "name": "new"})
    operations = json_patch.diff({"l": before}, {"l": after})
    assert len(operations) == 1
    assert operations[0]["op"] in ("add", "replace")


def test_a_sidecar_in_front_and_a_change_behind_it_are_two_operations() -> None:
    before = {"containers": [{"name": "main", "image": "a", "env": []}]}
    after = {"containers": [{"name": "side", "image": "s"}, {"name": "main", "image": "b", "env": []}]}
    assert json_patch.diff(before, after) == [
        {"op": "add", "path": "/containers/0", "value": {"name": "side", "image": "s"}},
        {"op": "replace", "path": "/containers/1/image", "value": "b"},
    ]


def test_an_element_of_another_name_is_replaced_whole() -> None:
    before, after = [{"name": "a", "image": "i"}], [{"name": "b", "image": "i"}]
    assert json_patch.diff({"l": before}, {"l": after}) == [{"op": "replace", "path": "/l/0", "value": after[0]}]


def test_annotations_with_slashes_are_addressed_one_by_one() -> None:
    before = {"metadata": {"annotations": {"a/b": "1", "keep": "x"}}}
    after = {"metadata": {"annotations": {"c/d": "2", "keep": "x"}}}
    assert json_patch.diff(before, after) == [
        {"op": "remove", "path": "/metadata/annotations/a~1b"},
        {"op": "add", "path": "/metadata/annotations/c~1d", "value": "2"},
    ]


def test_very_long_lists_are_compared_place_by_place() -> None:
    """Aligning them would be quadratic."""
    before, after = list(range(3000)), [-1, *range(1, 2999), -2, -3]
    operations = json_patch.diff(before, after)
    assert json_patch.apply(before, operations) == after
    assert len(operations) == 3
