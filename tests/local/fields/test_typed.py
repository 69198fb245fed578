"""Types, and values walked along them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.local.fields import schema, sets, typed
from kruise.local.fields.schema import Type
from kruise.local.fields.typed import TypedError
from tests.support.examples import EXAMPLES

DEPLOYMENT = schema.native("apps/v1", "Deployment")
assert DEPLOYMENT is not None
OPEN = schema.custom(None)
TEXT = {"type": "string"}
ITEM = {"type": "object", "properties": {"name": TEXT, "value": TEXT}}
SPEC = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": ITEM,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "order": {"type": "array", "items": TEXT},
        "whole": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
        "options": {"type": "object", "additionalProperties": TEXT},
        "size": {"type": "integer"},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
CUSTOM = schema.custom({"type": "object", "properties": {"spec": SPEC}})

WORDS = st.sampled_from(["x", "y", "z"])
ITEMS = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"value": WORDS}), max_size=3, unique_by=lambda item: item["name"]
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "items": ITEMS,
        "tags": st.lists(WORDS, max_size=3, unique=True),
        "order": st.lists(WORDS, max_size=2),
        "whole": st.dictionaries(WORDS, WORDS, max_size=2),
        "options": st.dictionaries(WORDS, WORDS, max_size=2),
        "size": st.integers(0, 2),
        "any": st.recursive(
            WORDS | st.booleans() | st.integers(0, 1), lambda inner: st.dictionaries(WORDS, inner), max_leaves=3
        ),
    },
)
OBJECTS = SPECS.map(lambda spec: {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": spec})


def container(**more: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", **more}]}}}}


def places(tree: dict[str, Any]) -> list[str]:
    return [sets.path_text(path) for path in sets.paths(tree)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (container(ports=[{"containerPort": 80}]), '.ports[containerPort=80,protocol="TCP"]'),
        (container(env=[{"name": "A"}]), '.env[name="A"]'),
        (container(volumeMounts=[{"mountPath": "/v"}]), '.volumeMounts[mountPath="/v"]'),
        (container(command=["a"]), ".command"),
    ],
)
def test_lists_of_native_kinds_are_typed_as_published(value: dict[str, Any], expected: str) -> None:
    assert DEPLOYMENT is not None
    prefix = '.spec.template.spec.containers[name="main"]'
    assert prefix + expected in places(typed.field_set(value, DEPLOYMENT))


@pytest.mark.parametrize(
    ("api_version", "kind", "value", "expected"),
    [
        ("v1", "Service", {"spec": {"ports": [{"port": 80}]}}, '.spec.ports[port=80,protocol="TCP"]'),
        ("v1", "Service", {"spec": {"selector": {"a": "b"}}}, ".spec.selector"),
        ("v1", "Pod", {"status": {"conditions": [{"type": "Ready"}]}}, '.status.conditions[type="Ready"]'),
        ("v1", "Pod", {"spec": {"tolerations": [{"key": "a"}]}}, ".spec.tolerations"),
        ("v1", "Pod", {"metadata": {"finalizers": ["a"]}}, '.metadata.finalizers[="a"]'),
        ("v1", "Pod", {"metadata": {"ownerReferences": [{"uid": "u"}]}}, '.metadata.ownerReferences[uid="u"]'),
        ("apps/v1", "Deployment", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}, ".spec.selector"),
        ("v1", "Event", {"involvedObject": {"name": "x"}}, ".involvedObject"),
        ("batch/v1", "Job", {"spec": {"podFailurePolicy": {"rules": []}}}, ".spec.podFailurePolicy.rules"),
    ],
)
def test_native_types(api_version: str, kind: str, value: dict[str, Any], expected: str) -> None:
    known = schema.native(api_version, kind)
    assert known is not None
    assert expected in places(typed.field_set(value, known))


def test_every_native_type_can_be_reached() -> None:
    """All words of the table can be read, also in types that refer to themselves."""
    seen: set[int] = set()
    waiting = [schema.reference(f"@{name}") for name in schema._table()["types"]]
    while waiting:
        kind = waiting.pop()
        if id(kind) in seen:
            continue
        seen.add(id(kind))
        if kind.list is not None:
            waiting.append(kind.list.element)
        if kind.map is not None:
            inner = [kind.map.field(name) for name in kind.map.fields]
            waiting.extend(each for each in [*inner, kind.map.rest] if each is not None)
    assert len(seen) > 300


def test_a_kind_without_schema_is_typed_by_its_content() -> None:
    value = {"metadata": {"labels": {"a": "b"}}, "spec": {"l": [{"name": "x"}], "m": {"n": 1}}}
    assert places(typed.field_set(value, OPEN)) == [".spec", ".metadata.labels.a", ".spec.l", ".spec.m", ".spec.m.n"]


def test_an_embedded_object_has_typed_metadata() -> None:
    value = {"spec": {"template": {"metadata": {"finalizers": ["a"]}, "data": {"x": 1}}}}
    found = places(typed.field_set(value, CUSTOM))
    assert '.spec.template.metadata.finalizers[="a"]' in found
    assert ".spec.template.data.x" in found


@given(OBJECTS, OBJECTS)
@settings(max_examples=50 * EXAMPLES)
def test_comparing_is_symmetric(one: Any, two: Any) -> None:
    forwards, backwards = typed.compare(one, two, CUSTOM), typed.compare(two, one, CUSTOM)
    assert forwards.added == backwards.removed
    assert forwards.removed == backwards.added
    assert forwards.modified == backwards.modified
    assert forwards.is_same == (typed.same(one, two) or _reordered(one, two))


def _reordered(one: Any, two: Any) -> bool:
    """Elements that are known by keys or values have no order that anybody owns."""

    def key(spec: dict[str, Any]) -> Any:
        return {
            **spec,
            **({"items": sorted(spec["items"], key=str)} if spec.get("items") else {}),
            **({"tags": sorted(spec["tags"])} if spec.get("tags") else {}),
        }

    return typed.same(key(one["spec"]), key(two["spec"]))


@given(OBJECTS, OBJECTS)
@settings(max_examples=50 * EXAMPLES)
def test_a_merge_says_all_that_was_applied(live: Any, config: Any) -> None:
    merged = typed.merge(live, config, CUSTOM)
    assert typed.compare(merged, typed.merge(merged, config, CUSTOM), CUSTOM).is_same


@given(OBJECTS, OBJECTS)
@settings(max_examples=50 * EXAMPLES)
def test_a_merge_removes_nothing(live: Any, config: Any) -> None:
    for obj in (live, config):
        obj["spec"].pop("any", None)
    assert not typed.compare(live, typed.merge(live, config, CUSTOM), CUSTOM).removed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"spec": {"size": "1"}}, ".spec.size: expected numeric (int or float), got string"),
        ({"spec": {"tags": ["a", "a"]}}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"spec": {"items": [{"name": "x"}, {"name": "x"}]}}, '.spec.items: duplicate entries for key [name="x"]'),
        ({"spec": {"foo": 1}}, ".spec.foo: field not declared in schema"),
        ({"spec": {"items": [None]}}, ".spec.items: element 0: associative list with keys may not have a null element"),
        ({"spec": {"items": [1]}}, ".spec.items: element 0: associative list with keys may not have non-map elements"),
        (
            {"spec": {"tags": [{}]}},
            ".spec.tags: element 0: associative list without keys has an element that's a map type",
        ),
        ({"spec": {"order": "x"}}, ".spec.order: expected list, got &{x}"),
        ({"spec": [1]}, ".spec: expected map, got &{[1]}"),
        (
            {"spec": {"options": {"a": True}}},
            ".spec.options.a: expected string, got &value.valueUnstructured{Value:true}",
        ),
    ],
)
def test_values_that_do_not_fit_are_named(value: Any, text: str) -> None:
    with pytest.raises(TypedError) as caught:
        typed.check(value, CUSTOM, allow_repeats=False)
    assert str(caught.value) == text


def test_repeated_elements_count_as_one_field() -> None:
    """Objects from before a list became a map may hold the same key twice."""
    twice = {"spec": {"items": [{"name": "x", "value": "1"}, {"name": "x", "value": "2"}]}}
    once = {"spec": {"items": [{"name": "x", "value": "1"}]}}
    typed.check(twice, CUSTOM, allow_repeats=True)
    assert typed.field_set(twice, CUSTOM) == {"f:spec": {"f:items": {'k:{"name":"x"}': {}}}}
    change = typed.compare(once, twice, CUSTOM)
    assert places(change.added) == ['.spec.items[name="x"]']
    assert places(change.removed) == [
        '.spec.items[name="x"]',
        '.spec.items[name="x"].name',
        '.spec.items[name="x"].value',
    ]
    assert typed.compare(twice, twice, CUSTOM).is_same


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        ("abcd", "", "abcd"),
        ("abcd", "db", "acdb"),
        ("abc", "xby", "axbcy"),
        ("", "ab", "ab"),
        ("abc", "cab", "cab"),
    ],
)
def test_order_of_merged_elements(live: str, applied: str, expected: str) -> None:
    def of(names: str) -> Any:
        return {"spec": {"items": [{"name": name} for name in names]}}

    merged = typed.merge(of(live), of(applied), CUSTOM)
    assert "".join(item["name"] for item in merged["spec"]["items"]) == expected


def test_a_schema_that_makes_a_list_whole_takes_the_fields_below_it() -> None:
    tree = {"f:spec": {"f:order": {'v:"x"': {}}, "f:whole": {"f:a": {}}, "f:options": {"f:a": {}}}}
    assert typed.fitted(tree, CUSTOM) == {"f:spec": {"f:order": {}, "f:whole": {}, "f:options": {"f:a": {}}}}


def test_true_is_not_one() -> None:
    change = typed.compare({"spec": {"any": 1}}, {"spec": {"any": True}}, CUSTOM)
    assert places(change.modified) == [".spec.any"]


def test_a_type_treats_what_fits_nothing_as_the_first_it_could_be() -> None:
    assert Type(scalar="s").shape({}) is schema.Shape.SCALAR
    assert schema.DEDUCED.shape(None) is schema.Shape.MAP
