"""What a WorkloadSpread does, as stories that a local world and a real cluster play alike."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from kruise.api.apps import statefulset as advanced
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.native.apps import DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from kruise.api.native.deletion_cost import DELETION_COST
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.requests import PatchType
from tests.support.world import World

Json = dict[str, Any]
ZONE = "example.io/zone"
MATCHED = "apps.kruise.io/matched-workloadspread"
WEB = {"app": "web"}
CLONE_SET = ("apps.kruise.io/v1alpha1", "CloneSet")
DEPLOYMENT = ("apps/v1", "Deployment")


async def zones(world: World, *names: str, key: str = ZONE) -> None:
    """Label the nodes: each name is the zone of as many of them as of the others."""
    nodes = sorted(node.metadata.name for node in (await world.client.list(NODES)).items)
    for position, node in enumerate(nodes):
        zone = names[position % len(names)]
        await world.client.patch(NODES, node, {"metadata": {"labels": {key: zone}}})


def zone_term(*zone_names: str, key: str = ZONE) -> Json:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(zone_names)}]}


def subset(name: str, zone: str = "", size: Any = None, *, key: str = ZONE, **more: Any) -> Json:
    found: Json = {"name": name, **more}
    if zone:
        found["requiredNodeSelector"] = zone_term(zone, key=key)
    if size is not None:
        found["maxReplicas"] = size
    return found


def spread(*subsets: Json, target: tuple[str, str] = CLONE_SET, name: str = "ws", **spec: Any) -> Json:
    api_version, kind = target
    reference = {"apiVersion": api_version, "kind": kind, "name": "web"}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": name},
        "spec": {"targetRef": reference, "subsets": list(subsets), **spec},
    }


def adaptive(seconds: int = 5) -> Json:
    return {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}}


def template(**spec: Any) -> Json:
    container = {"name": "main", "image": "nginx:1.25"}
    grace = {"terminationGracePeriodSeconds": 1}
    return {"metadata": {"labels": WEB}, "spec": {**grace, "containers": [container], **spec}}


def workload(replicas: int, target: tuple[str, str] = CLONE_SET, **spec: Any) -> Json:
    api_version, kind = target
    base: Json = {"replicas": replicas, "selector": {"matchLabels": WEB}, "template": template()}
    if kind == "StatefulSet":
        base["serviceName"] = "web"
    if kind == "Job":
        base = {
            "parallelism": replicas,
            "completions": replicas,
            "template": template(restartPolicy="Never"),
        }
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": {**base, **spec}}


RESOURCES: dict[tuple[str, str], Resource[Any]] = {
    ("apps.kruise.io", "WorkloadSpread"): WORKLOAD_SPREADS,
    ("apps.kruise.io", "CloneSet"): CLONE_SETS,
    ("apps.kruise.io", "StatefulSet"): advanced.STATEFUL_SETS,
    ("apps", "Deployment"): DEPLOYMENTS,
    ("apps", "ReplicaSet"): REPLICA_SETS,
    ("apps", "StatefulSet"): STATEFUL_SETS,
    ("batch", "Job"): JOBS,
}


def resource_of(manifest: Json) -> Resource[Any]:
    group, _, version = manifest["apiVersion"].rpartition("/")
    found = RESOURCES[group, manifest["kind"]]
    return Resource(found.group, version, found.plural, found.kind, True, found.type)


async def create(world: World, *manifests: Json) -> None:
    """One after the other. Pods are spread from their creation on once the manager has seen the WorkloadSpread."""
    for manifest in manifests:
        await world.client.create(resource_of(manifest), manifest, world.namespace)
        if manifest["kind"] == "WorkloadSpread":
            await world.until(functools.partial(is_observed, world, manifest["metadata"]["name"]))


async def is_observed(world: World, name: str) -> None:
    status = (await world.get(WORKLOAD_SPREADS, name)).get("status", {})
    assert status.get("observedGeneration") == 1, f"{name}: {status}"


async def scale(world: World, replicas: int, target: tuple[str, str] = CLONE_SET) -> None:
    resource = RESOURCES[target[0].rpartition("/")[0], target[1]]
    await world.patch(resource, "web", {"spec": {"replicas": replicas}})


# What is looked at


def subset_of(pod: Json) -> str:
    text = pod["metadata"].get("annotations", {}).get(MATCHED)
    return json.loads(text)["subset"] if text else ""


def cost_of(pod: Json) -> int | None:
    text = pod["metadata"].get("annotations", {}).get(DELETION_COST)
    return int(text) if text is not None else None


def is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


async def placed(world: World) -> dict[str, int]:
    """How many pods each subset has."""
    return dict(Counter(subset_of(pod) for pod in await world.pods("app=web")))


async def seen(world: World, name: str = "ws") -> dict[str, tuple[int, int]]:
    """Replicas and missing replicas of each subset, by the status."""
    status = (await world.get(WORKLOAD_SPREADS, name)).get("status", {})
    return {item["name"]: (item["replicas"], item["missingReplicas"]) for item in status.get("subsetStatuses", ())}


async def costs(world: World) -> list[tuple[str, int | None]]:
    return sorted((subset_of(pod), cost_of(pod)) for pod in await world.pods("app=web"))


async def settled(
    world: World,
    pods: dict[str, int],
    *,
    counts: dict[str, tuple[int, int]] | None = None,
    costs_: Sequence[tuple[str, int | None]] | None = None,
    ready: bool = True,
    within: float = 60.0,
) -> None:
    """Until pods, status and costs are so, and the ledger is empty."""

    async def check() -> None:
        found = await placed(world)
        assert found == pods, found
        if ready:
            assert all(is_ready(pod) for pod in await world.pods("app=web"))
        if counts is not None:
            assert await seen(world) == counts
        if costs_ is not None:
            assert await costs(world) == sorted(costs_)
        status = (await world.get(WORKLOAD_SPREADS, "ws"))["status"]
        for elements in status.get("versionedSubsetStatuses", {}).values():
            assert not any(item.get("creatingPods") or item.get("deletingPods") for item in elements)

    await world.until(check, within=within)


# The stories


async def two_zones(world: World) -> None:
    """Three pods in each of two zones, with the subset's selectors, tolerations and patch (WS-24, WS-45, WS-58)."""
    await zones(world, "a", "b")
    patch = {
        "metadata": {"annotations": {"subset": "a"}},
        "spec": {"containers": [{"name": "main", "env": [{"name": "SUBSET", "value": "a"}]}]},
    }
    tolerations = [{"key": "spot", "operator": "Exists"}]
    await create(world, spread(subset("a", "a", 3, patch=patch, tolerations=tolerations), subset("b", "b", 3)))
    await create(world, workload(6))
    await settled(
        world, {"a": 3, "b": 3}, counts={"a": (3, 0), "b": (3, 0)}, costs_=[("a", 200)] * 3 + [("b", 100)] * 3
    )
    for pod in await world.pods("app=web"):
        affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert affinity == {"nodeSelectorTerms": [zone_term(subset_of(pod))]}
        in_a = subset_of(pod) == "a"
        assert (pod["metadata"]["annotations"].get("subset") == "a") is in_a
        assert ({"key": "spot", "operator": "Exists"} in pod["spec"]["tolerations"]) is in_a
        assert any(item["name"] == "SUBSET" for item in pod["spec"]["containers"][0].get("env", [])) is in_a


