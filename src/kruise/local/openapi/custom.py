"""OpenAPI documents of custom kinds, made from the schema of their definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.local.apicore.kinds import KindDescription
from kruise.machinery.client.requests import PatchType

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
_TYPE_FIELDS = {
    "apiVersion": {
        "type": "string",
        "description": (
            "APIVersion defines the versioned schema of this representation of an object. Servers should convert "
            "recognized schemas to the latest internal value, and may reject unrecognized values."
        ),
    },
    "kind": {
        "type": "string",
        "description": (
            "Kind is a string value representing the REST resource this object represents. Servers may infer this from "
            "the endpoint the client submits requests to."
        ),
    },
}
# kubectl looks these up to learn whether the server validates fields and takes dry runs.
_WRITE_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "pretty")
]
_DELETE_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}
    for name, kind in (("dryRun", "string"), ("gracePeriodSeconds", "integer"), ("propagationPolicy", "string"))
]


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def schema_name(kind: KindDescription, version: str, suffix: str = "") -> str:
    """`io.kruise.apps.v1beta1.CloneSet`: the group turned round, as the API server names schemas."""
    return ".".join([*reversed(kind.group.split(".")), version, kind.kind + suffix])


def _group_version_kind(kind: KindDescription, version: str, suffix: str = "") -> dict[str, str]:
    return {"group": kind.group, "version": version, "kind": kind.kind + suffix}


def schemas(kind: KindDescription, version: str) -> dict[str, Any]:
    """The schemas of an object and of a list of them."""
    found = kind.schema(version) if kind.schema is not None else None
    own: dict[str, Any] = dict(found or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    own["type"] = "object"
    metadata = {
        "allOf": [_reference(OBJECT_META)],
        "default": {},
        "description": "Standard object's metadata. More info: "
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
    }
    own["properties"] = {**_TYPE_FIELDS, **dict(own.get("properties") or {}), "metadata": metadata}
    own["x-kubernetes-group-version-kind"] = [_group_version_kind(kind, version)]
    items = {"type": "array", "items": _reference(schema_name(kind, version))}
    listed = {
        "type": "object",
        "description": f"{kind.kind}List is a list of {kind.kind}",
        "required": ["items"],
        "properties": {**_TYPE_FIELDS, "items": items, "metadata": {"allOf": [_reference(LIST_META)]}},
        "x-kubernetes-group-version-kind": [_group_version_kind(kind, version, "List")],
    }
    return {schema_name(kind, version): own, schema_name(kind, version, "List"): listed}


def paths(kind: KindDescription, version: str) -> dict[str, Any]:
    """The operations on the collection, on an object and on its subresources."""
    root = f"/apis/{kind.group}/{version}"
    scope = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    one = f"{scope}/{{name}}"
    own, many = _reference(schema_name(kind, version)), _reference(schema_name(kind, version, "List"))
    found: dict[str, Any] = {
        scope: {
            "get": _operation(kind, version, "list", many),
            "post": _operation(kind, version, "post", own, body=own),
            "delete": _operation(kind, version, "deletecollection", _reference(STATUS)),
        },
        one: {
            "get": _operation(kind, version, "get", own),
            "put": _operation(kind, version, "put", own, body=own),
            "patch": _patch(kind, version, own),
            "delete": _operation(kind, version, "delete", _reference(STATUS), body=_reference(DELETE_OPTIONS)),
        },
    }
    if kind.namespaced:
        found[f"{root}/{kind.plural}"] = {"get": _operation(kind, version, "list", many)}
    for name in (*(("status",) if kind.has_status else ()), *kind.subresources):
        found[f"{one}/{name}"] = {
            "get": _operation(kind, version, "get", own),
            "put": _operation(kind, version, "put", own, body=own),
            "patch": _patch(kind, version, own),
        }
    return found


def _operation(
    kind: KindDescription,
    version: str,
    action: str,
    answer: Mapping[str, Any],
    *,
    body: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "tags": [f"{kind.group.replace('.', '_')}_{version}"],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": dict(answer)}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _group_version_kind(kind, version),
    }
    if action in ("post", "put", "patch"):
        operation["parameters"] = _WRITE_PARAMETERS
    elif action in ("delete", "deletecollection"):
        operation["parameters"] = _DELETE_PARAMETERS
    if body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": dict(body)}}}
    return operation


def _patch(kind: KindDescription, version: str, own: Mapping[str, Any]) -> dict[str, Any]:
    operation = _operation(kind, version, "patch", own)
    types = (PatchType.JSON, PatchType.MERGE, PatchType.APPLY)
    operation["requestBody"] = {"content": {kind.value: {"schema": _reference(PATCH)} for kind in types}}
    return operation
