"""What a kind is called on the wire, and the struct that its objects are read into."""

from __future__ import annotations

import dataclasses
from typing import Any, Generic, TypeVar

from kruise.api.meta import Object, OwnerReference

T = TypeVar("T", bound=Object)
T_co = TypeVar("T_co", bound=Object, covariant=True)


@dataclasses.dataclass(frozen=True, slots=True)
class Resource(Generic[T_co]):
    """One kind in one version. Two descriptions of the same kind and version count as the same resource."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    type: type[T_co] = dataclasses.field(default=object, compare=False, repr=False)  # type: ignore[assignment]
    list_kind: str = dataclasses.field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.type is not object and not (hasattr(self.type, "metadata") and hasattr(self.type, "kind")):
            raise TypeError(f"{self.type.__name__} lacks `kind` or `metadata`: derive it from PartialObject")

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """As error messages and RBAC name it: `clonesets.apps.kruise.io`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def root(self) -> str:
        """Path of the group and version: `/api/v1`, `/apis/apps/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        parts = [self.root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __str__(self) -> str:
        return self.group_resource


def refers_to(reference: OwnerReference, resource: Resource[Any]) -> bool:
    """Whether a reference names this kind, in whatever version."""
    group, _, _ = reference.api_version.rpartition("/")
    return reference.kind == resource.kind and group == resource.group