async def elastic(world: World, target: tuple[str, str] = CLONE_SET) -> None:
    """A limited first subset and one for the rest, up and down again (WS-59, WS-22, WS-33, WS-38, WS-58a)."""
    await zones(world, "a", "b")
    await create(world, spread(subset("a", "a", 2), subset("b", "b"), target=target), workload(2, target))
    await settled(world, {"a": 2}, counts={"a": (2, 0), "b": (0, -1)})
    await scale(world, 6, target)
    await settled(world, {"a": 2, "b": 4}, counts={"a": (2, 0), "b": (4, -1)})
    await scale(world, 2, target)
    await settled(world, {"a": 2}, counts={"a": (2, 0), "b": (0, -1)}, costs_=[("a", 200)] * 2)
    pod = (await world.pods("app=web"))[0]["metadata"]["name"]
    await world.delete(PODS, pod)

    async def replaced() -> None:
        assert pod not in [item["metadata"]["name"] for item in await world.pods("app=web")]

    await world.until(replaced)
    await settled(world, {"a": 2}, counts={"a": (2, 0), "b": (0, -1)})


async def elastic_deployment(world: World) -> None:
    """The same with a Deployment, and a rollout: each ReplicaSet has places of its own (WS-6, WS-7, WS-46, WS-59)."""
    await elastic(world, DEPLOYMENT)
    await scale(world, 4, DEPLOYMENT)
    await settled(world, {"a": 2, "b": 2})
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"}]
    await world.patch(DEPLOYMENTS, "web", image, patch_type=PatchType.JSON)

    async def rolled() -> None:
        pods = await world.pods("app=web")
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"nginx:1.26"}

    await world.until(rolled, within=120)
    await settled(world, {"a": 2, "b": 2}, costs_=[("a", 200)] * 2 + [("b", 100)] * 2)


