"""`fieldValidation`: what is refused, what is warned about, and what a patch brings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kruise.local.apicore import warnings
from kruise.local.apicore.errors import StatusError
from kruise.local.kinds import native_registry
from kruise.local.server.validation import check_fields
from kruise.machinery.client.requests import PatchType, Verb


def complaints(verb: Verb, body: Any, *, sent_as: str = "application/json", mode: str = "Warn") -> list[str]:
    kind = native_registry().find("apps", "v1", "deployments")
    assert kind is not None
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with warnings.collect() as warned:
        check_fields(kind, "v1", verb, sent_as, raw, mode)
    return warned


def test_creates_and_updates() -> None:
    for verb in (Verb.CREATE, Verb.UPDATE):
        assert complaints(verb, {"spec": {"replicas": 1, "odd": 1}}) == ['unknown field "spec.odd"']
        assert complaints(verb, {"spec": {"odd": 1}}, mode="Ignore") == []
        assert complaints(verb, b"nonsense") == [], "the core says why"


def test_merge_patches_remove_without_complaint() -> None:
    body = {
        "spec": {"odd": None, "other": 1, "template": {"spec": {"containers": [{"$patch": "delete", "name": "x"}]}}}
    }
    assert complaints(Verb.PATCH, body, sent_as=PatchType.STRATEGIC) == ['unknown field "spec.other"']


def test_json_patches_bring_values() -> None:
    operations = [
        {"op": "test", "path": "/spec/odd", "value": 1},
        {"op": "add", "path": "/metadata/annotations/a~1b", "value": "x"},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "x"},
        {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "x", "odd": 1}},
        {"op": "add", "path": "/spec/odd", "value": 1},
        {"op": "remove", "path": "/spec/other"},
    ]
    found = complaints(Verb.PATCH, operations, sent_as=PatchType.JSON)
    assert found == ['unknown field "spec.template.spec.containers[1].odd"', 'unknown field "spec.odd"']
    assert complaints(Verb.PATCH, {"not": "a list"}, sent_as=PatchType.JSON) == []


def test_apply_has_its_own_way() -> None:
    assert complaints(Verb.PATCH, b"spec: {odd: 1}", sent_as=PatchType.APPLY) == []


def test_strict_patches_are_invalid() -> None:
    with pytest.raises(StatusError) as refused:
        complaints(
            Verb.PATCH, b'{"odd":{"x":1},"spec":{"replicas":1,"replicas":2}}', sent_as=PatchType.MERGE, mode="Strict"
        )
    assert refused.value.code == 422
    text = 'strict decoding error: duplicate field "spec.replicas", unknown field "odd"'
    assert refused.value.message.endswith(f'"map[odd:map[x:1] spec:map[replicas:2]]": {text}')


def test_unknown_modes() -> None:
    with pytest.raises(StatusError) as refused:
        complaints(Verb.CREATE, {}, mode="Sloppy")
    assert 'fieldValidation: Unsupported value: "Sloppy"' in refused.value.message
