"""Field sets: their encoding and their algebra."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.local.fields import sets
from kruise.local.fields.sets import FieldSet

NAMES = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"name":"x"}', 'k:{"port":80}', 'v:"x"', "v:1"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(tuple)
PATH_SETS = st.frozensets(PATHS, max_size=8)


def tree_of(paths: frozenset[tuple[str, ...]]) -> FieldSet:
    result: FieldSet = {}
    for path in paths:
        one: Any = {}
        for key in reversed(path):
            one = {key: one}
        result = sets.union(result, one)
    return result


def members(tree: FieldSet) -> set[tuple[str, ...]]:
    return set(sets.paths(tree))


@given(PATH_SETS)
def test_a_set_holds_the_paths_it_was_made_of(paths: frozenset[tuple[str, ...]]) -> None:
    tree = tree_of(paths)
    assert members(tree) == paths
    assert all(sets.has(tree, path) for path in paths)


@given(PATH_SETS, PATH_SETS)
def test_algebra_is_that_of_sets_of_paths(left: frozenset[Any], right: frozenset[Any]) -> None:
    one, two = tree_of(left), tree_of(right)
    assert members(sets.union(one, two)) == left | right
    assert members(sets.intersection(one, two)) == left & right
    assert members(sets.difference(one, two)) == left - right


@given(PATH_SETS, PATH_SETS)
def test_recursive_difference_takes_what_is_below(left: frozenset[Any], right: frozenset[Any]) -> None:
    kept = {path for path in left if not any(path[: len(taken)] == taken for taken in right)}
    assert members(sets.recursive_difference(tree_of(left), tree_of(right))) == kept


@given(PATH_SETS)
@settings(max_examples=50)
def test_encoding_is_one_for_equal_sets(paths: frozenset[Any]) -> None:
    forwards, backwards = tree_of(paths), {}
    for path in sorted(paths, reverse=True):
        backwards = sets.union(backwards, tree_of(frozenset({path})))
    assert sets.to_json(forwards) == sets.to_json(backwards)
    assert members(sets.from_json(sets.to_json(forwards))) == paths


def test_encoding_as_the_server_writes_it() -> None:
    tree = sets.union(
        sets.of_paths(("spec", "replicas"), ("metadata", "labels"), ("metadata", "labels", "app")),
        {
            "f:spec": {
                "f:ports": {
                    'k:{"port":80,"protocol":"TCP"}': {},
                    'k:{"port":9,"protocol":"TCP"}': {".": {}, "f:port": {}},
                }
            }
        },
    )
    assert sets.to_json(tree) == (
        b'{"f:metadata":{"f:labels":{".":{},"f:app":{}}},'
        b'"f:spec":{"f:ports":{"k:{\\"port\\":9,\\"protocol\\":\\"TCP\\"}":{".":{},"f:port":{}},'
        b'"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{}},"f:replicas":{}}}'
    )


def test_elements_are_named_as_go_does() -> None:
    assert sets.key_element({"protocol": "TCP", "containerPort": 80}) == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert sets.value_element("a<b") == 'v:"a\\u003cb"'
    assert sets.path_text(("f:spec", 'k:{"name":"x","port":1}', "f:image", 'v:"q\\"r"')) == (
        '.spec[name="x",port=1].image[="q\\"r"]'
    )


def test_keys_that_others_wrote_become_canonical() -> None:
    """Owners from another server may order keys or escape signs in their own way."""
    foreign = json.dumps({'k:{"b":1, "a":"<"}': {}, "x:future": {}, "f:y": {'v:"<"': {}}}).encode()
    assert sets.from_json(foreign) == {'k:{"a":"\\u003c","b":1}': {}, "f:y": {'v:"\\u003c"': {}}}


@pytest.mark.parametrize("text", [b"[]", b"{", b'{"name":{}}', b'{"k:[]":{}}', b'{"f:a":1}', b'{"v:":{}}'])
def test_what_is_no_set_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="error decoding set"):
        sets.from_json(text)


def test_only_keeps_what_a_pattern_allows() -> None:
    tree = sets.of_paths(("spec", "size"), ("metadata", "labels"))
    tree = sets.union(
        tree,
        {"f:spec": {"f:containers": {'k:{"name":"x"}': {".": {}, "f:image": {}, "f:resources": {"f:limits": {}}}}}},
    )
    allowed = {"f:spec": {"f:containers": {"f:*": {"f:resources": {}}}}}
    assert sets.only(tree, allowed) == {
        "f:spec": {"f:containers": {'k:{"name":"x"}': {".": {}, "f:resources": {"f:limits": {}}}}}
    }
