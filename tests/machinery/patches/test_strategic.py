"""Applying strategic merge patches: what the API server's own code did, and each rule by itself."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery.patches import strategic
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.patches.schema import REPLACE, FieldRule, Fields
from kruise.machinery.patches.values import same
from tests.machinery.patches.pod_schema import DEPLOYMENT, POD
from tests.support.examples import EXAMPLES

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())["strategic"]
SCHEMAS = {"Pod": POD, "Deployment": DEPLOYMENT}


def meaningful(value: Any) -> Any:
    """Without what Go's types add or drop when a document passes through them."""
    if isinstance(value, dict):
        kept = {name: meaningful(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, {}, [], "")}
    if isinstance(value, list):
        return [meaningful(item) for item in value]
    return value


@pytest.mark.parametrize("index", range(len(RECORDED)))
def test_does_what_the_api_servers_code_did(index: int) -> None:
    """Documents, patches and outcomes recorded from the API server's own code, all directives mixed at random."""
    case = copy.deepcopy(RECORDED[index])
    schema = SCHEMAS[case["kind"]]
    if "error" in case:
        with pytest.raises(PatchError):
            strategic.apply(case["document"], case["patch"], schema)
    else:
        result = strategic.apply(case["document"], case["patch"], schema)
        assert meaningful(result) == meaningful(case["result"])
    assert same(case, RECORDED[index])


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def containers(document: dict[str, Any]) -> list[str]:
    return [container["name"] for container in document["spec"]["containers"]]


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def test_elements_are_merged_by_their_key_and_keep_their_order() -> None:
    document = pod(containers=[{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "1"}])
    patch = pod(containers=[{"name": "b", "image": "2"}])
    result = strategic.apply(document, patch, POD)
    assert result == pod(containers=[{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "2"}])
    assert result["spec"]["containers"][0] is document["spec"]["containers"][0]


def test_new_elements_come_first_unless_the_patch_says_otherwise() -> None:
    document = pod(containers=named("a", "b"))
    assert containers(strategic.apply(document, pod(containers=named("new")), POD)) == ["new", "a", "b"]
    ordered = {"spec": {"containers": named("new"), "$setElementOrder/containers": named("a", "new", "b")}}
    assert containers(strategic.apply(document, ordered, POD)) == ["a", "new", "b"]


def test_elements_outside_of_the_order_keep_their_place_among_the_others() -> None:
    document = pod(containers=named("injected", "a", "b", "late"))
    patch = {"spec": {"$setElementOrder/containers": named("b", "a")}}
    assert containers(strategic.apply(document, patch, POD)) == ["injected", "b", "a", "late"]


def test_an_order_that_the_patch_itself_does_not_follow_is_refused() -> None:
    patch = {"spec": {"containers": named("b", "a"), "$setElementOrder/containers": named("a", "b")}}
    with pytest.raises(PatchError, match="doesn't match"):
        strategic.apply(pod(containers=named("a", "b")), patch, POD)


def test_an_element_is_deleted_by_directive() -> None:
    patch = pod(containers=[{"name": "a", "$patch": "delete"}])
    assert containers(strategic.apply(pod(containers=named("a", "b")), patch, POD)) == ["b"]


def test_a_list_is_replaced_by_directive() -> None:
    patch = pod(containers=[{"$patch": "replace"}, {"name": "c"}])
    assert strategic.apply(pod(containers=named("a", "b")), patch, POD) == pod(containers=named("c"))


def test_an_object_is_replaced_or_emptied_by_directive() -> None:
    document = pod(securityContext={"runAsUser": 1, "fsGroup": 2})
    replace = pod(securityContext={"$patch": "replace", "runAsUser": 3})
    assert strategic.apply(document, replace, POD) == pod(securityContext={"runAsUser": 3})
    delete = pod(securityContext={"$patch": "delete"})
    assert strategic.apply(document, delete, POD) == pod(securityContext={})


def test_an_object_that_was_not_there_is_not_made_by_a_directive() -> None:
    """The server's way: a new value with a directive is dropped whole."""
    assert strategic.apply({}, {"spec": {"$patch": "replace", "a": 1}}, POD) == {}


@pytest.mark.parametrize("directive", ["merge", "other", 5])
def test_other_directives_are_refused(directive: Any) -> None:
    with pytest.raises(PatchError, match=r"patch type|merging lists cannot yet"):
        strategic.apply(pod(containers=named("a")), pod(containers=[{"name": "a", "$patch": directive}]), POD)
    with pytest.raises(PatchError, match="unknown patch type"):
        strategic.apply(pod(), {"spec": {"$patch": directive}}, POD)


