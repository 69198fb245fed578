"""The environment that the recordings were made in, around the local API server.

Simulated nodes `sim-0` ... `sim-5` in three zones: a pod runs as soon as it is bound, and is Ready as soon as all its
readiness gates are True; a changed image restarts the container at once; a deleted pod disappears at once. Two more
nodes have the label that one recording selects. A pod is bound to the node that the pod of the same number was
bound to.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from kruise.api.native.daemon_pods import target_node
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.embedded import install
from kruise.kinds import features
from kruise.local import scheduler
from kruise.local.apicore.admitting import AdmissionRequest, Operation
from kruise.local.cluster import ClusterOptions, LocalCluster, Specs
from kruise.local.inprocess import InProcessTransport
from kruise.machinery import codec
from kruise.machinery.client.errors import ConflictError, NotFoundError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import VirtualClock
from kruise.machinery.times import format_time
from kruise.manager import gates as feature_gates
from kruise.manager.options import Options
from tests.support.world import LocalWorld

Json = dict[str, Any]

ZONES = ("a", "b", "c", "a", "b", "c")
REACTION = 0.1
"""Seconds until a node or the scheduler reacts."""
LAUNCHED = "apps.kruise.io/container-launch-priority-completed"
BARRIER = "KRUISE_CONTAINER_BARRIER"


def zone_of(node: str) -> str:
    return ZONES[int(node.rpartition("-")[2])]


class CountingTransport:
    """The manager's way to the API; counts what it writes on pods and their subresources."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.pod_writes = 0

    async def send(self, request: Request) -> Response:
        if request.verb.writes and request.resource is not None and request.resource.plural == "pods":
            self.pod_writes += 1
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


async def add_barriers(request: AdmissionRequest) -> Json | None:
    """What launch priorities add to a new pod: a barrier in every container, by the priorities given or by their order.

    The recordings have them; here they are part of the environment, since PyKruise does not add them yet.
    """
    pod = request.object
    if request.kind.plural != "pods" or request.subresource or request.operation is not Operation.CREATE or pod is None:
        return None
    ordered = pod["metadata"].get("annotations", {}).get("apps.kruise.io/container-launch-priority") == "Ordered"
    containers = pod["spec"]["containers"]
    given = {
        container["name"]: int(variable["value"])
        for container in containers
        for variable in container.get("env", ())
        if variable["name"] == "KRUISE_CONTAINER_PRIORITY"
    }
    if not given and not ordered:
        return None
    changed = copy.deepcopy(pod)
    for position, container in enumerate(changed["spec"]["containers"]):
        priority = -position if ordered else given.get(container["name"], 0)
        reference = {"name": f"{pod['metadata']['name']}-barrier", "key": f"p_{priority}"}
        variable = {"name": BARRIER, "valueFrom": {"configMapKeyRef": reference}}
        container["env"] = [*container.get("env", ()), variable]
    return changed


def has_barriers(spec: Json) -> bool:
    return any(variable["name"] == BARRIER for container in spec["containers"] for variable in container.get("env", ()))


class ClusterWithoutScheduler(LocalCluster):
    """Pods are bound by the recording, not by a decision of the day."""

    def _control(self, tasks: asyncio.TaskGroup, specs: Specs) -> None:
        if specs is not scheduler.specs:
            super()._control(tasks, specs)


class Watched:
    """Every event of a kind, in order; `changed` is called for each."""

    def __init__(self, world: LocalWorld, resource: Resource[Any]) -> None:
        self._world = world
        self._resource = resource
        self.latest: dict[str, Json] = {}
        self.events: list[tuple[float, str, Json]] = []
        self.listeners: list[Any] = []

    async def run(self) -> None:
        query = (("watch", "true"), ("resourceVersion", "0"))
        request = Request(Verb.WATCH, self._resource, self._world.place_of(self._resource), query=query)
        async with self._world.client.transport.stream(request) as lines:
            async for line in lines:
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                    self._take(event["type"], event["object"])

    def _take(self, kind: str, obj: Json) -> None:
        name = obj["metadata"]["name"]
        if kind == "DELETED":
            self.latest.pop(name, None)
        else:
            self.latest[name] = obj
        self.events.append((self._world.clock.monotonic(), kind, obj))
        for listener in self.listeners:
            listener(kind, obj)


