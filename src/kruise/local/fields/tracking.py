"""Ownership of fields for every write, worked out only when somebody looks.

A write keeps a note: who wrote, when, what the object was before and what was asked for. The notes of an object form a
chain from its last known owners; reading `managedFields`, or an apply, works the chain off and remembers the result
with that version of the object. A chain that nobody reads is worked off when it gets long, so that it does not hold
old states for ever.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kruise.api.core.schema import kind_type
from kruise.api.core.values import SERVER_FORM, normalise
from kruise.local.apicore.conversions import ConversionFailedError, Convert
from kruise.local.apicore.core import Call
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.metadata import timestamp
from kruise.local.apicore.owners import Json, Owners
from kruise.local.fields import managers, merge, schema, sets
from kruise.local.fields.managers import Entries, Managed
from kruise.local.fields.merge import Rules
from kruise.local.fields.schema import Type
from kruise.local.fields.sets import FieldSet
from kruise.local.fields.typed import TypedError
from kruise.machinery.clock import Clock
from kruise.machinery.patches.values import same

LONGEST_CHAIN: Final = 8


class _Note(NamedTuple):
    """What is known of a write before its effect on the owners is worked out."""

    earlier: Ownership
    rules: Rules
    before: Json
    after: Json
    manager: str
    moment: str | None
    is_create: bool


class Ownership(Owners):
    """The owners of one version of an object: as a note, as sets of fields, or as the entries that answers show."""

    __slots__ = ("_entries", "_fits", "_managed", "_note", "length")

    def __init__(self, entries: Entries | None = None, note: _Note | None = None) -> None:
        self._entries = entries
        self._managed: Managed | None = None
        self._note = note
        self._fits: _TypeIn | None = None
        """The types by which the sets were last made; others mean that the schema has changed."""
        self.length: int = 0 if note is None else note.earlier.length + 1
        """How many notes have to be worked off."""

    @property
    def entries(self) -> Entries:
        if self._entries is None:
            self._entries = managers.packed(self.managed)
            # Texts are shared between objects, sets are not.
            self._managed = None
        return self._entries

    @property
    def managed(self) -> Managed:
        return self._worked_out(None)

    def settle(self, convert: Convert) -> None:
        """Work the chain off where several versions meet in it: that takes conversions, which a reader has not."""
        if self._note is not None and len(self.versions()) > 1:
            self._worked_out(convert)
            # It is not a note any more that costs nothing: keep it as short as what was read.
            _ = self.entries

    def versions(self) -> set[str]:
        """The versions that the chain's owners may have written in."""
        found: set[str] = set()
        at = self
        while at._note is not None:
            found.add(at._note.rules.api_version)
            at = at._note.earlier
        if at._managed is not None:
            return found.union(owned.api_version for owned in at._managed.owned.values())
        return found.union(entry.api_version for entry in at._entries or ())

    def _worked_out(self, convert: Convert | None) -> Managed:
        if self._entries is not None:
            return managers.unpacked(self._entries)
        waiting: list[Ownership] = []
        at = self
        while at._note is not None:
            waiting.append(at)
            at = at._note.earlier
        managed, fits = at._managed, at._fits
        if managed is None:
            managed = managers.unpacked(at._entries or ())
        for each in reversed(waiting):
            note = each._note
            assert note is not None
            rules = note.rules if convert is None else dataclasses.replace(note.rules, convert=convert)
            managed = _worked_off(note, rules, managed, fit=rules.type_in is not fits)
            each._managed, each._fits = managed, note.rules.type_in
            each._note, each.length = None, 0
            fits = each._fits
        return managed

    @property
    def is_known_empty(self) -> bool:
        """Whether there are no owners, as far as that is seen without work."""
        return self._entries == ()

    @property
    def is_empty(self) -> bool:
        return not self.entries

    def written(self) -> list[Json]:
        return [entry.shown() for entry in self.entries]

    def listed(self) -> list[Json]:
        result: list[Json] = []
        for entry in self.entries:
            shown = entry.shown()
            shown["fieldsV1"] = sets.from_json(entry.fields)
            result.append(shown)
        return result

    def agrees_with(self, other: Ownership) -> bool:
        """Whether the same managers own the same fields, whenever they got them."""
        note = other._note
        if note is not None and note.earlier is self and same(note.before, note.after):
            return True
        return self.managed.owned == other.managed.owned


NOBODY: Final = Ownership(())


def _worked_off(note: _Note, rules: Rules, managed: Managed, *, fit: bool) -> Managed:
    if not managed.owned and not note.is_create:
        # Nothing is tracked until the first apply; only that one looks at what is there already.
        return managed
    try:
        return merge.update(rules, note.before, note.after, managed, note.manager, note.moment, fit=fit)
    except (TypedError, ConversionFailedError):
        # As a real server does: no owners are better than wrong ones.
        return managers.NOBODY