async def percentages(world: World) -> None:
    """Percentages follow the replicas of the target (WS-12, WS-29)."""
    await zones(world, "a", "b")
    await create(world, spread(subset("a", "a", "30%"), subset("b", "b", "70%")), workload(4))
    await settled(world, {"a": 2, "b": 2}, counts={"a": (2, 0), "b": (2, 1)})
    await scale(world, 10)
    await settled(world, {"a": 3, "b": 7}, counts={"a": (3, 0), "b": (7, 0)})


async def one_subset(world: World) -> None:
    """One subset without a limit takes all; with one, those beyond it are let in as they are (WS-20, WS-60)."""
    await zones(world, "a", "b")
    await create(world, spread(subset("a", "a", 2)), workload(6))
    await settled(world, {"a": 2, "": 4}, counts={"a": (2, 0)})
    await world.sleep(5)
    assert await costs(world) == [("", None)] * 4 + [("a", 100)] * 2
    await scale(world, 2)
    await settled(world, {"a": 2}, counts={"a": (2, 0)})


async def older_pods(world: World) -> None:
    """Pods from before are taken over, whatever the limit; surplus ones are the first to go (WS-43, WS-44, WS-62)."""
    await zones(world, "a", "b")
    only_a = template(nodeSelector={ZONE: "a"})
    await create(world, workload(4, template=only_a))

    async def four() -> None:
        pods = await world.pods("app=web")
        assert len(pods) == 4
        assert all(is_ready(pod) for pod in pods)

    await world.until(four)
    stranger = {"metadata": {"annotations": {MATCHED: '{"name":"gone","subset":"x"}'}}}
    for pod in (await world.pods("app=web"))[:2]:
        await world.patch(PODS, pod["metadata"]["name"], stranger)
    marked = {"metadata": {"labels": {"subset": "a"}}, "spec": {"priorityClassName": "nobody"}}
    await create(world, spread(subset("a", "a", 2, patch=marked), subset("b", "b")))
    await settled(
        world,
        {"a": 4},
        counts={"a": (4, 0), "b": (0, -1)},
        costs_=[("a", -100), ("a", -100), ("a", 200), ("a", 200)],
    )
    assert all(pod["metadata"]["labels"]["subset"] == "a" for pod in await world.pods("app=web"))


