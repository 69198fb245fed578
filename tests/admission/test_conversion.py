"""Conversion: order, identity, metadata, failures that name the object."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.admission.conversion import ConversionError, Converters
from kruise.machinery.codec import Raw, decode, encode

V2 = "toys.example/v2"


def rename(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """v1 has `size`, v2 has `length`; it also misbehaves with the metadata."""
    before, after = ("size", "length") if version == "v2" else ("length", "size")
    spec = obj.get("spec", {})
    if before in spec:
        spec[after] = spec.pop(before)
    metadata = obj.setdefault("metadata", {})
    metadata["labels"] = {"converted": version}
    metadata["name"] = "renamed"
    metadata["finalizers"] = ["sneaky"]
    return obj


def toy(name: str, version: str = "v1", kind: str = "Toy", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"toys.example/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "annotations": {"a": "b"}, "uid": "u"},
        "spec": spec,
    }


def converters() -> Converters:
    result = Converters()
    result.register("toys.example", "Toy", rename)
    return result


def run(*objects: dict[str, Any], desired: str = V2) -> list[dict[str, Any]]:
    raws = tuple(Raw(encode(obj)) for obj in objects)
    return [decode(raw, dict) for raw in converters().convert_all(raws, desired)]


def test_a_mixed_list_keeps_its_order() -> None:  # MGR-53
    got = run(toy("a", size=1), toy("b", "v2", length=2), toy("c", size=3), toy("d", "v2", kind="Other", x=4))
    assert [(item["metadata"]["name"], item["apiVersion"]) for item in got] == [
        ("a", V2),
        ("b", V2),
        ("c", V2),
        ("d", V2),
    ]
    assert [item["spec"] for item in got] == [{"length": 1}, {"length": 2}, {"length": 3}, {"x": 4}]


def test_an_object_of_the_desired_version_passes_byte_for_byte() -> None:
    raw = Raw(b'{ "kind":"Unknown", "apiVersion":"toys.example/v2","big":12345678901234567890123,"f":1.10 }')
    assert converters().convert(raw, V2) is raw


def test_of_the_metadata_only_labels_and_annotations_change() -> None:  # MGR-53
    (got,) = run(toy("a", size=1))
    assert got["metadata"] == {
        "name": "a",
        "namespace": "shop",
        "annotations": {"a": "b"},
        "uid": "u",
        "labels": {"converted": "v2"},
    }


def test_labels_that_the_converter_removed_are_gone() -> None:
    registry = Converters()
    registry.register("toys.example", "Toy", lambda obj, version: {"metadata": {}})
    got = decode(registry.convert(Raw(encode(toy("a"))), V2), dict)
    assert got == {
        "apiVersion": V2,
        "kind": "Toy",
        "metadata": {"name": "a", "namespace": "shop", "uid": "u"},
    }


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (toy("a", kind="Nobody"), "Nobody shop/a: there is no conversion"),
        ({**toy("a"), "apiVersion": "other.example/v1"}, "another API group"),
        ({**toy("a"), "spec": 5}, "Toy shop/a: conversion from toys.example/v1 to toys.example/v2 failed: TypeError"),
        ({"apiVersion": 5}, "no readable apiVersion"),
    ],
)
def test_a_failure_names_the_object(obj: dict[str, Any], text: str) -> None:  # MGR-53
    with pytest.raises(ConversionError, match=text):
        run(obj)


def test_two_converters_for_a_kind_are_refused() -> None:
    registry = converters()
    with pytest.raises(ValueError, match="two converters"):
        registry.register("toys.example", "Toy", rename)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["v1", "v2"]), st.integers(0, 9)), max_size=8))
def test_there_and_back_again(items: list[tuple[str, int]]) -> None:
    """Whatever mix goes in: as many come out, in order, all of the desired version, and back they are as before."""
    key = {"v1": "size", "v2": "length"}
    objects = [
        {**toy(f"n-{index}", version), "spec": {key[version]: size}} for index, (version, size) in enumerate(items)
    ]
    forth = run(*objects)
    assert [item["spec"] for item in forth] == [{"length": size} for _, size in items]
    back = run(*forth, desired="toys.example/v1")
    assert [item["spec"] for item in back] == [{"size": size} for _, size in items]
    assert [item["metadata"]["name"] for item in back] == [f"n-{index}" for index in range(len(items))]