class SimulatedNodes:
    """Scheduler and kubelets."""

    def __init__(self, world: LocalWorld, pods: Watched, places: Sequence[str], late: Mapping[int, float]) -> None:
        self._world = world
        self._late = late
        self._client = world.cluster.client("kubelet")
        self._pods = pods
        self._places = iter(places)
        self._place_of: dict[str, str] = {}
        self._born: list[str] = []
        self._due: set[str] = set()
        self._tasks: asyncio.TaskGroup | None = None
        pods.listeners.append(self._changed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await asyncio.get_running_loop().create_future()

    def _changed(self, kind: str, pod: Json) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if kind == "ADDED" and uid not in self._place_of:
            self._place_of[uid] = next(self._places, "sim-0")
            self._born.append(uid)
        if kind != "DELETED" and name not in self._due:
            assert self._tasks is not None
            self._due.add(name)
            delay = REACTION
            if "nodeName" in pod["spec"] and pod.get("status", {}).get("phase") != "Running":
                delay += self._late.get(self._born.index(uid) + 1, 0.0)
            self._tasks.create_task(self._react(name, delay))

    async def _react(self, name: str, delay: float) -> None:
        await asyncio.sleep(delay)
        self._due.discard(name)
        pod = self._pods.latest.get(name)
        if pod is None:
            return
        with contextlib.suppress(NotFoundError, ConflictError):  # it went meanwhile; its next event comes
            await self._act(name, pod)

    async def _act(self, name: str, pod: Json) -> None:
        metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
        place = target_node(codec.convert(pod, Pod)) or self._place_of[metadata["uid"]]
        if "deletionTimestamp" in metadata:
            if metadata.get("deletionGracePeriodSeconds") and not metadata.get("finalizers"):
                await self._client.delete(
                    PODS, name, self._world.namespace, uid=metadata["uid"], grace_period_seconds=0
                )
        elif not spec.get("nodeName"):
            if place:
                await self._client.bind(PODS, name, self._world.namespace, node=place, uid=metadata["uid"])
        elif status.get("phase") not in ("Failed", "Succeeded"):
            if has_barriers(spec) and LAUNCHED not in metadata.get("annotations", {}) and status.get("phase"):
                await self._client.patch(
                    PODS, name, {"metadata": {"annotations": {LAUNCHED: "true"}}}, self._world.namespace
                )
            changed = self._status(spec, status)
            if changed:
                await self._client.patch(
                    PODS,
                    name,
                    {"metadata": {"uid": metadata["uid"]}, "status": changed},
                    self._world.namespace,
                    patch_type=PatchType.STRATEGIC,
                    subresource="status",
                )

    def _status(self, spec: Json, status: Json) -> Json:
        now = format_time(self._world.clock.now())
        conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
        changed: Json = {}
        wanted: dict[str, tuple[str, str]] = {}
        if status.get("phase") != "Running":
            changed |= {"phase": "Running", "startTime": now, "podIP": "10.0.0.7"}
            wanted |= {"Initialized": ("True", ""), "ContainersReady": ("True", "")}
        gates_open = all(
            conditions.get(gate["conditionType"], {}).get("status") == "True" for gate in spec.get("readinessGates", ())
        )
        ready = conditions.get("Ready", {}).get("status")
        if gates_open and ready != "True":
            wanted["Ready"] = ("True", "")
        elif not gates_open and ready in (None, "True"):
            wanted["Ready"] = ("False", "ReadinessGatesNotReady")
        if wanted:
            changed["conditions"] = [
                {"type": kind, "status": value, "lastTransitionTime": now, "reason": reason or None}
                for kind, (value, reason) in wanted.items()
            ]
        containers = self._containers(spec, status, now)
        if containers != status.get("containerStatuses", []):
            changed["containerStatuses"] = containers
        return changed

    def _containers(self, spec: Json, status: Json, now: str) -> list[Json]:
        known: Mapping[str, Json] = {entry["name"]: entry for entry in status.get("containerStatuses", ())}
        statuses: list[Json] = []
        for container in spec["containers"]:
            name, image = container["name"], container["image"]
            before = known.get(name)
            if before is not None and before["image"] == image:
                statuses.append(before)
                continue
            restarts = before["restartCount"] + 1 if before is not None else 0
            statuses.append(
                {
                    "name": name,
                    "image": image,
                    "imageID": f"sim://{image}",
                    "containerID": f"containerd://{name}-{restarts}",
                    "ready": True,
                    "started": True,
                    "restartCount": restarts,
                    "state": {"running": {"startedAt": now}},
                    "lastState": {},
                }
            )
        return statuses


async def create_nodes(world: LocalWorld, *, with_pool: bool) -> None:
    sim = [(f"sim-{number}", {"topology.kubernetes.io/zone": zone}) for number, zone in enumerate(ZONES)]
    by_hand = [(name, {"pool": "hand"}) for name in ("node-a", "node-b")] if with_pool else []
    for name, labels in [*sim, *by_hand]:
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        }
        await world.client.send(Request(Verb.CREATE, NODES, body=json.dumps(body).encode()))


@contextlib.asynccontextmanager
async def recorded_world(
    places: Sequence[str],
    *,
    late: Mapping[int, float],
    gates: Mapping[str, bool] | None = None,
    with_pool: bool = True,
    seed: int = 1,
) -> AsyncIterator[tuple[LocalWorld, Watched, CountingTransport]]:
    """A world in which the pod number n is bound to `places[n]`, unless it names its node; the watch on its pods; the
    manager's transport. `with_pool`: with the two nodes that one recording selects."""
    clock = VirtualClock(asyncio.get_running_loop())
    cluster = ClusterWithoutScheduler(ClusterOptions(nodes=0, seed=seed, node_daemon=False), clock=clock)
    cluster.core.admission.mutating.append(add_barriers)
    running = asyncio.create_task(cluster.run(), name="cluster")
    await cluster.ready.wait()
    await install(cluster, features())
    options = Options(gates=feature_gates.resolve(dict(gates or {})))
    world = LocalWorld(cluster, options, features(), seed=seed)
    world.namespace = "demo"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    await world.client.send(Request(Verb.CREATE, NAMESPACES, body=json.dumps(namespace).encode()))
    await create_nodes(world, with_pool=with_pool)
    counting = CountingTransport(InProcessTransport(cluster.core))
    world.start_manager(counting)
    await asyncio.sleep(1)
    pods = Watched(world, PODS)
    nodes = SimulatedNodes(world, pods, places, late)
    parts = [asyncio.create_task(nodes.run()), asyncio.create_task(pods.run())]
    await asyncio.sleep(0)
    try:
        yield world, pods, counting
        for task in (running, *parts):
            if task.done():
                task.result()
    finally:
        await world.kill_manager()
        for task in (*parts, running):
            task.cancel()
        await asyncio.wait({*parts, running})


__all__ = ["SimulatedNodes", "Watched", "recorded_world"]
