"""Objects that many requests change at once: shared writes, several processes, lost answers."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from kruise.admission.bookkeeping import MOST, TRIES, BookingError, Bookkeeper
from kruise.admission.decisions import Booking, NeedsBooking
from kruise.api.native.config import CONFIG_MAPS
from kruise.machinery import plan as plans
from kruise.machinery.clock import ManualClock
from kruise.machinery.plan import Action, Outcome, Result, Target

BOOK = Target(CONFIG_MAPS, "shop", "book")
Book = tuple[int, tuple[str, ...]]
"""A version, and who has a place."""
PLACES = 5


class Server:
    """Keeps one object, and compares versions."""

    def __init__(self) -> None:
        self.book: Book = (1, ())
        self.writes = 0
        self.conflicts = 0
        self.loses_answers = 0
        self.refuses = ""

    async def write(self, action: Action) -> Outcome:
        await asyncio.sleep(0)
        self.writes += 1
        if self.refuses:
            return Outcome(action=action, result=Result.FAILED, error=self.refuses)
        version, names = action.body
        if version != self.book[0]:
            self.conflicts += 1
            return Outcome(action=action, result=Result.MOVED)
        self.book = (version + 1, names)
        if self.loses_answers:
            self.loses_answers -= 1
            return Outcome(action=action, result=Result.UNKNOWN)
        return Outcome(action=action, result=Result.DONE, object=self.book)

    async def read(self, target: Target) -> Book:
        await asyncio.sleep(0)
        return self.book

    def keeper(self) -> Bookkeeper:
        return Bookkeeper(ManualClock(), newest=lambda target: self.book, read=self.read, write=self.write)


def wants(name: str) -> NeedsBooking:
    def book(found: Book, now: datetime) -> Booking:
        version, names = found
        if name in names:
            return Booking(found, True)
        if len(names) >= PLACES:
            return Booking(found, False)
        return Booking((version, (*names, name)), True)

    def write(before: Book, after: Book) -> Action:
        return plans.patch(BOOK, (before[0], after[1]), uid="u", reason="")

    return NeedsBooking(target=BOOK, book=book, write=write)


def together(*keepers: Bookkeeper, requests: int) -> list[Any]:
    async def main() -> list[Any]:
        asked = [keepers[number % len(keepers)].book(wants(f"pod-{number}")) for number in range(requests)]
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(main())


def test_requests_of_one_moment_share_a_write() -> None:  # WS-23, WS-27
    server = Server()
    answers = together(server.keeper(), requests=MOST)
    assert answers.count(True) == PLACES
    assert len(server.book[1]) == PLACES
    assert server.writes <= 2


def test_several_processes_never_give_away_more_than_there_is() -> None:
    for number in (2, 3, 5):
        server = Server()
        answers = together(*(server.keeper() for _ in range(number)), requests=200)
        assert [answer for answer in answers if isinstance(answer, Exception)] == []
        assert answers.count(True) == PLACES == len(server.book[1])


def test_nobody_is_refused_by_an_old_copy() -> None:
    """What is true only of the newest object is asked again: once for all who wait."""
    server = Server()
    full = (0, ("a", "b", "c", "d", "e"))
    reads: list[Target] = []

    async def read(target: Target) -> Book:
        reads.append(target)
        return await server.read(target)

    keeper = Bookkeeper(ManualClock(), newest=lambda target: full, read=read, write=server.write)
    needs = [dataclasses.replace(wants(name), book=_unsure(wants(name))) for name in ("x", "y", "z")]

    async def main() -> list[Any]:
        tried = await keeper.tried(needs[0])
        return [tried, *await asyncio.gather(*(keeper.book(one) for one in needs))]

    assert asyncio.run(main()) == [True] * 4
    assert len(reads) == 2
    assert server.book[1] == ("x", "y", "z")


def _unsure(needs: NeedsBooking) -> Callable[[Any, datetime], Booking]:
    def book(found: Book, now: datetime) -> Booking:
        said = needs.book(found, now)
        return dataclasses.replace(said, is_sure=bool(said.result))

    return book


def test_a_write_whose_answer_was_lost_is_found() -> None:
    server = Server()
    server.loses_answers = 2
    answers = together(server.keeper(), requests=3)
    assert answers == [True] * 3
    assert server.book[1] == ("pod-0", "pod-1", "pod-2")


def test_refusals_are_told_to_all_who_wait_and_to_nobody_after() -> None:
    server = Server()
    server.refuses = "not today"
    keeper = server.keeper()

    async def main() -> None:
        answers = await asyncio.gather(*(keeper.book(wants(str(n))) for n in range(3)), return_exceptions=True)
        assert all(isinstance(answer, BookingError) and "not today" in str(answer) for answer in answers)
        server.refuses = ""
        assert await keeper.book(wants("later")) is True

    asyncio.run(main())


def test_it_gives_up_where_others_are_always_faster() -> None:
    server = Server()

    async def outrun(target: Target) -> Book:
        found = server.book
        server.book = (found[0] + 1, found[1])
        return found

    keeper = Bookkeeper(ManualClock(), newest=lambda target: (0, ()), read=outrun, write=server.write)
    with pytest.raises(BookingError, match=f"faster {TRIES} times"):
        asyncio.run(keeper.book(wants("pod")))


def test_those_who_gave_up_take_no_place() -> None:
    server = Server()
    keeper = server.keeper()

    async def main() -> None:
        first = asyncio.create_task(keeper.book(wants("first")))
        second = asyncio.create_task(keeper.book(wants("second")))
        await asyncio.sleep(0)
        second.cancel()
        assert await first is True
        await asyncio.sleep(0)

    asyncio.run(main())
    assert server.book[1] == ("first",)


def test_who_comes_after_a_write_that_took_its_time_is_gathered() -> None:
    server = Server()
    clock = ManualClock()
    quick = server.write

    async def slow(action: Action) -> Outcome:
        clock.advance(1)
        return await quick(action)

    async def main() -> None:
        keeper = Bookkeeper(clock, newest=lambda target: server.book, read=server.read, write=slow)
        await keeper.book(wants("first"))
        assert server.writes == 1, "one who comes alone does not wait"
        asked = []
        for number in range(3):
            asked.append(asyncio.ensure_future(keeper.book(wants(f"pod-{number}"))))
            await asyncio.sleep(0)  # one by one
        assert await asyncio.gather(*asked) == [True, True, True]
        assert server.writes == 2

    asyncio.run(main())
