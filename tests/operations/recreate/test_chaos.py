"""The daemon dies at any moment, and the manager as well: every container is stopped once (DMN-95, DMN-97)."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kruise.api.native.pod import PODS
from tests.operations.recreate.scenes import (
    GATES,
    Scene,
    condition,
    container,
    is_ready,
    play,
    pod,
    request,
    restarts,
    states,
)
from tests.support.dying_both import dies_at_every_write, in_a_storm_of_both, insist
from tests.support.storms import Witness
from tests.support.world import Json, LocalWorld

KINDS = ("containerrecreaterequest", "readiness")
MOMENTS = [0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 1.2, 2.0]


@pytest.mark.parametrize("force", [False, True])
def test_the_daemon_dies_again_and_again(force: bool) -> None:
    async def scenario(scene: Scene) -> None:
        for number, moment in enumerate(MOMENTS):
            name = f"p{number}"
            found = await scene.ready(
                pod(container("a"), container("b"), name=name, annotations={"sim.kruise.io/stop-seconds": "0.4"})
            )
            nodes, node = scene.world.cluster.nodes, found["spec"]["nodeName"]
            await scene.world.create(request("a", "b", name=name, pod=name, strategy={"forceRecreate": force}))
            for _ in range(3):
                await asyncio.sleep(moment)
                nodes.stop_daemon(node)
                await asyncio.sleep(0.3)
                nodes.start_daemon(node)
            done = await scene.completed(name)
            assert [state[:2] for state in states(done)] == [("a", "Succeeded"), ("b", "Succeeded")]
            await asyncio.sleep(5)
            assert restarts(await scene.pod(name)) == {"a": 1, "b": 1}, moment

    play(scenario)


def test_the_manager_dies_in_the_middle() -> None:
    """CRR-22, CRR-32: the pod is released in the end, whoever does it."""

    async def scenario(scene: Scene) -> None:
        for number, moment in enumerate(MOMENTS[:4]):
            name = f"p{number}"
            await scene.ready(pod(container("a"), name=name))
            await scene.world.create(
                request("a", name=name, pod=name, strategy={"unreadyGracePeriodSeconds": 1}, ttlSecondsAfterFinished=0)
            )
            await asyncio.sleep(moment)
            await scene.world.kill_manager()
            await asyncio.sleep(2)
            scene.world.start_manager()
            await scene.gone(name)
            ready = await scene.pod_is(
                lambda found: (
                    {item["type"]: item["status"] for item in found["status"]["conditions"]}["Ready"] == "True"
                ),
                name,
            )
            assert restarts(ready) == {"a": 1}, moment

    play(scenario)


async def two_of_three(world: LocalWorld, within: float = 120.0) -> None:
    """In order, out of traffic, one after the other; the third container and the other pod are not named."""
    scene = Scene(world)

    def hears(kind: str, found: Json) -> None:
        name = found["metadata"]["name"]
        for one in found.get("status", {}).get("containerStatuses", ()):
            most = 1 if name == "p" and one["name"] in ("a", "b") else 0
            assert one["restartCount"] <= most, f"{name} {one['name']} was stopped {one['restartCount']} times"

    async with Witness(world, PODS, hears):
        for one in (pod(container("a"), container("b"), container("c")), pod(container("a"), container("b"), name="q")):
            await insist(world, partial(world.create, one))
            await scene.pod_is(is_ready, one["metadata"]["name"], within=within)
        strategy = {"orderedRecreate": True, "unreadyGracePeriodSeconds": 0}
        await insist(world, lambda: world.create(request("b", "a", strategy=strategy)))
        done = await scene.completed(within=within)
        assert [state[:2] for state in states(done)] == [("b", "Succeeded"), ("a", "Succeeded")]
        served = await scene.pod_is(lambda found: condition(found, "Ready").get("status") == "True", within=within)
        assert restarts(served) == {"a": 1, "b": 1, "c": 0}
        assert condition(served, "KruisePodReady")["status"] == "True"

        async def released() -> None:
            found = await scene.request()
            assert "crr.apps.kruise.io/active" not in found["metadata"]["labels"]
            assert not found["metadata"].get("finalizers")

        await world.until(released, within=within)
        await asyncio.sleep(2)


def test_either_may_die_at_every_write() -> None:
    """CRR-22, CRR-32, CRR-51, DMN-95, DMN-97."""
    manager, daemon = dies_at_every_write(two_of_three, kinds=KINDS, gates=GATES, nodes=1)
    assert manager > 4
    assert daemon > 4


@pytest.mark.parametrize("seed", range(4))
def test_a_storm(seed: int) -> None:
    """CRR-51, DMN-97."""

    async def patient(world: LocalWorld) -> None:
        await two_of_three(world, within=900.0)

    assert in_a_storm_of_both(patient, kinds=KINDS, gates=GATES, nodes=1, seed=seed, rate=0.15) >= 3
