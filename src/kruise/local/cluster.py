"""The local cluster: API server, controllers, scheduler and nodes, assembled in one process and one event loop.

Everything but the API core is a client of the API. In process they are wired straight into the core, so the same
cluster runs on virtual time without a socket (`LocalCluster.run` on a `VirtualLoop`), or serves HTTPS for kubectl, too
(`LocalCluster.serving`).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from kruise.api.meta import OwnerReference
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local import disruption, fields, pod_gc, scheduler, storage_binding, workloads
from kruise.local.apicore.core import ApiCore
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import ViewSubresource
from kruise.local.attendance import Attendance
from kruise.local.collector import GarbageCollector, of_registry
from kruise.local.crds import Definitions
from kruise.local.forgetting import forget
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import admitting, native_registry
from kruise.local.kinds.bootstrap import create_system_objects
from kruise.local.namespaces import Namespaces
from kruise.local.nodes import ContainerLogs, NodeModel, make_nodes
from kruise.local.webhooks import Caller, InProcessCaller, WebhookConversion, Webhooks
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock
from kruise.machinery.codec import convert
from kruise.machinery.controller import Controller
from kruise.machinery.events import EventRecorder
from kruise.machinery.metrics import Metrics
from kruise.machinery.spec import ControllerSpec
from kruise.machinery.watch_states import Backoff

log = logging.getLogger(__name__)

Specs = Callable[[], Sequence[ControllerSpec[Any]]]
MISSING_SECONDS = 2.0
CONTROLLERS: tuple[Specs, ...] = (scheduler.specs, workloads.specs, storage_binding.specs, pod_gc.specs)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    nodes: int = 3
    zones: tuple[str, ...] = ("a", "b", "c")
    seed: int | None = None
    """Makes names, uids and everything that is drawn the same each time; without one they are random."""
    node_daemon: bool = True
    """Whether the nodes have the node daemon, which restarts, pulls, probes and reports."""
    daemon_gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    """Its feature gates; those that are not named are on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Served:
    """How a serving cluster is reached."""

    url: str
    kubeconfig: str


