"""Carrying out plans: chains that outlast their phase, and whose writes go first."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter

import pytest

from kruise.api.native.pod import PODS
from kruise.machinery.client.requests import Verb
from kruise.machinery.limiter import WriteLimiter
from kruise.machinery.plan import (
    Chain,
    OnError,
    Outcome,
    Phase,
    Plan,
    Result,
    Urgency,
    single,
)
from tests.machinery.applying import applier, new_pod, run
from tests.support.faults import Answer, Delay, Rule
from tests.support.inprocess import InProcess


class Listener:
    def __init__(self) -> None:
        self.current = True
        self.gone: list[str] = []
        self.heard: list[tuple[str, list[Result]]] = []

    def is_current(self) -> bool:
        return self.current

    def detached(self, phase: Phase, chain: Chain) -> None:
        self.gone.append(chain[0].target.name)

    def ended(self, phase: Phase, chain: Chain, outcomes: tuple[Outcome, ...]) -> None:
        self.heard.append((chain[0].target.name, [outcome.result for outcome in outcomes]))


def detaching_plan(chains: int = 4, pause_after: float = 0.5) -> Plan:
    pairs = tuple((new_pod(f"p{i}"), new_pod(f"q{i}")) for i in range(chains))
    detaching = Phase(name="slow", chains=pairs, pause_after=pause_after, detaches=True, on_error=OnError.CONTINUE)
    return Plan(phases=(detaching, single("after", new_pod("last"))))


def test_a_phase_detaches_its_chains_and_the_run_hears_how_they_ended() -> None:
    async def scene(env: InProcess) -> None:
        listener = Listener()
        limiter = WriteLimiter(clock=env.clock, initial=3, maximum=3)
        writer = applier(env, limiter=limiter)
        task = asyncio.create_task(writer.apply(detaching_plan(), run=listener))
        await asyncio.sleep(0.75)
        assert listener.gone == ["p0", "p1", "p2", "p3"]
        assert listener.heard == []
        outcomes = await task
        assert [outcome.result for outcome in outcomes] == [Result.PENDING] * 8 + [Result.DONE]
        assert await writer.drain(10) == 0
        assert sorted(listener.heard) == [(f"p{i}", [Result.DONE] * 2) for i in range(4)]
        assert await env.pods() == ["last", *(f"p{i}" for i in range(4)), *(f"q{i}" for i in range(4))]

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_without_a_run_every_chain_is_waited_for() -> None:
    async def scene(env: InProcess) -> None:
        outcomes = await applier(env).apply(detaching_plan())
        assert [outcome.result for outcome in outcomes] == [Result.DONE] * 9

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_a_late_failure_is_told_and_skips_the_rest_of_its_chain() -> None:
    async def scene(env: InProcess) -> None:
        listener = Listener()
        writer = applier(env)
        await writer.apply(detaching_plan(1), run=listener)
        await writer.drain(10)
        assert listener.heard == [("p0", [Result.FAILED, Result.SKIPPED])]

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}), Rule(Answer(403, "Forbidden"), verbs={Verb.CREATE}, calls={1}))


def test_a_slow_start_goes_on_after_its_pass_and_ends_with_the_first_refusal() -> None:
    """A quota for three pods, of nine: after one and two come four, which are too many. No further one is tried."""

    async def scene(env: InProcess) -> None:
        listener = Listener()
        writer = applier(env)
        creates = single("scale", *(new_pod(f"p{i}") for i in range(9)), slow_start=True, on_error=OnError.STOP_PHASE)
        phase = dataclasses.replace(creates, pause_after=0.5, detaches=True)
        outcomes = await writer.apply(Plan(phases=(phase,)), run=listener)
        assert {outcome.result for outcome in outcomes} == {Result.PENDING}
        assert await writer.drain(60) == 0
        assert Counter(result for _, results in listener.heard for result in results) == {
            Result.DONE: 3,
            Result.FAILED: 4,
            Result.SKIPPED: 2,
        }
        assert len(await env.pods()) == 3

    run(
        scene,
        Rule(Delay(1.0), verbs={Verb.CREATE}),
        Rule(Answer(403, "Forbidden"), verbs={Verb.CREATE}, calls=set(range(4, 20))),
    )


@pytest.mark.parametrize("slow_start", [False, True])
def test_detached_chains_of_a_stale_plan_are_not_begun(slow_start: bool) -> None:
    """What was begun goes on to its end."""

    async def scene(env: InProcess) -> None:
        listener = Listener()
        writer = applier(env, limiter=WriteLimiter(clock=env.clock, initial=1, maximum=1))
        [detaching, _] = detaching_plan().phases
        await writer.apply(Plan(phases=(dataclasses.replace(detaching, slow_start=slow_start),)), run=listener)
        listener.current = False
        assert await writer.drain(60) == 0
        results = dict(listener.heard)
        assert results.pop("p0") == [Result.DONE, Result.DONE]
        assert set(map(tuple, results.values())) == {(Result.DEFERRED, Result.SKIPPED)}
        assert await env.pods() == ["p0", "q0"]

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_writes_of_an_urgent_phase_get_the_next_free_slot() -> None:
    async def scene(env: InProcess) -> None:
        writer = applier(env, limiter=WriteLimiter(clock=env.clock, initial=1, maximum=1))
        patient = dataclasses.replace(single("make", *(new_pod(f"p{i}") for i in range(4))), urgency=Urgency.LATER)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(writer.apply(Plan(phases=(patient,))))
            await asyncio.sleep(0.5)
            begun = env.clock.monotonic()
            await writer.apply(Plan(phases=(dataclasses.replace(single("move", new_pod("q")), urgency=Urgency.SOON),)))
            assert env.clock.monotonic() - begun == pytest.approx(1.5)

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_a_chain_that_was_begun_ends_before_another_begins() -> None:
    async def scene(env: InProcess) -> None:
        writer = applier(env, limiter=WriteLimiter(clock=env.clock, initial=1, maximum=1))
        [detaching, _] = detaching_plan(chains=3).phases
        await writer.apply(Plan(phases=(dataclasses.replace(detaching, pause_after=None, urgency=Urgency.SOON),)))
        pods = (await env.client.list(PODS, "default")).items
        made = sorted(pods, key=lambda pod: int(pod.metadata.resource_version))
        assert [pod.metadata.name for pod in made] == ["p0", "q0", "p1", "q1", "p2", "q2"]

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_detached_chains_are_abandoned_when_they_take_too_long(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(env: InProcess) -> None:
        listener = Listener()
        limiter = WriteLimiter(clock=env.clock)
        writer = applier(env, limiter=limiter)
        detaching = Phase(name="slow", chains=((new_pod("a"),),), pause_after=0.5, detaches=True)
        await writer.apply(Plan(phases=(detaching,)), run=listener)
        assert await writer.drain(1) == 1
        assert listener.heard == [("a", [Result.SKIPPED])]
        assert limiter.in_flight == 0
        assert "write abandoned" in caplog.text

    run(scene, Rule(Delay(60.0), verbs={Verb.CREATE}))


def test_slow_start_that_has_taken_its_time_is_no_failure() -> None:
    async def scene(env: InProcess) -> None:
        scale = dataclasses.replace(
            single("scale", *(new_pod(f"p{i}") for i in range(9)), slow_start=True), pause_after=1.5
        )
        outcomes = await applier(env).apply(Plan(phases=(scale,)))
        assert Counter(outcome.result for outcome in outcomes) == {Result.DONE: 3, Result.DEFERRED: 6}

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_phases_that_go_alongside_begin_together_and_the_next_waits_for_both() -> None:
    async def scene(env: InProcess) -> None:
        slow = Phase(name="slow", chains=((new_pod("a1"), new_pod("a2")),), on_error=OnError.STOP_PHASE)
        beside = Phase(name="beside", chains=((new_pod("b1"),),), alongside=True)
        after = Phase(name="after", chains=((new_pod("c1"),),))
        began = env.clock.monotonic()
        outcomes = await applier(env).apply(Plan(phases=(slow, beside, after)))
        assert [outcome.result for outcome in outcomes] == [Result.DONE] * 4
        assert [outcome.action.target.name for outcome in outcomes] == ["a1", "a2", "b1", "c1"]
        assert env.clock.monotonic() - began == pytest.approx(3.0)

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_of_phases_alongside_the_more_urgent_one_begins_first() -> None:
    """Where there is room for all writes, too: plans foresee this order."""

    async def scene(env: InProcess) -> None:
        later = dataclasses.replace(single("later", new_pod("a1"), new_pod("a2")), urgency=Urgency.LATER)
        beside = dataclasses.replace(single("beside", new_pod("b1"), new_pod("b2")), alongside=True)
        outcomes = await applier(env).apply(Plan(phases=(later, beside)))
        assert [outcome.action.target.name for outcome in outcomes] == ["a1", "a2", "b1", "b2"]
        came = sorted((outcome.object for outcome in outcomes), key=lambda pod: int(pod.metadata.resource_version))
        assert [pod.metadata.name for pod in came] == ["b1", "b2", "a1", "a2"]

    run(scene)


def test_a_failure_in_one_of_two_phases_alongside_leaves_the_other_alone() -> None:
    async def scene(env: InProcess) -> None:
        failing = single("failing", new_pod("a1"), new_pod("a2"), on_error=OnError.STOP_PHASE)
        beside = dataclasses.replace(single("beside", *(new_pod(f"b{i}") for i in range(4))), alongside=True)
        void = dataclasses.replace(single("void", new_pod("c1")), unless_done=("beside",))
        limiter = WriteLimiter(clock=env.clock, initial=1, maximum=1)
        outcomes = await applier(env, limiter=limiter).apply(Plan(phases=(failing, beside, void)))
        results = [outcome.result for outcome in outcomes]
        assert results[0] is Result.FAILED
        assert results[2:] == [Result.DONE] * 4 + [Result.SKIPPED]

    run(scene, Rule(Answer(403, "Forbidden"), verbs={Verb.CREATE}, calls={1}))
