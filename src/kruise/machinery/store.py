"""The objects of one kind, as the watch delivered them and as our own writes changed them.

A `Store` is a plain data structure: no await, no clock, no log. One writer (the event loop) feeds it, many readers
look at it between two events. `kruise.machinery.watch` feeds it from the API server; `kruise.machinery.cache` owns it
and passes the answers of our writes on to it.

A controller sees its own writes at once and needs no expectation counters. The rules, with W as the highest version
that the watch delivered (event, bookmark or list):

* Everything up to W is known. A write's answer at or below W is dropped: the watch has shown that version, a later
  one, or the object's end. This is why no tombstones are needed: after a DELETED event of version d, W >= d, and every
  answer about that object is older than d.
* An answer above W is stored and handlers run as for an event. Its echo by the watch has the same version and is
  silent. An answer does not move W: the watch still owes what happened to other objects before it. If the object is
  gone by the time its answer comes, the DELETED event is above W as well and still to come.
* Versions decide, not uids. An object that was recreated under its name has a higher version than anything that its
  predecessor ever had, the DELETED event included, so what comes late about the predecessor is older and dropped.
* Events older than the stored object are dropped. DELETED also applies at an equal version, because a delete answers
  with the version of its own event.
* An event at or below W about an object that is not stored cannot be told from the repetition of something that was
  deleted since. It is not applied and `event` says so, and the watch lists anew. An orderly watch sends no such event.
* A list older than W is refused. Objects newer than the list, known from answers, survive the swap: the watch that
  goes on from the list will tell of them.
* A delete's answer marks the uid as terminating until the object goes.

Versions are compared as numbers. The API long called them opaque, but every server that keeps its objects in etcd
counts them up over all objects of a kind, and everything here rests on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from kruise.api.meta import Key, Object
from kruise.api.resource import Resource
from kruise.machinery.indexes import Entry, Group, Index, IndexFunction, IndexValues
from kruise.machinery.selector_index import SelectorFunction, SelectorIndex, filters
from kruise.machinery.sharing import Sharing
from kruise.machinery.watched import Watched, watched

T = TypeVar("T", bound=Object)

Handler = Callable[[T | None, T | None], None]
"""`handler(old, new)`: old is None for an object that came, new for one that went. An object that was recreated under
its name goes and comes. Handlers only map objects to keys; they must neither block nor write to the store."""

ErrorReport = Callable[[str, Exception], None]

EARLY_MARKS = 1024
"""How many delete answers are remembered for objects that are not stored. Uids are never used twice, so one that is
remembered for nothing does no harm; the limit only bounds the memory."""


class VersionError(ValueError):
    """A resourceVersion that is no number."""


class StaleListError(Exception):
    """A list that is older than what the watch has delivered already."""

    def __init__(self, resource: Resource[Any], listed: int, watermark: int) -> None:
        super().__init__(f"the list of {resource} has version {listed}, its watch has delivered {watermark} already")
        self.listed = listed
        self.watermark = watermark


def parse_version(text: str, what: object) -> int:
    try:
        return int(text)
    except ValueError:
        raise VersionError(
            f"{what} has resourceVersion {text!r}, which is no number: "
            "an API server is needed that counts versions as etcd does"
        ) from None


def _raise(_what: str, error: Exception) -> None:
    raise error


def _everything(_obj: object) -> bool:
    return True


class Store(Generic[T]):
    """Objects of one kind by namespace and name, with secondary indexes.

    `sharing` keeps what is equal in many objects once. `accepts` says whether an object belongs here where the watch
    covers only a part of the kind: an answer about another one is dropped, since no event would ever correct or remove
    it. `report` is told of what handlers, `trim` and index functions raise: one odd object must not stop the others.
    Without it they raise to the caller.
    """

    def __init__(
        self,
        kind: Resource[T] | Watched[T],
        *,
        sharing: Sharing | None = None,
        accepts: Callable[[T], bool] = _everything,
        report: ErrorReport = _raise,
    ) -> None:
        wanted = watched(kind)
        self.resource = wanted.resource
        self.trim = wanted.trim
        self._sharing = sharing
        self._accepts = accepts
        self._report = report
        self._namespaces: dict[str, Group[str, T]] = {}
        self._uids: dict[str, Entry[T]] = {}
        self._indexes: dict[str, Index[T]] = {}
        self._selectors: dict[str, SelectorIndex[T]] = {}
        self._all_indexes: tuple[Index[T] | SelectorIndex[T], ...] = ()
        self._functions: tuple[Callable[[T], Iterable[Any]], ...] = ()
        self._handlers: tuple[Handler[T], ...] = ()
        self._watermark = 0
        self._synced = False
        self._marked: set[str] = set()
        self._marked_early: dict[str, None] = {}
        self.add_indexes(wanted)

    # Reads

    @property
    def synced(self) -> bool:
        """A first list is in: what is not here does not exist, as of the watermark."""
        return self._synced

    @property
    def watermark(self) -> int:
        return self._watermark

    def get(self, namespace: str, name: str) -> T | None:
        group = self._namespaces.get(namespace)
        if group is None:
            return None
        entry = group.entries.get(name)
        return entry.obj if entry is not None else None

    def list(self, namespace: str = "") -> tuple[T, ...]:
        """All objects, or those of one namespace, by namespace and name."""
        if namespace:
            group = self._namespaces.get(namespace)
            return tuple([entry.obj for entry in group.in_order()]) if group is not None else ()
        groups = self._namespaces
        return tuple([entry.obj for key in sorted(groups) for entry in groups[key].in_order()])

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """The objects that have `value` in an index, by namespace and name."""
        try:
            found = self._indexes[index]
        except KeyError:
            raise self._no_index("index", index, self._indexes) from None
        return found.find(value)

    def count(self, index: str, value: str) -> int:
        """How many objects have `value` in an index, without looking at them."""
        try:
            found = self._indexes[index]
        except KeyError:
            raise self._no_index("index", index, self._indexes) from None
        return found.count(value)

    def selecting(
        self,
        index: str,
        labels: Mapping[str, str],
        namespace: str = "",
        namespace_labels: Mapping[str, str] | None = None,
    ) -> tuple[T, ...]:
        """The objects with a selector that selects something with these labels in this namespace (empty: it is in
        none), by namespace and name. Who selects namespaces by labels is found only if those of the namespace are
        given: a namespace that nobody can see is not selected."""
        try:
            found = self._selectors[index]
        except KeyError:
            raise self._no_index("selector index", index, self._selectors) from None
        return found.find(labels, namespace, namespace_labels)

    def _no_index(self, what: str, name: str, known: Mapping[str, object]) -> LookupError:
        has = ", ".join(sorted(known)) or "none"
        return LookupError(f"the store of {self.resource} has no {what} {name!r} (it has: {has})")

    def is_terminating(self, obj: T) -> bool:
        """It is being deleted: the object says so, or a delete of it was answered and the watch lags behind."""
        metadata = obj.metadata
        return metadata.deletion_timestamp is not None or metadata.uid in self._marked

    def __len__(self) -> int:
        return len(self._uids)

    # Wiring

    def add_indexes(self, kind: Watched[T]) -> None:
        """Find objects by these indexes, too."""
        for name, function in kind.indexes.items():
            if self._is_new(name, function, self._indexes):
                self._indexes[name] = index = Index(name, function)
                self._fill(index, function)
        for name, selectors in kind.selectors.items():
            if self._is_new(name, selectors, self._selectors):
                self._selectors[name] = selector_index = SelectorIndex(name, selectors)
                self._fill(selector_index, filters(selectors))

    def _is_new(
        self,
        name: str,
        function: IndexFunction[T] | SelectorFunction[T],
        known: Mapping[str, Index[T]] | Mapping[str, SelectorIndex[T]],
    ) -> bool:
        if name not in known:
            return True
        if known[name].function is not function:
            raise ValueError(f"index {name!r} of {self.resource} exists with another function; choose another name")
        return False

    def _fill(self, index: Index[T] | SelectorIndex[T], function: Callable[[T], Iterable[Any]]) -> None:
        self._all_indexes = (*self._all_indexes, index)
        self._functions = (*self._functions, function)
        for entry in self._uids.values():
            added = self._values_one(function, entry.obj)
            entry.values = (*entry.values, added)
            index.move(entry, (), added)

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """Run `handler` for every change from now on, and at once for each object that is there. Returns the way to
        end that."""
        self._handlers = (*self._handlers, handler)
        for obj in self.list():
            self._run(handler, None, obj)

        def unsubscribe() -> None:
            self._handlers = tuple(item for item in self._handlers if item is not handler)

        return unsubscribe

    # What the watch delivers

    def event(self, type: str, obj: T) -> bool:
        """An ADDED, MODIFIED or DELETED event. False: it came too late to be placed, only a new list can tell."""
        metadata = obj.metadata
        try:
            version = int(metadata.resource_version)
        except ValueError:
            version = self._version(obj)  # raises, with a text that names the object
        late = version <= self._watermark
        if not late:
            self._watermark = version
        group = self._namespaces.get(metadata.namespace)
        entry = group.entries.get(metadata.name) if group is not None else None
        if type == "DELETED":
            if entry is not None and entry.version <= version:
                self._remove(entry)
                self._notify(entry.obj, None)
        elif entry is None:
            if late:
                return False
            self._come(obj, version)
        elif entry.version < version:
            self._change(entry, obj, version)
        return True

    def bookmark(self, version: int) -> None:
        """The watch has nothing older than `version` left to send. A lower one than before says nothing new."""
        if version > self._watermark:
            self._watermark = version

    def prepare(self, items: Iterable[T]) -> tuple[T, ...]:
        """What `replace` would keep of these items: for pages of a list, so that two full copies never coexist."""
        kept: list[T] = []
        for item in items:
            entry = self._uids.get(item.metadata.uid)
            if entry is not None and entry.version == self._version(item):
                kept.append(entry.obj)
            else:
                kept.append(self._compact(item, entry))
        return tuple(kept)

    def replace(self, items: Iterable[T], version: int, *, prepared: bool = False) -> None:
        """Swap in a whole list in one step; handlers run after it, for the differences only.

        Raises `StaleListError` for a list older than the watermark, and changes nothing then.
        """
        if version < self._watermark:
            raise StaleListError(self.resource, version, self._watermark)
        listed = [(self._version(item), item) for item in items]
        self._watermark = version
        self._synced = True
        changes: list[tuple[T | None, T | None]] = []
        kept: set[Entry[T]] = set()
        for item_version, item in listed:
            metadata = item.metadata
            group = self._namespaces.get(metadata.namespace)
            entry = group.entries.get(metadata.name) if group is not None else None
            if entry is not None and (entry.version > version or entry.version == item_version):
                kept.add(entry)
                continue
            # The list is the truth about everything up to its version. An item older than the stored object, with
            # both at or below that version, is possible only if the server lost history; the list heals that, too.
            if not prepared:
                item = self._compact(item, entry)
            if entry is not None and entry.uid == metadata.uid:
                changes.append((entry.obj, item))
                self._put(entry, item, item_version)
            else:
                if entry is not None:
                    self._remove(entry)
                    changes.append((entry.obj, None))
                entry = self._insert(item, item_version)
                changes.append((None, item))
            kept.add(entry)
        for entry in [entry for entry in self._uids.values() if entry not in kept and entry.version <= version]:
            self._remove(entry)
            changes.append((entry.obj, None))
        for old, new in changes:
            self._notify(old, new)

    # What our own writes answered

    def written(self, obj: T) -> None:
        """The answer of a create, patch or update of the object itself or its status. Never one of a dry run."""
        version = self._version(obj)
        if version <= self._watermark or not self._accepts(obj):
            return
        metadata = obj.metadata
        group = self._namespaces.get(metadata.namespace)
        entry = group.entries.get(metadata.name) if group is not None else None
        if entry is None:
            self._come(obj, version)
        elif entry.version < version:
            self._change(entry, obj, version)

    def delete_answered(self, uid: str = "", obj: T | None = None) -> None:
        """A delete was accepted: the server answered with the object, or only with its uid.

        The mark alone runs no handler: whoever deleted knows it, and the event that tells all others follows.
        """
        version = 0
        if obj is not None:
            uid = uid or obj.metadata.uid
            version = self._version(obj)
        entry = self._uids.get(uid)
        if entry is None:
            # Gone already if its version was delivered. Otherwise the object may still come: its create was answered
            # to someone else, or the watch lags behind. An answer without a version leaves both open.
            if uid and (obj is None or version > self._watermark):
                self._marked_early[uid] = None
                if len(self._marked_early) > EARLY_MARKS:
                    del self._marked_early[next(iter(self._marked_early))]
            return
        self._marked.add(uid)
        if obj is not None and version > self._watermark and version > entry.version and self._accepts(obj):
            self._change(entry, obj, version)

    # Changes of state. Each is complete before a handler runs.

    def _come(self, obj: T, version: int) -> None:
        kept = self._compact(obj, None)
        self._insert(kept, version)
        self._notify(None, kept)

    def _change(self, entry: Entry[T], obj: T, version: int) -> None:
        kept = self._compact(obj, entry)
        old = entry.obj
        if entry.uid == obj.metadata.uid:
            self._put(entry, kept, version)
            self._notify(old, kept)
        else:
            self._remove(entry)
            self._insert(kept, version)
            self._notify(old, None)
            self._notify(None, kept)

    def _insert(self, obj: T, version: int) -> Entry[T]:
        metadata = obj.metadata
        values = self._values(obj)
        entry = Entry(Key(metadata.namespace, metadata.name), obj, metadata.uid, version, values)
        group = self._namespaces.get(metadata.namespace)
        if group is None:
            group = self._namespaces[metadata.namespace] = Group()
        group.add(metadata.name, entry)
        self._uids[metadata.uid] = entry
        for index, after in zip(self._all_indexes, values, strict=True):
            index.move(entry, (), after)
        if metadata.uid in self._marked_early:
            del self._marked_early[metadata.uid]
            self._marked.add(metadata.uid)
        return entry

    def _put(self, entry: Entry[T], obj: T, version: int) -> None:
        values = self._values(obj)
        if values != entry.values:
            for index, before, after in zip(self._all_indexes, entry.values, values, strict=True):
                if before != after:
                    index.move(entry, before, after)
            entry.values = values
        entry.obj = obj
        entry.version = version

    def _remove(self, entry: Entry[T]) -> None:
        namespace, name = entry.key
        group = self._namespaces[namespace]
        group.remove(name)
        if not group.entries:
            del self._namespaces[namespace]
        del self._uids[entry.uid]
        for index, before in zip(self._all_indexes, entry.values, strict=True):
            index.move(entry, before, ())
        self._marked.discard(entry.uid)

    def _notify(self, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            self._run(handler, old, new)

    def _run(self, handler: Handler[T], old: T | None, new: T | None) -> None:
        try:
            handler(old, new)
        except Exception as error:  # noqa: BLE001 - handed on: one handler's fault is not the watch's
            obj = new if new is not None else old
            self._report(f"handler {_name(handler)} on {self._describe(obj)}", error)

    def _compact(self, obj: T, before: Entry[T] | None) -> T:
        if self.trim is not None:
            try:
                obj = self.trim(obj)
            except Exception as error:  # noqa: BLE001 - handed on: a larger object is better than none
                self._report(f"trim {_name(self.trim)} on {self._describe(obj)}", error)
        if self._sharing is not None:
            try:
                self._sharing.share(obj, before.obj if before is not None else None)
            except Exception as error:  # noqa: BLE001 - handed on: what is not shared takes more room, no more
                self._report(f"sharing of {self._describe(obj)}", error)
        return obj

    def _values(self, obj: T) -> IndexValues:
        return tuple([self._values_one(function, obj) for function in self._functions])

    def _values_one(self, function: Callable[[T], Iterable[Any]], obj: T) -> tuple[Any, ...]:
        try:
            return tuple(function(obj))
        except Exception as error:  # noqa: BLE001 - handed on: the object stays readable by its name
            self._report(f"index {_name(function)} on {self._describe(obj)}", error)
            return ()

    def _version(self, obj: T) -> int:
        text = obj.metadata.resource_version
        try:
            return int(text)
        except ValueError:
            return parse_version(text, self._describe(obj))

    def _describe(self, obj: T | None) -> str:
        if obj is None:
            return str(self.resource)
        return f"{self.resource} {Key(obj.metadata.namespace, obj.metadata.name)}"


def _name(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))
