"""The loop around a kind's decisions: writes that outlast their pass, and statuses that nobody waits for."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from kruise.api.meta import Key
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import run_virtual
from kruise.machinery.codec import Struct
from kruise.machinery.pending import Pending
from kruise.machinery.plan import (
    ChainOutcomes,
    Conclusion,
    EventNote,
    Outcomes,
    Phase,
    Plan,
    StatusEffect,
    Target,
    patch,
    status_patch,
)
from kruise.machinery.spec import ControllerSpec, View
from tests.machinery.toycontroller import (
    SPEC,
    Scene,
    ToySnapshot,
    changed,
    idle,
)
from tests.support.faults import Answer, Delay, Rule
from tests.support.inprocess import TOYS, Toy, pod_body

# Writes that outlast their pass


class LabelSnapshot(Struct):
    toy: Toy
    pods: tuple[Pod, ...]
    pending: Pending


def labelling(seen: list[LabelSnapshot]) -> ControllerSpec[LabelSnapshot]:
    """Labels every pod of a toy, and detaches writes that take more than a tenth of a second."""

    def look(view: View, key: Key) -> LabelSnapshot | None:
        toy = view.store(TOYS).get(key.namespace, key.name)
        if toy is None:
            return None
        found = LabelSnapshot(
            toy=toy,
            pods=view.store(PODS).by_index("owner", toy.metadata.uid),
            pending=view.pending(PODS),
        )
        seen.append(found)
        return found

    def labels(snapshot: LabelSnapshot) -> Plan:
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
            if "seen" not in pod.metadata.labels and snapshot.pending.mark_of(pod) is None
        )
        return Plan(phases=(Phase(name="label", chains=chains, pause_after=0.1, detaches=True, mark="there"),))

    def ending(snapshot: LabelSnapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        count = sum("seen" in pod.metadata.labels for pod in snapshot.pods)
        if snapshot.toy.status.replicas == count:
            return Conclusion()
        toy = snapshot.toy
        target = Target(TOYS, "default", toy.metadata.name)
        return Conclusion(status=status_patch(target, {"replicas": count}, uid=toy.metadata.uid, reason="counted"))

    def events(plan: Plan, phase: str, chain: ChainOutcomes) -> list[EventNote]:
        return [EventNote(reason="Labelled", message=chain[0].result.value)]

    return dataclasses.replace(
        SPEC, snapshot=look, decide=labels, conclude=ending, snapshot_type=LabelSnapshot, events=events
    )


async def _with_pods(scene: Scene, count: int) -> None:
    toy = await scene.add_toy(replicas=count)
    for number in range(count):
        body = pod_body(f"p{number}", owner_uid=toy.metadata.uid)
        body["metadata"]["ownerReferences"][0]["name"] = toy.metadata.name
        await scene.direct.create(PODS, body, "default")


def test_the_next_pass_knows_of_pending_writes_and_another_follows_when_they_ended() -> None:
    async def main() -> None:
        seen: list[LabelSnapshot] = []
        scene = Scene(Rule(Delay(2.0), verbs={Verb.PATCH}, resource="pods"), spec=labelling(seen))
        await _with_pods(scene, 2)
        async with scene.at_work():
            await asyncio.sleep(1)
            scene.controller.queue.add(Key("default", "toy"))
            await asyncio.sleep(0.5)
            assert seen[-1].pending.marks == {"default/p0": "there", "default/p1": "there"}
            assert scene.notes.taken == []
            await asyncio.sleep(3)
            assert seen[-1].pending.marks == {}
            assert [message for _, _, _, message in scene.notes.taken] == ["done", "done"]
            toy = await scene.direct.get(TOYS, "toy", "default")
            assert toy.status.replicas == 2
        patches = [line for line in scene.faults.log if "PATCH" in str(line).upper()]
        assert len(patches) == 2, "each pod is written to once"

    run_virtual(main())


def test_what_the_next_pass_must_know_is_written_before_it_however_much_is_pending() -> None:
    async def main() -> None:
        seen: list[LabelSnapshot] = []

        def remember(snapshot: LabelSnapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
            toy, number = snapshot.toy, snapshot.toy.status.replicas
            if number == 3:
                return Conclusion()
            target = Target(TOYS, "default", toy.metadata.name)
            write = status_patch(target, {"replicas": number + 1}, uid=toy.metadata.uid, reason="remember")
            return Conclusion(status=write, effect=StatusEffect.BLOCKS)

        spec = dataclasses.replace(labelling(seen), conclude=remember)
        slow = (Rule(Delay(9.0), verbs={Verb.PATCH}, resource="pods"), Rule(Delay(0.2), resource="toys"))
        scene = Scene(*slow, spec=spec)
        await _with_pods(scene, 1)
        async with scene.at_work():
            await asyncio.sleep(5)
            assert [snapshot.toy.status.replicas for snapshot in seen] == [0, 1, 2, 3]
            assert seen[-1].pending.marks

    run_virtual(main())


def test_a_write_that_fails_after_its_pass_is_told_to_the_next_one_and_tried_again() -> None:
    async def main() -> None:
        seen: list[LabelSnapshot] = []
        refusal = Rule(Answer(403, "Forbidden"), verbs={Verb.PATCH}, resource="pods", times=1)
        scene = Scene(Rule(Delay(1.0), verbs={Verb.PATCH}, resource="pods"), refusal, spec=labelling(seen))
        await _with_pods(scene, 1)
        async with scene.at_work():
            await asyncio.sleep(10)
        failures = [snapshot.pending.failures for snapshot in seen if snapshot.pending.failures]
        assert len(failures) == 1
        assert "injected fault" in failures[0]["label"]
        assert [message for _, _, _, message in scene.notes.taken] == ["failed", "done"]
        assert scene.controller.queue.retries(Key("default", "toy")) == 0

    run_virtual(main())


def test_a_kind_that_cannot_tell_its_events_is_looked_at_again_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        seen: list[LabelSnapshot] = []

        def events(plan: Plan, phase: str, chain: ChainOutcomes) -> list[EventNote]:
            raise RuntimeError("a fault of the kind")

        refusal = Rule(Answer(403, "Forbidden"), verbs={Verb.PATCH}, resource="pods", times=1)
        spec = dataclasses.replace(labelling(seen), events=events)
        scene = Scene(Rule(Delay(1.0), verbs={Verb.PATCH}, resource="pods"), refusal, spec=spec)
        await _with_pods(scene, 1)
        async with scene.at_work():
            await asyncio.sleep(10)
        assert [snapshot.pending.failures for snapshot in seen if snapshot.pending.failures]
        assert "seen" in seen[-1].pods[0].metadata.labels

    run_virtual(main())
    assert sum("events of a late write" in record.message for record in caplog.records) == 2


def test_a_controller_that_ends_drains_detached_writes() -> None:
    async def main() -> None:
        seen: list[LabelSnapshot] = []
        scene = Scene(Rule(Delay(2.0), verbs={Verb.PATCH}, resource="pods"), spec=labelling(seen))
        await _with_pods(scene, 1)
        async with scene.at_work():
            await asyncio.sleep(1)
        pod = await scene.direct.get(PODS, "p0", "default")
        assert pod.metadata.labels["seen"] == "yes"

    run_virtual(main())


def test_a_chain_that_was_not_begun_gives_no_reason_to_look_again_at_once() -> None:
    """Its phase ended with a refusal, which is tried again after a pause."""

    async def main() -> None:
        seen: list[LabelSnapshot] = []
        spec = labelling(seen)

        def one_by_one(snapshot: LabelSnapshot) -> Plan:
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


def counting(effect: StatusEffect, looks: list[int]) -> ControllerSpec[ToySnapshot]:
    def conclusion(snapshot: ToySnapshot, _plan: Plan, _outcomes: Outcomes) -> Conclusion:
        looks.append(snapshot.toy.status.replicas)
        toy, count = snapshot.toy, len(snapshot.pods)
        if toy.status.replicas == count:
            return Conclusion()
        target = Target(TOYS, "default", toy.metadata.name)
        write = status_patch(target, {"replicas": count}, uid=toy.metadata.uid, reason="counted")
        return Conclusion(status=write, effect=effect)

    return changed(decide=idle, conclude=conclusion)


@pytest.mark.parametrize(("effect", "passes"), [(StatusEffect.REQUEUES, [0, 2]), (StatusEffect.INFORMS, [0])])
def test_a_status_without_news_is_no_reason_to_look_again(effect: StatusEffect, passes: list[int]) -> None:
    async def main() -> None:
        looks: list[int] = []
        scene = Scene(spec=counting(effect, looks))
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
        scene = Scene(slow, spec=counting(StatusEffect.INFORMS, looks))
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
        scene = Scene(refusal, spec=counting(StatusEffect.INFORMS, looks))
        await _with_pods(scene, 2)
        async with scene.at_work():
            await asyncio.sleep(20)
        assert 5 <= len(looks) <= 20

    run_virtual(main())
