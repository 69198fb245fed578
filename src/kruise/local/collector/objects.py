"""Objects as far as the garbage collector reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

from kruise.api.resource import Resource
from kruise.machinery.client.discovery import ServedResource
from kruise.machinery.codec import Struct

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class OwnedMeta(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[dict[str, Any], ...] = ()
    """As they are: those that stay are written back."""


class Owned(Struct):
    """Any object. References are kept whole, because what is left of them is written back."""

    api_version: str = ""
    kind: str = ""
    metadata: OwnedMeta = OwnedMeta()

    @property
    def is_deleted(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        return self.is_deleted and FOREGROUND in self.metadata.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.is_deleted and ORPHAN in self.metadata.finalizers


def resource_of(served: ServedResource) -> Resource[Any]:
    """The resource, read as `Owned`."""
    return Resource(served.group, served.version, served.plural, served.kind, served.namespaced, Owned)


class Reference(NamedTuple):
    """What an owner reference says. The coordinates count as much as the uid: both must be right."""

    api_version: str
    kind: str
    name: str
    uid: str


def reference_of(owner: dict[str, Any]) -> Reference:
    return Reference(owner.get("apiVersion", ""), owner.get("kind", ""), owner.get("name", ""), owner.get("uid", ""))


def references_of(obj: Owned) -> tuple[Reference, ...]:
    return tuple(reference_of(owner) for owner in obj.metadata.owner_references)


def blocks(obj: Owned, uid: str) -> bool:
    """Whether the owner of this uid has to wait for the object when it is deleted in the foreground."""
    return any(
        owner.get("uid") == uid and owner.get("blockOwnerDeletion") is True for owner in obj.metadata.owner_references
    )
