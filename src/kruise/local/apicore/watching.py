"""Watches: a cursor in the log of changes that turns them into lines.

A watch buffers nothing of its own. It remembers the version that it has delivered, reads on when it is woken, and
shares the encoded lines with the other watches of the kind. Whoever falls too far behind is cut off, as on a real
server: the client lists again.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Final

from kruise.local.apicore import errors, owners
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.listing import Filter, ListOptions, parse_version
from kruise.local.apicore.storage import ADDED, DELETED, MODIFIED, CompactedError, Event, Storage
from kruise.machinery.codec import encode

BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

# After so many lines in one go a watch lets other tasks run: a long backlog must not hold up the loop.
_LINES_IN_A_ROW: Final = 64
_HAIR: Final = 1e-6


def _line(event_type: str, obj: Json) -> bytes:
    return b'{"type":"%b","object":%b}' % (event_type.encode(), encode(obj))


@dataclasses.dataclass(frozen=True, slots=True)
class _Unconverted:
    """A line that needs a webhook before it can be written."""

    type: str
    object: Json
    event: Event | None = None


def _nothing(watch: Watch) -> None:
    return None


class Watch:
    """One open watch: an asynchronous iterator over lines. It ends in order at its timeout or when it is too slow."""

    def __init__(
        self,
        storage: Storage,
        kind: KindDescription,
        version: str,
        selected: Filter,
        options: ListOptions,
        *,
        bookmark_interval: float | None = 60.0,
        max_lag: int = 10_000,
        with_owners: bool = False,
        on_close: Callable[[Watch], None] = _nothing,
    ) -> None:
        self._storage = storage
        self._kind = kind
        self._version = version
        self._with_owners = with_owners
        self._form = version if with_owners else f"{version} without owners"
        self._selected = selected
        self._ready: collections.deque[bytes | _Unconverted] = collections.deque()
        self._on_close = on_close
        self._in_a_row = 0
        self._max_lag = max_lag
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._failure: Exception | None = None
        self._cursor = self._begin(options)
        now = asyncio.get_running_loop().time()
        self._deadline = None if options.timeout_seconds is None else now + options.timeout_seconds
        self._interval = bookmark_interval if options.bookmarks else None
        self._next_bookmark = None if self._interval is None else now + self._interval
        self._unsubscribe = storage.subscribe(kind.group_resource, self._wake)

    def _begin(self, options: ListOptions) -> int:
        """Queue the initial events where they are asked for; returns the version after which to go on."""
        asked = parse_version(options.resource_version, watch=True)
        wants_state = options.send_initial_events is True
        if options.send_initial_events is None:
            wants_state = asked == 0
        if not wants_state:
            return asked or self._storage.version
        if asked > self._storage.version:
            raise errors.version_too_large(asked, self._storage.version)
        at = self._storage.version
        for _, obj in self._storage.scan(self._kind.group_resource, self._selected.namespace, "", at):
            if self._selected.matches(obj):
                self._ready.append(self._written(ADDED, obj))
        if options.send_initial_events and options.bookmarks:
            self._ready.append(self._bookmark(at, {INITIAL_EVENTS_END: "true"}))
        return at

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: Json = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        kind = self._kind
        return _line(BOOKMARK, {"kind": kind.kind, "apiVersion": kind.api_version(self._version), "metadata": metadata})

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while True:
            if self._failure is not None:
                failure, self._failure, self._ended = self._failure, None, True
                self.close()
                raise failure
            if self._ready:
                self._in_a_row += 1
                if self._in_a_row >= _LINES_IN_A_ROW:
                    self._in_a_row = 0
                    await asyncio.sleep(0)
                    continue
                line = self._ready.popleft()
                return line if isinstance(line, bytes) else await self._convert(line)
            if self._ended:
                self.close()
                raise StopAsyncIteration
            self._read_on()
            if not self._ready and not self._ended:
                self._in_a_row = 0
                await self._wait()

    def _read_on(self) -> None:
        try:
            events = self._storage.since(self._kind.group_resource, self._cursor)
        except CompactedError as error:
            refusal = errors.expired(f"too old resource version: {error.asked} ({error.oldest})")
            self.end(refusal)
            return
        if len(events) > self._max_lag:
            self.end()
            return
        for event in events:
            self._cursor = event.version
            line = self._line_for(event)
            if line is not None:
                self._ready.append(line)

    def _written(self, event_type: str, obj: Json, event: Event | None = None) -> bytes | _Unconverted:
        kind, obj = self._kind, owners.shown(obj, owners=self._with_owners)
        if kind.converter is not None and obj.get("apiVersion") != kind.api_version(self._version):
            return _Unconverted(event_type, obj, event)
        line = _line(event_type, kind.in_version(obj, self._version))
        if event is not None:
            event.encoded[event_type, self._form] = line
        return line

    async def _convert(self, waiting: _Unconverted) -> bytes:
        known = None if waiting.event is None else waiting.event.encoded.get((waiting.type, self._form))
        if known is not None:
            return known
        assert self._kind.converter is not None
        try:
            (obj,) = await self._kind.converter([waiting.object], self._version)
        except StatusError as error:
            self._ready.clear()
            self._ended = True
            return _line(ERROR, error.status)
        line = _line(waiting.type, obj)
        if waiting.event is not None:
            waiting.event.encoded[waiting.type, self._form] = line
        return line

    def _line_for(self, event: Event) -> bytes | _Unconverted | None:
        selected = self._selected
        if selected.namespace and event.key[0] != selected.namespace:
            return None
        event_type, obj = event.type, event.object
        if not selected.matches_all:
            # An object that stops matching is gone for this watcher, one that begins to match is new.
            is_in = event_type != DELETED and selected.matches(obj)
            was_in = event.previous is not None and selected.matches(event.previous)
            if not is_in and not was_in:
                return None
            event_type = DELETED if not is_in else MODIFIED if was_in else ADDED
            if event_type == DELETED and event.previous is not None:
                obj = _stamped(event.previous, event.version)
        known = event.encoded.get((event_type, self._form))
        return self._written(event_type, obj, event) if known is None else known

    async def _wait(self) -> None:
        """Until something changes, a bookmark is due or the watch is over."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        due = [moment for moment in (self._deadline, self._next_bookmark) if moment is not None]
        timer = loop.call_at(min(due), self._wake) if due else None
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()
        # A timer may fire a hair early. On virtual time nothing else moves the time on, and this would wait for ever.
        now = loop.time() + _HAIR
        if self._next_bookmark is not None and self._interval is not None and now >= self._next_bookmark:
            self._read_on()
            self._ready.append(self._bookmark(max(self._cursor, self._storage.version)))
            self._next_bookmark = loop.time() + self._interval
        if self._deadline is not None and now >= self._deadline:
            self._ended = True

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self, refusal: StatusError | None = None) -> None:
        """Close the watch from the server's side, with a last line where there is something to say."""
        if refusal is not None:
            self._ready.append(_line(ERROR, refusal.status))
        self._ended = True
        self._wake()

    def finish(self) -> None:
        """Close the watch from the server's side after what has happened until now."""
        if not self._ended:
            self._read_on()
            self.end()

    def tear(self, failure: Exception) -> None:
        """Break the connection: what was not read is lost, and the reader gets `failure`."""
        self._ready.clear()
        self._failure = failure
        self._wake()

    def close(self) -> None:
        """The reader is gone."""
        self._ended = True
        self._unsubscribe()
        self._on_close(self)


def _stamped(obj: Json, version: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