def test_primitive_lists_are_merged_and_deleted_from() -> None:
    document = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic.apply(document, {"metadata": {"finalizers": ["c", "b"]}}, POD)
    assert set(added["metadata"]["finalizers"]) == {"a", "b", "c"}
    removed = strategic.apply(document, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}}, POD)
    assert removed == {"metadata": {"finalizers": ["b"]}}


def test_keys_that_are_not_retained_go() -> None:
    document = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic.apply(document, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_a_patch_must_retain_what_it_sets() -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}}
    with pytest.raises(PatchError, match="invalid patch format of retainKeys"):
        strategic.apply({"spec": {"strategy": {}}}, patch, DEPLOYMENT)


def test_lists_without_a_strategy_are_replaced() -> None:
    result = strategic.apply(pod(tolerations=[{"key": "a"}]), pod(tolerations=[{"key": "b"}]), POD)
    assert result == pod(tolerations=[{"key": "b"}])


def test_a_field_with_the_replace_strategy_is_not_merged() -> None:
    schema = Fields({"source": FieldRule(strategies=frozenset({REPLACE}))})
    assert strategic.apply({"source": {"a": 1}}, {"source": {"b": 2}}, schema) == {"source": {"b": 2}}


def test_without_a_schema_objects_are_merged_and_lists_replaced() -> None:
    result = strategic.apply({"a": {"x": 1}, "l": [1]}, {"a": {"y": 2}, "l": [2]}, None)
    assert result == {"a": {"x": 1, "y": 2}, "l": [2]}


def test_null_removes_and_is_nothing_where_nothing_was() -> None:
    assert strategic.apply({"a": 1, "b": 2}, {"a": None, "c": None, "d": {"e": None}}, None) == {"b": 2, "d": {}}


@pytest.mark.parametrize(
    ("document", "patch", "message"),
    [
        (pod(containers=named("a")), pod(containers=[{"image": "x"}]), "does not contain declared merge key: name"),
        (pod(containers=[{"image": "x"}]), pod(containers=named("a")), "does not contain declared merge key: name"),
        (pod(containers=named("a")), pod(containers=["a"]), "list element types are not identical"),
        ({"metadata": {"finalizers": [["a"]]}}, {"metadata": {"finalizers": [["b"]]}}, "lists of lists"),
        (pod(containers=named("a")), {"spec": {"$setElementOrder/containers": "a"}}, "expected a list"),
        (pod(containers=named("a")), {"spec": {"$setElementOrder": []}}, "invalid patch format of setElementOrder"),
        ({"metadata": {}}, {"metadata": {"$deleteFromPrimitiveList": []}}, "invalid patch format of primitive list"),
        ({"spec": {"strategy": {}}}, {"spec": {"strategy": {"$retainKeys": 1}}}, "retainKeys"),
        ({}, [], "must be a JSON object"),
        ([], {}, "applies to a JSON object"),
    ],
)
def test_malformed_patches_are_refused(document: Any, patch: Any, message: str) -> None:
    with pytest.raises(PatchError, match=message):
        strategic.apply(document, patch, POD)


def test_directives_below_something_new_have_nothing_to_act_on_and_leave_no_trace() -> None:
    patch = {"metadata": {"$deleteFromPrimitiveList": [], "$setElementOrder/finalizers": ["a"], "$retainKeys": []}}
    assert strategic.apply({}, patch, POD) == {"metadata": {}}


KEYS = st.sampled_from(
    [
        "containers",
        "env",
        "finalizers",
        "metadata",
        "name",
        "spec",
        "volumes",
        "$patch",
        "$retainKeys",
        "$setElementOrder",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
    ]
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 1), st.sampled_from(["a", "b", "delete", "replace"]))
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(ANYTHING, ANYTHING)
def test_any_patch_is_applied_or_refused(document: Any, patch: Any) -> None:
    """Whatever people send, the answer is a document or a PatchError, never a crash, and the input is untouched."""
    spec = {"spec": {"template": document}} if isinstance(document, dict) else document
    kept = copy.deepcopy((document, patch))
    for target in (document, spec):
        try:
            result = strategic.apply(target, {"spec": patch, "metadata": patch}, POD)
        except PatchError:
            continue
        assert isinstance(result, dict)
    assert same([document, patch], list(kept))
