"""Objects that many requests change at once: those that wait at the same time share one write.

A write of its own for each of a hundred requests would let one of them succeed and ninety-nine look again. Here they
queue up by object. Whoever works on the queue takes all that wait, lets each change what the one before has left, and
writes the result once, guarded by the version that it began with. Where another process was faster, the object is read
and all are asked again. Nothing is held while nobody works: a process that dies leaves no lock behind.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from kruise.admission.decisions import NeedsBooking
from kruise.machinery.clock import Clock
from kruise.machinery.plan import Action, Outcome, Result, Target

TRIES = 8
"""How often another process may be faster before all are refused."""
MOST = 200
"""Requests that share a write: a batch must not keep others waiting for long."""

LONGEST_PAUSE = 0.02
"""Seconds after a write in which others are gathered: as many as the write took, so that an object is not written all
the time while hundreds of requests come one by one."""


class BookingError(Exception):
    """The object could not be written; the text says why."""


@dataclasses.dataclass(slots=True)
class _Request:
    needs: NeedsBooking
    answer: asyncio.Future[Any]


class Bookkeeper:
    """`newest` has the object as it is known without a request, `read` asks the API server, `write` carries out."""

    def __init__(
        self,
        clock: Clock,
        *,
        newest: Callable[[Target], Any],
        read: Callable[[Target], Awaitable[Any]],
        write: Callable[[Action], Awaitable[Outcome]],
    ) -> None:
        self._clock = clock
        self._newest = newest
        self._read = read
        self._write = write
        self._waiting: dict[Target, deque[_Request]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def book(self, needs: NeedsBooking) -> Any:
        """The result. Raises BookingError."""
        request = _Request(needs, asyncio.get_running_loop().create_future())
        queue = self._waiting.get(needs.target)
        if queue is not None:
            queue.append(request)
        else:
            self._waiting[needs.target] = deque((request,))
            task = asyncio.create_task(self._work(needs.target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await request.answer

    async def tried(self, needs: NeedsBooking) -> Any:
        """What the result would be now. Nothing is written: for dry runs."""
        booking = needs.book(self._newest(needs.target), self._clock.now())
        if not booking.is_sure:
            booking = needs.book(await self._read(needs.target), self._clock.now())
        return booking.result

    async def _work(self, target: Target) -> None:
        queue = self._waiting[target]
        try:
            while queue:
                batch = [queue.popleft() for _ in range(min(MOST, len(queue)))]
                began = self._clock.monotonic()
                await self._serve(target, [request for request in batch if not request.answer.done()])
                # Those who come now share the next write. One who comes alone has not waited.
                await asyncio.sleep(min(self._clock.monotonic() - began, LONGEST_PAUSE))
        finally:
            del self._waiting[target]

    async def _serve(self, target: Target, batch: list[_Request]) -> None:
        if not batch:
            return
        try:
            results = await self._together(target, batch)
        except Exception as error:  # noqa: BLE001 - each of those who wait is told
            for request in batch:
                if not request.answer.done():
                    request.answer.set_exception(BookingError(f"{target}: {error}"))
            return
        for request, result in zip(batch, results, strict=True):
            if not request.answer.done():
                request.answer.set_result(result)

    async def _together(self, target: Target, batch: list[_Request]) -> list[Any]:
        before, was_read = self._newest(target), False
        for _ in range(TRIES):
            now, after, results, is_sure = self._clock.now(), before, [], True
            for request in batch:
                booking = request.needs.book(after, now)
                after = booking.object
                results.append(booking.result)
                is_sure &= booking.is_sure
            if after is before:
                if is_sure or was_read:
                    return results
            else:
                outcome = await self._write(batch[0].needs.write(before, after))
                if outcome.result is Result.DONE:
                    return results  # the version was right, so it was the newest
                if outcome.result is Result.FAILED:
                    raise BookingError(outcome.message)
            before, was_read = await self._read(target), True
        raise BookingError(f"other writers were faster {TRIES} times; try again")
