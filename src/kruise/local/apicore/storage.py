"""Where objects live: one version counter for everything, the newest state of each object, and a log of changes.

The log serves watches and lists at an older version: an event knows the object before and after it, so undoing
the events since a version gives the state at that version. What is compacted is gone, as on a real server (410).

Objects are plain JSON values that nobody changes after they were stored; a new state shares the parts that did not
change. A state is stamped with its `resourceVersion` here and nowhere else.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from kruise.local.apicore.errors import Json

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"

# Watchers that keep up share an event's encoding; for the few that lag it is made again, so old bytes need not stay.
_KEPT_ENCODINGS: Final = 128


class CompactedError(Exception):
    """The asked-for version is older than what is kept; `oldest` is the first that is not."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"version {asked} is compacted, the oldest that is kept is {oldest}")
        self.asked = asked
        self.oldest = oldest


@dataclasses.dataclass(slots=True, eq=False)
class Event:
    """One change. A deletion carries the last state, stamped with the version of the deletion."""

    type: str
    version: int
    key: Key
    object: Json
    previous: Json | None
    encoded: dict[tuple[str, str], bytes] = dataclasses.field(default_factory=dict, repr=False)
    """Watch lines by event type and form (API version, with or without owners), so that watchers share one encoding."""


class Storage(Protocol):
    """What the core needs of a storage. All calls are atomic: they do not give way to other tasks."""

    @property
    def version(self) -> int:
        """The version of the newest change to anything."""

    def get(self, resource: str, key: Key) -> Json | None: ...

    def put(self, resource: str, key: Key, obj: Json) -> Event:
        """Store a new state and stamp it with the next version."""

    def delete(self, resource: str, key: Key) -> Event: ...

    def scan(
        self, resource: str, namespace: str, start: str, version: int, *, having: Having | None = None
    ) -> Iterator[tuple[Key, Json]]:
        """Objects in key order from the path `start` on, as they were at `version`; raises `CompactedError`. `having`
        may spare those without a value; some of them can be there nevertheless."""

    def since(self, resource: str, version: int) -> Sequence[Event]:
        """The changes after `version`, oldest first; raises `CompactedError`."""

    def subscribe(self, resource: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each change of a resource; the result ends the subscription."""

    def compact(self, version: int) -> None:
        """Forget the changes up to `version`."""

    def trim(self, version: int) -> None:
        """Let go of the changes up to `version`. Unlike after `compact`, whoever has seen them all can go on."""


def path_of(key: Key) -> str:
    """A key as it is ordered and as continue tokens name it."""
    namespace, name = key
    return f"{namespace}/{name}" if namespace else name


@dataclasses.dataclass(frozen=True, slots=True)
class Having:
    """A value that a field must have, and how the field is read."""

    field: str
    read: Callable[[Json], str]
    value: str


class _Index:
    """The keys of objects by the value of a field."""

    def __init__(self, read: Callable[[Json], str], objects: dict[Key, Json]) -> None:
        self._read = read
        self._keys: dict[str, set[Key]] = {}
        for key, obj in objects.items():
            self._keys.setdefault(read(obj), set()).add(key)

    def change(self, key: Key, before: Json | None, after: Json | None) -> None:
        old = None if before is None else self._read(before)
        new = None if after is None else self._read(after)
        if old == new:
            return
        if old is not None:
            keys = self._keys[old]
            keys.remove(key)
            if not keys:
                del self._keys[old]
        if new is not None:
            self._keys.setdefault(new, set()).add(key)

    def paths(self, value: str) -> list[tuple[str, Key]]:
        return sorted((path_of(key), key) for key in self._keys.get(value, ()))


@dataclasses.dataclass(slots=True)
class _Table:
    """Everything about one resource."""

    objects: dict[Key, Json] = dataclasses.field(default_factory=dict)
    paths: list[tuple[str, Key]] = dataclasses.field(default_factory=list)
    log: collections.deque[Event] = dataclasses.field(default_factory=collections.deque)
    wakes: dict[int, Callable[[], None]] = dataclasses.field(default_factory=dict)
    indexes: dict[str, _Index] = dataclasses.field(default_factory=dict)
    """By field; made when first asked for."""
    floor: int = 0


class MemoryStorage:
    """The storage of a process that keeps nothing on disk."""

    def __init__(self, *, history: int = 10_000, start_version: int = 0) -> None:
        """`history` is how many changes are kept per resource."""
        self._history = history
        self._version = start_version
        self._compacted = 0
        self._tables: dict[str, _Table] = {}
        self._subscriptions = 0

    @property
    def version(self) -> int:
        return self._version

    def _table(self, resource: str) -> _Table:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = _Table(floor=self._compacted)
        return table

    def get(self, resource: str, key: Key) -> Json | None:
        table = self._tables.get(resource)
        return None if table is None else table.objects.get(key)

    def put(self, resource: str, key: Key, obj: Json) -> Event:
        table = self._table(resource)
        previous = table.objects.get(key)
        stored = self._stamped(obj)
        if previous is None:
            bisect.insort(table.paths, (path_of(key), key))
        table.objects[key] = stored
        kind = ADDED if previous is None else MODIFIED
        return self._log(table, Event(kind, self._version, key, stored, previous))

    def delete(self, resource: str, key: Key) -> Event:
        table = self._table(resource)
        previous = table.objects.pop(key)
        del table.paths[bisect.bisect_left(table.paths, (path_of(key), key))]
        last = self._stamped(previous)
        return self._log(table, Event(DELETED, self._version, key, last, previous))

    def _stamped(self, obj: Json) -> Json:
        self._version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}

    def _log(self, table: _Table, event: Event) -> Event:
        log = table.log
        log.append(event)
        if len(log) > _KEPT_ENCODINGS:
            log[-_KEPT_ENCODINGS - 1].encoded.clear()
        if len(log) > self._history:
            table.floor = log.popleft().version
        for index in table.indexes.values():
            index.change(event.key, event.previous, None if event.type == DELETED else event.object)
        for wake in tuple(table.wakes.values()):
            wake()
        return event

    def scan(
        self, resource: str, namespace: str, start: str, version: int, *, having: Having | None = None
    ) -> Iterator[tuple[Key, Json]]:
        table = self._table(resource)
        past = self._undone(table, version)
        paths = table.paths
        if having is not None and not past:
            if having.field not in table.indexes:
                table.indexes[having.field] = _Index(having.read, table.objects)
            paths = table.indexes[having.field].paths(having.value)
        elif past:
            added = [(path_of(key), key) for key, obj in past.items() if obj is not None and key not in table.objects]
            paths = sorted(paths + added) if added else paths
        prefix = f"{namespace}/" if namespace else ""
        first = bisect.bisect_left(paths, (max(start, prefix), ("", "")))
        # "0" follows "/": it is the least that comes after everything in the namespace.
        last = bisect.bisect_left(paths, (f"{namespace}0", ("", ""))) if namespace else len(paths)
        # A copy: the caller may give way while it reads.
        for _, key in paths[first:last]:
            obj = past[key] if key in past else table.objects.get(key)
            if obj is not None:
                yield key, obj

    def _undone(self, table: _Table, version: int) -> dict[Key, Json | None]:
        """For each object that changed since `version`: what it was then."""
        past: dict[Key, Json | None] = {}
        if version >= self._version:
            return past
        if version < table.floor:
            raise CompactedError(version, table.floor)
        for event in reversed(table.log):
            if event.version <= version:
                break
            past[event.key] = event.previous
        return past

    def since(self, resource: str, version: int) -> Sequence[Event]:
        table = self._table(resource)
        if version < table.floor:
            raise CompactedError(version, table.floor)
        newer: list[Event] = []
        for event in reversed(table.log):
            if event.version <= version:
                break
            newer.append(event)
        newer.reverse()
        return newer

    def subscribe(self, resource: str, wake: Callable[[], None]) -> Callable[[], None]:
        wakes = self._table(resource).wakes
        self._subscriptions += 1
        number = self._subscriptions
        wakes[number] = wake

        def end() -> None:
            wakes.pop(number, None)

        return end

    def subscriptions(self, resource: str) -> int:
        return len(self._table(resource).wakes)

    def compact(self, version: int) -> None:
        self._compacted = max(self._compacted, min(version, self._version))
        for table in self._tables.values():
            while table.log and table.log[0].version <= self._compacted:
                table.log.popleft()
            table.floor = max(table.floor, self._compacted)

    def trim(self, version: int) -> None:
        for table in self._tables.values():
            while table.log and table.log[0].version <= version:
                table.floor = table.log.popleft().version
