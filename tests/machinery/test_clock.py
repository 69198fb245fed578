"""Virtual time: an hour passes at once, in order, and a deadlock is an error instead of a hang."""

from __future__ import annotations

import asyncio

import pytest

from kruise.machinery.clock import VIRTUAL_EPOCH, DeadlockError, ManualClock, RealClock, VirtualClock, run_virtual


def test_sleeping_takes_no_time_and_keeps_the_order() -> None:
    async def main() -> list[tuple[str, float]]:
        clock = VirtualClock(asyncio.get_running_loop())
        seen: list[tuple[str, float]] = []

        async def after(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append((name, (clock.now() - VIRTUAL_EPOCH).total_seconds()))

        await asyncio.gather(after("late", 3600), after("early", 60), after("middle", 600.5))
        return seen

    assert run_virtual(main()) == [("early", 60.0), ("middle", 600.5), ("late", 3600.0)]


def test_a_time_out_fires_at_its_moment() -> None:
    async def main() -> float:
        clock = VirtualClock(asyncio.get_running_loop())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.Event().wait()
        return clock.monotonic()

    assert run_virtual(main()) == pytest.approx(90)


def test_waiting_for_nothing_is_an_error() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match="nothing can ever happen"):
        run_virtual(main())


def test_wall_time_may_jump_while_monotonic_time_does_not() -> None:
    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        clock.shift(-3600)
        assert (clock.now() - VIRTUAL_EPOCH).total_seconds() == -3600
        assert clock.monotonic() == 0

    run_virtual(main())


def test_a_manual_clock_stands_still_until_moved() -> None:
    clock = ManualClock()
    clock.advance(1.5)
    assert (clock.now() - VIRTUAL_EPOCH).total_seconds() == 1.5
    assert clock.monotonic() == 1.5


def test_the_real_clock_speaks_utc_and_never_goes_back() -> None:
    clock = RealClock()
    assert clock.now().utcoffset() is not None
    assert clock.monotonic() <= clock.monotonic()
