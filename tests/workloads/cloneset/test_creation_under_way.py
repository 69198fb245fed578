"""Pods that an earlier pass is still making: nobody makes them twice, or takes their claims away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, PersistentVolumeClaim
from kruise.local.inprocess import InProcessTransport
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import run_virtual
from kruise.machinery.pending import CREATION
from kruise.machinery.plan import Phase, Plan, Urgency
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.situation import Snapshot
from tests.support.clonesets import DATA_CLAIM, NEW, NOW, OLD, make_claim, make_cloneset, make_pending, make_pod
from tests.support.faults import Answer, Delay, FaultyTransport, Rule
from tests.support.world import LocalWorld, local_world
from tests.workloads.cloneset.chaos import manifest


def planned(
    replicas: int,
    pods: list[Pod],
    marks: dict[str, str],
    claims: list[PersistentVolumeClaim] | None = None,
    **spec: Any,
) -> Plan:
    if claims is not None:
        spec["volumeClaimTemplates"] = [DATA_CLAIM]
    return decide(
        Snapshot(
            cloneset=make_cloneset(replicas=replicas, **spec),
            now=NOW,
            pods=tuple(pods),
            claims=tuple(claims or ()),
            revisions=(OLD, NEW),
            pending=make_pending(marks),
            seed=3,
        )
    )


def phase_of(plan: Plan, name: str) -> Phase | None:
    return next((phase for phase in plan.phases if phase.name == name), None)


def test_creations_may_outlast_their_pass_and_let_others_go_first() -> None:
    scale = phase_of(planned(3, [make_pod("aaaaa")], {}), "scale")
    assert scale is not None
    assert (scale.detaches, scale.mark, scale.slow_start, scale.urgency) == (True, CREATION, True, Urgency.LATER)


def test_deletions_are_waited_for() -> None:
    scale = phase_of(planned(1, [make_pod("aaaaa"), make_pod("bbbbb")], {}), "scale")
    assert scale is not None
    assert (scale.detaches, scale.urgency) == (False, Urgency.USUAL)


@given(
    replicas=st.integers(0, 8),
    there=st.integers(0, 6),
    made=st.sets(st.integers(0, 9), min_size=1),
    old=st.booleans(),
)
def test_nobody_is_made_deleted_or_moved_meanwhile(replicas: int, there: int, made: set[int], old: bool) -> None:
    """How many pods there will be is not known before all have been made."""
    pods = [make_pod(f"{number:05d}", old=old) for number in range(there)]
    marks = {f"web-{number:05d}": CREATION for number in made}
    plan = planned(replicas, pods, marks, rolling={"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1})
    assert phase_of(plan, "scale") is None
    touched = {action.target.name for action in plan.actions() if action.target.resource == PODS}
    if there != replicas:
        assert not touched
    assert touched.isdisjoint(marks)


def test_a_pod_that_is_there_already_keeps_its_revision_in_all_counts() -> None:
    """The answer to its creation has come, but the pass that made it has not been told yet."""
    plan = planned(2, [make_pod("aaaaa"), make_pod("bbbbb")], {"web-bbbbb": CREATION})
    assert not list(plan.actions())
    assert plan.memo_as(Memo).figures.updated_available == 2


@pytest.mark.parametrize("reuse", [False, True])
def test_the_claims_of_a_pod_that_is_being_made_are_left_alone(reuse: bool) -> None:
    """They come before their pod: at that moment they look as if nobody used them (CS-121, CS-122)."""
    claims = [make_claim("aaaaa"), make_claim("bbbbb")]
    plan = planned(
        2, [make_pod("aaaaa", claims=["data"])], {"web-bbbbb": CREATION}, claims, scale={"enablePVCReuse": reuse}
    )
    assert not list(plan.actions())


def test_claims_of_nobody_still_go() -> None:
    claims = [make_claim("bbbbb"), make_claim("ccccc")]
    plan = planned(1, [], {"web-bbbbb": CREATION}, claims)
    assert [(action.verb, action.target.name) for action in plan.actions()] == [(Verb.DELETE, "data-web-ccccc")]


# On a server that takes its time


async def on_a_slow_server(world: LocalWorld, *rules: Rule) -> FaultyTransport:
    await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
    transport = FaultyTransport(InProcessTransport(world.cluster.core), seed=1, clock=world.clock)
    transport.add(*rules)
    world.start_manager(transport)
    await asyncio.sleep(1)
    return transport


async def conditions(world: LocalWorld) -> list[str]:
    return [item["type"] for item in (await world.cloneset())["status"].get("conditions", [])]


def test_pods_with_claims_come_once_each() -> None:
    async def main() -> None:
        async with local_world(start=False, nodes=3) as world:
            slow = Rule(Delay(0.7), verbs={Verb.CREATE})
            transport = await on_a_slow_server(world, slow)
            await world.create(manifest(replicas=5, claims=True))
            await asyncio.sleep(30)
            assert len(await world.pods()) == 5
            claims = await world.list(PERSISTENT_VOLUME_CLAIMS)
            made = [entry for entry in transport.injected(Delay) if entry.request.resource == PERSISTENT_VOLUME_CLAIMS]
            assert len(claims) == len(made) == 5, "none was taken away and made again"
            told = await world.events(reason="SuccessfulCreate")
            assert sum(event.get("count", 1) for event in told) == 5, "also of those that came after their pass"

    run_virtual(main())


def test_a_refusal_that_comes_late_is_shown_and_tried_less_and_less() -> None:
    async def main() -> None:
        async with local_world(start=False, nodes=3) as world:
            slow = Rule(Delay(0.5), verbs={Verb.CREATE}, resource="pods")
            refusal = Rule(Answer(403, "Forbidden"), verbs={Verb.CREATE}, resource="pods")
            transport = await on_a_slow_server(world, slow, refusal)
            await world.create(manifest(replicas=8))
            await asyncio.sleep(30)
            assert "FailedScale" in await conditions(world)
            assert 3 <= len(transport.injected(Answer)) <= 20, "one at a time, with longer and longer pauses"
            transport.clear()
            await asyncio.sleep(90)
            assert "FailedScale" not in await conditions(world)
            assert (await world.cloneset())["status"]["readyReplicas"] == 8

    run_virtual(main())


@pytest.mark.parametrize("end", ["scaled in", "deleted"])
def test_what_nobody_wants_any_more_is_not_made(end: str) -> None:
    """Hundreds may stand in line when somebody changes their mind."""

    async def main() -> None:
        async with local_world(start=False, nodes=3) as world:
            transport = await on_a_slow_server(world, Rule(Delay(0.5), verbs={Verb.CREATE}, resource="pods"))
            await world.create(manifest(replicas=400))
            await asyncio.sleep(2)
            if end == "deleted":
                await world.delete(CLONE_SETS, "web")
            else:
                await world.patch(CLONE_SETS, "web", {"spec": {"replicas": 1}})
            await asyncio.sleep(60)
            assert len(transport.injected(Delay)) < 150
            assert len(await world.pods()) == (0 if end == "deleted" else 1)

    run_virtual(main())
