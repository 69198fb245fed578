"""Containers restarted on real nodes: containerd stops them, told by the node daemon; the kubelet starts them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import pytest

from tests.operations.recreate.scenes import Scene, condition, pod, request, restarts, states
from tests.scenarios.daemons import NEW, OLD
from tests.scenarios.ephemeral import EphemeralStage
from tests.scenarios.stage import Pace, Stage
from tests.support.nodedaemons import Daemons, daemons_on
from tests.support.realnodes import RealNodes
from tests.support.world import Json

pytestmark = [pytest.mark.nodes, pytest.mark.together("own-nodes")]
Play = Callable[[Callable[[Scene], Awaitable[None]]], None]
WITHIN = 120.0


def container(name: str, **more: Any) -> dict[str, Any]:
    command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
    return {"name": name, "image": OLD, "command": command, **more}


@pytest.fixture(scope="module")
def daemons(own_nodes: RealNodes) -> Iterator[Daemons]:
    with daemons_on(own_nodes, "KruisePodReadinessGate") as made:
        yield made


@pytest.fixture
def play(daemons: Daemons) -> Play:
    def run(story: Callable[[Scene], Awaitable[None]]) -> None:
        daemons.play(lambda world: story(Scene(cast(Any, world))), "restart")

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


def replaced(found: Json) -> dict[str, int]:
    """Restarts, but for a container that was made and never ran: the runtime died before the kubelet could start it,
    which made, and counted, another one."""
    return {
        status["name"]: status["restartCount"] - ("waiting" in status.get("lastState", {}))
        for status in found["status"]["containerStatuses"]
    }


@pytest.mark.parametrize("ordered", [False, True])
def test_the_runtime_restarts_in_the_middle(play: Play, own_nodes: RealNodes, ordered: bool) -> None:
    """DMN-99, DMN-59: containerd dies during a hook and between two stops; both containers are recreated, each once."""

    async def story(scene: Scene) -> None:
        hook = {"preStop": {"exec": {"command": ["sleep", "3"]}}}
        found = await scene.ready(
            pod(container("a", lifecycle=hook), container("b", lifecycle=hook), terminationGracePeriodSeconds=10)
        )
        node = found["spec"]["nodeName"]
        await scene.world.create(request("a", "b", strategy={"orderedRecreate": ordered}))
        for _ in range(2):
            await asyncio.sleep(1.5)
            own_nodes.kill_containerd(node)
            await asyncio.sleep(1.0)
            own_nodes.start_containerd(node)
        done = await scene.completed(within=WITHIN)
        assert [state[:2] for state in states(done)] == [("a", "Succeeded"), ("b", "Succeeded")]
        await asyncio.sleep(3)
        assert replaced(await scene.pod()) == {"a": 1, "b": 1}

    play(story)


def test_while_the_pod_is_updated_in_place(play: Play) -> None:
    """CRR-60, CRR-63, CRR-65: a request in order, with hooks and drained traffic, and a new image for one of the
    containers at the same time. Both end, the other container is stopped once, and the pod serves again."""

    async def story(scene: Scene) -> None:
        stage = Stage(scene.world, gates={}, pace=Pace(within=WITHIN))
        hook = {"preStop": {"exec": {"command": ["sleep", "2"]}}}
        [web] = await stage.start(
            replicas=1,
            containers=[container("main", lifecycle=hook), container("side", lifecycle=hook)],
            pod={"terminationGracePeriodSeconds": 10},
        )
        name = web["metadata"]["name"]
        strategy = {"orderedRecreate": True, "unreadyGracePeriodSeconds": 2, "minStartedSeconds": 1}
        await scene.world.create(request("main", "side", pod=name, strategy=strategy))
        await asyncio.sleep(2.5)
        await stage.set_image(NEW)
        done = await scene.completed(within=WITHIN)
        assert [state[:2] for state in states(done)] == [("main", "Succeeded"), ("side", "Succeeded")]
        [after] = await stage.complete()
        assert after["metadata"]["uid"] == web["metadata"]["uid"]
        counts = restarts(after)
        assert counts["side"] == 1
        assert counts["main"] in (1, 2)
        running = {one["name"]: one["image"] for one in after["status"]["containerStatuses"]}
        assert running["main"].endswith(NEW)
        await scene.pod_is(lambda found: condition(found, "Ready")["status"] == "True", name=name, within=30)

    play(story)


def test_nobody_answers_on_the_node(play: Play, daemons: Daemons) -> None:
    """CRR-27, DMN-100: `why` says which node has no daemon, and after a minute the request ends with that word."""

    async def story(scene: Scene) -> None:
        found = await scene.ready(pod(container("app")))
        node = found["spec"]["nodeName"]
        daemons.stop(node)
        try:
            await scene.world.create(request("app"))
            _, said = await daemons.kruise(scene.world, "why", "crr/r")
            assert f"the daemon of node {node} has not taken it up" in said
            done = await scene.completed(within=WITHIN)
            assert done["status"]["message"] == "daemon has not responded for a long time"
        finally:
            daemons.start(node)
        code, said = await daemons.kruise(scene.world, "restart", "p", "-c", "app", "--timeout=60")
        assert code == 0, said
        assert "app: stopped" in said
        assert "app: recreated" in said
        assert restarts(await scene.pod()) == {"app": 1}

    play(story)
