"""A kind as data: what it is called, which versions it has, and the few pure functions in which kinds differ.

The verbs of the core know no kind. Whatever is special about Pods, Namespaces or a custom kind stands in its
`KindDescription`, so that a new kind is a table entry and not code in the core.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kruise.api.core.field_errors import FieldError
from kruise.api.resource import Resource
from kruise.local.apicore import names
from kruise.local.apicore.errors import Json
from kruise.machinery.patches.schema import MergeSchema

if TYPE_CHECKING:
    from kruise.local.apicore.core import ApiCore, Call

Change = Callable[[Json, Json], Json]
"""(new, old) -> what is stored. Inputs are never changed."""
Check = Callable[[Json, Json | None], Sequence[FieldError]]
"""(new, old or None on create) -> what is wrong with it."""


def _same(obj: Json) -> Json:
    return obj


def _nothing_wrong(new: Json, old: Json | None) -> Sequence[FieldError]:
    return ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSubresource:
    """The object itself, written by another rule: `status`, `ephemeralcontainers`, `resize`.

    `prepare` takes from the new object what this subresource may change and everything else from the old one.
    """

    prepare: Change
    validate: Check = _nothing_wrong


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ViewSubresource:
    """Another object that shows a part of this one: `scale`."""

    read: Callable[[Json], Json]
    write: Change
    """(object, view) -> object."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ActionSubresource:
    """Something that is done by a POST: `eviction`, `binding`. The answer is written with code 201."""

    create: Callable[[ApiCore, Call, Json], Awaitable[Json]]


Subresource = ObjectSubresource | ViewSubresource | ActionSubresource


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the table that people see (`kubectl get`)."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    """1: only in wide output."""
    cell: Callable[[Json, datetime], Any]
    """(object, now) -> what stands in the cell."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KindDescription:
    """Everything that the core has to know about a kind."""

    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    storage_version: str = ""
    """The version that objects are stored in; empty: the first one."""
    plural: str
    kind: str
    singular: str = ""
    list_kind: str = ""
    namespaced: bool = True
    custom: bool = False
    """Stored as custom resources are: no update without a resourceVersion, no strategic merge patch, listed items
    carry their kind."""

    has_status: bool = False
    status_keeps: tuple[str, ...] = ()
    """Fields of the metadata that a status write does not change; those of custom kinds change none."""
    subresources: Mapping[str, Subresource] = dataclasses.field(default_factory=dict)

    tracks_generation: bool = True
    allows_unconditional_update: bool = True
    creates_on_update: bool = False
    returns_deleted_object: bool = False
    orphans_by_default: bool = False

    name_check: names.NameCheck = names.dns_subdomain
    default: Callable[[Json], Json] = _same
    """Fills in what the user left out; called with every object as it was sent, in its own version."""
    validate: Check = _nothing_wrong
    prepare_create: Callable[[Json], Json] = _same
    """After the status was dropped: what the server itself writes into a new object."""
    prepare_update: Change | None = None
    """After the status was put back: which other fields a plain update may not change."""
    convert: Callable[[Json, str], Json] | None = None
    """(object, version) -> the object in that version. Without it only `apiVersion` differs between versions."""
    merge_schema: Callable[[str], MergeSchema | None] | None = None
    """Merge keys for strategic merge patches, by version."""
    grace_period: Callable[[Json, int | None], int] | None = None
    """(object, asked seconds or None) -> seconds of grace. Kinds without it are removed at once."""
    selectable_fields: Mapping[str, Callable[[Json], str]] = dataclasses.field(default_factory=dict)
    """Besides `metadata.name` and `metadata.namespace`."""

    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    """After the name; none: the age alone."""
    schema: Callable[[str], Mapping[str, Any] | None] | None = None
    """The OpenAPI v3 schema of an object, by version."""

    def __post_init__(self) -> None:
        if self.stored_version not in self.versions:
            raise ValueError(f"{self.group_resource}: storage version {self.storage_version} is not among its versions")

    @property
    def stored_version(self) -> str:
        return self.storage_version or self.versions[0]

    @property
    def group_resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def listed_as(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def storage_prefix(self) -> str:
        """Where a real server keeps the objects; it shows in the text of a failed precondition."""
        return f"/registry/{self.group}/{self.plural}" if self.custom else f"/registry/{self.plural}"

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def in_version(self, obj: Json, version: str) -> Json:
        """The object as a client of that version sees it."""
        wanted = self.api_version(version)
        if obj.get("apiVersion") == wanted:
            return obj
        if self.convert is not None:
            return self.convert(obj, version)
        return {**obj, "apiVersion": wanted}

    def field(self, obj: Json, name: str) -> str | None:
        """The value of a selectable field; None where the kind has no such field."""
        if name == "metadata.name":
            return str(obj["metadata"].get("name", ""))
        if name == "metadata.namespace":
            return str(obj["metadata"].get("namespace", ""))
        read = self.selectable_fields.get(name)
        return None if read is None else read(obj)

    @classmethod
    def of(cls, resource: Resource[Any], **more: Any) -> KindDescription:
        """A description with the names of a `Resource`."""
        return cls(
            group=resource.group,
            plural=resource.plural,
            kind=resource.kind,
            namespaced=resource.namespaced,
            list_kind=resource.list_kind,
            **{"versions": (resource.version,), **more},
        )


class Registry:
    """The kinds that a core serves. Kinds come and go while it runs, as custom resource definitions do."""

    def __init__(self, kinds: Sequence[KindDescription] = ()) -> None:
        self._kinds: dict[tuple[str, str], KindDescription] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: KindDescription) -> None:
        """Serve a kind, or serve it by a changed description."""
        self._kinds[kind.group, kind.plural] = kind

    def remove(self, group: str, plural: str) -> None:
        self._kinds.pop((group, plural), None)

    def find(self, group: str, version: str, plural: str) -> KindDescription | None:
        kind = self._kinds.get((group, plural))
        return kind if kind is not None and version in kind.versions else None

    def serves_natively(self, group: str, version: str) -> bool:
        return any(kind.group == group and version in kind.versions and not kind.custom for kind in self)

    def __iter__(self) -> Iterator[KindDescription]:
        return iter(self._kinds.values())
