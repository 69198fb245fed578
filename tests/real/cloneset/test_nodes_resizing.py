"""Resources on three real nodes: resized in place, with and without a restart, and a resize that no node can grant."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from tests.support.commandline import Kruise
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.nodescene import (
    CACHE,
    STATE,
    TICKER,
    Scene,
    assert_all,
    check_unbroken,
    cloneset,
    container,
    identity,
    status_of,
)
from tests.support.realnodes import RealNodes
from tests.support.resizing_stories import RESOURCES, STORIES, Resizing, Story

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("resizing")]


@pytest.fixture(scope="module")
def real_nodes(own_nodes: RealNodes) -> RealNodes:
    return own_nodes


@pytest.fixture(scope="module")
def kruise_on_nodes(own_nodes: RealNodes) -> Iterator[KruiseCluster]:
    with KruiseCluster(own_nodes, flags=(*ALONE, "--feature-gates=InPlaceWorkloadVerticalScaling=true")) as cluster:
        yield cluster


def test_resources_are_resized_in_place(scene: Scene) -> None:
    """cpu without a restart and without a moment of unreadiness; memory with one where the policy says so.

    IPU-33, IPU-41, IPU-55, IPU-61.
    """
    resources = {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}}
    policy = [
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"},
    ]
    scene.create(
        cloneset(
            replicas=2,
            containers=[container(resources=resources, resizePolicy=policy), TICKER],
            pod={"volumes": [CACHE]},
        )
    )
    before = scene.settled()
    mark = scene.log.mark()
    _resize(scene, {"limits/cpu": "200m"})

    def resized() -> None:
        for pod in scene.pods():
            assert status_of(pod)["resources"]["limits"]["cpu"] == "200m", scene.told()

    scene.until(resized)
    after = scene.settled()
    assert scene.fewest_ready(mark) == 2
    for name, pod in after.items():
        assert identity(pod) == identity(before[name])
        assert status_of(pod)["containerID"] == status_of(before[name])["containerID"]
        assert _cpu_quota(scene, name) == 20000

    mark = scene.log.mark()
    _resize(scene, {"limits/memory": "96Mi", "requests/memory": "48Mi"})
    scene.until(lambda: assert_all(scene.pods(), lambda pod: status_of(pod)["restartCount"] == 1))
    later = scene.settled()
    assert scene.fewest_ready(mark) == 1
    for name, pod in later.items():
        assert identity(pod) == identity(before[name])
        assert status_of(pod)["resources"]["limits"] == {"cpu": "200m", "memory": "96Mi"}
        assert status_of(pod)["resources"]["requests"] == {"cpu": "50m", "memory": "48Mi"}
    check_unbroken(scene, later, before, later)


def test_a_resize_that_no_node_can_grant_waits(scene: Scene) -> None:
    """It holds up the rollout; smaller amounts are applied to the same pod at once, together with a new image."""
    resources = {"requests": {"cpu": "50m"}, "limits": {"cpu": "100m"}}
    scene.create(cloneset(replicas=2, containers=[container(resources=resources)]))
    before = scene.settled()
    mark = scene.log.mark()
    _resize(scene, {"requests/cpu": "500", "limits/cpu": "500"})
    refused = scene.until_change(
        lambda change: any(
            each["type"] == "PodResizePending" and each.get("reason") == "Infeasible"
            for each in change.object["status"].get("conditions", [])
        ),
        since=mark,
    )
    time.sleep(2)
    # Nothing was restarted, so it serves on.
    pod = scene.by_name()[refused.name]
    assert pod["metadata"]["labels"][STATE] == "Updating"
    assert status_of(pod) == status_of(before[refused.name])
    assert scene.most_of(scene.cloneset()["status"]["updateRevision"], mark) == 1
    assert "nginx 1.25" in scene.page(pod)
    path = "/spec/template/spec/containers/0"
    operations = [
        {"op": "replace", "path": f"{path}/resources/requests/cpu", "value": "60m"},
        {"op": "replace", "path": f"{path}/resources/limits/cpu", "value": "150m"},
        {"op": "replace", "path": f"{path}/image", "value": "nginx:1.26"},
    ]
    scene.kubectl("patch", "cloneset", "web", "--type=json", "-p", json.dumps(operations))
    for name, pod in scene.settled("nginx:1.26").items():
        assert identity(pod) == identity(before[name])
        assert status_of(pod)["restartCount"] == 1
        assert status_of(pod)["resources"] == {"requests": {"cpu": "60m"}, "limits": {"cpu": "150m"}}
        assert _cpu_quota(scene, name) == 15000
    assert scene.fewest_ready(mark) == 1


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_resources_change_in_place(story: Story, kruise_on_nodes: KruiseCluster, nodes_namespace: str) -> None:
    """IPU-33, IPU-41, IPU-55, IPU-61: the stories that all workloads share."""

    async def main() -> None:
        async with kruise_on_nodes.world(nodes_namespace) as world:
            await story(Resizing(world, RESOURCES["cloneset"], Kruise(kruise_on_nodes.kubeconfig)))

    asyncio.run(main())


def _resize(scene: Scene, amounts: dict[str, str]) -> None:
    path = "/spec/template/spec/containers/0/resources"
    operations = [{"op": "replace", "path": f"{path}/{which}", "value": amount} for which, amount in amounts.items()]
    scene.kubectl("patch", "cloneset", "web", "--type=json", "-p", json.dumps(operations))


def _cpu_quota(scene: Scene, pod: str) -> int:
    """Microseconds of cpu in 100 ms, from the cgroup that the container sees, be it old or new."""
    said = scene.run(pod, "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup/cpu.max")
    return int(said.split()[0])
