"""Unknown and duplicate fields."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.resource import Resource
from kruise.local.apicore.builtin import custom_kind, native_kind
from kruise.local.openapi.fields import duplicate_fields, unknown_fields

DEPLOYMENT = native_kind(DEPLOYMENTS)
BANDS = Resource("music.example.com", "v1", "bands", "Band", True, PartialObject)
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
                "members": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {}}},
            },
        }
    },
}
BAND = custom_kind(BANDS, schema=lambda version: SCHEMA)


def test_native_kinds() -> None:
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "label": {}},
        "spec": {
            "replica": 1,
            "selector": {"matchLabels": {"anything": "goes"}},
            "template": {"spec": {"containers": [{"name": "a"}, {"imag": "x", "env": [{"valu": "y"}]}]}},
        },
        "extra": 1,
    }
    assert unknown_fields(DEPLOYMENT, "v1", obj) == [
        "metadata.label",
        "spec.replica",
        "spec.template.spec.containers[1].imag",
        "spec.template.spec.containers[1].env[0].valu",
        "extra",
    ]


@pytest.mark.parametrize(
    ("spec", "unknown"),
    [
        ({"size": 1}, []),
        ({"sise": 1}, ["spec.sise"]),
        ({"free": {"whatever": {"is": "here"}}}, []),
        ({"labels": {"x": {"a": 1, "b": 2}}}, ["spec.labels.x.b"]),
        ({"members": [{"name": "a"}, {"nam": "b"}]}, ["spec.members[1].nam"]),
        ({"inner": {"apiVersion": "v1", "kind": "X", "metadata": {"nme": "x"}}}, ["spec.inner.metadata.nme"]),
    ],
)
def test_custom_kinds(spec: dict[str, Any], unknown: list[str]) -> None:
    obj = {"apiVersion": "music.example.com/v1", "kind": "Band", "metadata": {"name": "a"}, "spec": spec}
    assert unknown_fields(BAND, "v1", obj) == unknown


def test_custom_kinds_know_their_metadata() -> None:
    assert unknown_fields(BAND, "v1", {"metadata": {"nme": "a"}, "status": {}}) == ["status", "metadata.nme"]
    assert unknown_fields(custom_kind(BANDS), "v1", {"metadata": {"name": "a"}, "anything": 1}) == []


def test_duplicates() -> None:
    body = b'{"metadata":{"name":"a","name":"b"},"spec":{"x":[{"y":1,"y":2,"y":3}],"x":[]},"spec":{}}'
    assert duplicate_fields(body) == ["metadata.name", "spec.x[0].y", "spec.x", "spec"]
    assert duplicate_fields(b'{"a":{"b":1},"c":{"b":1}}') == []
    assert duplicate_fields(b"{") == []
