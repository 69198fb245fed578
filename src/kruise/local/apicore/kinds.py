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
    from kruise.local.apicore.storage import Storage

Change = Callable[[Json, Json], Json]
"""(new, old) -> what is stored. Inputs are never changed."""
Check = Callable[[Json, Json | None], Sequence[FieldError]]
"""(new, old or None on create) -> what is wrong with it."""


def _same(obj: Json) -> Json:
    return obj


def _not_held(obj: Json) -> bool:
    return False


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StreamSubresource:
    """Something that is read as plain text, from elsewhere than the storage: `log`. The server in front answers it."""


Subresource = ObjectSubresource | ViewSubresource | ActionSubresource | StreamSubresource


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


NAME_COLUMN = Column(
    name="Name",
    format="name",
    description=(
        "Name must be unique within a namespace. Is required when creating resources, although some resources may "
        "allow a client to request the generation of an appropriate name automatically. Name is primarily intended "
        "for creation idempotence and configuration definition. Cannot be updated. More info: "
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
    ),
    cell=lambda obj, now: obj["metadata"].get("name", ""),
)
CREATED_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
CREATED_COLUMN = Column(
    name="Created At",
    type="date",
    description=CREATED_DESCRIPTION,
    cell=lambda obj, now: obj["metadata"].get("creationTimestamp"),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KindDescription:
    """Everything that the core has to know about a kind."""

    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    storage_version: str = ""
    """The version that objects are stored in; empty: the first one."""
    unserved: tuple[str, ...] = ()
    """Versions that objects may be stored in and nobody may ask for."""
    plural: str
    kind: str
    singular: str = ""
    list_kind: str = ""
    namespaced: bool = True
    custom: bool = False
    """Stored as custom resources are: no update without a resourceVersion, no strategic merge patch, listed items
    carry their kind."""

    has_status: bool = False
    keeps_status_on_create: bool = False
    """New objects may come with a status, as nodes do."""
    status_keeps: tuple[str, ...] = ()
    """Fields of the metadata that a status write does not change; those of custom kinds change none."""
    subresources: Mapping[str, Subresource] = dataclasses.field(default_factory=dict)

    tracks_generation: bool = True
    counted_metadata: tuple[str, ...] = ()
    """Fields of the metadata whose change makes a new generation, besides everything outside of it."""
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
    complete: Callable[[Storage, Json, Json | None, bool], Json] | None = None
    """(storage, new, old or None on create, dry run) -> what is stored. After validation: what depends on other
    objects, such as an address that no one else has. May refuse with a `StatusError`."""
    held: Callable[[Json], bool] = _not_held
    """Whether something besides finalizers and grace keeps a deleted object, as the content of a namespace does."""
    marked: Callable[[Json], Json] = _same
    """What else changes in an object when a delete only marks it."""
    convert: Callable[[Json, str], Json] | None = None
    """(object, version) -> the object in that version. Without it only `apiVersion` differs between versions."""
    converter: Callable[[Sequence[Json], str], Awaitable[list[Json]]] | None = None
    """(objects, version) -> the objects in that version, for kinds whose conversion takes a webhook."""
    field_converter: Callable[[Sequence[Json], str], Awaitable[list[Json]]] | None = None
    """The same without defaults: a field that a manager gives up must not come back by a look at another version."""
    refresh: Callable[[Json], Json] | None = None
    """Brings a stored object into the form that it would have if it were stored now: the kind changed since."""
    variants: Mapping[str, KindDescription] = dataclasses.field(default_factory=dict)
    """By version: the description for those versions that differ in more than their name."""
    merge_schema: Callable[[str], MergeSchema | None] | None = None
    """Merge keys for strategic merge patches, by version."""
    grace_period: Callable[[Json, int | None], int] | None = None
    """(object, asked seconds or None) -> seconds of grace. Kinds without it are removed at once."""
    selectable_fields: Mapping[str, Callable[[Json], str]] = dataclasses.field(default_factory=dict)
    indexed_fields: frozenset[str] = frozenset()
    """Those of them by which few objects of many are asked for."""
    """Besides `metadata.name` and `metadata.namespace`."""

    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    """After the name, unless one of them is the name (its format says so); none: the time of creation."""
    schema: Callable[[str], Mapping[str, Any] | None] | None = None
    """The OpenAPI v3 schema of an object, by version."""

    def __post_init__(self) -> None:
        if self.stored_version not in (*self.versions, *self.unserved):
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

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """All columns of the table, with those that need not be spelled out."""
        if any(column.format == "name" for column in self.columns):
            return self.columns
        return (NAME_COLUMN, *(self.columns or (CREATED_COLUMN,)))

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def as_of(self, version: str) -> KindDescription:
        """The description for one of the versions."""
        return self.variants.get(version, self) if self.variants else self

    def in_version(self, obj: Json, version: str) -> Json:
        """The object as a client of that version sees it.

        Where conversion takes a webhook only `apiVersion` changes here: whoever needs the object itself awaits
        `ApiCore.converted`.
        """
        if self.refresh is not None:
            obj = self.refresh(obj)
        wanted = self.api_version(version)
        if obj.get("apiVersion") == wanted:
            return obj
        if self.convert is not None:
            return self.convert(obj, version)
        return {**obj, "apiVersion": wanted}

    def reader(self, name: str) -> Callable[[Json], str] | None:
        """How a selectable field is read; None where the kind has no such field."""
        if name == "metadata.name":
            return lambda obj: str(obj["metadata"].get("name", ""))
        if name == "metadata.namespace":
            return lambda obj: str(obj["metadata"].get("namespace", ""))
        return self.selectable_fields.get(name)

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
        if kind is None or version not in kind.versions:
            return None
        return kind.as_of(version)

    def serves_natively(self, group: str, version: str) -> bool:
        return any(kind.group == group and version in kind.versions and not kind.custom for kind in self)

    def __iter__(self) -> Iterator[KindDescription]:
        return iter(self._kinds.values())
