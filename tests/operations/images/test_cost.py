"""What image jobs cost, and that nothing is lost when a manager or a daemon ends in the middle."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS, IMAGE_PULL_JOBS, NODE_IMAGES
from tests.support.world import LocalWorld, run_local

GATE = "ImagePullJobGate=true"


def counting(world: LocalWorld) -> Counter[str]:
    """The patches that reach the API server, by kind and subresource; those that are refused count as well."""
    counts: Counter[str] = Counter()
    core: Any = world.cluster.core
    patch = core.patch

    async def counted(call: Any, *rest: Any) -> Any:
        counts["/".join(part for part in (call.kind.plural, call.subresource) if part)] += 1
        return await patch(call, *rest)

    core.patch = counted
    return counts


async def nodes_are_there(world: LocalWorld, count: int) -> None:
    async def check() -> None:
        assert len((await world.client.list(NODE_IMAGES)).items) == count

    await world.until(check, within=120, every=1)
    await asyncio.sleep(10)  # the first look of the daemons


async def make(world: LocalWorld, name: str = "j", **spec: Any) -> None:
    body = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": name}}
    await world.client.create(IMAGE_PULL_JOBS, {**body, "spec": {"image": "nginx:1.27", **spec}}, "default")


async def completed(world: LocalWorld, name: str = "j") -> Any:
    async def check() -> Any:
        job = await world.client.get(IMAGE_PULL_JOBS, name, "default")
        assert job.status.completion_time is not None, job.status
        return job

    return await world.until(check, within=900, every=1)


def test_a_node_costs_two_writes_and_the_job_a_handful() -> None:
    """One that begins, one that tells the end; and a pass over all nodes is made a few times, not for each of them."""

    async def scenario(world: LocalWorld) -> None:
        await nodes_are_there(world, 20)
        counts = counting(world)
        await make(world, parallelism=20)
        assert (await completed(world)).status.succeeded == 20
        await asyncio.sleep(5)
        assert counts["nodeimages"] == 20
        assert counts["nodeimages/status"] == 20
        assert counts["imagepulljobs"] + counts["imagepulljobs/status"] <= 6
        assert len(world.journal.entries("imagepulljob-controller", limit=1000)) <= 12
        before = {name: count for name, count in counts.items() if "image" in name}
        await asyncio.sleep(600)
        assert {name: count for name, count in counts.items() if "image" in name} == before, "idle costs nothing"

    run_local(scenario, feature_gates=GATE, nodes=20)


def test_a_job_that_takes_longer_than_its_tasks_are_kept_comes_to_its_end() -> None:
    """IPJ-44, NI-20: each node pulls once, and the tasks go when the job is over."""

    async def scenario(world: LocalWorld) -> None:
        await nodes_are_there(world, 8)
        counts = counting(world)
        completion = {"type": "Always", "ttlSecondsAfterFinished": 0}
        await make(world, parallelism=0, completionPolicy=completion)
        for nodes in range(1, 9):
            world.cluster.nodes.stop_daemon(f"node-{nodes}")
        await world.client.patch(IMAGE_PULL_JOBS, "j", {"spec": {"parallelism": 1}}, "default")
        for nodes in range(1, 9):
            # A node takes five minutes, so that the tasks of the first ones are over long before the last one begins.
            await asyncio.sleep(300)
            world.cluster.nodes.start_daemon(f"node-{nodes}")

        async def gone() -> None:
            assert (await world.client.list(IMAGE_PULL_JOBS, "default")).items == ()
            assert all(not one.spec.images for one in (await world.client.list(NODE_IMAGES)).items)

        await world.until(gone, within=900, every=5)
        assert counts["nodeimages/status"] <= 3 * 8
        # One to begin and one to take the task away.
        assert counts["nodeimages"] <= 2 * 8

    run_local(scenario, feature_gates=GATE, nodes=8)


def test_lists_on_the_same_nodes_do_not_undo_each_other() -> None:
    """Five jobs write to the same NodeImages at once: every task arrives, and few writes have to be made again."""

    async def scenario(world: LocalWorld) -> None:
        await nodes_are_there(world, 10)
        counts = counting(world)
        body = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "metadata": {"name": "l"}}
        images = [f"image-{number}:1" for number in range(5)]
        spec = {"images": images, "parallelism": 10}
        await world.client.create(IMAGE_LIST_PULL_JOBS, {**body, "spec": spec}, "default")

        async def check() -> None:
            status = (await world.client.get(IMAGE_LIST_PULL_JOBS, "l", "default")).status
            assert (status.succeeded, status.completion_time is not None) == (5, True), status

        await world.until(check, within=600, every=1)
        assert 50 <= counts["nodeimages"] <= 150

    run_local(scenario, feature_gates=GATE, nodes=10)


def test_a_manager_that_dies_again_and_again_loses_nothing() -> None:
    async def scenario(world: LocalWorld) -> None:
        await nodes_are_there(world, 6)
        await make(world, parallelism=2, completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 30})
        for pause in (0.01, 0.03, 0.05, 0.08, 0.2, 0.4, 0.8):
            await asyncio.sleep(pause)
            await world.kill_manager()
            world.start_manager()
        assert (await completed(world)).status.succeeded == 6

        async def gone() -> None:
            assert (await world.client.list(IMAGE_PULL_JOBS, "default")).items == ()
            assert all(not one.spec.images for one in (await world.client.list(NODE_IMAGES)).items)

        await world.until(gone, within=120, every=1)

    run_local(scenario, feature_gates=GATE, nodes=6)


def test_a_daemon_that_dies_in_the_middle_of_a_pull_pulls_again() -> None:  # DMN-34
    async def scenario(world: LocalWorld) -> None:
        await nodes_are_there(world, 1)
        await make(world, image="large:1", completionPolicy={"type": "Always"})
        await asyncio.sleep(0.3)
        world.cluster.nodes.stop_daemon("node-1")
        await asyncio.sleep(60)
        assert (await world.client.get(IMAGE_PULL_JOBS, "j", "default")).status.completion_time is None
        world.cluster.nodes.start_daemon("node-1")
        assert (await completed(world)).status.succeeded == 1

    run_local(scenario, feature_gates=GATE, nodes=1)


def test_a_node_without_a_daemon_fails_after_ten_minutes() -> None:  # NI-22
    async def scenario(world: LocalWorld) -> None:
        await nodes_are_there(world, 2)
        world.cluster.nodes.stop_daemon("node-2")
        await make(world, parallelism=2)
        job = await completed(world)
        assert (job.status.succeeded, job.status.failed_nodes) == (1, ("node-2",))
        told = (await world.client.get(NODE_IMAGES, "node-2")).status.image_statuses["nginx"].tags[0]
        assert told.message == "node has not responded for a long time"

    run_local(scenario, feature_gates=GATE, nodes=2)
