"""AdvancedCronJobs on three real nodes and a real control plane, with Jobs of the real kube-controller-manager."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.native.apps import JOBS
from kruise.api.native.pod import PODS
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.world import World
from tests.workloads.advancedcronjob.test_local import cron, on_each_node, pod

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
WITHIN = 180.0
MANIFEST = Path(__file__).parents[3] / "docs" / "manifests" / "advancedcronjob" / "acj-test.yaml"
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


@pytest.mark.smoke
def test_broadcast_jobs_by_the_clock(play: Play) -> None:
    """ACJ-66, ACJ-70, ACJ-92: runs follow each other, each on every node, and pausing ends that."""

    async def story(world: World) -> None:
        await world.create(cron("often", on_each_node("true"), version="v1beta1", schedule="@every 10s"))

        async def two_done() -> None:
            done = [job for job in await world.list(BROADCAST_JOBS) if job.get("status", {}).get("succeeded") == 3]
            assert len(done) >= 2

        await world.until(two_done, within=WITHIN, every=0.5)
        await world.patch(ADVANCED_CRON_JOBS, "often", {"spec": {"paused": True}})

        async def idle() -> None:
            status = (await world.get(ADVANCED_CRON_JOBS, "often"))["status"]
            assert "active" not in status

        await world.until(idle, within=WITHIN, every=0.5)
        before = [job["metadata"]["name"] for job in await world.list(BROADCAST_JOBS)]
        await world.sleep(25)
        after = [job["metadata"]["name"] for job in await world.list(BROADCAST_JOBS)]
        assert set(after) <= set(before)

    play(story)


def test_jobs_wait_for_each_other(play: Play) -> None:
    """ACJ-60, ACJ-80: under Forbid the next starts when the one before has ended, not at the next tick."""

    async def story(world: World) -> None:
        template = {"jobTemplate": {"spec": {"template": pod("sleep 4")}}}
        given = cron("slow", template, version="v1beta1", schedule="@every 3s", concurrencyPolicy="Forbid")
        await world.create(given)
        names: set[str] = set()
        for _ in range(240):
            status = (await world.get(ADVANCED_CRON_JOBS, "slow")).get("status", {})
            assert len(status.get("active", ())) <= 1
            names.update(job["metadata"]["name"] for job in await world.list(JOBS))
            if len(names) >= 3:
                break
            await world.sleep(0.5)
        assert len(names) >= 3

    play(story)


@pytest.mark.long
def test_the_well_known_example_as_it_is_written(play: Play) -> None:
    """ACJ-12, ACJ-70, ACJ-92: a BroadcastJob at the full minute, called after it, gone half a minute after its end."""

    async def story(world: World) -> None:
        await world.create(yaml.safe_load(MANIFEST.read_text(encoding="utf-8")))

        async def typed() -> None:
            status = (await world.get(ADVANCED_CRON_JOBS, "acj-test")).get("status", {})
            assert status.get("type") == "BroadcastJob"

        await world.until(typed, within=20)

        async def done() -> str:
            runs = [job for job in await world.list(BROADCAST_JOBS) if job.get("status", {}).get("succeeded") == 3]
            assert runs
            return str(runs[0]["metadata"]["name"])

        name = await world.until(done, within=WITHIN, every=0.5)
        assert int(name.removeprefix("acj-test-")) % 60 == 0
        await world.patch(ADVANCED_CRON_JOBS, "acj-test", {"spec": {"paused": True}})

        async def gone() -> None:
            assert name not in [job["metadata"]["name"] for job in await world.list(BROADCAST_JOBS)]
            assert await world.list(PODS, f"broadcastjob-name={name}") == []

        await world.until(gone, within=WITHIN, every=0.5)
        assert "lastScheduleTime" in (await world.get(ADVANCED_CRON_JOBS, "acj-test"))["status"]

    play(story)
