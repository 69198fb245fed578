"""CustomResourceDefinitions, made from the structs of the API."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from kruise.api.schema import object_schema

Definition = dict[str, Any]

CONVERT_PATH = "/convert"
REVIEW_VERSIONS = ("v1", "v1beta1")
SERVICE_NAMESPACE = "kruise-system"
SERVICE_NAME = "kruise-webhook-service"
DERIVED = "kruise.io/objects-are-derived"
"""The annotation of definitions whose objects the manager makes by itself: they go with their definition."""


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column that `kubectl get` prints; with a priority above 0 only in `-o wide`."""

    name: str
    type: str
    path: str
    priority: int = 0
    description: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where the scale subresource finds its numbers."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    name: str
    type: type
    """The struct of the object; its docstring is the description of the kind."""
    is_stored: bool = False
    is_served: bool = True
    has_status: bool = True
    scale: Scale | None = None
    columns: Sequence[Column] = ()
    open_objects: Sequence[str] = ()
    """Paths of objects, such as `spec.lifecycle.preDelete` or `spec.containers[]`, that tolerate members which the
    schema does not know."""


def definition(
    *,
    group: str,
    kind: str,
    plural: str,
    versions: Sequence[Version],
    short_names: Sequence[str] = (),
    is_namespaced: bool = True,
    is_converted: bool = False,
    is_derived: bool = False,
) -> Definition:
    """The definition of a kind.

    `is_converted`: the versions differ, and a webhook converts. The stanza must name an address from the start; the
    manager replaces it by its own, with the certificate to trust, as soon as it serves. `is_derived`: the manager makes
    the objects by itself, and nobody misses them when it goes.
    """
    if [version.is_stored for version in versions].count(True) != 1:
        raise ValueError(f"{plural}.{group}: exactly one version must be the stored one")
    names: Definition = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    if short_names:
        names["shortNames"] = list(short_names)
    spec: Definition = {
        "group": group,
        "names": names,
        "scope": "Namespaced" if is_namespaced else "Cluster",
        "versions": [_version(version) for version in versions],
    }
    if is_converted:
        spec["conversion"] = _by_webhook()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", **({"annotations": {DERIVED: "true"}} if is_derived else {})},
        "spec": spec,
    }


def _version(version: Version) -> Definition:
    result: Definition = {
        "name": version.name,
        "served": version.is_served,
        "storage": version.is_stored,
        "schema": {"openAPIV3Schema": _schema(version)},
    }
    subresources: Definition = {}
    if version.has_status:
        subresources["status"] = {}
    if version.scale is not None:
        subresources["scale"] = _scale(version.scale)
    if subresources:
        result["subresources"] = subresources
    if version.columns:
        result["additionalPrinterColumns"] = [_column(column) for column in version.columns]
    return result


def _schema(version: Version) -> Definition:
    schema = object_schema(version.type)
    for path in version.open_objects:
        part = schema
        for name in path.split("."):
            part = part["properties"][name.removesuffix("[]")]
            part = part["items"] if name.endswith("[]") else part
        part["x-kubernetes-preserve-unknown-fields"] = True
    return schema


def _scale(scale: Scale) -> Definition:
    paths = {"specReplicasPath": scale.spec_replicas, "statusReplicasPath": scale.status_replicas}
    return {**paths, "labelSelectorPath": scale.label_selector} if scale.label_selector else paths


def _column(column: Column) -> Definition:
    result: Definition = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        result["description"] = column.description
    if column.priority:
        result["priority"] = column.priority
    return result


def _by_webhook() -> Definition:
    service = {"namespace": SERVICE_NAMESPACE, "name": SERVICE_NAME, "path": CONVERT_PATH, "port": 443}
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": list(REVIEW_VERSIONS)},
    }
