"""Kinds of somebody else, without a schema, and who owns what of them."""

from __future__ import annotations

from typing import Any

from kruise.api.resource import Resource
from tests.support.world import Json


def definition(resource: Resource[Any]) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def owner(obj: Json) -> Json:
    """A reference to a controller."""
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
