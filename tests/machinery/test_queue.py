"""The work queue on virtual time."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kruise.api.meta import Key
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.limiter import TokenBucket
from kruise.machinery.metrics import Metrics
from kruise.machinery.queue import Backoff, DelayedKey, Priority, Queue, QueueShutDown
from tests.support.examples import EXAMPLES

A, B, C = Key("ns", "a"), Key("ns", "b"), Key("ns", "c")


def make(**options: object) -> Queue:
    return Queue("test", clock=VirtualClock(asyncio.get_running_loop()), **options)  # type: ignore[arg-type]


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_burst_is_one_pass_and_starts_after_the_window() -> None:
    """The window opens with the first event and does not slide, so the wait is bounded."""

    async def main() -> None:
        queue = make(window=0.02)
        for _ in range(5):
            queue.add(A)
            await asyncio.sleep(0.003)
        assert await queue.get() == A
        assert now() == pytest.approx(0.02)
        queue.done(A)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 10)

    run_virtual(main())


def test_a_key_in_work_is_held_back_and_runs_again_after_done() -> None:
    async def main() -> None:
        queue = make(window=0.0)
        queue.add(A)
        assert await queue.get() == A
        queue.add(A)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 1)
        queue.done(A)
        assert await queue.get() == A

    run_virtual(main())


def test_fresh_work_goes_before_retries_and_retries_are_promoted_by_events() -> None:
    async def main() -> None:
        queue = make(window=0.0)
        queue.retry(A, "quota")
        queue.retry(B, "quota")
        await asyncio.sleep(0.1)
        queue.add(C)
        queue.add(B)
        assert [await queue.get() for _ in range(3)] == [C, B, A]

    run_virtual(main())


def test_an_event_in_the_window_lends_its_urgency_to_a_retry_that_is_due_earlier() -> None:
    async def main() -> None:
        queue = make(window=0.02)
        queue.retry(A, "quota")  # due in 5 ms, as a retry
        queue.add(A)  # due in 20 ms, fresh
        await asyncio.sleep(0.01)
        queue.add(B, after=0.0)
        assert [await queue.get() for _ in range(2)] == [A, B]

    run_virtual(main())


def test_a_retry_is_not_starved_for_ever() -> None:
    async def main() -> None:
        queue = make(window=0.0, patience=5.0)
        queue.retry(A, "quota")
        taken = []
        for step in range(20):
            queue.add(Key("ns", f"fresh-{step}"))
            queue.add(Key("ns", f"more-{step}"))
            await asyncio.sleep(1)
            taken.append(await queue.get())
        assert A in taken
        assert taken.index(A) >= 4

    run_virtual(main())


def test_backoff_doubles_up_to_the_maximum_and_forget_resets_it() -> None:
    """The delays of `--rate-limiter-base-delay` and `--rate-limiter-max-delay`."""

    async def main() -> None:
        queue = make()
        delays = [queue.retry(A, "x") for _ in range(20)]
        assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
        assert delays[-1] == 1000.0
        assert queue.retries(A) == 20
        queue.forget(A)
        assert queue.retry(A, "x") == 0.005
        assert Backoff().delay(100_000) == 1000.0

    run_virtual(main())


def test_the_overall_bucket_caps_retries_where_it_is_configured() -> None:
    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        queue = make(backoff=Backoff(overall=TokenBucket(rate=10, burst=2, clock=clock)))
        delays = [queue.retry(Key("ns", str(index)), "x") for index in range(4)]
        assert delays == pytest.approx([0.005, 0.005, 0.1, 0.2])

    run_virtual(main())


def test_waits_are_listed_with_their_reasons_and_a_pass_settles_them_all() -> None:
    async def main() -> None:
        queue = make()
        queue.add(A, after=30, reason="grace period of a-1")
        queue.add(A, after=10, reason="hook waits")
        queue.add(A, after=20, reason="hook waits")  # the earlier one stays
        queue.add(B, after=5, reason="image pull")
        assert queue.waiting() == [
            DelayedKey(B, 5.0, "image pull"),
            DelayedKey(A, 10.0, "hook waits"),
            DelayedKey(A, 30.0, "grace period of a-1"),
        ]
        assert await queue.get() == B
        assert await queue.get() == A
        assert now() == pytest.approx(10)
        queue.add(A, after=7, reason="new plan")
        queue.done(A)
        assert queue.waiting() == [DelayedKey(A, 7.0, "new plan")]

    run_virtual(main())


def test_an_earlier_add_moves_the_key_forward() -> None:  # IPU-143
    async def main() -> None:
        queue = make(window=0.02)
        queue.add(A, after=100, reason="later")
        queue.add(A)
        assert await queue.get() == A
        assert now() == pytest.approx(0.02)

    run_virtual(main())


def test_shutdown_ends_waiting_getters_and_ignores_adds() -> None:
    async def main() -> None:
        queue = make()
        getters = [asyncio.create_task(queue.get()) for _ in range(3)]
        await asyncio.sleep(1)
        queue.shut_down()
        assert all(isinstance(end, QueueShutDown) for end in await asyncio.gather(*getters, return_exceptions=True))
        queue.add(A)
        with pytest.raises(QueueShutDown):
            await queue.get()
        assert queue.waiting() == []

    run_virtual(main())


def test_done_without_get_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="not in work"):
            make().done(A)

    run_virtual(main())


def test_a_queue_may_be_filled_before_the_loop_runs() -> None:
    holder: list[Queue] = []

    class Zero:
        def now(self) -> None: ...

        def monotonic(self) -> float:
            try:
                return asyncio.get_running_loop().time()
            except RuntimeError:
                return 0.0

    queue = Queue("early", clock=Zero())  # type: ignore[arg-type]
    queue.add(A)
    holder.append(queue)

    async def main() -> Key:
        return await queue.get()

    assert run_virtual(main()) == A


def test_a_cancelled_getter_passes_its_key_on() -> None:
    async def main() -> None:
        queue = make(window=0.0)
        first = asyncio.create_task(queue.get())
        second = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add(A)
        first.cancel()
        assert await second == A
        assert first.cancelled() or first.done()

    run_virtual(main())


def test_metrics_tell_depth_adds_latency_retries_and_longest_running() -> None:
    async def main() -> None:
        metrics = Metrics(CollectorRegistry())
        queue = make(window=0.0, metrics=metrics.queue("q"))

        def value(name: str) -> float | None:
            return metrics.registry.get_sample_value(name, {"name": "q"})

        assert value("workqueue_retries_total") == 0
        queue.add(A)
        queue.add(B)
        queue.retry(C, "x")
        assert value("workqueue_depth") == 2
        assert value("workqueue_adds_total") == 3
        assert value("workqueue_retries_total") == 1
        await asyncio.sleep(2)
        await queue.get()
        await asyncio.sleep(1)
        await queue.get()
        await asyncio.sleep(1)
        assert value("workqueue_queue_duration_seconds_sum") == pytest.approx(5)
        assert value("workqueue_longest_running_processor_seconds") == pytest.approx(2)
        assert value("workqueue_unfinished_work_seconds") == pytest.approx(3)
        queue.done(A)
        assert value("workqueue_work_duration_seconds_sum") == pytest.approx(2)

    run_virtual(main())


KEYS = [A, B, C]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["event", "now", "later", "retry", "forget"]),
        st.sampled_from(KEYS),
        st.floats(0, 0.2),
    ),
    max_size=40,
)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(steps=STEPS, workers=st.integers(1, 4), work=st.floats(0, 0.1))
def test_no_key_runs_twice_at_once_and_nothing_is_lost(
    steps: list[tuple[str, Key, float]], workers: int, work: float
) -> None:
    """Whatever is added, a pass begins at or after its due time, and none is left out."""

    async def main() -> None:
        queue = make(window=0.01)
        in_work: set[Key] = set()
        began: dict[Key, list[float]] = defaultdict(list)
        owed: dict[Key, list[float]] = defaultdict(list)

        async def worker() -> None:
            while True:
                try:
                    key = await queue.get()
                except QueueShutDown:
                    return
                assert key not in in_work
                in_work.add(key)
                began[key].append(now())
                await asyncio.sleep(work)
                in_work.remove(key)
                queue.done(key)

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())
            for kind, key, pause in steps:
                await asyncio.sleep(pause / 4)
                owed[key].append(now())
                if kind == "event":
                    queue.add(key)
                elif kind == "now":
                    queue.add(key, after=0.0, priority=Priority.RETRY)
                elif kind == "later":
                    queue.add(key, after=pause, reason="later")
                elif kind == "retry":
                    queue.retry(key, "retry")
                else:
                    owed[key].pop()
                    queue.forget(key)
            await asyncio.sleep(2000)  # past the longest back-off
            assert queue.waiting() == []
            assert len(queue) == 0
            queue.shut_down()
        for key, moments in owed.items():
            # Each add is followed by a pass that began at or after it.
            assert all(any(begin >= moment for begin in began[key]) for moment in moments)
            assert len(began[key]) <= len(moments)

    run_virtual(main())


def test_a_key_of_its_own_pace_gathers_longer_and_others_do_not() -> None:
    async def main() -> None:
        queue = make(window=0.02)
        queue.pace(A, 0.5)
        queue.add(A)
        queue.add(B)
        began = now()
        assert await queue.get() == B
        assert now() - began == pytest.approx(0.02)
        queue.add(A, after=0.1, reason="a moment of its own")
        assert await queue.get() == A
        assert now() - began == pytest.approx(0.12)
        queue.done(A)
        queue.pace(A, 0.0)
        queue.add(A)
        assert await queue.get() == A
        assert now() - began == pytest.approx(0.14)

    run_virtual(main())
