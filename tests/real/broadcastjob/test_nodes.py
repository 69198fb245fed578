"""BroadcastJobs on three real nodes: real containers that end, fail and restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml

from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.native.pod import PODS
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.world import Json, World
from tests.workloads.broadcastjob.test_local import counts, job

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
WITHIN = 180.0
Story = Callable[[World], Awaitable[None]]
Play = Callable[[Story], None]


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str) -> Play:
    def run(story: Story) -> None:
        async def main() -> None:
            async with kruise_on_nodes.world(nodes_namespace) as world:
                await story(world)

        asyncio.run(main())

    return run


async def phase(world: World, name: str, wanted: str) -> Json:
    async def check() -> Json:
        found = await world.get(BROADCAST_JOBS, name)
        assert found.get("status", {}).get("phase") == wanted
        return found

    return await world.until(check, within=WITHIN, every=0.3)


def quick(name: str, command: str, **spec: Any) -> Json:
    made = job(name, command, version="v1beta1", **spec)
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    return made


@pytest.mark.smoke
def test_a_task_on_each_node_one_at_a_time(play: Play) -> None:
    """BJ-46, BJ-61, BJ-81: three nodes, never two pods at a time, all done in the end."""

    async def story(world: World) -> None:
        await world.create(quick("task", "sleep 1", parallelism=1))
        most = 0
        while True:
            pods = await world.list(PODS, "app=task")
            most = max(most, sum(pod["status"].get("phase") in ("Pending", "Running") for pod in pods))
            found = await world.get(BROADCAST_JOBS, "task")
            if found.get("status", {}).get("phase") == "completed":
                break
            await world.sleep(0.2)
        assert most == 1
        assert counts(found) == (3, 0, 3, 0)
        pods = await world.pods("app=task")
        assert len({pod["spec"]["nodeName"] for pod in pods}) == 3

    play(story)


def test_a_failure_ends_it_and_takes_the_others(play: Play) -> None:
    """BJ-36, BJ-37."""

    async def story(world: World) -> None:
        first = 'case "$NODE" in *1) exit 3;; *) sleep 600;; esac'
        made = quick("fails", f"sleep 2; {first}")
        field = {"fieldRef": {"fieldPath": "spec.nodeName"}}
        made["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "NODE", "valueFrom": field}]
        await world.create(made)
        found = await phase(world, "fails", "failed")
        assert counts(found) == (3, 0, 0, 3)

        async def gone() -> None:
            assert len(await world.list(PODS, "app=fails")) == 1

        await world.until(gone, within=WITHIN)

    play(story)


def test_it_goes_with_its_pods(play: Play) -> None:
    """BJ-47, BJ-80."""

    async def story(world: World) -> None:
        policy = {"type": "Always", "ttlSecondsAfterFinished": 5}
        await world.create(quick("short", "true", completionPolicy=policy))

        async def gone() -> None:
            assert await world.list(BROADCAST_JOBS) == []
            assert await world.list(PODS, "app=short") == []

        await world.until(gone, within=WITHIN)

    play(story)


WALK_THROUGH = """
apiVersion: apps.kruise.io/v1alpha1
kind: BroadcastJob
metadata:
  name: bcj-demo
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: counter
          image: busybox
          command:
            - "/bin/sh"
            - "-c"
            - "for i in 9 8 7 6 5 4 3 2 1; do echo $i; done"
"""


def test_the_well_known_example_as_it_is_written(play: Play) -> None:
    """BJ-7, BJ-75, BJ-81: a pod on each node, of whose gates one of one is met, and all stay."""

    async def story(world: World) -> None:
        await world.create(yaml.safe_load(WALK_THROUGH))
        found = await phase(world, "bcj-demo", "completed")
        assert counts(found) == (3, 0, 3, 0)
        pods = await world.pods("broadcastjob-name=bcj-demo")
        assert len({pod["spec"]["nodeName"] for pod in pods}) == 3
        for pod in pods:
            assert pod["metadata"]["name"].startswith("bcj-demo-")
            assert pod["spec"]["readinessGates"] == [{"conditionType": "KruisePodReady"}]
            ready = {one["type"]: one["status"] for one in pod["status"]["conditions"]}
            assert ready["KruisePodReady"] == "True"

    play(story)
