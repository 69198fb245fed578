"""Adaptive concurrency of writes, on virtual time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery.clock import ManualClock, VirtualClock, run_virtual
from kruise.machinery.guards import Load
from kruise.machinery.limiter import TokenBucket, WriteLimiter
from kruise.machinery.plan import Urgency


def clock() -> VirtualClock:
    return VirtualClock(asyncio.get_running_loop())


async def drive(limiter: WriteLimiter, writes: int, latency: float, load: Load = Load.FINE) -> None:
    async def write() -> None:
        began = await limiter.acquire()
        await asyncio.sleep(latency)
        limiter.release(began, load)

    await asyncio.gather(*(write() for _ in range(writes)))


def test_slow_start_passes_forty_after_three_round_trips() -> None:
    """So that the start costs no throughput that one could measure."""

    async def main() -> None:
        limiter = WriteLimiter(clock=clock())
        task = asyncio.create_task(drive(limiter, 1000, 0.01))
        await asyncio.sleep(0.005)
        seen = []
        for _ in range(4):
            seen.append(limiter.in_flight)
            await asyncio.sleep(0.01)
        assert seen == [8, 16, 32, 64]
        await task
        assert limiter.limit == 64
        assert limiter.in_flight == 0

    run_virtual(main())


def test_an_unused_limit_does_not_grow() -> None:
    async def main() -> None:
        limiter = WriteLimiter(clock=clock())
        for _ in range(100):
            await drive(limiter, 2, 0.01)
        assert limiter.limit == 8

    run_virtual(main())


def test_overload_halves_once_per_round_trip_and_growth_is_slow_after_it() -> None:
    async def main() -> None:
        limiter = WriteLimiter(clock=clock(), initial=32)
        await drive(limiter, 32, 0.01, Load.OVERLOADED)
        assert limiter.limit == 16
        await drive(limiter, 80, 0.01)
        assert 17 <= limiter.limit <= 21
        for _ in range(10):
            await drive(limiter, limiter.limit, 0.01, Load.OVERLOADED)
        assert limiter.limit == 1
        await drive(limiter, 40, 0.01)
        assert limiter.limit > 1

    run_virtual(main())


def test_rising_latency_shrinks_the_limit_but_not_below_its_start() -> None:
    async def main() -> None:
        limiter = WriteLimiter(clock=clock(), initial=8)
        await drive(limiter, 500, 0.01)
        assert limiter.limit == 64
        await drive(limiter, 200, 2.0)
        assert 8 <= limiter.limit < 64
        await drive(limiter, 400, 2.0)
        assert limiter.limit >= 8

    run_virtual(main())


def test_a_slow_webhook_that_delays_every_write_does_not_choke_us() -> None:
    async def main() -> None:
        limiter = WriteLimiter(clock=clock())
        await drive(limiter, 500, 2.0)
        assert limiter.limit == 64

    run_virtual(main())


def test_the_cap_spaces_writes_where_it_is_given() -> None:
    """`--rest-config-qps` and `--rest-config-burst` cap only if given."""

    async def main() -> float:
        time = clock()
        limiter = WriteLimiter(clock=time, bucket=TokenBucket(rate=10, burst=5, clock=time))
        await drive(limiter, 25, 0.0)
        return time.monotonic()

    assert run_virtual(main()) == pytest.approx(2.0)


def test_a_cancelled_waiter_gives_its_turn_away() -> None:
    async def main() -> None:
        limiter = WriteLimiter(clock=clock(), initial=1, maximum=1)
        began = await limiter.acquire()
        waiters = [asyncio.create_task(limiter.acquire()) for _ in range(3)]
        await asyncio.sleep(0)
        waiters[1].cancel()
        limiter.release(began, Load.FINE)
        waiters[0].cancel()  # its turn had come already
        began = await waiters[2]
        assert limiter.in_flight == 1
        limiter.release(began, Load.FINE)
        assert limiter.in_flight == 0

    run_virtual(main())


def test_who_waits_too_long_gives_up_and_takes_no_slot() -> None:
    async def main() -> None:
        limiter = WriteLimiter(clock=clock(), initial=1, maximum=1)
        began = await limiter.acquire()
        assert began is not None
        in_vain = asyncio.create_task(limiter.acquire(until=began + 0.5))
        patient = asyncio.create_task(limiter.acquire(until=began + 2))
        await asyncio.sleep(1)
        assert in_vain.done()
        assert in_vain.result() is None
        limiter.release(began, Load.FINE)
        turn = await patient
        assert turn == began + 1
        limiter.release(turn, Load.FINE)
        assert limiter.in_flight == 0
        assert await limiter.acquire(until=began) is not None, "a free slot is there at once"

    run_virtual(main())


def order_of(*waiting: tuple[str, Urgency]) -> list[str]:
    """In which order these get the only slot."""

    async def main() -> list[str]:
        limiter = WriteLimiter(clock=clock(), initial=1, maximum=1)
        began = await limiter.acquire()
        assert began is not None
        order: list[str] = []

        async def write(name: str, urgency: Urgency) -> None:
            turn = await limiter.acquire(urgency=urgency)
            assert turn is not None
            order.append(name)
            limiter.release(turn, Load.FINE)

        async with asyncio.TaskGroup() as group:
            for name, urgency in waiting:
                group.create_task(write(name, urgency))
                await asyncio.sleep(0)
            limiter.release(began, Load.FINE)
        return order

    return run_virtual(main())


def test_what_was_begun_goes_ahead_of_what_is_to_begin() -> None:
    waiting = [("first", Urgency.USUAL), ("second", Urgency.SOON), ("next of a chain", Urgency.NOW)]
    assert order_of(*waiting) == ["next of a chain", "second", "first"]


def test_whoever_can_wait_does_not_starve() -> None:
    """Thousands of pods to be made stand behind those that are there, and yet get on."""
    waiting = [(f"make {number}", Urgency.LATER) for number in range(3)]
    waiting += [(f"soon {number}", Urgency.SOON) for number in range(15)]
    order = order_of(*waiting)
    assert [order.index(f"make {number}") for number in range(3)] == [7, 15, 17]
    assert [name for name in order if name.startswith("soon")] == [f"soon {number}" for number in range(15)]


def test_every_line_gets_its_share() -> None:
    waiting = [(urgency.name, urgency) for urgency in Urgency for _ in range(80)]
    first = order_of(*waiting)[:80]
    assert {urgency.name: first.count(urgency.name) for urgency in Urgency} == {
        "NOW": 32,
        "SOON": 19,
        "USUAL": 19,
        "LATER": 10,
    }


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="minimum"):
        WriteLimiter(clock=ManualClock(), initial=100, maximum=10)
    with pytest.raises(ValueError, match="rate above 0"):
        TokenBucket(rate=0, burst=1, clock=ManualClock())


@settings(max_examples=100, deadline=None)
@given(
    answers=st.lists(st.tuples(st.floats(0, 3), st.sampled_from(Load), st.booleans()), max_size=60),
    maximum=st.integers(2, 20),
)
def test_never_more_in_flight_than_the_maximum_and_no_slot_is_lost(
    answers: list[tuple[float, Load, bool]], maximum: int
) -> None:
    async def main() -> None:
        limiter = WriteLimiter(clock=clock(), initial=2, maximum=maximum)

        async def write(latency: float, load: Load) -> None:
            began = await limiter.acquire()
            try:
                assert limiter.in_flight <= maximum
                await asyncio.sleep(latency)
            finally:
                limiter.release(began, load)

        tasks = [asyncio.create_task(write(latency, load)) for latency, load, _ in answers]
        await asyncio.sleep(0.5)
        for task, (_, _, cancel) in zip(tasks, answers, strict=True):
            if cancel:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.in_flight == 0
        assert 1 <= limiter.limit <= maximum
        await asyncio.wait_for(limiter.acquire(), 1)

    run_virtual(main())
