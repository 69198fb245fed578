"""Manager and daemon die at every write while images are pulled, and nothing works reliably: no more nodes pull at a
time than allowed, no image is left out, and nothing is left behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kruise.api.apps.images import IMAGE_PULL_JOBS, NODE_IMAGES
from tests.support.dying_both import dies_at_every_write, in_a_storm_of_both, insist
from tests.support.storms import Witness
from tests.support.world import Json, LocalWorld

KINDS = ("nodeimage", "imagepulljob", "imagelistpulljob")
GATES = "ImagePullJobGate=true"
ALLOWED = 2
NODES = 3


def pulling(found: Json) -> bool:
    """Whether a node has a task that it has not ended."""
    for name, image in found.get("spec", {}).get("images", {}).items():
        statuses = found.get("status", {}).get("imageStatuses", {}).get(name, {}).get("tags", ())
        ended = {(one["tag"], one.get("version", 0)) for one in statuses if "completionTime" in one}
        if any((task["tag"], task.get("version", 0)) not in ended for task in image["tags"]):
            return True
    return False


async def story(world: LocalWorld, within: float = 120.0) -> None:
    busy: dict[str, bool] = {}
    held: dict[str, str] = {}

    def hears(kind: str, found: Json) -> None:
        name = found["metadata"]["name"]
        busy[name] = kind != "DELETED" and pulling(found)
        assert sum(busy.values()) <= ALLOWED, f"pulling at a time: {[one for one in busy if busy[one]]}"
        for image in found.get("status", {}).get("imageStatuses", {}).values():
            for one in image["tags"]:
                if one["phase"] == "Succeeded":
                    held[name] = one["imageID"]

    async def nodes_are_known() -> None:
        assert len(await world.list(NODE_IMAGES)) == NODES

    async def has_completed() -> None:
        status = (await world.get(IMAGE_PULL_JOBS, "j")).get("status", {})
        assert (status.get("succeeded"), status.get("active", 0)) == (NODES, 0), status
        assert status["message"] == "job has completed"

    async def nothing_is_left() -> None:
        found = await world.list(NODE_IMAGES)
        assert not any(one["spec"].get("images") for one in found), "tasks of a job that is gone"
        assert not any(one.get("status", {}).get("imageStatuses") for one in found)

    await world.until(nodes_are_known, within=within)
    async with Witness(world, NODE_IMAGES, hears):
        spec: dict[str, Any] = {"image": "nginx:1.27", "parallelism": ALLOWED, "completionPolicy": {"type": "Always"}}
        body = {"apiVersion": IMAGE_PULL_JOBS.api_version, "kind": "ImagePullJob", "metadata": {"name": "j"}}
        await insist(world, lambda: world.create({**body, "spec": spec}))
        await world.until(has_completed, within=within)
        assert len(held) == NODES
        assert len(set(held.values())) == 1
        await insist(world, lambda: world.delete(IMAGE_PULL_JOBS, "j"))
        await world.until(nothing_is_left, within=within)
        await asyncio.sleep(2)


def test_either_may_die_at_every_write() -> None:
    """IPJ-45, IPJ-60, IPJ-61, DMN-34, DMN-95."""
    manager, daemon = dies_at_every_write(story, kinds=KINDS, gates=GATES, nodes=NODES)
    assert manager > 8
    assert daemon >= NODES


@pytest.mark.parametrize("seed", range(4))
def test_a_storm(seed: int) -> None:
    """IPJ-45, DMN-30."""

    async def patient(world: LocalWorld) -> None:
        await story(world, within=900.0)

    assert in_a_storm_of_both(patient, kinds=KINDS, gates=GATES, nodes=NODES, seed=seed, rate=0.15) >= 3
