"""A tiny server, the things in flight between it and a store, and what the store must show at every moment.

A `World` runs a script of writes on the server. Each write makes an event for the watch and, if it is our own, an
answer that arrives at any later time. Lists are taken at one moment and arrive at another. `steps` says what can
happen next, `do` makes it happen and checks every promise of `kruise.machinery.store`:

1. when everything has arrived, the store equals the server;
2. an own write is visible from the moment its answer was handled, until something newer is;
3. no uid ever goes back in version, none that went comes back, none is shown whose end was delivered;
4. handlers run exactly for visible changes; echoes are silent;
5. a uid whose delete was answered is terminating for as long as it is shown.

The oracle is exact. What is visible under a name is the newest of what the server held at the watermark and the
answers above the watermark that were handled.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from datetime import UTC, datetime

from kruise.api.meta import ObjectMeta
from kruise.api.native.config import CONFIG_MAPS, ConfigMap
from kruise.machinery.store import StaleListError, Store

SOME_TIME = datetime(2030, 1, 1, tzinfo=UTC)


def config_map(name: str, version: int, uid: str = "", *, terminating: bool = False, **labels: str) -> ConfigMap:
    """An object as small as it can be."""
    return ConfigMap(
        api_version="v1",
        kind="ConfigMap",
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=uid or f"uid-{name}",
            resource_version=str(version),
            deletion_timestamp=SOME_TIME if terminating else None,
            labels=labels,
        ),
    )


@dataclasses.dataclass(frozen=True)
class Write:
    """A write on the server. `answer` is what we get of it: nothing if it is another's."""

    verb: str
    """create, update, delete (at once), terminate (a graceful delete), finalize (ends that), other (another kind)."""
    name: str = "a"
    answer: str = ""
    """"", "object", or for deletes also "status": only the uid."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What a version did to a name."""

    version: int
    type: str
    name: str
    uid: str
    terminating: bool

    @functools.cached_property
    def object(self) -> ConfigMap:
        return config_map(self.name, self.version, self.uid, terminating=self.terminating)


@dataclasses.dataclass(frozen=True)
class Answer:
    is_delete: bool
    uid: str
    object: ConfigMap | None


Shown = dict[str, tuple[str, int]]
"""uid and version by name."""


