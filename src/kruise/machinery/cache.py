"""All stores of a process: one shared watch per kind, kept in step until the end.

Whoever needs a kind calls `add`, before or after the start, and shares the store with all others; a kind is watched
once, with one scope. Two versions of a kind are two resources and share nothing. Answers of our own writes come in
through `written` and `delete_answered`, and are visible to readers before the write returns to its caller.

A kind that is not installed yet is waited for: `waiting_for` says so, and nothing else is held up by it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random
from typing import Any, TypeVar, cast

from kruise.api.meta import Object
from kruise.api.resource import Resource
from kruise.machinery import selectors
from kruise.machinery.clock import Clock
from kruise.machinery.sharing import Sharing
from kruise.machinery.store import Store, VersionError
from kruise.machinery.watch import PAGE_SIZE, Scope, WatchClient, Watcher, WatchObserver
from kruise.machinery.watch_states import DEFAULT_BACKOFF, Backoff
from kruise.machinery.watched import Watched, watched

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)


class NotSyncedError(TimeoutError):
    """Some kinds are not listed in time; the text names each and why."""

    def __init__(self, waiting_for: Mapping[str, str], seconds: float | None) -> None:
        reasons = "; ".join(f"{kind}: {reason}" for kind, reason in waiting_for.items())
        super().__init__(f"not listed within {seconds} s: {reasons}")
        self.waiting_for = waiting_for


@dataclasses.dataclass(frozen=True, slots=True)
class KindStatus:
    """How one kind stands, for readiness details and people."""

    resource: Resource[Any]
    synced: bool
    objects: int
    watermark: int
    waiting_for: str
    """Why the store cannot be relied on; empty while it can."""
    trouble: str
    """What went wrong last and is not over; the store may still be good, only not current."""
    history_lost: bool
    """The server's versions went back; only a new process can accept that."""


