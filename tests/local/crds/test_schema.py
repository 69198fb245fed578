"""Schemas: shaping, checking, and that the fast answer and the exact one agree."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.local.apicore import StatusError
from kruise.local.crds import embedded, lists, nodes, validating
from kruise.local.crds.checking import compile_check
from kruise.local.crds.schema import Schema
from kruise.local.crds.shaping import compile_shape
from tests.local.crds.cases import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    OBJECTS,
    PRESERVE,
    RICH_SCHEMA,
    RULES,
    object_body,
    rich,
    with_spec,
)
from tests.local.crds.spelled_out import workload
from tests.support.examples import EXAMPLES

RICH = Schema(RICH_SCHEMA)


def shaped(properties: dict[str, Any], spec: Any) -> Any:
    return Schema(with_spec(properties)).shape({"metadata": {"name": "a"}, "spec": spec})["spec"]


def wrong(properties: dict[str, Any], spec: Any, old: Any = None) -> list[str]:
    schema = Schema(with_spec(properties))
    before = None if old is None else {"metadata": {}, "spec": old}
    return [str(item) for item in schema.problems({"metadata": {}, "spec": spec}, before)]


def test_nothing_is_changed_in_place_and_a_right_object_stays_itself() -> None:
    sent = rich({"strange": 1, "ports": [{"port": 1}]})
    kept = copy.deepcopy(sent)
    once = RICH.shape(sent)
    assert sent == kept
    assert once != sent
    assert RICH.shape(once) is once


def test_metadata_keeps_only_what_it_has() -> None:
    obj = RICH.shape({**rich({}), "metadata": {"name": "a", "labels": {"x": "y"}, "strange": 1}})
    assert obj["metadata"] == {"name": "a", "labels": {"x": "y"}}


def test_order_of_nulls_and_defaults() -> None:
    """A null goes where it may not be, unless a default takes its place."""
    properties = {
        "plain": {"type": "string"},
        "filled": {"type": "string", "default": "x"},
        "nullable": {"type": "string", "nullable": True},
        "both": {"type": "string", "nullable": True, "default": "x"},
    }
    nulls = dict.fromkeys(properties)
    assert shaped(properties, nulls) == {"filled": "x", "nullable": None, "both": None}
    assert shaped(properties, {}) == {"filled": "x", "both": "x"}


def test_defaults_of_list_elements_and_map_values() -> None:
    item = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
    properties = {"list": {"type": "array", "items": item}, "map": {"type": "object", "additionalProperties": item}}
    assert shaped(properties, {"list": [{}, None, {"a": 2}], "map": {"x": {}, "y": None}}) == {
        "list": [{"a": 1}, None, {"a": 2}],
        "map": {"x": {"a": 1}},
    }


def test_what_is_preserved() -> None:
    """Unknown fields stay, and what is known below them is still pruned."""
    properties = {
        "free": {
            "type": "object",
            PRESERVE: True,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
        "loose": {"type": "object", "additionalProperties": True},
    }
    spec = {"free": {"x": {"y": 1}, "known": {"a": "b", "c": "d"}}, "loose": {"a": {"b": 1}, "c": 1}}
    assert shaped(properties, spec) == {"free": {"x": {"y": 1}, "known": {"a": "b"}}, "loose": {"a": {}, "c": 1}}


def test_embedded_objects() -> None:
    properties = {"object": {"type": "object", EMBEDDED: True, PRESERVE: True}}
    about = {"name": "x", "strange": 1, "creationTimestamp": None}
    spec = {"object": {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"a": 1}}}
    assert shaped(properties, spec)["object"]["metadata"] == {"name": "x"}
    with pytest.raises(StatusError, match=r"spec\.object\.metadata: .*cannot unmarshal string into Go value"):
        shaped(properties, {"object": {"metadata": "x"}})
    assert wrong(properties, {"object": {"kind": "Pod"}}) == ["spec.object.apiVersion: Required value"]


def test_a_fault_that_was_there_before_is_forgiven_while_it_stays() -> None:
    properties = {"a": {"type": "string", "maxLength": 1}, "b": {"type": "integer", "minimum": 5}}
    assert wrong(properties, {"a": "long", "b": 6}, {"a": "long", "b": 7}) == []
    assert len(wrong(properties, {"a": "other", "b": 1}, {"a": "long", "b": 1})) == 1


def test_elements_of_maps_are_known_by_their_keys() -> None:
    item = {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}, "p": {"minimum": 5}}}
    item["properties"]["p"]["type"] = "integer"  # type: ignore[index]
    keyed = {"l": {"type": "array", LIST_TYPE: "map", LIST_KEYS: ["n"], "items": item}}
    atomic = {"l": {"type": "array", "items": item}}
    old, new = [{"n": "a", "p": 1}, {"n": "b", "p": 9}], [{"n": "b", "p": 8}, {"n": "a", "p": 1}]
    assert wrong(keyed, {"l": new}, {"l": old}) == []
    assert wrong(atomic, {"l": new}, {"l": old}) == [
        "spec.l[1].p: Invalid value: 1: spec.l[1].p in body should be greater than or equal to 5"
    ]


def test_rules_are_noted_where_the_object_is_wrong_otherwise() -> None:
    properties = {"a": {"type": "string", RULES: [{"rule": "self != ''"}]}}
    found = wrong(properties, {"a": 1})
    assert found[1].startswith("<nil>: Invalid value: null: some validation rules were not checked")
    assert wrong(properties, {"a": ""}) == []


@pytest.mark.parametrize("title", OBJECTS)
def test_the_fast_answer_is_the_exact_one(title: str) -> None:
    try:
        obj = RICH.shape(object_body(title, "a"))
    except StatusError:
        return
    node = nodes.read(RICH_SCHEMA)
    assert compile_check(node)(obj) is not _exact(node, obj)


def _exact(node: nodes.Node, value: Any) -> bool:
    """Whether anything is wrong with it."""
    return bool(validating.problems(node, value) or embedded.problems(node, value) or lists.problems(node, value))


values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.sampled_from([0.5, 1.0, 2.5])
    | st.sampled_from(["", "a", "5%"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
_SCALARS: list[dict[str, Any]] = [
    {"type": "string", "minLength": 1},
    {"type": "string", "pattern": "^[a-z]", "nullable": True},
    {"type": "string", "enum": ["a", "5%"], "default": "a"},
    {"type": "string", "format": "date-time"},
    {"type": "integer", "minimum": 1, "exclusiveMaximum": True, "maximum": 9},
    {"type": "integer", "enum": [1, 2]},
    {"type": "number", "multipleOf": 0.5, "maximum": 2.5},
    {"type": "boolean", "default": True},
    {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    {INT_OR_STRING: True, "pattern": "%$", "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
    {PRESERVE: True},
    {"type": "object", PRESERVE: True, "not": {"required": ["a"]}},
]


def _composed(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    objects = st.builds(
        lambda known, more: {"type": "object", "properties": known, **more},
        properties,
        st.sampled_from(
            [
                {},
                {"required": ["a"]},
                {"maxProperties": 1, "nullable": True},
                {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                {"anyOf": [{"required": ["a"]}, {"minProperties": 2}], PRESERVE: True},
            ]
        ),
    )
    maps = st.builds(lambda value: {"type": "object", "additionalProperties": value, "minProperties": 1}, inner)
    arrays = st.builds(
        lambda item, more: {"type": "array", "items": item, **more},
        inner,
        st.sampled_from([{}, {"maxItems": 1}, {"minItems": 1, "nullable": True}, {LIST_TYPE: "set"}]),
    )
    return objects | maps | arrays


schemas: st.SearchStrategy[dict[str, Any]] = st.recursive(st.sampled_from(_SCALARS), _composed, max_leaves=6)


@settings(max_examples=100 * EXAMPLES, deadline=None)
@given(schemas, values)
def test_any_schema_answers_the_same_both_ways(schema: dict[str, Any], value: Any) -> None:
    node = nodes.read(schema)
    assert compile_check(node)(value) is not _exact(node, value)


@settings(max_examples=75 * EXAMPLES, deadline=None)
@given(schemas, values)
def test_shaping_twice_changes_nothing(schema: dict[str, Any], value: Any) -> None:
    shape = compile_shape(nodes.read(schema))
    kept = copy.deepcopy(value)
    once = shape(value)
    assert value == kept
    assert shape(once) is once


def test_an_object_whose_template_is_spelled_out_is_valid_with_its_defaults() -> None:
    source, obj = workload()
    schema = Schema(source)
    ready = schema.shape(obj)
    assert schema.problems(ready, None) == ()
    assert ready["spec"]["updateStrategy"]["partition"] == 0
    probe = ready["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
    assert (probe["periodSeconds"], probe["failureThreshold"]) == (20, 3)