async def adaptive_first_subset_without_nodes(world: World) -> None:
    """Pods that find no node move on, and their subset is tried again after five minutes (WS-50 to WS-52, WS-61)."""
    await zones(world, "b")
    await create(world, spread(subset("a", "a", 2), subset("b", "b")), workload(5))

    async def pending() -> None:
        assert await placed(world) == {"a": 2, "b": 3}
        assert sum(is_ready(pod) for pod in await world.pods("app=web")) == 3

    await world.until(pending)
    status = (await world.get(WORKLOAD_SPREADS, "ws"))["status"]
    assert not any("conditions" in item for item in status["subsetStatuses"])
    await world.patch(WORKLOAD_SPREADS, "ws", {"spec": {"scheduleStrategy": adaptive(5)}})
    await settled(world, {"b": 5}, counts={"a": (0, 2), "b": (5, -1)}, costs_=[("b", 100)] * 5)
    assert await schedulable(world) == {"a": ("False", "PodUnschedulable"), "b": ("True", "Sufficient")}


async def schedulable(world: World) -> dict[str, tuple[str, str]]:
    status = (await world.get(WORKLOAD_SPREADS, "ws"))["status"]
    return {
        item["name"]: (condition["status"], condition["reason"])
        for item in status["subsetStatuses"]
        for condition in item.get("conditions", [])
    }


async def statefulset(world: World, target: tuple[str, str] = ("apps.kruise.io/v1beta1", "StatefulSet")) -> None:
    """By ordinal, and the limits hold even where they were lowered under pods that run (WS-21)."""
    await zones(world, "a", "b", "c")
    parallel = {"podManagementPolicy": "Parallel"}
    await create(
        world,
        spread(subset("a", "a", 2), subset("b", "b", 1), subset("c", "c"), target=target),
        workload(4, target, **parallel),
    )
    await settled(world, {"a": 2, "b": 1, "c": 1}, counts={"a": (2, 0), "b": (1, 0), "c": (1, -1)})
    by_name = {pod["metadata"]["name"]: subset_of(pod) for pod in await world.pods("app=web")}
    assert by_name == {"web-0": "a", "web-1": "a", "web-2": "b", "web-3": "c"}
    lower = [{"op": "replace", "path": "/spec/subsets/0/maxReplicas", "value": 1}]
    await world.patch(WORKLOAD_SPREADS, "ws", lower, patch_type=PatchType.JSON)
    await world.delete(PODS, "web-1")
    await settled(world, {"a": 1, "b": 1, "c": 2}, counts={"a": (1, 0), "b": (1, 0), "c": (2, -1)})


async def job(world: World) -> None:
    """Pods of a Job, whose names are not known at their admission (WS-25, WS-29)."""
    await zones(world, "a", "b")
    target = ("batch/v1", "Job")
    await create(world, spread(subset("a", "a", 1), subset("b", "b"), target=target), workload(3, target))
    await settled(world, {"a": 1, "b": 2}, counts={"a": (1, 0), "b": (2, -1)})
    marks = [json.loads(pod["metadata"]["annotations"][MATCHED]) for pod in await world.pods("app=web")]
    assert sorted(mark["subset"] for mark in marks) == ["a", "b", "b"]
    assert not any("uid" in mark for mark in marks if mark["subset"] == "b")  # nothing was booked for them


async def under_fire(world: World) -> None:
    """Two hundred pods at once: never more than the limit in a subset, at no moment (WS section 13)."""
    await zones(world, "a", "b")
    await create(world, spread(subset("a", "a", 50), subset("b", "b", 70), subset("rest")))
    await create(world, workload(200))

    async def check() -> None:
        found = await placed(world)
        assert found.get("a", 0) <= 50, found
        assert found.get("b", 0) <= 70, found
        assert sum(found.values()) == 200

    await world.until(check, within=300)
    assert await placed(world) == {"a": 50, "b": 70, "rest": 80}
    await world.until(lambda: _counted(world, {"a": (50, 0), "b": (70, 0), "rest": (80, -1)}), within=60)