# What fields a write of a part does not change. Everything else follows from the kind's description.
_STATUS_RESETS: Final = {
    "customresourcedefinitions.apiextensions.k8s.io": sets.of_paths(("metadata",), ("spec",)),
    "pods": sets.of_paths(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
}
_CONTAINER_SIZES: Final[FieldSet] = {"f:*": {"f:resources": {}, "f:resizePolicy": {}}}
_ONLY: Final[dict[tuple[str, str], FieldSet]] = {
    ("pods", "ephemeralcontainers"): sets.of_paths(("spec", "ephemeralContainers")),
    ("pods", "resize"): {"f:spec": {"f:containers": _CONTAINER_SIZES, "f:initContainers": _CONTAINER_SIZES}},
}


_TypeIn = Callable[[str], Type | None]


class RuleBook:
    """The rules of all kinds, made when they are first needed."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[KindDescription, dict[str, Rules], _TypeIn]] = {}

    def rules(self, kind: KindDescription, version: str, subresource: str) -> Rules:
        place = (kind.group_resource, version)
        known = self._known.get(place)
        # A definition that changed brings new descriptions.
        if known is None or known[0] is not kind:
            known = self._known[place] = (kind, {}, _types(kind))
        _, by_part, type_in = known
        found = by_part.get(subresource)
        if found is None:
            found = by_part[subresource] = _rules(kind, version, subresource, type_in)
        return found


def _types(kind: KindDescription) -> _TypeIn:
    known: dict[str, Type | None] = {}

    def type_in(api_version: str) -> Type | None:
        if api_version not in known:
            known[api_version] = _type(kind, api_version)
        return known[api_version]

    return type_in


def _rules(kind: KindDescription, version: str, subresource: str, type_in: _TypeIn) -> Rules:
    def convert(obj: Json, api_version: str) -> Json:
        if kind.field_converter is not None and obj.get("apiVersion") != api_version:
            raise AssertionError(f"{kind.group_resource} {api_version}: owners in several versions are settled first")
        return kind.in_version(obj, api_version.rpartition("/")[2])

    return Rules(
        api_version=kind.api_version(version),
        type_in=type_in,
        convert=convert,
        reset=_reset(kind, subresource),
        only=_ONLY.get((kind.group_resource, subresource)),
        subresource=subresource,
    )


def _reset(kind: KindDescription, subresource: str) -> FieldSet:
    if subresource == "status":
        own = _STATUS_RESETS.get(kind.group_resource)
        if own is not None:
            return own
        kept = () if kind.custom else kind.status_keeps
        return sets.of_paths(("spec",), *(("metadata", name) for name in kept))
    return sets.of_paths(("status",)) if kind.has_status and not subresource else {}


def _type(kind: KindDescription, api_version: str) -> Type | None:
    version = api_version.rpartition("/")[2]
    if version not in kind.versions or kind.api_version(version) != api_version:
        return None
    if not kind.custom:
        native = schema.native(api_version, kind.kind)
        if native is not None:
            return native
    return schema.custom(None if kind.schema is None else kind.schema(version))


def empty_object(kind: KindDescription, version: str) -> Json:
    """An object of which nothing was said yet. Those of native kinds hold what Go writes in any case."""
    about = {"apiVersion": kind.api_version(version), "kind": kind.kind}
    struct = None if kind.custom else kind_type(about["apiVersion"], kind.kind)
    return about if struct is None else {**normalise({}, struct, form=SERVER_FORM), **about}


@dataclasses.dataclass(slots=True)
class Tracker:
    """Keeps the owners of a core's objects; `kruise.local.fields.install` puts it in place."""

    clock: Clock
    book: RuleBook = dataclasses.field(default_factory=RuleBook)
    _empty: dict[tuple[str, str], Json] = dataclasses.field(default_factory=dict)

    def empty(self, kind: KindDescription, version: str) -> Json:
        key = (kind.group_resource, version)
        if key not in self._empty:
            self._empty[key] = empty_object(kind, version)
        return self._empty[key]

    def created(self, call: Call, sent: Json, asked: Sequence[Any] | None) -> Ownership:
        earlier = NOBODY if asked is None else _asked(asked, NOBODY)
        return self._noted(call, "", earlier, self.empty(call.kind, call.version), sent, is_create=True)

    def changed(self, call: Call, held: Any, before: Json, after: Json, asked: Sequence[Any] | None) -> Ownership:
        earlier = owners_of(held)
        if asked is not None and not call.subresource:
            earlier = _asked(asked, earlier)
        if earlier.is_known_empty:
            return NOBODY
        return self._noted(call, call.subresource, earlier, before, after)

    def settle(self, held: Any, convert: Convert) -> None:
        if isinstance(held, Ownership):
            held.settle(convert)

    def agree(self, held: Any, other: Any) -> bool:
        return owners_of(held).agrees_with(owners_of(other))

    def _noted(
        self, call: Call, subresource: str, earlier: Ownership, before: Json, after: Json, *, is_create: bool = False
    ) -> Ownership:
        rules = self.book.rules(call.kind, call.version, subresource)
        # The server works out the owners of a size in the terms of its view, and loses the time on the way back.
        moment = None if subresource == "scale" else timestamp(self.clock.now())
        result = Ownership(note=_Note(earlier, rules, before, after, call.manager, moment, is_create))
        if result.length >= LONGEST_CHAIN and (call.kind.field_converter is None or len(result.versions()) == 1):
            _ = result.entries
        return result


def owners_of(held: Any) -> Ownership:
    """The owners as they stand in an object: tracked, imported from another cluster, or none."""
    if isinstance(held, Ownership):
        return held
    if not isinstance(held, list):
        return NOBODY
    try:
        return Ownership(managers.read(held))
    except ValueError:
        return NOBODY


def _asked(asked: Sequence[Any], otherwise: Ownership) -> Ownership:
    """The owners that a request sets itself; what is not understood is as good as not said."""
    if managers.is_reset(asked):
        return NOBODY
    try:
        entries = managers.read(asked)
    except ValueError:
        return otherwise
    return Ownership(entries) if entries else otherwise
