"""The order in which containers start, as stories that a local world and real nodes play alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.pod import PODS
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.requests import PatchType
from tests.support.world import World

Json = dict[str, Any]
DONE = "apps.kruise.io/container-launch-priority-completed"
IMAGE = "busybox:1.36"
LONG = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]


def container(name: str, priority: str | None = None, *, ready_after: int = 0) -> Json:
    found: Json = {"name": name, "image": IMAGE, "command": LONG}
    if priority is not None:
        found["env"] = [{"name": "KRUISE_CONTAINER_PRIORITY", "value": priority}]
    if ready_after:
        probe = {"exec": {"command": ["true"]}, "initialDelaySeconds": ready_after, "periodSeconds": 1}
        found["readinessProbe"] = probe
    return found


def pod(*containers: Json, name: str = "p", ordered: bool = False) -> Json:
    metadata: Json = {"name": name, "labels": {"app": "order"}}
    if ordered:
        metadata["annotations"] = {"apps.kruise.io/container-launch-priority": "Ordered"}
    spec = {"containers": list(containers), "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def ready(world: World, name: str) -> Json:
    async def check() -> Json:
        found = await world.get(PODS, name)
        conditions = {item["type"]: item["status"] for item in found["status"].get("conditions", [])}
        assert conditions.get("Ready") == "True", conditions
        return found

    return await world.until(check, within=120)


async def marked(world: World, name: str) -> None:
    async def check() -> None:
        assert (await world.get(PODS, name))["metadata"].get("annotations", {}).get(DONE) == "true"

    await world.until(check)


def started(found: Json) -> dict[str, str]:
    return {status["name"]: status["state"]["running"]["startedAt"] for status in found["status"]["containerStatuses"]}


async def keys(world: World, name: str) -> list[str]:
    try:
        return sorted((await world.get(CONFIG_MAPS, f"{name}-barrier")).get("data") or {})
    except NotFoundError:
        return []


async def by_priority(world: World) -> None:
    """The container with the higher priority is ready before the others start (CLP-2, CLP-5, CLP-6, CLP-8, CLP-13,
    CLP-17)."""
    await world.create(pod(container("main"), container("side", "10", ready_after=3)))

    async def first_level() -> None:
        assert await keys(world, "p") == ["p_10"]

    await world.until(first_level)

    async def main_waits() -> None:
        found = await world.get(PODS, "p")
        states = {status["name"]: status["state"] for status in found["status"].get("containerStatuses", [])}
        waiting = states.get("main", {}).get("waiting", {})
        assert waiting.get("reason") == "CreateContainerConfigError", states
        assert "p_0" in waiting["message"] or "not found" in waiting["message"]

    await world.until(main_waits)
    found = await ready(world, "p")
    assert started(found)["side"] < started(found)["main"]
    assert await keys(world, "p") == ["p_0", "p_10"]
    await marked(world, "p")
    references = [one["env"][-1]["valueFrom"]["configMapKeyRef"] for one in found["spec"]["containers"]]
    assert references == [{"name": "p-barrier", "key": "p_0"}, {"name": "p-barrier", "key": "p_10"}]
    assert all(status["restartCount"] == 0 for status in found["status"]["containerStatuses"])
    owner = (await world.get(CONFIG_MAPS, "p-barrier"))["metadata"]["ownerReferences"]
    assert [{k: v for k, v in one.items() if k != "uid"} for one in owner] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    ]
    await world.delete(PODS, "p")

    async def gone() -> None:
        try:
            await world.get(CONFIG_MAPS, "p-barrier")
        except NotFoundError:
            return
        raise AssertionError("the barrier is still there")

    await world.until(gone, within=120)


async def in_order_of_the_list(world: World) -> None:
    """Ordered: the list decides, whatever the environment says (CLP-4, CLP-14)."""
    await world.create(
        pod(container("a", "1", ready_after=1), container("b", "9", ready_after=1), container("c"), ordered=True)
    )
    found = await ready(world, "p")
    times = started(found)
    assert times["a"] <= times["b"] <= times["c"]
    assert times["a"] < times["c"]
    assert await keys(world, "p") == ["p_-1", "p_-2", "p_0"]


async def in_a_deployment(world: World) -> None:
    """Names that are generated are known at admission; equal priorities start together (CLP-1, CLP-7, CLP-14)."""
    template = pod(container("main"), container("five", "5"), container("also", "5"), container("ten", "10"))
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "order"}},
        "template": {"metadata": {"labels": {"app": "order"}}, "spec": template["spec"]},
    }
    await world.client.create(DEPLOYMENTS, {"metadata": {"name": "order"}, "spec": spec}, world.namespace)

    async def both() -> list[Json]:
        found = await world.pods("app=order")
        assert len(found) == 2
        return found

    for one in await world.until(both):
        found = await ready(world, one["metadata"]["name"])
        times = started(found)
        assert times["ten"] <= min(times["five"], times["also"])
        assert max(times["five"], times["also"]) <= times["main"]
        assert found["metadata"]["generateName"].startswith("order-")


async def one_that_ends_holds_up_nobody(world: World) -> None:
    """In a pod that runs to its end a container may be done before the next is ready; it will not be ready again."""
    first = {**container("first", "10"), "command": ["sh", "-c", "sleep 2; exit 0"]}
    manifest = pod(first, container("second", "5", ready_after=6), container("third"))
    manifest["spec"]["restartPolicy"] = "Never"
    await world.create(manifest)

    async def all_started() -> Json:
        found = await world.get(PODS, "p")
        states = {status["name"]: status["state"] for status in found["status"].get("containerStatuses", [])}
        assert set(states.get("first", {})) == {"terminated"}, states
        assert set(states.get("third", {})) == {"running"}, states
        return states

    states = await world.until(all_started, within=120)
    assert states["first"]["terminated"]["finishedAt"] <= states["third"]["running"]["startedAt"]
    assert states["second"]["running"]["startedAt"] < states["third"]["running"]["startedAt"]
    await marked(world, "p")


async def a_barrier_comes_back(world: World) -> None:
    """Deleted by hand, it is made again when a container needs it, with every level (CLP A6)."""
    await world.create(pod(container("main"), container("side", "1")))
    found = await ready(world, "p")
    await world.delete(CONFIG_MAPS, "p-barrier")
    await restart(world, found, "main")

    async def back() -> None:
        assert await keys(world, "p") == ["p_0", "p_1"]
        again = await world.get(PODS, "p")
        counts = {status["name"]: status["restartCount"] for status in again["status"]["containerStatuses"]}
        assert counts["main"] == 1, counts

    await world.until(back, within=120)
    await ready(world, "p")


async def restart(world: World, found: Json, name: str) -> None:
    """Another image: its container is started again."""
    position = [one["name"] for one in found["spec"]["containers"]].index(name)
    body = [{"op": "replace", "path": f"/spec/containers/{position}/image", "value": "busybox:1.34"}]
    await world.patch(PODS, found["metadata"]["name"], body, patch_type=PatchType.JSON)


Story = Callable[[World], Awaitable[None]]
STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        by_priority,
        in_order_of_the_list,
        in_a_deployment,
        one_that_ends_holds_up_nobody,
        a_barrier_comes_back,
    )
}
