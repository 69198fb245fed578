"""OpenAPI documents: complete, consistent, and only of what is served."""

from __future__ import annotations

from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.local.apicore.builtin import custom_kind
from kruise.local.kinds import native_registry
from kruise.local.openapi import serve
from kruise.machinery.codec import decode

BANDS = Resource("music.example.com", "v1", "bands", "Band", True, PartialObject)
SCHEMA = {
    "type": "object",
    "description": "A Band plays.",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "description": "How many."}}}},
}
REGISTRY = native_registry([custom_kind(BANDS, schema=lambda version: SCHEMA)])


def document(path: str) -> dict[str, Any]:
    found = serve(REGISTRY, f"/openapi/v3/{path}", "application/json")
    assert found is not None
    return decode(found.body, dict)


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(item) for item in value.values()))
    return set().union(*(references(item) for item in value)) if isinstance(value, list) else set()


def test_the_index_names_every_group_and_version_once() -> None:
    paths = document("")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/music.example.com/v1"} <= set(paths)
    for name, entry in paths.items():
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{name}?hash=")


def test_every_reference_of_every_document_is_resolved() -> None:
    for name in document("")["paths"]:
        found = document(name)
        known = {f"#/components/schemas/{schema}" for schema in found["components"]["schemas"]}
        assert references(found) <= known, name


def test_only_served_kinds_have_paths() -> None:
    paths = document("api/v1")["paths"]
    assert "/api/v1/namespaces/{namespace}/pods/{name}/status" in paths
    assert "/api/v1/namespaces/{name}/status" in paths
    assert not any("replicationcontrollers" in path or "/watch/" in path for path in paths)


def test_clients_learn_that_fields_are_validated() -> None:
    for name, path in (
        ("apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
        ("apis/music.example.com/v1", "/apis/music.example.com/v1/namespaces/{namespace}/bands/{name}"),
    ):
        patch = document(name)["paths"][path]["patch"]
        assert {"dryRun", "fieldValidation"} <= {parameter["name"] for parameter in patch["parameters"]}


def test_custom_kinds_are_described_by_their_definition() -> None:
    schema = document("apis/music.example.com/v1")["components"]["schemas"]["com.example.music.v1.Band"]
    assert schema["description"] == "A Band plays."
    assert schema["properties"]["spec"]["properties"]["size"]["description"] == "How many."
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "music.example.com", "version": "v1", "kind": "Band"}
    ]
    assert {"apiVersion", "kind", "metadata"} < set(schema["properties"])


def test_documents_change_only_with_their_kinds() -> None:
    before = serve(REGISTRY, "/openapi/v3/apis/music.example.com/v1", "")
    assert before == serve(REGISTRY, "/openapi/v3/apis/music.example.com/v1", "")
    other = native_registry([custom_kind(BANDS)])
    after = serve(other, "/openapi/v3/apis/music.example.com/v1", "")
    assert before is not None
    assert after is not None
    assert before.etag != after.etag


def test_nothing_else_is_there() -> None:
    assert serve(REGISTRY, "/openapi/v3/apis/nothing/v1", "") is None
    assert serve(REGISTRY, "/openapi/v1", "") is None


def test_version_2_is_there_and_names_no_kind() -> None:
    """kubectl asks for it about kinds that it does not find in version 3, and gives up where there is none."""
    found = serve(REGISTRY, "/openapi/v2", "application/json")
    assert found is not None
    assert decode(found.body, dict)["definitions"] == {}
    for name in ("v2.v1.0", "v2@v1.0"):
        binary = serve(REGISTRY, "/openapi/v2", f"application/com.github.proto-openapi.spec.{name}+protobuf")
        assert binary is not None
        assert binary.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        assert binary.body == b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.34.4\x42\x00"
