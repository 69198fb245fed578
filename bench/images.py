"""Images: an ImagePullJob over a thousand nodes, and what a thousand NodeImages take in a manager.

Cluster, nodes, daemons and manager are one process on virtual time; memory is measured in a process of its own.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

from bench import processes
from bench.memory import memory
from bench.report import Report, Row
from kruise.api.apps.images import IMAGE_PULL_JOBS, NODE_IMAGES, NodeImage
from kruise.machinery.codec import decode, encode
from kruise.machinery.store import Store
from kruise.operations.images.watching import WATCHED_NODE_IMAGES
from tests.operations.images.test_cost import counting, nodes_are_there
from tests.support.world import LocalWorld, run_local


def measure(scale: float) -> Report:
    nodes = max(int(1000 * scale), 10)
    found = _job(nodes)
    with processes.child("images", nodes) as (_, kept):
        rows = (
            Row(what="writes of specs for each node", value=found["nodeimages"] / nodes, below=1.01),
            Row(what="writes of its status for each node", value=found["nodeimages/status"] / nodes, below=1.01),
            Row(
                what="writes of the job itself", value=found["imagepulljobs"] + found["imagepulljobs/status"], below=40
            ),
            Row(what="most nodes at a time that had a task, of 50 allowed", value=found["active"], below=51),
            Row(what="CPU for each node, all together", value=found["cpu"] / nodes * 1000, unit="ms"),
            Row(what=f"memory of {nodes} NodeImages with ten images each", value=kept["rss"], unit="MB", below=30),
        )
    setting = (
        f"one ImagePullJob over {nodes} nodes, 50 at a time; cluster, daemons and manager in one process, virtual time"
    )
    return Report(name="images", setting=setting, rows=rows)


def _job(nodes: int) -> dict[str, float]:
    found: dict[str, float] = {}

    async def story(world: LocalWorld) -> None:
        await nodes_are_there(world, nodes)
        counts = counting(world)
        spec = {"image": "nginx:1.27", "parallelism": 50, "completionPolicy": {"type": "Always"}}
        body = {"apiVersion": IMAGE_PULL_JOBS.api_version, "kind": IMAGE_PULL_JOBS.kind, "metadata": {"name": "j"}}
        began = time.process_time()
        await world.client.create(IMAGE_PULL_JOBS, {**body, "spec": spec}, "default")
        most = 0
        while (job := await world.client.get(IMAGE_PULL_JOBS, "j", "default")).status.completion_time is None:
            most = max(most, job.status.active)
            await asyncio.sleep(1)
        assert job.status.succeeded == nodes, job.status
        await asyncio.sleep(5)
        found.update(counts, active=most, cpu=time.process_time() - began)

    run_local(story, nodes=nodes, feature_gates="ImagePullJobGate=true")
    return {"imagepulljobs": 0, "imagepulljobs/status": 0, **found}


def _node_image(number: int) -> dict[str, Any]:
    """A node with ten images of one team, and what became of them."""
    created, ended = "2030-01-01T00:00:00Z", f"2030-01-01T00:{number % 60:02}:30Z"
    owner = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "namespace": "shop",
        "name": "j",
        "uid": "u",
    }
    policy = {"timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": 900 + number % 300}
    task = {"tag": "1", "createdAt": created, "pullPolicy": policy, "ownerReferences": [owner]}
    status = {"tag": "1", "phase": "Succeeded", "progress": 100, "startTime": created, "completionTime": ended}
    names = [f"registry.example.com/team/app-{image}" for image in range(10)]
    return {
        "metadata": {
            "name": f"node-{number}",
            "uid": f"uid-{number}",
            "resourceVersion": str(number + 1),
            "labels": {"kubernetes.io/hostname": f"node-{number}", "kubernetes.io/os": "linux", "zone": "a"},
        },
        "spec": {"images": {name: {"tags": [task]} for name in names}},
        "status": {
            "desired": 10,
            "succeeded": 10,
            "imageStatuses": {
                name: {"tags": [{**status, "imageID": f"{name}@sha256:{image:064x}"}]}
                for image, name in enumerate(names)
            },
        },
    }


def main(count: int) -> None:
    """In a process of its own: what the store of a manager takes."""
    raw = [encode(_node_image(number)) for number in range(count)]
    decode(raw[0], NodeImage)
    store: Store[NodeImage] = Store(WATCHED_NODE_IMAGES)
    gc.collect()
    before = memory()["rss"]
    store.replace([decode(one, NODE_IMAGES.type) for one in raw], count + 1)
    gc.collect()
    processes.say({"rss": memory()["rss"] - before})
    processes.run(processes.until_input_ends())


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]))
