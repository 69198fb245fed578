"""The loop around a kind's decisions: a toy controller on an API core in process, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Key
from kruise.api.native.events import ObjectReference
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.apicore.builtin import custom_kind
from kruise.machinery.apply import Run
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import VIRTUAL_EPOCH, run_virtual
from kruise.machinery.controller import RECONCILE, Controller
from kruise.machinery.delays import LONGEST_WAIT
from kruise.machinery.journal import replay
from kruise.machinery.plan import (
    Conclusion,
    EventNote,
    Outcomes,
    Plan,
    Target,
    Wake,
    patch,
    single,
)
from kruise.machinery.spec import Source, Stores, View, no_keys
from kruise.machinery.watched import Watched
from tests.machinery.toycontroller import (
    SPEC,
    Scene,
    ToySnapshot,
    changed,
    decide,
    idle,
    nothing,
    snapshot,
)
from tests.support.faults import Answer, Delay, Rule, storm
from tests.support.inprocess import TOYS, Toy


def test_it_creates_what_is_missing_writes_the_status_and_says_so() -> None:
    async def main() -> None:
        scene = Scene()
        toy = await scene.add_toy(replicas=5)
        async with scene.at_work():
            await asyncio.sleep(1)
            assert len(await scene.pods()) == 5
            assert (await scene.direct.get(TOYS, "toy", "default")).status.replicas == 5
            regarding, kind, reason, message = scene.notes.taken[0]
            assert (kind, reason, message) == ("Normal", "SuccessfulCreate", "5 pods")
            assert (regarding.kind, regarding.name, regarding.uid) == ("Toy", "toy", toy.metadata.uid)
            await scene.scale(2)
            await asyncio.sleep(1)
            assert len(await scene.pods()) == 2
        assert scene.passes("error") == 0

    run_virtual(main())


def test_its_own_writes_are_seen_at_once_so_nothing_is_made_twice() -> None:  # CS-64, IPU-140
    """The watch lags five seconds behind; there are no expectation counters."""

    async def main() -> None:
        scene = Scene()
        async with scene.at_work():
            scene.faults.add(Rule(Delay(5.0), verbs={Verb.WATCH}))
            scene.inner.cut_watches()
            await asyncio.sleep(8)
            await scene.add_toy(replicas=4)
            for _ in range(10):
                await asyncio.sleep(1)
                scene.controller.queue.add(Key("default", "toy"))
            assert len(await scene.pods()) == 4

    run_virtual(main())


def test_a_burst_of_events_is_one_pass() -> None:
    async def main() -> None:
        scene = Scene()
        await scene.add_toy(replicas=20)
        async with scene.at_work():
            await asyncio.sleep(1)
            before = len(scene.journal.entries(limit=1000))
            for pod in (await scene.direct.list(PODS)).items:
                await scene.direct.patch(PODS, pod.metadata.name, {"metadata": {"labels": {"x": "y"}}}, "default")
            await asyncio.sleep(1)
            assert len(scene.journal.entries(limit=1000)) - before == 1

    run_virtual(main())


def test_an_error_in_the_code_of_a_kind_costs_only_its_own_key(caplog: pytest.LogCaptureFixture) -> None:
    contexts = []

    def fragile(seen: ToySnapshot) -> Plan:
        contexts.append(RECONCILE.get())
        if seen.toy.metadata.name == "bad":
            raise ZeroDivisionError("cannot be")
        return decide(seen)

    async def main() -> None:
        scene = Scene(spec=changed(decide=fragile))
        await scene.add_toy("bad", 1)
        await scene.add_toy("good", 2)
        async with scene.at_work():
            await asyncio.sleep(30)
            assert len(await scene.pods()) == 2
            tries = scene.controller.queue.retries(Key("default", "bad"))
            assert 10 <= tries <= 16  # 5 ms, 10 ms, 20 ms, ...
            panics = scene.metrics.registry.get_sample_value(
                "controller_runtime_reconcile_panics_total", {"controller": "toy"}
            )
            assert panics == tries == scene.requeues("panic")
            (wait,) = scene.controller.queue.waiting()
            assert (wait.key.name, wait.reason) == ("bad", "ZeroDivisionError: cannot be")
            entry = scene.journal.entries("toy", Key("default", "bad"))[0]
            assert entry["error"] == "ZeroDivisionError: cannot be"

    with caplog.at_level(logging.INFO):
        run_virtual(main())
    record = next(record for record in caplog.records if record.exc_info)
    assert record.__dict__["controller"] == "toy"
    assert record.__dict__["object"] == "bad"
    context = next(context for context in contexts if context is not None and context.key.name == "bad")
    assert record.__dict__["reconcile_id"] == context.reconcile_id
    assert RECONCILE.get() is None


@pytest.mark.parametrize("part", ["snapshot", "conclude"])
def test_errors_in_the_other_parts_are_retried_as_well(part: str) -> None:
    calls = []

    def once(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise RuntimeError("once")
        return getattr(SPEC, part)(*arguments)

    async def main() -> None:
        scene = Scene(spec=changed(**{part: once}))
        await scene.add_toy(replicas=1)
        async with scene.at_work():
            await asyncio.sleep(2)
            assert len(await scene.pods()) == 1
            assert scene.controller.queue.retries(Key("default", "toy")) == 0
            assert (await scene.direct.get(TOYS, "toy", "default")).status.replicas == 1

    run_virtual(main())


def test_refused_creates_are_shown_and_retried_with_backoff() -> None:
    async def main() -> None:
        scene = Scene(Rule(Answer(403, "Forbidden", "exceeded quota"), verbs={Verb.CREATE}, resource="pods"))
        await scene.add_toy(replicas=50)
        async with scene.at_work():
            await asyncio.sleep(10)
            kinds = {(kind, reason, message) for _, kind, reason, message in scene.notes.taken}
            assert kinds == {("Warning", "FailedCreate", "exceeded quota")}
            tries = len(scene.faults.log)
            assert 8 <= tries <= 14  # one create a pass, not fifty
            assert scene.requeues("failed") == tries == scene.passes("error")
            scene.faults.clear()
            await asyncio.sleep(20)
            assert len(await scene.pods()) == 50
            assert scene.controller.queue.waiting() == []

    run_virtual(main())


def test_a_wake_that_is_due_does_not_keep_what_fails_from_backing_off() -> None:
    passes = itertools.count()

    def also(_seen: Any, _plan: Plan, _outcomes: Outcomes) -> Conclusion:
        # Enough is enough: on virtual time what spins would do so for ever.
        return Conclusion(wakes=(Wake(after=0, reason="its time is over"),) if next(passes) < 500 else ())

    async def main() -> None:
        rule = Rule(Answer(403, "Forbidden", "exceeded quota"), verbs={Verb.CREATE}, resource="pods")
        scene = Scene(rule, spec=changed(conclude=also))
        await scene.add_toy(replicas=1)
        async with scene.at_work():
            await asyncio.sleep(10)
            assert 8 <= len(scene.faults.log) <= 14

    run_virtual(main())


def test_a_stale_decision_is_made_again_at_once_but_does_not_spin(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def never_fits(seen: ToySnapshot) -> Plan:
        metadata = seen.toy.metadata
        target = Target(TOYS, metadata.namespace, metadata.name)
        return Plan(phases=(single("p", patch(target, {"spec": {}}, uid="another", reason="x")),))

    async def main() -> None:
        scene = Scene(spec=changed(decide=never_fits, conclude=nothing))
        await scene.add_toy()
        async with scene.at_work():
            await asyncio.sleep(0.03)
            assert 2 <= len(scene.journal.entries()) <= 5
            await asyncio.sleep(60)
            assert len(scene.journal.entries(limit=1000)) <= 75  # at most one a second in the long run
            assert scene.passes("error") == 0
            assert scene.notes.taken == []

    run_virtual(main())
    assert "stale again and again" in caplog.text


def test_a_moved_status_is_decided_again_and_a_failed_one_retried() -> None:
    async def main() -> None:
        scene = Scene(
            Rule(Answer(409, "Conflict"), verbs={Verb.PATCH}, resource="toys", calls={1}),
            Rule(Answer(403, "Forbidden"), verbs={Verb.PATCH}, resource="toys", calls={2}),
        )
        await scene.add_toy(replicas=2)
        async with scene.at_work():
            await asyncio.sleep(2)
            assert (await scene.direct.get(TOYS, "toy", "default")).status.replicas == 2
            assert scene.requeues("moved") == 1
            assert scene.requeues("status") == 1
            troubles = [trouble["result"] for entry in scene.journal.entries() for trouble in entry["troubles"]]
            assert sorted(troubles) == ["failed", "moved"]

    run_virtual(main())


def test_wakes_of_plan_and_conclusion_become_waits_with_reasons() -> None:
    def waiting(_seen: Any) -> Plan:
        return Plan(wakes=(Wake(after=30, reason="image pull"), Wake(after=10, reason="hook")))

    def also(_seen: Any, _plan: Plan, _outcomes: Outcomes) -> Conclusion:
        return Conclusion(wakes=(Wake(after=20, reason="hook"), Wake(after=40, reason="budget")))

    async def main() -> None:
        scene = Scene(spec=changed(decide=waiting, conclude=also))
        await scene.add_toy()
        async with scene.at_work():
            await asyncio.sleep(1)
            waits = scene.controller.queue.waiting()
            assert [(wait.reason, round(wait.due_in)) for wait in waits] == [
                ("hook", 9),
                ("image pull", 29),
                ("budget", 39),
            ]
            assert scene.passes("requeue_after") == 1
            await asyncio.sleep(10)
            assert scene.passes("requeue_after") == 2

    run_virtual(main())


def test_a_clock_that_jumps_is_noticed_within_minutes_however_far_away_a_moment_is() -> None:
    """ACJ-54, BJ-47, BJ-48, EJ-35: the plan tells the moment, and the loop looks sooner."""
    looks: list[datetime] = []
    end = VIRTUAL_EPOCH + timedelta(days=1)

    def waiting(seen: ToySnapshot) -> Plan:
        looks.append(seen.now)
        left = (end - seen.now).total_seconds()
        return Plan(wakes=(Wake(after=left, reason="its life is over then"),) if left > 0 else ())

    async def main() -> None:
        scene = Scene(spec=changed(decide=waiting, conclude=nothing))
        await scene.add_toy()
        async with scene.at_work():
            await asyncio.sleep(1)
            [wait] = scene.controller.queue.waiting()
            assert round(wait.due_in) == LONGEST_WAIT - 1
            [told] = scene.journal.entries("toy")[0]["plan"]["wakes"]
            assert round(told["after"]) == 86400
            scene.clock.shift(2 * 86400)
            await asyncio.sleep(LONGEST_WAIT)
            assert [look > end for look in looks] == [False, True]
            assert not scene.controller.queue.waiting()

    run_virtual(main())


def test_conclude_may_ask_for_a_retry() -> None:
    def again(_seen: Any, _plan: Plan, _outcomes: Outcomes) -> Conclusion:
        return Conclusion(retry="revision not settled")

    async def main() -> None:
        scene = Scene(spec=changed(decide=idle, conclude=again))
        await scene.add_toy()
        async with scene.at_work():
            await asyncio.sleep(1)
            (wait,) = scene.controller.queue.waiting()
            assert wait.reason == "revision not settled"
            assert (scene.requeues("retry") or 0) >= 5

    run_virtual(main())


def test_a_subject_that_is_gone_is_forgotten() -> None:
    async def main() -> None:
        scene = Scene(Rule(Answer(403, "Forbidden"), verbs={Verb.CREATE}, resource="pods"))
        toy = await scene.add_toy(replicas=1)
        key = Key("default", "toy")
        async with scene.at_work():
            await asyncio.sleep(1)
            assert scene.controller.queue.retries(key) > 0
            assert scene.journal.dumps() == [("toy", key)]
            await scene.direct.delete(TOYS, "toy", "default", uid=toy.metadata.uid)
            await asyncio.sleep(1)
            assert scene.controller.queue.retries(key) == 0
            assert scene.controller.queue.waiting() == []
            assert scene.journal.dumps() == []

    run_virtual(main())


def test_events_about_other_objects_name_them() -> None:
    def about_pod(seen: ToySnapshot, _plan: Plan, _outcomes: Outcomes) -> Conclusion:
        target = Target(PODS, "default", "p")
        return Conclusion(events=(EventNote(reason="Hint", message="m", target=target, uid="u1"),))

    async def main() -> None:
        scene = Scene(spec=changed(decide=idle, conclude=about_pod))
        await scene.add_toy()
        async with scene.at_work():
            await asyncio.sleep(1)
        regarding = scene.notes.taken[0][0]
        assert regarding == ObjectReference(api_version="v1", kind="Pod", namespace="default", name="p", uid="u1")

    run_virtual(main())


def test_on_cancellation_no_write_is_begun_and_those_under_way_end() -> None:
    async def main() -> None:
        scene = Scene(Rule(Delay(2.0), verbs={Verb.CREATE}, resource="pods"))
        await scene.add_toy(replicas=7)
        async with scene.running():
            task = asyncio.create_task(scene.controller.run())
            await asyncio.sleep(3)  # the first create is done, two more are under way
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert 4 <= scene.clock.monotonic() < 5
            assert len(await scene.pods()) == 3
            assert (await scene.direct.get(TOYS, "toy", "default")).status.replicas == 0
            assert scene.journal.entries()[0]["outcomes"] == {"done": 3, "skipped": 5}  # 4 pods and the status

    run_virtual(main())


def test_a_pass_that_does_not_end_in_time_is_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        scene = Scene(Rule(Delay(100.0), verbs={Verb.CREATE}, resource="pods"), grace=5.0)
        await scene.add_toy(replicas=1)
        async with scene.running():
            task = asyncio.create_task(scene.controller.run())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert scene.clock.monotonic() == pytest.approx(6)
            assert scene.passes("success") == 0

    run_virtual(main())
    assert "write abandoned" in caplog.text


def test_it_waits_for_its_stores_before_it_works() -> None:
    async def main() -> None:
        scene = Scene(Rule(Delay(50.0), verbs={Verb.LIST}, resource="pods"))
        await scene.add_toy(replicas=1)
        cache = asyncio.create_task(scene.cache.run())
        task = asyncio.create_task(scene.controller.run())
        await asyncio.sleep(40)
        assert await scene.pods() == []
        await asyncio.sleep(40)
        assert len(await scene.pods()) == 1
        for one in (task, cache):
            one.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await one

    run_virtual(main())


def test_one_key_has_one_worker_and_keys_run_side_by_side() -> None:
    at_work: dict[str, int] = {}
    most = 0

    async def main() -> None:
        nonlocal most
        scene = Scene(Rule(Delay(1.0), verbs={Verb.CREATE}, resource="pods"), workers=3)
        inner = scene.applier.apply

        async def apply(plan: Plan, *, stopping: Callable[[], bool], run: Run) -> Outcomes:
            nonlocal most
            context = RECONCILE.get()
            assert context is not None
            name = context.key.name
            at_work[name] = at_work.get(name, 0) + 1
            assert at_work[name] == 1
            most = max(most, sum(at_work.values()))
            outcomes = await inner(plan, stopping=stopping, run=run)
            at_work[name] -= 1
            return outcomes

        scene.applier.apply = apply  # type: ignore[method-assign,assignment]
        for number in range(6):
            await scene.add_toy(f"toy{number}", 2)
        async with scene.at_work():
            for _ in range(50):
                await asyncio.sleep(0.1)
                for number in range(6):
                    scene.controller.queue.add(Key("default", f"toy{number}"))
        assert most == 3

    run_virtual(main())


def test_every_pass_has_its_own_seed_and_the_same_run_gives_the_same_names() -> None:
    async def main(seed: int) -> list[str]:
        scene = Scene(seed=seed)
        await scene.add_toy(replicas=6)
        async with scene.at_work():
            await asyncio.sleep(1)
            first = await scene.pods()
            for name in first:
                await scene.direct.delete(PODS, name, "default")
            await asyncio.sleep(1)
            second = await scene.pods()
            assert not set(first) & set(second)
            return first + second

    assert run_virtual(main(1)) == run_virtual(main(1))
    assert run_virtual(main(1)) != run_virtual(main(2))


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), replicas=st.lists(st.integers(0, 8), min_size=1, max_size=4))
def test_it_converges_through_any_storm_and_every_decision_can_be_replayed(seed: int, replicas: list[int]) -> None:
    """Faults of every kind while it works, then calm: the wanted pods, and replay equals the record (IPU-141)."""

    async def main() -> None:
        scene = Scene(*storm(0.08), seed=seed)
        await scene.add_toy(replicas=replicas[0])
        async with scene.at_work():
            for count in replicas:
                await scene.scale(count)
                await asyncio.sleep(20)
            scene.faults.clear()
            scene.controller.queue.add(Key("default", "toy"))
            await asyncio.sleep(1200)
            owned = [pod for pod in (await scene.direct.list(PODS)).items if not pod.metadata.deletion_timestamp]
            assert len(owned) == replicas[-1]
            assert (await scene.direct.get(TOYS, "toy", "default")).status.replicas == replicas[-1]
            assert scene.metrics.registry.get_sample_value("kruise_writes_in_flight") == 0
            again = replay(scene.journal.dump("toy", Key("default", "toy")), [SPEC])
            assert again.plan_equal
            assert again.digest_equal

    run_virtual(main())


def test_the_rest_of_a_long_pass_is_decided_anew_at_once() -> None:
    """Nothing counts as an error, and no back-off comes in between."""

    def in_steps(seen: ToySnapshot) -> Plan:
        plan = decide(seen)
        return dataclasses.replace(
            plan, phases=tuple(dataclasses.replace(phase, pause_after=1.5) for phase in plan.phases)
        )

    async def main() -> None:
        scene = Scene(Rule(Delay(1.0), verbs={Verb.CREATE}), spec=changed(decide=in_steps))
        async with scene.at_work():
            await scene.add_toy(replicas=9)
            await asyncio.sleep(10)
            assert len(await scene.pods()) == 9
            assert scene.requeues("deferred") == 2
            assert not scene.passes("error")

    run_virtual(main())


def test_sources_can_look_at_each_other_from_the_first_change_on() -> None:
    """A controller may come when the stores of some of its kinds are filled already."""
    gadgets: Resource[Toy] = Resource("example.com", "v1", "gadgets", "Gadget", True, Toy)
    looked: list[int] = []

    def keys(old: Any, new: Any, stores: Stores) -> tuple[Key, ...]:
        looked.append(len(stores.store(gadgets).list()))
        return ()

    async def main() -> None:
        scene = Scene()
        await scene.add_toy(replicas=2)
        async with scene.at_work():
            await asyncio.sleep(1)
            sources = (Source(PODS, keys), Source(Watched(gadgets, optional=True), no_keys))
            Controller(
                changed(name="second", sources=sources),
                cache=scene.cache,
                applier=scene.applier,
                recorder=scene.notes,
                clock=scene.clock,
            )
        assert looked == [0, 0]

    run_virtual(main())


def test_it_works_without_a_kind_that_is_optional_and_not_served() -> None:
    gadgets: Resource[Toy] = Resource("example.com", "v1", "gadgets", "Gadget", True, Toy)
    seen_synced: list[bool] = []

    def look(view: View, key: Key) -> ToySnapshot | None:
        seen_synced.append(view.store(gadgets).synced)
        return snapshot(view, key)

    async def main() -> None:
        sources = (*SPEC.sources, Source(Watched(gadgets, optional=True), no_keys))
        scene = Scene(spec=changed(sources=sources, snapshot=look))
        caching = asyncio.create_task(scene.cache.run())
        working = asyncio.create_task(scene.controller.run())
        await scene.add_toy(replicas=2)
        await asyncio.sleep(5)
        assert len(await scene.pods()) == 2
        assert seen_synced
        assert not any(seen_synced)
        for task in (working, caching):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    run_virtual(main())


def test_an_optional_kind_that_is_served_later_brings_every_object_round_again() -> None:
    gadgets: Resource[Toy] = Resource("example.com", "v1", "gadgets", "Gadget", True, Toy)
    seen_synced: list[bool] = []

    def look(view: View, key: Key) -> ToySnapshot | None:
        seen_synced.append(view.store(gadgets).synced)
        return snapshot(view, key)

    async def main() -> None:
        sources = (*SPEC.sources, Source(Watched(gadgets, optional=True), no_keys))
        scene = Scene(spec=changed(sources=sources, snapshot=look))
        tasks = [asyncio.create_task(scene.cache.run()), asyncio.create_task(scene.controller.run())]
        await scene.add_toy(replicas=2)
        await asyncio.sleep(5)
        passes = len(seen_synced)
        scene.core.registry.add(custom_kind(gadgets))
        await asyncio.sleep(120)
        assert seen_synced[passes:] == [True]
        for task in reversed(tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    run_virtual(main())


def test_objects_that_are_dear_to_decide_about_have_fewer_passes() -> None:
    """Twenty changes, one every 0.1 s: a pass for each, or a pass for each second."""

    async def passes(pace: float) -> int:
        scene = Scene(spec=changed(pace=lambda seen: pace))
        async with scene.at_work():
            await scene.add_toy(replicas=0)
            await asyncio.sleep(5)
            before = len(scene.journal.entries("toy"))
            for number in range(1, 21):
                await scene.scale(number)
                await asyncio.sleep(0.1)
            await asyncio.sleep(5)
            assert len(await scene.pods()) == 20
            return len(scene.journal.entries("toy")) - before

    assert run_virtual(passes(0.0)) >= 20
    assert run_virtual(passes(1.0)) <= 6