async def _counted(world: World, wanted: dict[str, tuple[int, int]]) -> None:
    assert await seen(world) == wanted


async def evicted(world: World) -> None:
    """An eviction is noted like a deletion, and the place goes to the pod that follows (WS-31)."""
    await zones(world, "a", "b")
    await create(world, spread(subset("a", "a", 2), subset("b", "b")), workload(4))
    await settled(world, {"a": 2, "b": 2})
    chosen = next(pod for pod in await world.pods("app=web") if subset_of(pod) == "a")
    await world.client.evict(PODS, chosen["metadata"]["name"], world.namespace, uid=chosen["metadata"]["uid"])

    async def gone() -> None:
        assert chosen["metadata"]["name"] not in [pod["metadata"]["name"] for pod in await world.pods("app=web")]

    await world.until(gone)
    await settled(world, {"a": 2, "b": 2}, counts={"a": (2, 0), "b": (2, -1)})


async def two_about_the_same_pods(world: World) -> None:
    """One of a Deployment and one of its ReplicaSet: pods stay where they are, nobody writes without end (WS-43)."""
    await zones(world, "a", "b")
    await create(world, spread(subset("a", "a", 1), subset("b", "b"), target=DEPLOYMENT), workload(3, DEPLOYMENT))
    await settled(world, {"a": 1, "b": 2}, counts={"a": (1, 0), "b": (2, -1)})
    [replica_set] = await world.list(REPLICA_SETS, "app=web")
    other = spread(subset("x", "a", 2), subset("y"), target=("apps/v1", "ReplicaSet"), name="other")
    other["spec"]["targetRef"]["name"] = replica_set["metadata"]["name"]
    await create(world, other)

    async def versions() -> list[str]:
        found = [*await world.pods("app=web"), *await world.list(WORKLOAD_SPREADS)]
        return [item["metadata"]["resourceVersion"] for item in found]

    await world.sleep(2)
    before = await versions()
    await world.sleep(3)
    assert await versions() == before
    assert await placed(world) == {"a": 1, "b": 2}
    assert await seen(world, "other") == {"x": (0, 2), "y": (0, -1)}
    await world.delete(WORKLOAD_SPREADS, "ws")

    async def taken_over() -> None:
        assert await seen(world, "other") == {"x": (1, 1), "y": (2, -1)}
        assert await costs(world) == [("x", 200), ("y", 100), ("y", 100)]

    await world.until(taken_over)


async def left_behind_and_taken_over(world: World) -> None:
    """A workload is deleted without its pods, and made again: it takes them over, and they count (WS-34, WS-38)."""
    target = ("apps/v1", "ReplicaSet")
    await zones(world, "a", "b")
    await create(world, spread(subset("a", "a", 2), subset("b", "b"), target=target), workload(3, target))
    await settled(world, {"a": 2, "b": 1}, counts={"a": (2, 0), "b": (1, -1)})
    await world.client.delete(REPLICA_SETS, "web", world.namespace, propagation="Orphan")

    async def gone() -> None:
        assert not await world.list(REPLICA_SETS)
        assert await seen(world) == {"a": (0, 2), "b": (0, -1)}

    await world.until(gone)
    await create(world, workload(3, target))
    await settled(world, {"a": 2, "b": 1}, counts={"a": (2, 0), "b": (1, -1)})
    await scale(world, 5, target)
    await settled(world, {"a": 2, "b": 3}, counts={"a": (2, 0), "b": (3, -1)})


Story = Callable[[World], Awaitable[None]]
STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        two_zones,
        elastic,
        elastic_deployment,
        percentages,
        one_subset,
        older_pods,
        adaptive_first_subset_without_nodes,
        statefulset,
        job,
        evicted,
        two_about_the_same_pods,
        left_behind_and_taken_over,
        under_fire,
    )
}
SMOKE = ("two_zones", "elastic_deployment", "statefulset")