class World:
    """The numbers say how often each of these may happen: lists that nothing forces, bookmarks, torn watches, watches
    that begin too early and repeat events, new processes of ours."""

    def __init__(
        self,
        script: tuple[Write, ...],
        *,
        lists: int = 1,
        bookmarks: int = 0,
        cuts: int = 0,
        repeats: int = 0,
        restarts: int = 0,
        store: type[Store[ConfigMap]] = Store,
    ) -> None:
        self.script = script
        self.lists, self.bookmarks, self.cuts, self.repeats = lists, bookmarks, cuts, repeats
        self.restarts = restarts
        self._store_class = store
        self.version = 0
        self.done = 0
        self.history: list[Record] = []
        self.live: dict[str, Record] = {}
        self.ends: dict[str, int] = {}
        """Version of the DELETED event by uid."""
        self.born = 0
        self._begin()

    def _begin(self) -> None:
        """A process of ours starts: what was in flight to the one before is lost."""
        self.answers: dict[int, Answer] = {}
        """In flight, by number of the write."""
        self.listed: tuple[int, tuple[Record, ...]] | None = None
        """A list in flight."""
        self.position: int | None = None
        """Version up to which the open watch has sent its events; None without one."""
        self.torn = False
        """There was a watch, and it may go on from the watermark."""
        self.store = self._store_class(CONFIG_MAPS)
        self.calls: list[tuple[ConfigMap | None, ConfigMap | None]] = []
        self.store.subscribe(self._called)
        self.seen: dict[str, int] = {}
        """Highest version shown, by uid."""
        self.gone: set[str] = set()
        self.handled: set[tuple[str, str, int]] = set()
        self.deleted: set[str] = set()
        """Uids whose delete was answered."""

    def fork(self) -> World:
        """A copy that goes its own way. Playing the steps again would give the same, only more slowly."""
        other = copy.copy(self)
        other.history, other.live, other.ends = [*self.history], {**self.live}, {**self.ends}
        other.answers, other.seen = {**self.answers}, {**self.seen}
        other.gone, other.handled, other.deleted = {*self.gone}, {*self.handled}, {*self.deleted}
        store = other.store = self._store_class(CONFIG_MAPS)
        for entry in self.store._uids.values():
            store._insert(entry.obj, entry.version)
        store._watermark, store._synced = self.store._watermark, self.store._synced
        store._marked, store._marked_early = {*self.store._marked}, {**self.store._marked_early}
        other.calls = []
        store.subscribe(other._called)
        other.calls.clear()
        return other

    def _called(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        self.calls.append((old, new))

    # What can happen

    def steps(self) -> list[str]:
        found = []
        if self.done < len(self.script):
            found.append("write")
        found.extend(f"answer {number}" for number in self.answers)
        if self.position is not None:
            if self._next_event() is not None:
                found.append("event")
            if self.bookmarks and self._bookmark() > self.store.watermark:
                found.append("bookmark")
            if self.cuts:
                found.append("cut")
            if self.repeats:
                found.extend(
                    f"repeat {record.version - 1}" for record in self.history if record.version <= self.position
                )
        elif self.torn:
            found.append("resume")
        if self.restarts and self.store.synced:
            found.append("restart")
        if self.listed is not None:
            found.append("swap")
        elif self.lists or self.position is None:
            found.append("list")
        return found

    @property
    def complete(self) -> bool:
        """Everything that must happen has happened."""
        return (
            self.done == len(self.script)
            and not self.answers
            and self.position is not None
            and self._next_event() is None
        )

    def _next_event(self) -> Record | None:
        assert self.position is not None
        return next((record for record in self.history if record.version > self.position), None)

    def _bookmark(self) -> int:
        following = self._next_event()
        return following.version - 1 if following is not None else self.version

    def do(self, step: str) -> None:
        verb, _, argument = step.partition(" ")
        before = self.shown()
        self.calls.clear()
        if verb == "write":
            self._write()
        elif verb == "answer":
            self._deliver(self.answers.pop(int(argument)))
        elif verb == "event":
            record = self._next_event()
            assert record is not None
            self.position = record.version
            if not self.store.event(record.type, record.object):
                self.position = None
        elif verb == "bookmark":
            self.bookmarks -= 1
            self.position = self._bookmark()
            self.store.bookmark(self.position)
        elif verb == "cut":
            self.cuts -= 1
            self.position, self.torn = None, True
        elif verb == "resume":
            self.position, self.torn = self.store.watermark, False
        elif verb == "repeat":
            self.repeats -= 1
            self.position = int(argument)
        elif verb == "list":
            self.lists = max(0, self.lists - 1)
            self.listed = (self.version, tuple(self.live.values()))
        elif verb == "swap":
            self._swap()
        elif verb == "restart":
            self.restarts -= 1
            self._begin()
            before = {}
        self.check(before)
        if self.calls:
            shown = self.shown()
            self.seen.update(shown.values())
            self.gone |= {uid for uid, _ in before.values()} - {uid for uid, _ in shown.values()}

    def _write(self) -> None:
        write = self.script[self.done]
        number = self.done
        self.done += 1
        self.version += 1
        if write.verb == "other":
            return
        current = self.live.get(write.name)
        if write.verb == "create":
            assert current is None
            self.born += 1
            uid = f"{write.name}{self.born}"
        else:
            assert current is not None
            uid = current.uid
        ends = write.verb in ("delete", "finalize")
        terminating = write.verb == "terminate" or (current is not None and current.terminating)
        kind = "DELETED" if ends else "ADDED" if write.verb == "create" else "MODIFIED"
        record = Record(self.version, kind, write.name, uid, terminating)
        self.history.append(record)
        if ends:
            del self.live[write.name]
            self.ends[uid] = self.version
        else:
            self.live[write.name] = record
        if not write.answer:
            return
        answered = record
        if write.verb == "finalize":
            # A patch that ends an object answers with the version that the object had before.
            assert current is not None
            answered = current
        self.answers[number] = Answer(
            is_delete=write.verb in ("delete", "terminate"),
            uid=uid,
            object=answered.object if write.answer == "object" else None,
        )

    def _deliver(self, answer: Answer) -> None:
        visible = answer.uid in {uid for uid, _ in self.shown().values()}
        watermark = self.store.watermark
        if answer.is_delete:
            self.deleted.add(answer.uid)
            self.store.delete_answered(answer.uid, answer.object)
        else:
            assert answer.object is not None
            self.store.written(answer.object)
        if answer.object is not None and (visible or not answer.is_delete):
            version = int(answer.object.metadata.resource_version)
            if version > watermark:
                self.handled.add((answer.object.metadata.name, answer.uid, version))

    def _swap(self) -> None:
        assert self.listed is not None
        version, records = self.listed
        self.listed = None
        watermark = self.store.watermark
        try:
            self.store.replace([record.object for record in records], version)
        except StaleListError:
            assert version < watermark
            assert self.store.watermark == watermark
        else:
            assert version >= watermark
            self.position, self.torn = version, False

    # What must be

    def shown(self) -> Shown:
        return {
            obj.metadata.name: (obj.metadata.uid, int(obj.metadata.resource_version)) for obj in self.store.list("ns")
        }

    def server(self, version: int) -> Shown:
        state: Shown = {}
        for record in self.history:
            if record.version > version:
                break
            if record.type == "DELETED":
                del state[record.name]
            else:
                state[record.name] = (record.uid, record.version)
        return state

    def check(self, before: Shown) -> None:
        shown = self.shown()
        watermark = self.store.watermark

        expected = self.server(watermark)
        for name, uid, version in self.handled:
            if version > watermark and (name not in expected or expected[name][1] < version):
                expected[name] = (uid, version)
        assert shown == expected

        for name, uid, version in self.handled:  # 2
            newer = name in shown and shown[name][1] >= version
            assert newer or self.ends[uid] <= watermark

        for uid, version in shown.values():  # 3
            assert version >= self.seen.get(uid, 0)
            assert uid not in self.gone
            assert self.ends.get(uid, watermark + 1) > watermark

        changes = []  # 4
        for name in sorted(before.keys() | shown.keys()):
            old, new = before.get(name), shown.get(name)
            if old is not None and new is not None and old[0] != new[0]:
                changes += [(old, None), (None, new)]
            elif old != new:
                changes.append((old, new))
        assert sorted(map(repr, changes)) == sorted(repr((_pair(old), _pair(new))) for old, new in self.calls)

        for obj in self.store.list("ns"):  # 5
            uid = obj.metadata.uid
            assert self.store.is_terminating(obj) == (
                uid in self.deleted or obj.metadata.deletion_timestamp is not None
            )

        if self.complete:  # 1
            assert shown == self.server(self.version)

    def signature(self) -> object:
        """Everything that what follows can depend on. The marks and handled answers stand for the store's own."""
        return (
            self.done,
            tuple(self.answers),
            self.listed and self.listed[0],
            self.position,
            self.torn,
            (self.lists, self.bookmarks, self.cuts, self.repeats, self.restarts),
            self.store.watermark,
            self.store.synced,
            tuple(self.shown().items()),
            frozenset(self.store._marked),
            frozenset(self.store._marked_early),
            tuple(sorted(self.seen.items())),
            frozenset(self.gone),
            frozenset(self.handled),
            frozenset(self.deleted),
        )


def _pair(obj: ConfigMap | None) -> tuple[str, int] | None:
    return (obj.metadata.uid, int(obj.metadata.resource_version)) if obj is not None else None
