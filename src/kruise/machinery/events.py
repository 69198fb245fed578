"""Events, as client-go's recorder writes them: repeated ones counted, similar ones combined, floods cut off.

`EventCorrelator` is the pure part: it turns what controllers say into what is written. `EventRecorder` queues notes
without ever blocking a reconcile and writes them in the background; an event that cannot be written is dropped and
counted, because events are hints and must never hold up the work they tell of.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from kruise.api.native.events import EVENTS, ObjectReference
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import AlreadyExistsError, ClientError, ForbiddenError, NotFoundError
from kruise.machinery.clock import Clock
from kruise.machinery.codec import evolve
from kruise.machinery.times import format_time
from kruise.machinery.wording import shortened

log = logging.getLogger(__name__)

_NAMESPACE_GOES = "NamespaceTerminating"

MAX_REMEMBERED = 4096
REMEMBERED_FOR = timedelta(minutes=20)
"""What an object has not said for so long, it says for the first time again: objects come and go under new names, and
what was said of those that went would fill the memory. Tries are further apart only where `--rate-limiter-max-delay`
was set so; each of those makes an event of its own."""
SIMILAR_LIMIT = 10
SIMILAR_WINDOW = timedelta(minutes=10)
BURST = 25
REFILL_SECONDS = 300.0
COMBINED_PREFIX = "(combined from similar events): "
MAX_MESSAGE = 1024
"""The API server refuses longer ones."""


class _Passing(Protocol):
    @property
    def until(self) -> datetime:
        """After that a new one says the same."""


K = TypeVar("K")
V = TypeVar("V", bound=_Passing)


class _Recent(OrderedDict[K, V]):
    """Remembers the most recently used entries, for as long as they say something."""

    def use(self, key: K, now: datetime, make: Callable[[], V]) -> V:
        while self and next(iter(self.values())).until < now:
            self.popitem(last=False)
        try:
            self.move_to_end(key)
            return self[key]
        except KeyError:
            value = self[key] = make()
            if len(self) > MAX_REMEMBERED:
                self.popitem(last=False)
            return value


@dataclasses.dataclass(slots=True)
class _Similar:
    messages: set[str]
    last: datetime

    @property
    def until(self) -> datetime:
        return self.last + REMEMBERED_FOR


@dataclasses.dataclass(slots=True)
class _Bucket:
    tokens: float
    last: datetime

    @property
    def until(self) -> datetime:
        """When it is full. Whoever empties one and pauses would get another one, were it forgotten before."""
        return self.last + timedelta(seconds=(BURST - self.tokens) * REFILL_SECONDS)


@dataclasses.dataclass(slots=True)
class _Written:
    name: str
    count: int
    first: datetime
    last: datetime

    @property
    def until(self) -> datetime:
        return self.last + REMEMBERED_FOR


@dataclasses.dataclass(frozen=True, slots=True)
class EventWrite:
    """An event to create (`count` 1) or to count up."""

    namespace: str
    name: str
    count: int
    body: dict[str, Any]


class EventCorrelator:
    """Decides what becomes of a note. All memory is bounded."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._newest = 0
        self._buckets: _Recent[tuple[ObjectReference, str], _Bucket] = _Recent()
        self._similar: _Recent[tuple[ObjectReference, str, str], _Similar] = _Recent()
        self._written: _Recent[tuple[ObjectReference, str, str, str], _Written] = _Recent()

    def correlate(
        self, regarding: ObjectReference, kind: str, reason: str, message: str, now: datetime, host: str = ""
    ) -> EventWrite | None:
        """What to write, or None where this object has said too much lately. `host`: the node that speaks."""
        message = shortened(message, MAX_MESSAGE)
        subject = evolve(regarding, resource_version="")
        identity, message = self._combine(subject, kind, reason, message, now)
        written = self._written.use(
            (subject, kind, reason, identity), now, lambda: _Written(self._new_name(regarding.name, now), 0, now, now)
        )
        written.count += 1
        written.last = now
        if not self._spend((subject, reason), now):
            return None
        namespace = regarding.namespace or "default"
        body = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": written.name, "namespace": namespace},
            "involvedObject": _reference(regarding),
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": self._component, "host": host} if host else {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": host,
            "firstTimestamp": format_time(written.first),
            "lastTimestamp": format_time(now),
            "count": written.count,
        }
        return EventWrite(namespace, written.name, written.count, body)

    def _new_name(self, subject: str, now: datetime) -> str:
        """Object name and nanoseconds, as client-go names events; never the same twice, however fast events come."""
        self._newest = max(self._newest + 1, int(now.timestamp() * 1_000_000) * 1000)
        return f"{subject}.{self._newest:x}"

    def _combine(
        self, subject: ObjectReference, kind: str, reason: str, message: str, now: datetime
    ) -> tuple[str, str]:
        """Past ten different messages of one reason in ten minutes, further ones share an event."""
        similar = self._similar.use((subject, kind, reason), now, lambda: _Similar(set(), now))
        if now - similar.last > SIMILAR_WINDOW:
            similar.messages.clear()
        similar.last = now
        similar.messages.add(message)
        if len(similar.messages) < SIMILAR_LIMIT:
            return message, message
        while len(similar.messages) > SIMILAR_LIMIT:  # the number counts, not which ones
            similar.messages.pop()
        return COMBINED_PREFIX, COMBINED_PREFIX + message

    def _spend(self, about: tuple[ObjectReference, str], now: datetime) -> bool:
        """By object and reason: what one reason says again and again must not drown the others."""
        bucket = self._buckets.use(about, now, lambda: _Bucket(BURST, now))
        refill = max(0.0, (now - bucket.last).total_seconds()) / REFILL_SECONDS
        bucket.tokens = min(BURST, bucket.tokens + refill)
        bucket.last = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


