"""Plain descriptions to begin with: a native kind without rules of its own, and a custom kind without a schema.

`kruise.local.kinds` describes all native kinds in full.
"""

from __future__ import annotations

from typing import Any

from kruise.api.core.schema import merge_schema
from kruise.api.resource import Resource
from kruise.local.apicore.kinds import KindDescription


def custom_kind(resource: Resource[Any], **more: Any) -> KindDescription:
    """A kind as a custom resource definition without a schema would make it, with a status subresource."""
    return KindDescription.of(resource, **{"custom": True, "has_status": True, **more})


def native_kind(resource: Resource[Any], **more: Any) -> KindDescription:
    """A kind of Kubernetes itself, without rules of its own beyond those in `more`."""

    def schema(version: str) -> Any:
        return merge_schema(f"{resource.group}/{version}" if resource.group else version, resource.kind)

    return KindDescription.of(resource, **{"merge_schema": schema, **more})
