"""DaemonSets on three real nodes of which one goes away, and resources that change in place there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.machinery.client.requests import PatchType
from tests.scenarios.daemons import NEW, OLD, DaemonStage
from tests.scenarios.stage import Pace, images_of, restarts_of, uids
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.world import Json

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("own-nodes")]
PACE = Pace(seconds=3, calm=3.0, within=180.0, every=0.3, slack=10.0)
IN_PLACE = {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 1}
QUICK = {"terminationGracePeriodSeconds": 1}
Play = Callable[[Callable[[DaemonStage], Awaitable[None]]], None]


@pytest.fixture(scope="module")
def real_nodes(own_nodes: RealNodes) -> RealNodes:
    return own_nodes


@pytest.fixture(scope="module")
def kruise_on_nodes(own_nodes: RealNodes) -> Iterator[KruiseCluster]:
    with KruiseCluster(own_nodes, flags=(*ALONE, "--feature-gates=InPlaceWorkloadVerticalScaling=true")) as cluster:
        yield cluster


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, nodes_namespace: str) -> Play:
    def run(story: Callable[[DaemonStage], Awaitable[None]]) -> None:
        async def main() -> None:
            async with kruise_on_nodes.world(nodes_namespace) as world:
                await story(DaemonStage(world, gates={}, pace=PACE))

        asyncio.run(main())

    return run


def test_a_drained_node_gets_its_daemon_again_and_is_updated_too(play: Play, real_nodes: RealNodes) -> None:
    """DS-30, DS-42: kubectl evicts daemons that are not of Kubernetes' own kind; they tolerate a cordoned node."""

    async def story(stage: DaemonStage) -> None:
        before = await stage.start(rolling=IN_PLACE, pod=QUICK)
        node = before[1]["spec"]["nodeName"]
        real_nodes.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
        try:

            async def is_made_anew() -> None:
                assert (await stage.by_node())[node]["metadata"]["uid"] != before[1]["metadata"]["uid"]

            await stage.until(is_made_anew)
            anew = await stage.complete()
            assert [pod["metadata"]["uid"] for pod in (anew[0], anew[2])] == [
                pod["metadata"]["uid"] for pod in (before[0], before[2])
            ]
            await stage.set_image(NEW)
            assert uids(await stage.complete()) == uids(anew)
        finally:
            real_nodes.kubectl("uncordon", node)

    play(story)


def test_a_kubelet_dies_in_a_rollout(play: Play, real_nodes: RealNodes) -> None:
    """DS-64: the rollout waits for the pod of the dead node, and goes on when the node does; one restart each."""

    async def story(stage: DaemonStage) -> None:
        before = await stage.start(rolling=IN_PLACE, pod=QUICK)
        # Nodes are taken in descending order of their names (DS-62).
        node = before[1]["spec"]["nodeName"]
        real_nodes.kill_kubelet(node)
        try:
            await stage.set_image(NEW)

            async def is_stuck() -> None:
                pods = await stage.by_node()
                assert images_of(pods[node])["main"] == NEW
                assert pods[node]["status"]["containerStatuses"][0]["image"].endswith(OLD)

            await stage.until(is_stuck)
            await stage.world.sleep(4)
            assert [images_of(pod)["main"] for pod in (await stage.by_node()).values()].count(NEW) == 2
        finally:
            real_nodes.start_kubelet(node)
        after = await stage.complete()
        assert uids(after) == uids(before)
        assert [restarts_of(pod)["main"] for pod in after] == [1, 1, 1]

    play(story)


@pytest.mark.parametrize("policy", ["NotRequired", "RestartContainer"])
def test_resources_are_resized_in_place(play: Play, policy: str) -> None:
    """DS-67, IPU-33, IPU-41: alone, with an image, and after a resize that no node can grant."""

    async def story(stage: DaemonStage) -> None:
        container: Json = {
            "name": "main",
            "image": OLD,
            "resources": {"requests": {"cpu": "20m"}, "limits": {"cpu": "100m"}},
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": policy}],
        }
        before = await stage.start(rolling=IN_PLACE, pod={**QUICK, "containers": [container]})
        await resize(stage, "30m")
        after = await stage.complete()
        assert uids(after) == uids(before)
        assert [restarts_of(pod)["main"] for pod in after] == [int(policy == "RestartContainer")] * 3

        async def is_resized() -> None:
            # Pods that stay in service count as updated before their kubelets have resized them.
            told = [pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"] for pod in await stage.pods()]
            assert told == ["30m"] * 3

        await stage.until(is_resized)
        await resize(stage, "500", limit="500")

        async def is_refused() -> None:
            told = [
                one["reason"]
                for pod in await stage.pods()
                for one in pod["status"]["conditions"]
                if one["type"] == "PodResizePending"
            ]
            assert told == ["Infeasible"]

        await stage.until(is_refused)
        await resize(stage, "25m", image=NEW)
        corrected = await stage.complete()
        assert uids(corrected) == uids(before)
        assert {images_of(pod)["main"] for pod in corrected} == {NEW}

    play(story)


async def resize(stage: DaemonStage, cpu: str, *, limit: str = "100m", image: str = "") -> None:
    path = "/spec/template/spec/containers/0"
    operations = [
        {"op": "replace", "path": f"{path}/resources/requests/cpu", "value": cpu},
        {"op": "replace", "path": f"{path}/resources/limits/cpu", "value": limit},
    ]
    if image:
        operations.append({"op": "replace", "path": f"{path}/image", "value": image})
    await stage.world.patch(DAEMON_SETS, "web", operations, patch_type=PatchType.JSON)
