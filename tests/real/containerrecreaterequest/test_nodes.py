"""Containers restarted on real nodes: containerd stops them, told by the node daemon; the kubelet starts them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import pytest

from tests.operations.recreate.scenes import Scene, condition, pod, request, restarts, states
from tests.scenarios.daemons import OLD
from tests.scenarios.ephemeral import EphemeralStage
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.nodedaemons import Daemons
from tests.support.realnodes import RealNodes
from tests.support.world import Json

pytestmark = [pytest.mark.nodes, pytest.mark.together("own-nodes")]
Play = Callable[[Callable[[Scene], Awaitable[None]]], None]
WITHIN = 120.0


def container(name: str, **more: Any) -> dict[str, Any]:
    command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
    return {"name": name, "image": OLD, "command": command, **more}


@pytest.fixture(scope="module")
def cluster(own_nodes: RealNodes) -> Iterator[KruiseCluster]:
    with KruiseCluster(own_nodes, flags=(*ALONE, "--feature-gates=KruisePodReadinessGate=true")) as made:
        yield made


@pytest.fixture(scope="module")
def daemons(cluster: KruiseCluster, own_nodes: RealNodes) -> Iterator[Daemons]:
    made = Daemons(cluster, own_nodes)
    for node in own_nodes.nodes:
        made.start(node)
    try:
        yield made
    finally:
        made.stop_all()


@pytest.fixture
def play(cluster: KruiseCluster, daemons: Daemons, own_nodes: RealNodes, request: pytest.FixtureRequest) -> Play:
    namespace = f"restart-{abs(hash(request.node.name)) % 10**6}"

    def run(story: Callable[[Scene], Awaitable[None]]) -> None:
        own_nodes.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).ok()

        async def main() -> None:
            async with cluster.world(namespace) as world:
                await story(Scene(cast(Any, world)))

        asyncio.run(main())

    return run


@pytest.mark.smoke
def test_one_of_two_containers(play: Play) -> None:
    """CRR-52, CRR-71, DMN-59: a new container, the same pod; the other runs on."""

    async def story(scene: Scene) -> None:
        before = await scene.ready(pod(container("app"), container("side")))
        await scene.world.create(request("app"))
        done = await scene.completed(within=WITHIN)
        assert states(done) == [("app", "Succeeded", True)]
        after = await scene.pod()
        assert restarts(after) == {"app": 1, "side": 0}
        assert after["status"]["podIP"] == before["status"]["podIP"]

    play(story)


def test_beside_a_container_of_an_ephemeral_job(play: Play) -> None:
    """EJ-65: the request succeeds; the ephemeral container is the same one, runs on, and is counted."""

    async def story(scene: Scene) -> None:
        made = pod(container("app"))
        made["metadata"]["labels"] = {"app": "web"}
        before = await scene.ready(made)
        stage = EphemeralStage(scene.world, gates={})
        await stage.begin(command=("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"))

        async def runs() -> Json:
            assert (await stage.status()).get("running") == 1
            [status] = (await scene.pod())["status"]["ephemeralContainerStatuses"]
            found: Json = status
            return found

        debug = await scene.world.until(runs, within=WITHIN, every=0.3)
        await scene.world.create(request("app"))
        done = await scene.completed(within=WITHIN)
        assert states(done) == [("app", "Succeeded", True)]
        after = await scene.pod()
        assert restarts(after) == {"app": 1}
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert (await runs())["containerID"] == debug["containerID"]
        assert "running" in (await runs())["state"]

    play(story)


def test_in_order_with_a_hook_and_drained_traffic(play: Play) -> None:
    """CRR-32, CRR-43, CRR-74, DMN-58."""

    async def story(scene: Scene) -> None:
        hook = {"preStop": {"exec": {"command": ["sleep", "3"]}}}
        await scene.ready(pod(container("a", lifecycle=hook), container("b"), terminationGracePeriodSeconds=10))
        began = scene.now
        strategy = {"orderedRecreate": True, "minStartedSeconds": 2, "unreadyGracePeriodSeconds": 2}
        await scene.world.create(request("a", "b", strategy=strategy))
        await scene.pod_is(lambda found: condition(found, "Ready")["status"] == "False", within=20)
        done = await scene.completed(within=WITHIN)
        assert states(done) == [("a", "Succeeded", True), ("b", "Succeeded", True)]
        assert scene.now - began >= 2 + 3 + 2 + 2
        assert restarts(await scene.pod()) == {"a": 1, "b": 1}
        await scene.pod_is(lambda found: condition(found, "Ready")["status"] == "True", within=30)

    play(story)


@pytest.mark.parametrize("force", [False, True])
def test_the_daemon_is_killed_in_the_middle(play: Play, daemons: Daemons, force: bool) -> None:
    """DMN-97: the next one goes on, and no container is stopped twice."""

    async def story(scene: Scene) -> None:
        hook = {"preStop": {"exec": {"command": ["sleep", "2"]}}}
        found = await scene.ready(
            pod(container("a", lifecycle=hook), container("b", lifecycle=hook), terminationGracePeriodSeconds=10)
        )
        node = found["spec"]["nodeName"]
        await scene.world.create(request("a", "b", strategy={"forceRecreate": force}))
        for _ in range(3):
            await asyncio.sleep(1.7)
            daemons.stop(node)
            daemons.start(node)
        done = await scene.completed(within=WITHIN)
        assert [state[:2] for state in states(done)] == [("a", "Succeeded"), ("b", "Succeeded")]
        await asyncio.sleep(5)
        assert restarts(await scene.pod()) == {"a": 1, "b": 1}

    play(story)
