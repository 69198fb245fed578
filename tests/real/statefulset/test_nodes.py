"""StatefulSets on three real nodes: containers, addresses, volumes with their data, claims that grow, nodes that go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.pod import PODS
from kruise.machinery.client.requests import PatchType
from tests.support.commandline import Kruise
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.realnodes_config import GROWING_CLASS
from tests.support.world import Json, World
from tests.workloads.statefulset.stories import (
    IN_PLACE,
    Stateful,
    a_class_that_does_not_let_claims_grow,
    a_life,
    claims_grow,
    manifest,
    with_claims,
)

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("own-nodes")]
GATES = "StatefulSetAutoResizePVCGate=true,InPlaceWorkloadVerticalScaling=true"
APART = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    ]
}
"""One pod on a node."""
Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture(scope="module")
def real_nodes(own_nodes: RealNodes) -> RealNodes:
    return own_nodes


@pytest.fixture(scope="module")
def kruise_on_nodes(own_nodes: RealNodes) -> Iterator[KruiseCluster]:
    with KruiseCluster(own_nodes, flags=(*ALONE, f"--feature-gates={GATES}")) as cluster:
        yield cluster


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, nodes_namespace: str) -> Play:
    def run(story: Callable[[World], Awaitable[None]]) -> None:
        async def main() -> None:
            async with kruise_on_nodes.world(nodes_namespace) as world:
                await story(world)

        asyncio.run(main())

    return run


def quick(replicas: int, *, rolling: Json | None = None, **spec: Any) -> Json:
    made = manifest(replicas, rolling=rolling, **spec)
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    return made


def identity(pod: Json) -> tuple[str, str, str]:
    return pod["metadata"]["uid"], pod["status"]["podIP"], pod["spec"]["nodeName"]


def restarts(pods: list[Json]) -> list[int]:
    return [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods]


def in_pod(nodes: RealNodes, world: World, pod: str, command: str) -> str:
    return nodes.kubectl(f"--namespace={world.namespace}", "exec", pod, "--", "sh", "-c", command)


def test_an_image_changes_in_place(play: Play, real_nodes: RealNodes) -> None:
    """ST-76, ST-113, IPU-164: same pods, addresses, nodes and volumes with their data; one restart each."""

    async def story(world: World) -> None:
        web = Stateful(world)
        before = await web.start(with_claims(quick(3, rolling=IN_PLACE)))
        for name in await web.names():
            in_pod(real_nodes, world, name, f"echo {name} > /data/word")
        await web.set_image("nginx:1.26")
        after = await web.complete()
        assert [identity(pod) for pod in after] == [identity(pod) for pod in before]
        assert restarts(after) == [1, 1, 1]
        for name in await web.names():
            assert in_pod(real_nodes, world, name, "cat /data/word") == f"{name}\n"

    play(story)


def test_a_whole_life(play: Play) -> None:
    """ST-60, ST-63, ST-77, ST-80, ST-82, ST-133."""
    play(a_life)


def test_claims_grow(play: Play) -> None:
    """ST-91, ST-94, ST-95, ST-98: by a provisioner that can."""
    play(lambda world: claims_grow(world, GROWING_CLASS))


def test_claims_that_cannot_grow_do_when_their_class_lets_them(play: Play, real_nodes: RealNodes) -> None:
    """ST-94: by one that cannot, until somebody allows it."""

    async def story(world: World) -> None:
        try:
            await a_class_that_does_not_let_claims_grow(world, "standard")
        finally:
            real_nodes.kubectl("patch", "storageclass", "standard", "-p", '{"allowVolumeExpansion":false}')

    play(story)


@pytest.mark.parametrize("policy", ["NotRequired", "RestartContainer"])
def test_resources_are_resized_in_place(play: Play, policy: str) -> None:
    """IPU-33, IPU-41: together with an image as well; what no node can grant is said, and corrected on the same pod."""

    async def story(world: World) -> None:
        web = Stateful(world)
        given = quick(2, rolling=IN_PLACE)
        container = given["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "50m"}, "limits": {"cpu": "200m"}}
        container["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": policy}]
        before = await web.start(given)
        await resize(world, cpu="100m")
        after = await web.complete()
        assert [identity(pod) for pod in after] == [identity(pod) for pod in before]
        assert restarts(after) == [int(policy == "RestartContainer")] * 2
        for pod in after:
            assert pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"] == "100m"
        await resize(world, cpu="500", limit="500")

        async def is_said() -> None:
            pod = await world.get(PODS, "web-1")
            assert any(
                one["type"] == "PodResizePending" and one["reason"] == "Infeasible"
                for one in pod["status"]["conditions"]
            )

        await world.until(is_said)
        await resize(world, cpu="60m", limit="150m", image="nginx:1.26")
        corrected = await web.complete()
        assert [identity(pod) for pod in corrected] == [identity(pod) for pod in before]
        assert {pod["spec"]["containers"][0]["image"] for pod in corrected} == {"nginx:1.26"}

    play(story)


async def resize(world: World, *, cpu: str, limit: str = "200m", image: str = "") -> None:
    path = "/spec/template/spec/containers/0"
    operations = [
        {"op": "replace", "path": f"{path}/resources/requests/cpu", "value": cpu},
        {"op": "replace", "path": f"{path}/resources/limits/cpu", "value": limit},
    ]
    if image:
        operations.append({"op": "replace", "path": f"{path}/image", "value": image})
    await world.patch(STATEFUL_SETS, "web", operations, patch_type=PatchType.JSON)


def test_a_node_is_drained_and_comes_back(play: Play, real_nodes: RealNodes) -> None:
    """ST-60, ST-83: the pod of a drained node waits for a place, and comes back with its name and its data."""

    async def story(world: World) -> None:
        web = Stateful(world)
        given = with_claims(quick(3, parallel=True, rolling=IN_PLACE))
        given["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": APART}
        before = {pod["metadata"]["name"]: pod for pod in await web.start(given)}
        node = before["web-1"]["spec"]["nodeName"]
        in_pod(real_nodes, world, "web-1", "echo kept > /data/word")
        real_nodes.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")
        try:

            async def waits() -> None:
                pod = await world.get(PODS, "web-1")
                assert pod["metadata"]["uid"] != before["web-1"]["metadata"]["uid"]
                assert not pod["spec"].get("nodeName")

            await world.until(waits)
        finally:
            real_nodes.kubectl("uncordon", node)
        after = {pod["metadata"]["name"]: pod for pod in await web.complete()}
        assert sorted(after) == sorted(before)
        assert after["web-1"]["spec"]["nodeName"] == node
        assert in_pod(real_nodes, world, "web-1", "cat /data/word") == "kept\n"
        for name in ("web-0", "web-2"):
            assert identity(after[name]) == identity(before[name])

    play(story)


def test_a_kubelet_dies_in_a_rollout(play: Play, real_nodes: RealNodes) -> None:
    """ST-70, ST-74: the rollout waits for the pod of the dead node, and goes on when the node does."""

    async def story(world: World) -> None:
        web = Stateful(world)
        given = quick(3, parallel=True, rolling=IN_PLACE)
        given["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": APART}
        before = await web.start(given)
        node = before[1]["spec"]["nodeName"]
        real_nodes.kill_kubelet(node)
        try:
            await web.set_image("nginx:1.26")

            async def is_stuck() -> None:
                pod = await world.get(PODS, "web-1")
                assert pod["spec"]["containers"][0]["image"] == "nginx:1.26"
                assert (await web.status())["updatedReplicas"] == 2

            await world.until(is_stuck, within=120)
            await world.sleep(4)
            first, _, _ = await web.pods()
            assert first["spec"]["containers"][0]["image"] == "nginx:1.25"
        finally:
            real_nodes.start_kubelet(node)
        after = await web.complete()
        assert [identity(pod) for pod in after] == [identity(pod) for pod in before]
        assert restarts(after) == [1, 1, 1]

    play(story)


def test_a_pod_stuck_on_a_dead_node_keeps_its_name(
    play: Play, real_nodes: RealNodes, kruise_on_nodes: KruiseCluster
) -> None:
    """ST-65: nobody knows whether it still runs, so no second pod of its ordinal is made; that is said, and others go
    on meanwhile."""

    async def story(world: World) -> None:
        web = Stateful(world)
        given = quick(3, parallel=True, rolling={"maxUnavailable": 2})
        given["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": APART}
        before = {pod["metadata"]["name"]: pod for pod in await web.start(given)}
        node = before["web-1"]["spec"]["nodeName"]
        real_nodes.kill_kubelet(node)
        try:
            await world.delete(PODS, "web-1")
            await web.set_image("nginx:1.26")

            async def others_went_on() -> None:
                found = {pod["metadata"]["name"]: pod for pod in await world.list(PODS)}
                assert found["web-1"]["metadata"]["uid"] == before["web-1"]["metadata"]["uid"]
                for name in ("web-0", "web-2"):
                    assert found[name]["spec"]["containers"][0]["image"] == "nginx:1.26"

            await world.until(others_went_on, within=120)

            async def is_said() -> None:
                told = {item["type"]: item for item in (await web.status()).get("conditions", ())}
                assert told.get("Waiting", {}).get("reason") == "Overdue", told
                assert "web-1" in told["Waiting"]["message"]

            await world.until(is_said, within=120)
            kruise = Kruise(kruise_on_nodes.kubeconfig)
            asked = ("why", "statefulsets.apps.kruise.io/web", f"--namespace={world.namespace}")
            assert "[overdue]" in (await asyncio.to_thread(kruise, *asked)).out
            await others_went_on()
        finally:
            real_nodes.start_kubelet(node)
        after = {pod["metadata"]["name"]: pod for pod in await web.complete()}
        assert sorted(after) == sorted(before)
        assert after["web-1"]["metadata"]["uid"] != before["web-1"]["metadata"]["uid"]

    play(story)
