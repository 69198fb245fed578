"""Who owns what of an object: `metadata.managedFields` as values, read, written, ordered and kept short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kruise.local.fields import sets
from kruise.local.fields.sets import FieldSet
from kruise.machinery.codec import Raw, encode

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
_OLD_UPDATES: Final = "ancient-changes"


class Owner(NamedTuple):
    """What tells entries apart. An applier has one entry whatever version it applies in."""

    manager: str
    operation: str
    api_version: str
    """Empty for appliers."""
    subresource: str

    @classmethod
    def of(cls, manager: str, operation: str, api_version: str, subresource: str) -> Owner:
        return cls(manager, operation, "" if operation == APPLY else api_version, subresource)

    @property
    def identifier(self) -> str:
        """By which the server orders owners in its messages."""
        parts = (("manager", 0), ("operation", 1), ("apiVersion", 2), ("subresource", 3))
        return encode({name: self[at] for name, at in parts if self[at]}).decode()


class Owned(NamedTuple):
    fields: FieldSet
    api_version: str
    """The version that the fields are those of."""
    applied: bool


class Managed(NamedTuple):
    """All entries of an object. Never changed; `with_` makes another one."""

    owned: Mapping[Owner, Owned]
    times: Mapping[Owner, str | None]


NOBODY: Final = Managed({}, {})


class Entry(NamedTuple):
    """One entry as it is kept between requests: its fields as text, which takes far less room than a tree."""

    owner: Owner
    api_version: str
    time: str | None
    fields: bytes

    def shown(self) -> dict[str, Any]:
        entry: dict[str, Any] = {}
        if self.owner.manager:
            entry["manager"] = self.owner.manager
        entry["operation"] = self.owner.operation
        entry["apiVersion"] = self.api_version
        if self.time is not None:
            entry["time"] = self.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = Raw(self.fields)
        if self.owner.subresource:
            entry["subresource"] = self.owner.subresource
        return entry

    def timeless(self) -> Entry:
        return self._replace(time=None)


Entries = tuple[Entry, ...]


def read(listed: Sequence[Any]) -> Entries:
    """From the form in which requests and answers have them; `ValueError` for what the server does not understand."""
    result: dict[Owner, Entry] = {}
    for position, item in enumerate(listed):
        if not isinstance(item, dict):
            raise ValueError("a managed fields entry must be an object")
        operation, version = item.get("operation", ""), item.get("apiVersion", "")
        if operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        form = item.get("fieldsType", "")
        if form != "FieldsV1":
            what = f"invalid fieldsType {form!r} in" if form else "missing fieldsType in"
            raise ValueError(f"{what} managed fields entry {position}")
        owner = Owner.of(item.get("manager", ""), operation, version, item.get("subresource", ""))
        tree = sets.from_json(encode(item.get("fieldsV1") or {}))
        result[owner] = Entry(owner, version, item.get("time"), sets.to_json(tree))
    return tuple(result.values())


def is_reset(listed: Sequence[Any]) -> bool:
    """An empty list, or one empty entry, is how clients ask to forget all owners."""
    return not listed or (len(listed) == 1 and not any((listed[0] or {}).values()))


def unpacked(entries: Iterable[Entry]) -> Managed:
    entries = tuple(entries)
    owned = {
        entry.owner: Owned(sets.from_json(entry.fields), entry.api_version, entry.owner.operation == APPLY)
        for entry in entries
    }
    return Managed(owned, {entry.owner: entry.time for entry in entries})


def packed(managed: Managed) -> Entries:
    """In the order in which the server shows entries."""
    entries = [
        Entry(owner, owned.api_version, managed.times.get(owner), sets.to_json(owned.fields))
        for owner, owned in managed.owned.items()
    ]
    return tuple(sorted(entries, key=_place))


def _place(entry: Entry) -> tuple[str, str, str, str, str]:
    # All times are of one form and in UTC, so that they are ordered as texts.
    return entry.owner.operation, entry.time or "", entry.owner.manager, entry.api_version, entry.owner.subresource


def capped(managed: Managed) -> Managed:
    """With the oldest updaters put together, so that their number stays within bounds."""
    updaters = [owner for owner, owned in managed.owned.items() if not owned.applied]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managed
    owned, times = dict(managed.owned), dict(managed.times)
    first: dict[str, Owner] = {}
    for owner in sorted(updaters, key=lambda owner: (times.get(owner) or "", owner.identifier)):
        if excess <= 0:
            break
        mine = owned[owner]
        if mine.api_version not in first:
            first[mine.api_version] = owner
            continue
        bucket = Owner(_OLD_UPDATES, UPDATE, mine.api_version, "")
        if bucket not in owned:
            owned[bucket] = owned.pop(first[mine.api_version])
        together = sets.union(mine.fields, owned[bucket].fields)
        if owner != bucket:
            del owned[owner]
        owned[bucket] = Owned(together, mine.api_version, False)
        excess -= 1
        times[bucket] = times.get(owner)
    return Managed(owned, times)
