"""Making strategic merge patches from two documents or three."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery.patches import strategic
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.patches.values import same
from tests.machinery.patches.pod_schema import DEPLOYMENT, POD
from tests.support.examples import EXAMPLES

NAMES = st.sampled_from(["a", "b", "c", "d"])


def unique(elements: st.SearchStrategy[dict[str, Any]], key: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(elements, max_size=4, unique_by=lambda element: element[key])


def record(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


LABELS = st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=3)
CONTAINERS = unique(
    record(
        {"name": NAMES},
        {
            "image": st.sampled_from(["i1", "i2"]),
            "env": unique(record({"name": NAMES}, {"value": st.sampled_from(["1", "2"])}), "name"),
            "ports": unique(record({"containerPort": st.sampled_from([1, 80, 81])}, {"name": NAMES}), "containerPort"),
            "args": st.lists(NAMES, max_size=2),
            "resources": record({}, {"limits": LABELS}),
        },
    ),
    "name",
)
VOLUMES = unique(
    st.one_of(
        record({"name": NAMES, "emptyDir": record({}, {"medium": st.just("Memory")})}, {}),
        record({"name": NAMES, "hostPath": st.just({"path": "/x"})}, {}),
    ),
    "name",
)
METADATA = record({}, {"labels": LABELS, "finalizers": st.lists(NAMES, max_size=3, unique=True)})
PODS = record(
    {"metadata": METADATA},
    {
        "spec": record(
            {},
            {
                "containers": CONTAINERS,
                "volumes": VOLUMES,
                "tolerations": st.lists(record({"key": NAMES}, {}), max_size=2),
                "nodeSelector": LABELS,
            },
        )
    },
)


def settled(value: Any) -> Any:
    """Without empty lists: a merged list that lost its last element is empty, not absent."""
    if isinstance(value, dict):
        kept = {name: settled(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item != []}
    if isinstance(value, list):
        return [settled(item) for item in value]
    return value


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(PODS, PODS)
def test_a_difference_leads_from_one_document_to_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    kept = copy.deepcopy((before, after))
    patch = strategic.diff(before, after, POD)
    assert same(settled(strategic.apply(before, patch, POD)), settled(after))
    assert same([before, after], list(kept))


@settings(max_examples=100, deadline=None)
@given(PODS)
def test_no_difference_is_an_empty_patch(document: dict[str, Any]) -> None:
    assert strategic.diff(document, copy.deepcopy(document), POD) == {}


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(PODS, PODS, PODS)
def test_three_ways_settle_in_one_step(
    original: dict[str, Any], modified: dict[str, Any], current: dict[str, Any]
) -> None:
    """What was applied needs no further patch: the difference to the same wish is empty afterwards."""
    result = strategic.apply(current, strategic.three_way(original, modified, current, POD), POD)
    again = strategic.three_way(original, modified, result, POD)
    assert same(strategic.apply(result, again, POD), result)


@settings(max_examples=100, deadline=None)
@given(LABELS, LABELS, LABELS)
def test_three_ways_over_a_plain_map(original: Any, modified: Any, current: Any) -> None:
    """Ours is set, what we once had is gone, what others have stays."""
    before, wish, found = ({"metadata": {"labels": labels}} for labels in (original, modified, current))
    result = strategic.apply(found, strategic.three_way(before, wish, found, POD), POD)
    others = {name: value for name, value in current.items() if name not in original}
    assert result["metadata"]["labels"] == {**others, **modified}


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def test_an_injected_container_survives_and_a_removed_one_goes() -> None:
    original = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "old"}]}}
    modified = {"spec": {"containers": [{"name": "a", "image": "2"}]}}
    current = {"spec": {"containers": [{"name": "side"}, {"name": "a", "image": "1", "tty": True}, {"name": "old"}]}}
    patch = strategic.three_way(original, modified, current, POD)
    assert patch == {
        "spec": {
            "containers": [{"name": "a", "image": "2"}, {"name": "old", "$patch": "delete"}],
            "$setElementOrder/containers": [{"name": "a"}],
        }
    }
    assert strategic.apply(current, patch, POD) == {
        "spec": {"containers": [{"name": "side"}, {"name": "a", "image": "2", "tty": True}]}
    }


def test_what_the_server_added_makes_no_patch() -> None:
    """A workload that is as it should be is not written again and again."""
    wish = {"spec": {"containers": [{"name": "a", "image": "1"}]}}
    current = {"spec": {"containers": [{"name": "side"}, {"name": "a", "image": "1", "tty": True}], "dns": "x"}}
    assert strategic.three_way(wish, wish, current, POD) == {}


def test_a_deletion_that_others_made_already_makes_no_patch() -> None:
    original = {"metadata": {"labels": {"a": "1", "b": "1"}}}
    modified = {"metadata": {"labels": {"a": "1"}}}
    assert strategic.three_way(original, modified, modified, POD) == {}


def test_a_new_order_alone_is_a_patch() -> None:
    before, after = {"spec": {"containers": named("a", "b")}}, {"spec": {"containers": named("b", "a")}}
    assert strategic.diff(before, after, POD) == {"spec": {"$setElementOrder/containers": named("b", "a")}}


def test_finalizers_are_added_and_removed_one_by_one() -> None:
    before = {"metadata": {"finalizers": ["a", "b"]}}
    after = {"metadata": {"finalizers": ["b", "c"]}}
    assert strategic.diff(before, after, POD) == {
        "metadata": {
            "finalizers": ["c"],
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["b", "c"],
        }
    }


def test_members_of_a_union_clear_each_other() -> None:
    before = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    after = {"spec": {"strategy": {"type": "Recreate"}}}
    patch = strategic.three_way({}, after, before, DEPLOYMENT)
    assert patch == {"spec": {"strategy": {"type": "Recreate", "$retainKeys": ["type"]}}}
    assert strategic.apply(before, patch, DEPLOYMENT) == after


def test_elements_that_share_a_merge_key_are_replaced_whole() -> None:
    """Port 53 over TCP and UDP: merging by number would mix the two."""
    before = {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 53, "protocol": "UDP"}]}]}}
    ports = [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]
    after = {"spec": {"containers": [{"name": "a", "ports": ports}]}}
    patch = strategic.diff(before, after, POD)
    assert patch["spec"]["containers"][0]["ports"] == [{"$patch": "replace"}, *ports]
    assert strategic.apply(before, patch, POD) == after
    assert strategic.diff(after, copy.deepcopy(after), POD) == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"spec": {"containers": [{"image": "x"}]}}, {"spec": {"containers": named("a")}}),
        ({"spec": {"containers": ["a"]}}, {"spec": {"containers": named("a")}}),
        ({"metadata": {"finalizers": [1]}}, {"metadata": {"finalizers": ["a"]}}),
    ],
)
def test_lists_that_cannot_be_merged_are_refused(before: Any, after: Any) -> None:
    with pytest.raises(PatchError):
        strategic.diff(before, after, POD)


def test_documents_must_be_objects() -> None:
    bad: Any = []
    with pytest.raises(PatchError, match="JSON objects"):
        strategic.diff(bad, {}, POD)