class Cache:
    """`namespace` restricts the watches of namespaced kinds. `seed` makes the jitter of pauses repeatable."""

    def __init__(
        self,
        client: WatchClient,
        *,
        clock: Clock,
        namespace: str = "",
        seed: int = 0,
        backoff: Backoff = DEFAULT_BACKOFF,
        page_size: int = PAGE_SIZE,
        observer: WatchObserver | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._seed = seed
        self._backoff = backoff
        self._page_size = page_size
        self._observer = observer
        self._sharing = Sharing()
        self._watchers: dict[Resource[Any], Watcher[Any]] = {}
        self._group: asyncio.TaskGroup | None = None

    # Wiring

    def add(
        self,
        kind: Resource[T] | Watched[T],
        *,
        labels: str = "",
        fields: str = "",
    ) -> Store[T]:
        """The store of a kind, watched from now on, or from the start of `run`. Indexes of all callers are merged;
        scope, struct and trimming must be the same for all, since they share the objects."""
        wanted = watched(kind)
        resource = wanted.resource
        namespace = self._namespace if resource.namespaced else ""
        scope = Scope(namespace, labels or wanted.labels, fields or wanted.fields)
        known = self._watchers.get(resource)
        if known is not None:
            self._check_same(known, wanted, scope)
            store = cast(Store[T], known.store)
            store.add_indexes(wanted)
            return store
        store = Store(wanted, sharing=self._sharing, accepts=_accepts(scope), report=_report)
        watcher = Watcher(
            self._client,
            store,
            clock=self._clock,
            random=Random(f"{self._seed}/{resource.api_version}/{resource.plural}"),
            scope=scope,
            backoff=self._backoff,
            page_size=self._page_size,
            observer=self._observer,
        )
        self._watchers[resource] = watcher
        if self._group is not None:
            self._start(self._group, watcher)
        return store

    def _check_same(self, known: Watcher[Any], wanted: Watched[Any], scope: Scope) -> None:
        for what, has, wants in (
            ("scope", known.scope, scope),
            ("struct", known.resource.type, wanted.resource.type),
            ("trim", known.store.trim, wanted.trim),
        ):
            if has != wants:
                raise ValueError(
                    f"{wanted.resource} is watched already with {what} {has!r}, which cannot be shared with {wants!r}: "
                    "all users of a kind must agree on it"
                )

    def store(self, resource: Resource[T]) -> Store[T]:
        try:
            return cast(Store[T], self._watchers[resource].store)
        except KeyError:
            raise LookupError(f"{resource.api_version} {resource} is not watched: call add() for it first") from None

    @property
    def resources(self) -> tuple[Resource[Any], ...]:
        return tuple(self._watchers)

    def find(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """An object if its kind is watched and it is known; None says nothing about the server."""
        watcher = self._watchers.get(resource)
        return cast(Store[T], watcher.store).get(namespace, name) if watcher is not None else None

    # Life

    async def run(self) -> None:
        """Keep all stores in step until cancelled."""
        if self._group is not None:
            raise RuntimeError("this cache runs already")
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for watcher in self._watchers.values():
                    self._start(group, watcher)
                # The group must stay open for kinds that are added later.
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None

    def _start(self, group: asyncio.TaskGroup, watcher: Watcher[Any]) -> None:
        group.create_task(watcher.run(), name=f"watch {watcher.resource}")

    async def wait_synced(
        self, timeout: float | None = None, resources: Collection[Resource[Any]] | None = None
    ) -> None:
        """Wait until each kind (or each of `resources`) is listed once. Raises `NotSyncedError` in the end."""
        watchers = self._chosen(resources)
        try:
            async with asyncio.timeout(timeout):
                for watcher in watchers:
                    await watcher.synced.wait()
        except TimeoutError:
            late = [watcher for watcher in watchers if not watcher.store.synced]
            raise NotSyncedError(_reasons(late), timeout) from None

    async def fresh_relist(
        self, timeout: float | None = None, resources: Collection[Resource[Any]] | None = None
    ) -> None:
        """One consistent list of every store that begins after this call: what a new leader needs before it decides
        anything, because its watches may lag behind the writes of the leader before it."""
        if self._group is None:
            raise RuntimeError("fresh_relist() needs a running cache: start run() first")
        watchers = self._chosen(resources)
        lists = {watcher: asyncio.create_task(watcher.relist()) for watcher in watchers}
        try:
            async with asyncio.timeout(timeout):
                for task in lists.values():
                    await task
        except TimeoutError:
            late = [watcher for watcher, task in lists.items() if not task.done() or task.cancelled()]
            raise NotSyncedError(_reasons(late), timeout) from None
        finally:
            for task in lists.values():
                task.cancel()

    def _chosen(self, resources: Collection[Resource[Any]] | None) -> list[Watcher[Any]]:
        if resources is None:
            return list(self._watchers.values())
        for resource in resources:
            self.store(resource)
        return [self._watchers[resource] for resource in resources]

    # What our own writes answered

    def written(self, resource: Resource[T], obj: T) -> None:
        """The answer of a create, patch or update, or a fresh read. Kinds that are not watched are none of ours."""
        watcher = self._watchers.get(resource)
        if watcher is None or resource.type is not watcher.resource.type:
            return  # not watched, or read in another shape, which is of no use here
        if not isinstance(obj, watcher.resource.type) or getattr(obj, "kind", "") not in ("", resource.kind):
            log.warning("answer of another kind not stored", extra={"resource": str(resource), "type": type(obj)})
            return
        try:
            watcher.store.written(obj)
        except VersionError as error:
            log.warning("answer not stored", extra={"resource": str(resource), "error": str(error)})

    def delete_answered(self, resource: Resource[T], uid: str = "", obj: T | None = None) -> None:
        """A delete was accepted; the server named the uid or sent the object, or both."""
        watcher = self._watchers.get(resource)
        if watcher is None:
            return
        if obj is not None and not isinstance(obj, watcher.resource.type):
            uid, obj = uid or obj.metadata.uid, None
        try:
            watcher.store.delete_answered(uid, obj)
        except VersionError as error:
            log.warning("answer not stored", extra={"resource": str(resource), "error": str(error)})
            watcher.store.delete_answered(uid)

    # How it stands

    @property
    def waiting_for(self) -> Mapping[str, str]:
        """The kinds whose stores cannot be relied on, and why."""
        return _reasons(watcher for watcher in self._watchers.values() if watcher.waiting_for)

    def status(self) -> tuple[KindStatus, ...]:
        return tuple(
            KindStatus(
                resource=watcher.resource,
                synced=watcher.store.synced,
                objects=len(watcher.store),
                watermark=watcher.store.watermark,
                waiting_for=watcher.waiting_for,
                trouble=watcher.state.trouble,
                history_lost=watcher.state.history_lost,
            )
            for watcher in self._watchers.values()
        )


def _reasons(watchers: Iterable[Watcher[Any]]) -> dict[str, str]:
    # With the version, since two versions of a kind may be watched.
    return {
        f"{watcher.resource} ({watcher.resource.api_version})": watcher.waiting_for
        or watcher.state.trouble
        or "no answer yet"
        for watcher in watchers
    }


def _report(what: str, error: Exception) -> None:
    log.error("store callback failed", extra={"callback": what}, exc_info=error)


def _accepts(scope: Scope) -> Callable[[Any], bool]:
    """Whether an object belongs to a scope, as far as its slim struct tells. In doubt no: an answer that is not stored
    comes by the watch a moment later, one that is stored wrongly would stay for ever."""
    labels = selectors.parse(scope.labels)
    fields = selectors.parse_fields(scope.fields)

    def accepts(obj: Any) -> bool:
        metadata = obj.metadata
        if scope.namespace and metadata.namespace != scope.namespace:
            return False
        if not labels.matches(metadata.labels):
            return False
        for requirement in fields.requirements:
            value = _field(obj, requirement.field)
            if value is None or (value == requirement.value) != requirement.equal:
                return False
        return True

    return accepts


def _field(obj: Any, path: str) -> str | None:
    """A field of a struct by its name on the wire; None where the struct does not have it."""
    value = obj
    for part in path.split("."):
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in part)
        value = getattr(value, snake, None)
    return value if isinstance(value, str) else None