class EventRecorder:
    """Takes notes at once and writes them when it can. `run` must be running for anything to be written."""

    def __init__(self, client: Client, *, component: str, clock: Clock, capacity: int = 1000, writers: int = 2) -> None:
        self._client = client
        self._clock = clock
        self._correlator = EventCorrelator(component)
        self._queue: asyncio.Queue[EventWrite] = asyncio.Queue(capacity)
        self._writers = writers
        self.dropped = 0

    def record(self, regarding: ObjectReference, kind: str, reason: str, message: str, *, host: str = "") -> None:
        write = self._correlator.correlate(regarding, kind, reason, message, self._clock.now(), host)
        if write is None:
            self.dropped += 1
            return
        try:
            self._queue.put_nowait(write)
        except asyncio.QueueFull:
            self.dropped += 1
            log.warning("event dropped: too many are waiting", extra={"reason": reason, "object": regarding.name})

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._writers):
                tasks.create_task(self._write_all(), name="event-writer")

    async def flush(self) -> None:
        """Wait until everything that was recorded so far is written or dropped."""
        await self._queue.join()

    async def _write_all(self) -> None:
        while True:
            write = await self._queue.get()
            try:
                await self._write(write)
            except ClientError as error:
                # A namespace that is being deleted takes no new events: nobody will miss them.
                if _namespace_goes(error):
                    log.debug("event refused", extra={"error": str(error), "event": write.name})
                else:
                    self.dropped += 1
                    log.warning("event not written", extra={"error": str(error), "event": write.name})
            finally:
                self._queue.task_done()

    async def _write(self, write: EventWrite) -> None:
        if write.count > 1:
            try:
                await self._count_up(write)
                return
            except NotFoundError:
                pass  # it has outlived its time in the server: write it anew, with its count
        try:
            await self._client.create(EVENTS, write.body, write.namespace)
        except AlreadyExistsError:
            # Another writer was quicker with the same event: a higher count is all there is to add.
            if write.count > 1:
                await self._count_up(write)

    async def _count_up(self, write: EventWrite) -> None:
        changed = {key: write.body[key] for key in ("message", "lastTimestamp", "count")}
        await self._client.patch(EVENTS, write.name, changed, write.namespace)


def _namespace_goes(error: ClientError) -> bool:
    return isinstance(error, ForbiddenError) and any(cause.reason == _NAMESPACE_GOES for cause in error.causes)


def _reference(regarding: ObjectReference) -> dict[str, str]:
    fields = {
        "apiVersion": regarding.api_version,
        "kind": regarding.kind,
        "namespace": regarding.namespace,
        "name": regarding.name,
        "uid": regarding.uid,
        "resourceVersion": regarding.resource_version,
        "fieldPath": regarding.field_path,
    }
    return {key: value for key, value in fields.items() if value}