class LocalCluster:
    """`caller` moves the reviews of webhooks that are not mounted in process; without one there are no others."""

    def __init__(
        self, options: ClusterOptions, *, clock: Clock, caller: Caller | None = None, heartbeat: bool = False
    ) -> None:
        self.options = options
        self.clock = clock
        seed = options.seed
        self.core = ApiCore(native_registry(), clock=clock, seed=seed, require_namespaces=True)
        fields.install(self.core)
        admitting.install(self.core, seed=seed)
        self.webhooks = InProcessCaller(otherwise=caller)
        Webhooks(self.core, self.webhooks, seed=seed)
        Definitions(self.core, conversion=WebhookConversion(self.webhooks, seed=seed))
        self.attendance = Attendance(self.core)
        self.transport = InProcessTransport(self.core)
        self._draws = seed if seed is not None else random.SystemRandom().getrandbits(32)
        self._discover = of_registry(self.core.registry)
        # The daemon's kinds come when PyKruise is installed: soon after the start, or never.
        self._node_cache = Cache(
            self.client("kubelet"), clock=clock, seed=self._draws, backoff=Backoff(most_missing=MISSING_SECONDS)
        )
        self.nodes = NodeModel(
            self.client("kubelet"),
            self._node_cache,
            clock=clock,
            seed=self._draws,
            nodes=make_nodes(options.nodes, zones=options.zones),
            heartbeat=heartbeat,
            monitor=True,
            daemon=options.node_daemon,
            daemon_gates=options.daemon_gates,
        )
        self.logs = ContainerLogs(self.nodes)
        # Nobody reads them, so that all controllers can share them: making some for each takes longer than making it.
        self._metrics = Metrics()
        self.ready = asyncio.Event()
        """Namespaces, classes and nodes are there; pods can be created."""

    def client(self, name: str) -> Client:
        """A client in process; `name` is noted as the owner of the fields it writes."""
        return Client(self.transport, clock=self.clock, field_manager=name)

    async def run(self, *, port: int = 6443, bundle: str = "") -> None:
        """Be the cluster until cancelled. `bundle` is the CA that pods find in every namespace."""
        self.attendance.begin((NAMESPACES, PODS))  # by the namespaces' life cycle and by the nodes
        await create_system_objects(self.core, port=port)
        client = self.client("kube-controller-manager")
        namespaces = Namespaces(client, clock=self.clock, seed=self._draws, discover=self._discover, bundle=bundle)
        collector = GarbageCollector(client, clock=self.clock, seed=self._draws, discover=self._discover)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(namespaces.run(), name="namespaces")
            tasks.create_task(collector.run(), name="garbage-collector")
            tasks.create_task(forget(self.core.storage), name="forgetting")
            for specs in CONTROLLERS:
                self._control(tasks, specs if specs is not workloads.specs else self._of_workloads)
            tasks.create_task(self._node_cache.run(), name="node-watches")
            tasks.create_task(self.nodes.run(), name="nodes")
            await self.nodes.ready.wait()
            self.ready.set()

    def _control(self, tasks: asyncio.TaskGroup, specs: Specs) -> None:
        """Run controllers that share a cache."""
        manager = "kube-scheduler" if specs is scheduler.specs else "kube-controller-manager"
        client = self.client(manager)
        cache = Cache(client, clock=self.clock, seed=self._draws)
        applier = Applier(client, cache, clock=self.clock, metrics=self._metrics)
        controllers = specs()
        self.attendance.begin(spec.subject for spec in controllers)
        for spec in controllers:
            recorder = EventRecorder(client, component=spec.name, clock=self.clock, capacity=20_000)
            controller = Controller(
                spec,
                cache=cache,
                applier=applier,
                recorder=recorder,
                clock=self.clock,
                metrics=self._metrics,
                seed=self._draws,
                sync_timeout=None,
            )
            tasks.create_task(recorder.run(), name=f"{spec.name}-events")
            tasks.create_task(controller.run(), name=spec.name)
        tasks.create_task(cache.run(), name=f"{manager}-watches")

    def _of_workloads(self) -> Sequence[ControllerSpec[Any]]:
        """With the disruption budgets, which look at the same pods."""
        return (*workloads.specs(), *disruption.specs(self._scale))

    def _scale(self, reference: OwnerReference, namespace: str) -> tuple[str, int] | str:
        """The workload behind a pod, by its scale: of a ReplicaSet, that of its Deployment. A text: why not."""
        group = reference.api_version.rpartition("/")[0]
        kind = next((one for one in self.core.registry if (one.group, one.kind) == (group, reference.kind)), None)
        found = self.core.storage.get(kind.group_resource, (namespace, reference.name)) if kind is not None else None
        if kind is None or found is None or found["metadata"]["uid"] != reference.uid:
            return ""
        above = next((one for one in found["metadata"].get("ownerReferences", ()) if one.get("controller")), None)
        if reference.kind == "ReplicaSet" and above is not None and above["kind"] == "Deployment":
            return self._scale(convert(above, OwnerReference), namespace)
        scale = kind.subresources.get("scale")
        if not isinstance(scale, ViewSubresource):
            return f'{kind.plural}.{kind.group} "{reference.name}" does not implement the scale subresource'
        shown = scale.read(kind.in_version(found, kind.stored_version))
        return reference.uid, int(shown["spec"].get("replicas", 0))

    # Over HTTPS

    @contextlib.asynccontextmanager
    async def serving(self, *, port: int, host: str = "127.0.0.1") -> AsyncIterator[Served]:
        """Run, and serve HTTPS on loopback. Ready when entered; everything ends with the block."""
        # Only here: a cluster on virtual time must not even load what opens sockets.
        from kruise.local.server import LocalServer, kubeconfig, make_identity

        identity = make_identity(self.clock.now())
        server = LocalServer(
            self.core,
            certificates=identity,
            host=host,
            port=port,
            logs=self.logs,
        )
        await server.start()
        bound = int(server.url.rpartition(":")[2])
        running = asyncio.create_task(self.run(port=bound, bundle=identity.ca_cert.decode()), name="cluster")
        waiting = asyncio.create_task(self.ready.wait())
        try:
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            yield Served(server.url, kubeconfig(identity, server.url))
        finally:
            waiting.cancel()
            await server.stop()
            running.cancel()
            await asyncio.wait({running})

    def summary(self) -> str:
        """One line for a person: what there is, right now."""
        nodes, pods = self._objects(NODES), self._objects(PODS)
        ready = sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", ()))
            for node in nodes
        )
        running = sum(pod.get("status", {}).get("phase") == "Running" for pod in pods)
        return f"{ready}/{len(nodes)} nodes ready · {running}/{len(pods)} pods running"

    def _objects(self, resource: Resource[Any]) -> list[Json]:
        storage = self.core.storage
        return [obj for _, obj in storage.scan(resource.group_resource, "", "", storage.version)]

    # For previews and tests

    def import_objects(self, objects: Sequence[Json]) -> None:
        """Put objects into the storage as they are in another cluster: uids, status, times and owners included.

        To be called before `run`: the controllers and nodes go on from what they find.
        """
        for obj in objects:
            group, _, version = str(obj["apiVersion"]).rpartition("/")
            kind = next(
                (k for k in self.core.registry if (k.group, k.kind) == (group, obj["kind"]) and version in k.versions),
                None,
            )
            if kind is None:
                raise LookupError(f"{obj['apiVersion']} {obj['kind']} is not served here: import its definition first")
            metadata = obj["metadata"]
            key = (metadata.get("namespace", "") if kind.namespaced else "", metadata["name"])
            self.core.storage.put(kind.group_resource, key, kind.in_version(obj, kind.stored_version))
