"""Workloads of kinds that nobody here watches, as far as decisions read them."""

from __future__ import annotations

from kruise.api.meta import ObjectMeta, PartialObject
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct


class CustomWorkload(Struct, kw_only=True):
    api_version: str
    kind: str
    plural: str
    metadata: ObjectMeta
    replicas: int = 0

    @property
    def resource(self) -> Resource[PartialObject]:
        group, _, version = self.api_version.rpartition("/")
        return Resource(group, version, self.plural, self.kind, True, PartialObject)


class Looked(Struct, kw_only=True):
    """What was found of them."""

    named: CustomWorkload | None = None
    """One of a listed kind that has the name of the object, and may ask for it."""
    target: CustomWorkload | None = None
    """What the object remembers the pods of."""
    problem: str = ""
    """Why nobody can tell, in words."""
