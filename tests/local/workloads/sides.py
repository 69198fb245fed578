"""One story on two clusters, a real control plane and the local cluster's controllers in process; end states compared.

The real side has kube-controller-manager and kube-scheduler, the local side ours on virtual time; both have the same
kubelet, which only moves the status of pods. Compared are counts, conditions, annotations, labels and events; names
that are drawn and hashes that differ by design are replaced by what they stand for.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS, Pod, condition
from kruise.api.resource import Resource
from kruise.local import scheduler, storage_binding, workloads
from kruise.local.collector import GarbageCollector, of_registry
from kruise.local.storage_binding.objects import CLAIMS
from kruise.local.workloads.objects import DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import RealClock, run_virtual
from kruise.machinery.codec import Struct, field, to_builtins
from tests.local.workloads.world import Habits, Kubelet, World, node
from tests.support.background import in_background
from tests.support.realcluster import ControlPlane

NODE_COUNT = 3
Facts = dict[str, Any]
_DRAWN = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")


class WholePod(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, Any] = field(default_factory=dict)


WHOLE_PODS = Resource("", "v1", "pods", "Pod", True, WholePod)


@contextlib.contextmanager
def real_plane() -> Iterator[ControlPlane]:
    """A control plane of its own: messages of the scheduler count its nodes."""
    with ControlPlane() as cluster:
        for number in range(NODE_COUNT):
            cluster.request("POST", "/api/v1/nodes", node(f"n{number}")).ok()
        yield cluster


class Side:
    """One of the two clusters, seen from a namespace."""

    def __init__(self, client: Client, namespace: str, kubelet: Kubelet) -> None:
        self.client = client
        self.namespace = namespace
        self.kubelet = kubelet

    async def create(self, resource: Resource[Any], body: Any) -> Any:
        return await self.client.create(resource, body, self.namespace)

    async def get(self, resource: Resource[Any], name: str) -> Any:
        return await self.client.get(resource, name, self.namespace)

    async def patch(self, resource: Resource[Any], name: str, body: Any, **more: Any) -> Any:
        return await self.client.patch(resource, name, body, self.namespace, **more)

    async def list(self, resource: Resource[Any]) -> tuple[Any, ...]:
        return (await self.client.list(resource, self.namespace)).items

    async def until(self, what: Callable[[], Awaitable[bool]], seconds: float = 40.0) -> None:
        """Wait for something, then until nothing moves any more."""
        async with asyncio.timeout(seconds):
            while not await what():  # noqa: ASYNC110 - the cluster has no event for it
                await asyncio.sleep(0.1)
        await asyncio.sleep(1.5)

    async def deployed(self, name: str = "web") -> None:
        async def complete() -> bool:
            found = await self.get(DEPLOYMENTS, name)
            status = found.status
            return (
                status.observed_generation >= found.metadata.generation
                and status.updated_replicas == status.replicas == status.available_replicas == found.spec.replicas
            )

        await self.until(complete)

    async def settled(self, name: str = "db") -> None:
        """The StatefulSet has all of its pods, at one revision."""

        async def complete() -> bool:
            found = await self.get(STATEFUL_SETS, name)
            status, size = found.status, found.spec.replicas
            return (
                status.observed_generation >= found.metadata.generation
                and status.replicas == status.updated_replicas == status.available_replicas == size
                and status.current_revision == status.update_revision
            )

        await self.until(complete)

    async def served(self, nodes: int, name: str = "agent") -> None:
        """The DaemonSet has so many nodes, each with an available pod of its revision."""

        async def complete() -> bool:
            found = await self.get(DAEMON_SETS, name)
            status = found.status
            return (
                status.observed_generation >= found.metadata.generation
                and status.desired_number_scheduled == status.updated_number_scheduled == nodes
                and status.number_available == nodes
            )

        await self.until(complete)

    async def shown(self, resource: Resource[Any], name: str, kind: str, reason: str) -> None:
        async def there() -> bool:
            found = await self.get(resource, name)
            return any((item.type, item.reason) == (kind, reason) for item in found.status.conditions)

        await self.until(there)

    async def facts(self) -> Facts:
        """Everything that should be equal on both sides."""
        replica_sets = await self.list(REPLICA_SETS)
        pods: tuple[Pod, ...] = await self.list(PODS)
        revisions = await self.list(CONTROLLER_REVISIONS)
        names = {item.metadata.name: f"<{_image(item.spec.template)}>" for item in replica_sets}
        hashes = {
            item.metadata.labels[_HASH]: f"<{_image(item.data)}>" for item in revisions if _HASH in item.metadata.labels
        }

        def labels(obj: Any) -> dict[str, str]:
            """Hashes of DaemonSets differ by design, those of StatefulSets do not."""
            return {key: hashes.get(text, text) for key, text in obj.metadata.labels.items()}

        def plain(text: str) -> str:
            for name, shown in names.items():
                text = text.replace(name, shown)
            text = _DRAWN.sub("-<drawn>", text.replace(self.namespace, "<ns>"))
            return re.sub(r"\bweb-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b", "<gone>", text)

        def status(obj: Any) -> Facts:
            built: Facts = to_builtins(obj.status)
            for key in ("startTime", "completionTime"):
                if built.get(key):
                    built[key] = "<time>"
            # Which is first depends on which of two writes was first.
            built["conditions"] = sorted(
                (item["type"], item["status"], item.get("reason", ""), plain(item.get("message", "")))
                for item in built.get("conditions", ())
            )
            return built

        events = await self.list(EVENTS)
        return {
            "deployments": {
                item.metadata.name: (status(item), item.metadata.annotations) for item in await self.list(DEPLOYMENTS)
            },
            "replica sets": {
                names[item.metadata.name]: (
                    item.spec.replicas,
                    status(item) | {"observedGeneration": 0},
                    item.metadata.annotations,
                    [(owner.kind, owner.name) for owner in item.metadata.owner_references],
                )
                for item in replica_sets
            },
            "stateful sets": {item.metadata.name: status(item) for item in await self.list(STATEFUL_SETS)},
            "daemon sets": {item.metadata.name: status(item) for item in await self.list(DAEMON_SETS)},
            "revisions": sorted(
                (
                    _image(item.data) if _HASH in item.metadata.labels else item.metadata.name,
                    item.revision,
                    sorted(labels(item).items()),
                    sorted(item.metadata.annotations.items()),
                    _owners(item),
                )
                for item in revisions
            ),
            "claims": sorted(
                (item.metadata.name, sorted(item.metadata.labels.items()), _owners(item))
                for item in await self.list(CLAIMS)
            ),
            "identities": sorted(
                (item.metadata.labels.get("app", ""), str(_identity(item)), sorted(labels(item).items()))
                for item in await self.list(WHOLE_PODS)
                if _owners(item) and _owners(item)[0][0] in ("StatefulSet", "DaemonSet")
            ),
            "jobs": {item.metadata.name: status(item) for item in await self.list(JOBS)},
            "pods": sorted(
                (
                    plain(item.metadata.name),
                    item.status.phase,
                    item.metadata.finalizers,
                    [(owner.kind, plain(owner.name)) for owner in item.metadata.owner_references],
                    scheduled(item),
                )
                for item in pods
            ),
            "events": sorted(
                {(item.involved_object.kind, item.type, item.reason, _unplaced(plain(item.message))) for item in events}
            ),
        }


_HASH = "controller-revision-hash"


def _image(template: Any) -> str:
    return bytes(template).decode().split('"image":"')[1].split('"')[0]


def _owners(obj: Any) -> list[tuple[str, str, bool, bool]]:
    references = obj.metadata.owner_references
    return [(item.kind, item.name, item.controller, item.block_owner_deletion) for item in references]


def _identity(pod: WholePod) -> Facts:
    """What its workload gave the pod. Others add tolerations and volumes, and the scheduler chooses nodes."""
    of_daemon = pod.metadata.owner_references[0].kind == "DaemonSet"
    kept = ("affinity", "tolerations", "nodeName") if of_daemon else ("hostname", "subdomain")
    volumes = pod.spec.get("volumes") or ()
    return {
        "prefix": pod.metadata.generate_name,
        "spec": {key: pod.spec.get(key) for key in kept},
        "claims": sorted(str(item) for item in volumes if "persistentVolumeClaim" in item),
    }


def scheduled(pod: Pod) -> tuple[str, str, str]:
    shown = condition(pod, "PodScheduled")
    return (shown.status, shown.reason, shown.message) if shown is not None else ("", "", "")


def _unplaced(message: str) -> str:
    """Which of equal nodes a pod gets is chance on a real cluster."""
    return re.sub(r" to n\d$", " to <node>", message)


Scenario = Callable[[Side], Awaitable[None]]


def both(plane: ControlPlane, scenario: Scenario, habits: Callable[[], Habits] = Habits) -> tuple[Facts, Facts]:
    """The facts of the real side and of ours."""
    return asyncio.run(_real(plane, scenario, habits())), run_virtual(_local(scenario, habits()))


async def _real(plane: ControlPlane, scenario: Scenario, habits: Habits) -> Facts:
    namespace = f"workloads-{uuid.uuid4().hex[:8]}"
    plane.create_namespace(namespace)
    client = Client(HttpTransport(kubeconfig.load(plane.kubeconfig, env={})))
    try:
        await _heartbeat(client)
        kubelet = Kubelet(client, RealClock(), habits, namespace=namespace)
        async with in_background(kubelet.run()):
            side = Side(client, namespace, kubelet)
            await scenario(side)
            return await side.facts()
    finally:
        plane.delete_namespace(namespace)
        await client.close()


async def _heartbeat(client: Client) -> None:
    """The node controller believes in a node for 40 s without a sign of life; a new one is tainted until it is seen."""
    now = RealClock().now().strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    for number in range(NODE_COUNT):
        body = {"status": {"conditions": [ready]}}
        await client.patch(NODES, f"n{number}", body, patch_type=PatchType.STRATEGIC, subresource="status")
    async with asyncio.timeout(20):
        while any(item.spec.taints for item in (await client.list(NODES)).items):  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.1)


async def _local(scenario: Scenario, habits: Habits) -> Facts:
    world = World(workloads.specs, scheduler.specs, storage_binding.specs, habits=habits)
    namespace = "workloads"
    await world.create(NAMESPACES, {"metadata": {"name": namespace}})
    await world.add_nodes(NODE_COUNT)
    collector = GarbageCollector(world.client, clock=world.clock, discover=of_registry(world.core.registry))
    async with world.running(), in_background(collector.run()):
        side = Side(world.client, namespace, world.kubelet)
        await scenario(side)
        return await side.facts()


def quick(**more: Any) -> Habits:
    return Habits(**{"start": lambda pod: 0.3, "stop": lambda pod: 0.2, **more})


def only_first_image(pod: Pod) -> bool:
    return pod.spec.containers[0].image == "app:1"
