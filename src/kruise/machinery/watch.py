"""Keeps one store in step with the API server: lists, watches, and begins anew when that is needed.

The states are in `kruise.machinery.watch_states`; here is only what they ask for: the requests, the pauses, the log.
A watch goes on from the store's watermark, so a torn connection loses nothing. No list is asked with
`resourceVersion=0`, which may answer from a cache of any age.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from kruise.api.meta import Key, Object
from kruise.api.resource import Resource
from kruise.machinery.client.answers import ListPage, WatchEvent
from kruise.machinery.client.errors import BadAnswerError
from kruise.machinery.clock import Clock
from kruise.machinery.store import Store, parse_version
from kruise.machinery.watch_states import (
    DEFAULT_BACKOFF,
    Backoff,
    Cause,
    Ending,
    LateEventError,
    State,
    Task,
    advance,
    ending_of,
    opened,
)

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

PAGE_SIZE = 500
LIST_TIMEOUT = 60.0
"""For one page."""
WATCH_SECONDS = (300, 600)
"""A watch asks the server to end it after a time between these, so that watches spread over the servers of a cluster
and do not all come back at once."""
OPEN_TIMEOUT = 30.0
"""For the server to accept a watch; it does so before there is anything to send."""
WATCH_GRACE = 15.0
"""A watch that outlives its time by so much hangs on a dead connection."""
EVENTS_IN_A_ROW = 64
"""A burst that is already in the buffer would otherwise keep every other task from running. Each costs the stores and
controllers some 0.2 ms, and a review that comes meanwhile waits for all of them."""


class WatchClient(Protocol):
    """What a watch needs of the client."""

    async def list_page(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
        timeout: float | None = None,
    ) -> ListPage[T]: ...

    def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        timeout_seconds: int | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent[T]]]: ...


class WatchObserver(Protocol):
    """Where metrics come in. Nothing is called per event."""

    def task_ended(self, resource: Resource[Any], task: Task, cause: Cause, seconds: float) -> None:
        """A list or a watch is over. A list that worked has the cause `listed`; every other one leads to a restart."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """The part of a kind that is watched."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYWHERE = Scope()


