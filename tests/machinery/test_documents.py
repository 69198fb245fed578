"""Whole objects: reading, changing, and the patch between two of them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery.documents import patch_between, value_at, with_value
from kruise.machinery.patches import json_patch
from kruise.machinery.patches.values import same
from tests.support.examples import EXAMPLES

_names = st.sampled_from(["a", "b", "c/d", "e~f", "name"])
_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=12,
)
_objects = st.dictionaries(_names, _values, max_size=4)


@given(_objects, _objects)
@settings(max_examples=75 * EXAMPLES, deadline=None)
def test_the_patch_leads_from_one_object_to_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Applied to what was read, a patch gives what is wanted, whatever the two are; nothing to do is an empty patch."""
    patch = patch_between(before, after)
    assert same(json_patch.apply(copy.deepcopy(before), patch), after)
    assert bool(patch) == (not same(before, after))


def test_a_changed_container_is_patched_alone_and_tested_by_name() -> None:
    """Two containers: only the field that differs is sent, behind a test that the entry is still the same one."""
    before = {
        "metadata": {"uid": "u"},
        "spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
    }
    after = copy.deepcopy(before)
    after["spec"]["containers"][1]["image"] = "2"  # type: ignore[index]
    assert patch_between(before, after) == [
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/spec/containers/1/name", "value": "b"},
        {"op": "test", "path": "/spec/containers/1/image", "value": "1"},
        {"op": "replace", "path": "/spec/containers/1/image", "value": "2"},
    ]


def test_a_list_that_grows_is_replaced_as_a_whole_and_tested() -> None:
    before, after = {"env": [{"name": "A"}]}, {"env": [{"name": "A"}, {"name": "B"}]}
    assert [step["op"] for step in patch_between(before, after)] == ["test", "replace"]


def test_places_are_read_and_made() -> None:
    document = {"spec": {"replicas": 3, "none": None}}
    assert value_at(document, ("spec", "replicas")) == 3
    assert value_at(document, ("spec", "none"), 5) == 5
    assert value_at(document, ("spec", "replicas", "deeper"), 5) == 5
    changed = with_value(document, ("spec", "a", "b"), 1)
    assert changed == {"spec": {"replicas": 3, "none": None, "a": {"b": 1}}}
    assert document == {"spec": {"replicas": 3, "none": None}}
