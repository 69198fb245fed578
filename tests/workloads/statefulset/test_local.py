"""StatefulSets on the local cluster, on virtual time, with webhooks, garbage collector, scheduler and nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.pod import PODS
from kruise.api.native.storage import STORAGE_CLASSES
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.machinery.client.errors import InvalidError
from tests.support.world import LocalWorld, World, run_local
from tests.workloads.statefulset.stories import (
    IN_PLACE,
    STORIES,
    Stateful,
    a_class_that_does_not_let_claims_grow,
    a_life_with_storage,
    claims_grow,
    manifest,
    with_claims,
)


async def _with_storage(world: LocalWorld) -> None:
    await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))


def test_a_whole_life() -> None:  # ST-60, ST-63, ST-76, ST-77, ST-80, ST-82, ST-133
    run_local(a_life_with_storage)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_the_walkthrough_of_a_parallel_set(version: str) -> None:  # ST-7, ST-75, ST-140
    async def play(world: LocalWorld) -> None:
        web = Stateful(world)
        await web.start(manifest(5, parallel=True, rolling={"maxUnavailable": 3, **IN_PLACE}, version=version))
        before = await web.uids()
        await web.set_image("nginx:1.26")
        await web.complete()
        assert await web.uids() == before

    run_local(play)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: str(story.__name__))
def test_a_story(story: Callable[[World], Awaitable[None]]) -> None:  # ST-40, ST-49, ST-72, ST-75, ST-80, ST-120
    run_local(story)


GROWS = "StatefulSetAutoResizePVCGate=true"


def test_claims_grow() -> None:  # ST-91, ST-94, ST-95, ST-96, ST-98
    async def play(world: LocalWorld) -> None:
        await _with_storage(world)
        await claims_grow(world)

    run_local(play, feature_gates=GROWS)


def test_claims_that_cannot_grow_do_when_their_class_lets_them() -> None:  # ST-94
    async def play(world: LocalWorld) -> None:
        fixed = {**DEFAULT_STORAGE_CLASS, "metadata": {"name": "fixed"}, "allowVolumeExpansion": False}
        await world.client.create(STORAGE_CLASSES, fixed)
        await a_class_that_does_not_let_claims_grow(world, "fixed")

    run_local(play, feature_gates=GROWS)


def test_webhooks_default_and_refuse() -> None:  # ST-22, ST-28, ST-39, ST-111, ST-134
    async def play(world: LocalWorld) -> None:
        web = Stateful(world)
        given = manifest(1)
        given["spec"]["updateStrategy"] = {"type": "OnDelete", "rollingUpdate": {"partition": 1}}
        with pytest.raises(InvalidError, match=r'webhook "vstatefulset.kb.io" .*rollingUpdate'):
            await world.create(given)
        given["spec"].pop("updateStrategy")
        given["spec"].pop("podManagementPolicy")
        [pod] = await web.start(given)
        stored = (await world.get(STATEFUL_SETS, "web"))["spec"]
        assert stored["podManagementPolicy"] == "OrderedReady"
        assert stored["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] == "ReCreate"
        gates = [gate["conditionType"] for gate in pod["spec"]["readinessGates"]]
        assert "KruisePodReady" in gates

    run_local(play)


def test_a_killed_manager_never_doubles_a_pod() -> None:  # ST-131
    async def play(world: LocalWorld) -> None:
        web = Stateful(world)
        await web.start(manifest(3, annotations={"sim.kruise.io/stop-seconds": "20"}))
        await web.set_image("nginx:1.26")
        for _ in range(8):
            await world.sleep(7)
            await world.kill_manager()
            world.start_manager()
            names = [pod["metadata"]["name"] for pod in await world.list(PODS)]
            assert len(names) == len(set(names)) <= 3
        await web.complete()
        assert await web.names() == ["web-0", "web-1", "web-2"]

    run_local(play)


def test_pods_are_normal_before_and_after_an_update_in_place() -> None:
    async def play(world: LocalWorld) -> None:
        web = Stateful(world)
        before = {pod["metadata"]["name"]: pod for pod in await web.start(manifest(2, rolling=IN_PLACE))}
        assert all(pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] == "Normal" for pod in before.values())
        await web.set_image("nginx:1.26")
        for pod in await web.complete():
            assert pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] == "Normal"
            assert pod["status"]["containerStatuses"][0]["restartCount"] == 1

    run_local(play)


def test_claims_come_back_with_their_pods() -> None:  # ST-132
    async def play(world: LocalWorld) -> None:
        await _with_storage(world)
        web = Stateful(world)
        await web.start(with_claims(manifest(2, parallel=True)))
        before = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in await web.claims()}
        await web.change({"replicas": 0})
        await web.reaches(replicas=0)
        await web.change({"replicas": 2})
        await web.complete()
        assert {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in await web.claims()} == before

    run_local(play)
