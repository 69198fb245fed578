"""The loop around a kind's decisions: a toy controller on an API core in process, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import random
from collections.abc import AsyncGenerator, Callable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Key, controller_of
from kruise.api.native.events import ObjectReference
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.local.apicore.builtin import custom_kind
from kruise.machinery.apply import Applier, Later
from kruise.machinery.client.faults import Answer, Delay, Rule, storm
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import run_virtual
from kruise.machinery.codec import Struct
from kruise.machinery.controller import RECONCILE, Controller, ControllerSpec, Source, View
from kruise.machinery.journal import Journal, replay
from kruise.machinery.metrics import Metrics
from kruise.machinery.names import random_suffix
from kruise.machinery.plan import (
    Conclusion,
    EventNote,
    EventType,
    Outcome,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
    Wake,
    create,
    delete,
    patch,
    single,
    status_patch,
)
from tests.support.inprocess import TOYS, InProcess, Toy, pod_body


class ToySnapshot(Struct):
    toy: Toy
    pods: tuple[Pod, ...]
    now: datetime
    seed: int


def pod_keys(old: Pod | None, new: Pod | None) -> set[Key]:
    owners = [(pod, controller_of(pod)) for pod in (old, new) if pod is not None]
    return {Key(pod.metadata.namespace, owner.name) for pod, owner in owners if owner is not None}


def by_owner(pod: Pod) -> tuple[str, ...]:
    owner = controller_of(pod)
    return (owner.uid,) if owner is not None else ()


def snapshot(view: View, key: Key) -> ToySnapshot | None:
    toy = view.store(TOYS).get(key.namespace, key.name)
    if toy is None or toy.metadata.deletion_timestamp is not None:
        return None
    pods = view.store(PODS)
    owned = tuple(pod for pod in pods.by_index("owner", toy.metadata.uid) if not pods.is_terminating(pod))
    return ToySnapshot(toy=toy, pods=owned, now=view.now, seed=view.seed)


def decide(seen: ToySnapshot) -> Plan:
    toy, missing = seen.toy, seen.toy.spec.replicas - len(seen.pods)
    rng = random.Random(seen.seed)
    phases: list[Phase] = []
    if missing > 0:
        names = [f"{toy.metadata.name}-{random_suffix(rng)}" for _ in range(missing)]
        bodies = [pod_body(name, owner_uid=toy.metadata.uid) for name in names]
        for body in bodies:
            body["metadata"]["ownerReferences"][0]["name"] = toy.metadata.name
        creates = [create(PODS, body, reason="scale up", owner_uid=toy.metadata.uid) for body in bodies]
        phases.append(single("create", *creates, slow_start=True))
    surplus = seen.pods[toy.spec.replicas :]
    deletes = [
        delete(Target(PODS, pod.metadata.namespace, pod.metadata.name), uid=pod.metadata.uid, reason="scale down")
        for pod in surplus
    ]
    if deletes:
        phases.append(single("delete", *deletes))
    return Plan(phases=tuple(phases), notes={"missing": missing})


def conclude(seen: ToySnapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    toy = seen.toy
    made = sum(1 for outcome in outcomes.of(Result.DONE) if outcome.action.verb is Verb.CREATE)
    events = tuple(
        EventNote(reason="FailedCreate", message=outcome.error, type=EventType.WARNING) for outcome in outcomes.failed
    )
    if made:
        events = (EventNote(reason="SuccessfulCreate", message=f"{made} pods"), *events)
    count = min(len(seen.pods), toy.spec.replicas) + made
    status = None
    if toy.status.replicas != count:
        target = Target(TOYS, toy.metadata.namespace, toy.metadata.name)
        status = status_patch(target, {"replicas": count}, uid=toy.metadata.uid, reason="replicas")
    return Conclusion(status=status, events=events)


SPEC = ControllerSpec(
    name="toy",
    subject=TOYS,
    sources=(Source(PODS, pod_keys, indexes={"owner": by_owner}),),
    snapshot=snapshot,
    decide=decide,
    conclude=conclude,
    snapshot_type=ToySnapshot,
)


class Notes:
    def __init__(self) -> None:
        self.taken: list[tuple[ObjectReference, str, str, str]] = []

    def record(self, regarding: ObjectReference, kind: str, reason: str, message: str) -> None:
        self.taken.append((regarding, kind, reason, message))


class Scene(InProcess):
    def __init__(self, *rules: Rule, spec: ControllerSpec[Any] = SPEC, seed: int = 0, **options: Any) -> None:
        super().__init__(rules, seed=seed)
        self.metrics = Metrics()
        self.journal = Journal()
        self.notes = Notes()
        self.applier = Applier(self.client, self.cache, clock=self.clock, metrics=self.metrics)
        self.controller = Controller(
            spec,
            cache=self.cache,
            applier=self.applier,
            recorder=self.notes,
            clock=self.clock,
            journal=self.journal,
            metrics=self.metrics,
            seed=seed,
            **options,
        )

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None, None]:
        async with self.running():
            task = asyncio.create_task(self.controller.run())
            try:
                yield
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def add_toy(self, name: str = "toy", replicas: int = 3) -> Toy:
        metadata = {"name": name, "namespace": "default"}
        body = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": metadata, "spec": {"replicas": replicas}}
        return await self.direct.create(TOYS, body, "default")

    async def scale(self, replicas: int, name: str = "toy") -> None:
        await self.direct.patch(TOYS, name, {"spec": {"replicas": replicas}}, "default")

    def passes(self, result: str) -> float | None:
        labels = {"controller": "toy", "result": result}
        return self.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels)

    def requeues(self, cause: str) -> float | None:
        return self.metrics.registry.get_sample_value("kruise_requeues_total", {"controller": "toy", "cause": cause})


def changed(**parts: Any) -> ControllerSpec[Any]:
    return dataclasses.replace(SPEC, **parts)


def idle(_seen: Any) -> Plan:
    return Plan()


def nothing(_seen: Any, _plan: Plan, _outcomes: Outcomes) -> Conclusion:
    return Conclusion()


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


def test_a_decision_that_is_overtaken_is_made_again_at_once_but_does_not_spin(
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
    assert "overtaken again and again" in caplog.text


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

        async def apply(plan: Plan, *, stopping: Callable[[], bool], later: Later) -> Outcomes:
            nonlocal most
            context = RECONCILE.get()
            assert context is not None
            name = context.key.name
            at_work[name] = at_work.get(name, 0) + 1
            assert at_work[name] == 1
            most = max(most, sum(at_work.values()))
            outcomes = await inner(plan, stopping=stopping, later=later)
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


def test_it_works_without_a_kind_that_is_optional_and_not_served() -> None:
    gadgets: Resource[Toy] = Resource("example.com", "v1", "gadgets", "Gadget", True, Toy)
    seen_synced: list[bool] = []

    def look(view: View, key: Key) -> ToySnapshot | None:
        seen_synced.append(view.store(gadgets).synced)
        return snapshot(view, key)

    async def main() -> None:
        sources = (*SPEC.sources, Source(gadgets, lambda old, new: (), optional=True))
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
        sources = (*SPEC.sources, Source(gadgets, lambda old, new: (), optional=True))
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


# Writes that outlast their pass


class LooseSnapshot(Struct):
    toy: Toy
    pods: tuple[Pod, ...]
    under_way: dict[str, str]
    failed_before: dict[str, str]


def loosely(seen: list[LooseSnapshot]) -> ControllerSpec[LooseSnapshot]:
    """Labels every pod of a toy, and lets go of writes that take more than a tenth of a second."""

    def look(view: View, key: Key) -> LooseSnapshot | None:
        toy = view.store(TOYS).get(key.namespace, key.name)
        if toy is None:
            return None
        names = {target.name: mark for target, mark in view.under_way.items()}
        found = LooseSnapshot(
            toy=toy,
            pods=view.store(PODS).by_index("owner", toy.metadata.uid),
            under_way=names,
            failed_before=dict(view.failed_before),
        )
        seen.append(found)
        return found

    def labels(snapshot: LooseSnapshot) -> Plan:
        chains = tuple(
            (
                patch(
                    Target(PODS, "default", pod.metadata.name),
                    {"metadata": {"labels": {"seen": "yes"}}},
                    uid=pod.metadata.uid,
                    reason="label",
                ),
            )
            for pod in snapshot.pods
            if "seen" not in pod.metadata.labels and pod.metadata.name not in snapshot.under_way
        )
        return Plan(phases=(Phase(name="label", chains=chains, pause_after=0.1, lets_go=True, mark="there"),))

    def ending(snapshot: LooseSnapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        count = sum("seen" in pod.metadata.labels for pod in snapshot.pods)
        if snapshot.toy.status.replicas == count:
            return Conclusion()
        toy = snapshot.toy
        target = Target(TOYS, "default", toy.metadata.name)
        return Conclusion(status=status_patch(target, {"replicas": count}, uid=toy.metadata.uid, reason="counted"))

    def events(plan: Plan, phase: Phase, outcomes: tuple[Outcome, ...]) -> list[EventNote]:
        return [EventNote(reason="Labelled", message=outcomes[0].result.value)]

    return dataclasses.replace(
        SPEC, snapshot=look, decide=labels, conclude=ending, snapshot_type=LooseSnapshot, events_of=events
    )


async def _with_pods(scene: Scene, count: int) -> None:
    toy = await scene.add_toy(replicas=count)
    for number in range(count):
        body = pod_body(f"p{number}", owner_uid=toy.metadata.uid)
        body["metadata"]["ownerReferences"][0]["name"] = toy.metadata.name
        await scene.direct.create(PODS, body, "default")


def test_the_next_pass_is_told_of_writes_under_way_and_comes_again_when_they_ended() -> None:
    async def main() -> None:
        seen: list[LooseSnapshot] = []
        scene = Scene(Rule(Delay(2.0), verbs={Verb.PATCH}, resource="pods"), spec=loosely(seen))
        await _with_pods(scene, 2)
        async with scene.at_work():
            await asyncio.sleep(1)
            scene.controller.queue.add(Key("default", "toy"))
            await asyncio.sleep(0.5)
            assert seen[-1].under_way == {"p0": "there", "p1": "there"}
            assert scene.notes.taken == []
            await asyncio.sleep(3)
            assert seen[-1].under_way == {}
            assert [message for _, _, _, message in scene.notes.taken] == ["done", "done"]
            toy = await scene.direct.get(TOYS, "toy", "default")
            assert toy.status.replicas == 2
        patches = [line for line in scene.faults.log if "PATCH" in str(line).upper()]
        assert len(patches) == 2, "each pod is written to once"

    run_virtual(main())


def test_what_the_next_pass_must_know_is_written_before_it_however_much_is_under_way() -> None:
    async def main() -> None:
        seen: list[LooseSnapshot] = []

        def remember(snapshot: LooseSnapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
            toy, number = snapshot.toy, snapshot.toy.status.replicas
            if number == 3:
                return Conclusion()
            target = Target(TOYS, "default", toy.metadata.name)
            write = status_patch(target, {"replicas": number + 1}, uid=toy.metadata.uid, reason="remember")
            return Conclusion(status=write, status_is_memory=True)

        spec = dataclasses.replace(loosely(seen), conclude=remember)
        slow = (Rule(Delay(9.0), verbs={Verb.PATCH}, resource="pods"), Rule(Delay(0.2), resource="toys"))
        scene = Scene(*slow, spec=spec)
        await _with_pods(scene, 1)
        async with scene.at_work():
            await asyncio.sleep(5)
            assert [snapshot.toy.status.replicas for snapshot in seen] == [0, 1, 2, 3]
            assert seen[-1].under_way

    run_virtual(main())


def test_a_write_that_fails_after_its_pass_is_told_to_the_next_one_and_tried_again() -> None:
    async def main() -> None:
        seen: list[LooseSnapshot] = []
        refusal = Rule(Answer(403, "Forbidden"), verbs={Verb.PATCH}, resource="pods", times=1)
        scene = Scene(Rule(Delay(1.0), verbs={Verb.PATCH}, resource="pods"), refusal, spec=loosely(seen))
        await _with_pods(scene, 1)
        async with scene.at_work():
            await asyncio.sleep(10)
        told = [snapshot.failed_before for snapshot in seen if snapshot.failed_before]
        assert len(told) == 1
        assert "injected fault" in told[0]["label"]
        assert [message for _, _, _, message in scene.notes.taken] == ["failed", "done"]
        assert scene.controller.queue.retries(Key("default", "toy")) == 0

    run_virtual(main())


def test_a_controller_that_ends_waits_for_writes_that_were_let_go() -> None:
    async def main() -> None:
        seen: list[LooseSnapshot] = []
        scene = Scene(Rule(Delay(2.0), verbs={Verb.PATCH}, resource="pods"), spec=loosely(seen))
        await _with_pods(scene, 1)
        async with scene.at_work():
            await asyncio.sleep(1)
        pod = await scene.direct.get(PODS, "p0", "default")
        assert pod.metadata.labels["seen"] == "yes"

    run_virtual(main())


def test_a_chain_that_was_not_begun_gives_no_reason_to_look_again_at_once() -> None:
    """Its phase ended with a refusal, which is tried again after a pause."""

    async def main() -> None:
        seen: list[LooseSnapshot] = []
        spec = loosely(seen)

        def one_by_one(snapshot: LooseSnapshot) -> Plan:
            phases = spec.decide(snapshot).phases
            return Plan(phases=tuple(dataclasses.replace(phase, slow_start=True) for phase in phases))

        refusal = Rule(Answer(403, "Forbidden"), verbs={Verb.PATCH}, resource="pods")
        slow = Rule(Delay(0.3), verbs={Verb.PATCH}, resource="pods")
        scene = Scene(slow, refusal, spec=dataclasses.replace(spec, decide=one_by_one))
        await _with_pods(scene, 5)
        async with scene.at_work():
            await asyncio.sleep(20)
        refused = [entry for entry in scene.faults.log if isinstance(entry.fault, Answer)]
        assert len(refused) >= 3
        assert len(seen) <= 4 * len(refused), "passes follow each other without a pause"

    run_virtual(main())


# A status that decides nothing


def counting(*, is_news: bool, looks: list[int]) -> ControllerSpec[ToySnapshot]:
    def conclusion(snapshot: ToySnapshot, _plan: Plan, _outcomes: Outcomes) -> Conclusion:
        looks.append(snapshot.toy.status.replicas)
        toy, count = snapshot.toy, len(snapshot.pods)
        if toy.status.replicas == count:
            return Conclusion()
        target = Target(TOYS, "default", toy.metadata.name)
        write = status_patch(target, {"replicas": count}, uid=toy.metadata.uid, reason="counted")
        return Conclusion(status=write, status_is_news=is_news)

    return changed(decide=idle, conclude=conclusion)


@pytest.mark.parametrize(("is_news", "passes"), [(True, [0, 2]), (False, [0])])
def test_a_status_without_news_is_no_reason_to_look_again(is_news: bool, passes: list[int]) -> None:
    async def main() -> None:
        looks: list[int] = []
        scene = Scene(spec=counting(is_news=is_news, looks=looks))
        await _with_pods(scene, 2)
        async with scene.at_work():
            await asyncio.sleep(5)
            assert looks == passes
            assert (await scene.direct.get(TOYS, "toy", "default")).status.replicas == 2
            await scene.direct.patch(TOYS, "toy", {"status": {"replicas": 7}}, "default", subresource="status")
            await asyncio.sleep(5)
            assert looks[len(passes)] == 7, "what somebody else writes is looked at"
            assert (await scene.direct.get(TOYS, "toy", "default")).status.replicas == 2

    run_virtual(main())


@pytest.mark.parametrize("delay", [0.2, 0.8])
def test_whoever_writes_beside_a_status_without_news_is_heard(delay: float) -> None:
    """Before our own write is done, or before its answer has come."""

    async def main() -> None:
        looks: list[int] = []
        slow = Rule(Delay(0.5), verbs={Verb.PATCH}, resource="toys", times=1)
        scene = Scene(slow, spec=counting(is_news=False, looks=looks))
        await _with_pods(scene, 2)
        async with scene.at_work():
            await asyncio.sleep(delay)
            await scene.direct.patch(TOYS, "toy", {"status": {"replicas": 7}}, "default", subresource="status")
            await asyncio.sleep(5)
            assert (await scene.direct.get(TOYS, "toy", "default")).status.replicas == 2

    run_virtual(main())


def test_a_status_without_news_that_is_refused_is_tried_less_and_less() -> None:
    async def main() -> None:
        looks: list[int] = []
        refusal = Rule(Answer(403, "Forbidden"), verbs={Verb.PATCH}, resource="toys")
        scene = Scene(refusal, spec=counting(is_news=False, looks=looks))
        await _with_pods(scene, 2)
        async with scene.at_work():
            await asyncio.sleep(20)
        assert 5 <= len(looks) <= 20

    run_virtual(main())
