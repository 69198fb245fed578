"""Object metadata, as far as controllers read it, and the shape that every object shares."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from kruise.machinery.codec import Struct, field

NO_STRINGS: dict[str, str] = {}


class OwnerReference(Struct):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Struct):
    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Key(NamedTuple):
    """Names an object of a kind that is known from the context. Cluster-scoped objects have an empty namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Object(Protocol):
    """What every decoded object has."""

    @property
    def metadata(self) -> ObjectMeta: ...


class PartialObject(Struct):
    """An object of which only the metadata matters."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class LabelSelectorRequirement(Struct):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Struct):
    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Struct):
    """`metav1.Condition`, and the older conditions of the same shape."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None
    last_update_time: datetime | None = None
    last_probe_time: datetime | None = None


def key_of(obj: Object) -> Key:
    return Key(obj.metadata.namespace, obj.metadata.name)


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner reference that manages the object, if there is one."""
    for reference in obj.metadata.owner_references:
        if reference.controller:
            return reference
    return None
