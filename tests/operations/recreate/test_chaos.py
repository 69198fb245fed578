"""The daemon dies at any moment, and the manager as well: every container is stopped once (DMN-95, DMN-97)."""

from __future__ import annotations

import asyncio

import pytest

from tests.operations.recreate.scenes import Scene, container, play, pod, request, restarts, states

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