class Watcher(Generic[T]):
    """One watch. `run` goes on until it is cancelled and survives everything else."""

    def __init__(
        self,
        client: WatchClient,
        store: Store[T],
        *,
        clock: Clock,
        random: Random,
        scope: Scope = EVERYWHERE,
        backoff: Backoff = DEFAULT_BACKOFF,
        page_size: int = PAGE_SIZE,
        observer: WatchObserver | None = None,
    ) -> None:
        self.store = store
        self.scope = scope
        self.resource = store.resource
        self.synced = asyncio.Event()
        self._client = client
        self._clock = clock
        self._random = random
        self._backoff = backoff
        self._page_size = page_size
        self._observer = observer
        self._state = State()
        self._waiting: list[asyncio.Future[None]] = []
        """Those who asked for a list that has not begun yet."""
        self._asked = asyncio.Event()
        self._deadline: asyncio.Timeout | None = None

    @property
    def state(self) -> State:
        return self._state

    @property
    def waiting_for(self) -> str:
        """Why the store cannot be relied on, for people; empty while it can."""
        state = self._state
        if state.history_lost:
            return f"{state.trouble}; restart this process to accept what the server holds now"
        if state.missing or not self.store.synced:
            return state.trouble or "the first list is not finished"
        return ""

    async def run(self) -> None:
        while True:
            state = self._state
            asked = await self._pause(state.delay)
            begun = self._clock.monotonic()
            if state.task is Task.LIST:
                ending = await self._list(whole=state.whole_list)
            elif asked:
                ending = Ending(Cause.ASKED)
            else:
                ending = await self._watch()
            # The watch may have changed the state when it was opened.
            self._state = advance(self._state, ending, jitter=self._random.random(), backoff=self._backoff)
            self._report(state, ending, self._clock.monotonic() - begun)

    async def relist(self) -> None:
        """Wait for a list that began after this call. A kind that is not installed counts as listed: it has no
        objects."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._asked.set()
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time())
        await future

    async def _pause(self, delay: float) -> bool:
        """Wait, unless a fresh list is asked for: the answer says so."""
        if delay > 0 and not self._asked.is_set():
            try:
                async with asyncio.timeout(delay):
                    await self._asked.wait()
            except TimeoutError:
                return False
        return self._asked.is_set()

    async def _list(self, *, whole: bool) -> Ending:
        covered, self._waiting = self._waiting, []
        self._asked.clear()
        settled = False
        try:
            await self._list_pages(0 if whole else self._page_size)
            settled = True
            return Ending(Cause.LISTED)
        except Exception as error:
            ending = ending_of(error, self.resource)
            settled = ending.cause is Cause.MISSING
            if ending.cause is Cause.FAULT:
                log.exception("list failed by a fault of ours", extra={"resource": str(self.resource)})
            return ending
        finally:
            if settled:
                for future in covered:
                    if not future.done():
                        future.set_result(None)
            else:
                self._waiting[:0] = covered

    async def _list_pages(self, limit: int) -> None:
        items: list[T] = []
        version = 0
        token = ""
        while True:
            page = await self._client.list_page(
                self.resource,
                self.scope.namespace,
                labels=self.scope.labels,
                fields=self.scope.fields,
                limit=limit,
                continue_token=token,
                timeout=LIST_TIMEOUT,
            )
            items.extend(self.store.prepare(page.items))
            # All pages show the first one's version. Should a server disagree, the first is the safe one to watch from.
            version = version or parse_version(page.resource_version, f"the list of {self.resource}")
            if version < 1:
                # Watching from 0 would mean "from anywhere".
                raise BadAnswerError(f"the list has resourceVersion {page.resource_version!r}, which is no version")
            token = page.continue_token
            if not token:
                break
        self.store.replace(items, version, prepared=True)
        self.synced.set()

    async def _watch(self) -> Ending:
        begun = self._clock.monotonic()
        seconds = self._random.randint(*WATCH_SECONDS)
        watermark = self.store.watermark
        try:
            async with asyncio.timeout(OPEN_TIMEOUT) as self._deadline:
                await self._consume(seconds, self._deadline)
        except Exception as error:
            expired = self._deadline is not None and self._deadline.expired()
            lived = self._clock.monotonic() - begun
            delivered = self.store.watermark > watermark
            if isinstance(error, TimeoutError) and expired:
                if self._asked.is_set():
                    return Ending(Cause.ASKED, lived=lived, delivered=delivered)
                message = f"the watch of {self.resource} was not accepted or did not end in time: a dead connection"
                return Ending(Cause.TORN, message, lived, delivered)
            ending = ending_of(error, self.resource, lived=lived, delivered=delivered)
            if ending.cause is Cause.FAULT:
                log.exception("watch failed by a fault of ours", extra={"resource": str(self.resource)})
            return ending
        finally:
            self._deadline = None
        return Ending(Cause.ENDED, lived=self._clock.monotonic() - begun, delivered=self.store.watermark > watermark)

    async def _consume(self, seconds: int, deadline: asyncio.Timeout) -> None:
        store = self.store
        count = 0
        async with self._client.watch(
            self.resource,
            self.scope.namespace,
            resource_version=str(store.watermark),
            labels=self.scope.labels,
            fields=self.scope.fields,
            timeout_seconds=seconds,
        ) as events:
            self._state = opened(self._state)
            if not self._asked.is_set():  # or else the deadline is the moment of the asking
                deadline.reschedule(asyncio.get_running_loop().time() + seconds + WATCH_GRACE)
            async for event in events:
                obj = event.object
                if event.type == "BOOKMARK":
                    store.bookmark(parse_version(obj.metadata.resource_version, f"a bookmark of {self.resource}"))
                elif not store.event(event.type, obj):
                    key = Key(obj.metadata.namespace, obj.metadata.name)
                    raise LateEventError(
                        f"{event.type} of {self.resource} {key} has version {obj.metadata.resource_version}, "
                        f"but version {store.watermark} was delivered before"
                    )
                count += 1
                if not count % EVENTS_IN_A_ROW:
                    await asyncio.sleep(0)

    def _report(self, before: State, ending: Ending, seconds: float) -> None:
        after = self._state
        if self._observer is not None and ending.cause is not Cause.ASKED:
            self._observer.task_ended(self.resource, before.task, ending.cause, seconds)
        facts = {"resource": str(self.resource), "task": str(before.task), "cause": str(ending.cause)}
        if ending.cause is Cause.LISTED:
            log.info("listed", extra={**facts, "objects": len(self.store), "version": self.store.watermark})
        elif after.history_lost and not before.history_lost:
            log.error(
                "the server's history went back: this process must be restarted",
                extra={**facts, "error": ending.message},
            )
        elif ending.cause is Cause.MISSING:
            # A kind may come later, or never. That is worth one line, and readiness goes on saying it.
            level = logging.DEBUG if before.missing else logging.INFO
            log.log(level, "kind is not installed: waiting for it", extra={**facts, "error": ending.message})
        elif not ending.message or (ending.cause is Cause.EXPIRED and after.failures == 1):
            log.debug("watch restarts", extra=facts)
        elif after.failures & (after.failures - 1) == 0:
            # The 1st, 2nd, 4th, 8th failure in a row: a long trouble stays visible without filling the log.
            log.warning(
                "watch interrupted",
                extra={**facts, "error": ending.message, "failures": after.failures, "retry_in": round(after.delay, 2)},
            )
