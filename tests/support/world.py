"""A cluster with PyKruise in it, as scenarios see it. The same scenario runs on virtual time and on a real cluster.

    async def scenario(world: World) -> None:
        await world.create(manifest)
        await world.until(lambda: world.pods(...), ...)

`LocalWorld` is the local cluster with the manager in its process; `RealWorld` a real API server with a manager process
and nodes that are simulated or real (`tests.support.kruisecluster`).
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from kruise import kinds
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.events import EVENTS
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.resource import Resource
from kruise.embedded import embedded_manager, embedded_options, install
from kruise.feature import Feature
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import Clock, VirtualClock, run_virtual
from kruise.manager import gates
from kruise.manager.options import Options
from tests.support import rights

T = TypeVar("T")
Json = dict[str, Any]

EVERY_KIND = Options(gates=gates.resolve(dict.fromkeys(gates.GATES, True)))
"""With every gate on, so that each kind has its controller."""
NATIVE: Sequence[Resource[Any]] = (PODS, PERSISTENT_VOLUME_CLAIMS, CONTROLLER_REVISIONS, EVENTS)


def resource_of(manifest: Mapping[str, Any]) -> Resource[Any]:
    """The resource of a manifest, in the very version that it names."""
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    ours = (spec.subject for feature in kinds.features() for spec in feature.controllers(EVERY_KIND))
    known = {(one.group, one.kind): one for one in (*ours, *NATIVE)}
    return dataclasses.replace(known[group, str(manifest["kind"])], version=version)


class World:
    """What a scenario may do: write as a user would, read whole objects, and wait."""

    def __init__(self, client: Client, namespace: str, clock: Clock) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = clock

    # Waiting

    async def until(self, check: Callable[[], Awaitable[T]], *, within: float = 60.0, every: float = 0.1) -> T:
        """Ask again until no AssertionError comes; the last one is raised when the time is over."""
        deadline = self.clock.monotonic() + within
        while True:
            try:
                return await check()
            except AssertionError:
                if self.clock.monotonic() > deadline:
                    raise
            await asyncio.sleep(every)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # Writing

    def place_of(self, resource: Resource[Any]) -> str:
        """The namespace in which this world's objects of a kind are."""
        return self.namespace if resource.namespaced else ""

    async def create(self, manifest: Mapping[str, Any]) -> Json:
        resource = resource_of(manifest)
        answer = await self.client.send(
            Request(Verb.CREATE, resource, self.place_of(resource), body=json.dumps(manifest).encode())
        )
        created: Json = json.loads(answer.body)
        return created

    async def patch(
        self,
        resource: Resource[Any],
        name: str,
        body: Any,
        *,
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
    ) -> None:
        await self.client.patch(
            resource, name, body, self.place_of(resource), patch_type=patch_type, subresource=subresource
        )

    async def delete(self, resource: Resource[Any], name: str, **options: Any) -> None:
        await self.client.delete(resource, name, self.place_of(resource), **options)

    # Reading

    async def get(self, resource: Resource[Any], name: str) -> Json:
        answer = await self.client.send(Request(Verb.GET, resource, self.place_of(resource), name))
        found: Json = json.loads(answer.body)
        return found

    async def list(self, resource: Resource[Any], labels: str = "") -> builtins.list[Json]:
        """Whole objects, by name."""
        query = (("labelSelector", labels),) if labels else ()
        answer = await self.client.send(Request(Verb.LIST, resource, self.place_of(resource), query=query))
        items: builtins.list[Json] = json.loads(answer.body)["items"]
        return sorted(items, key=lambda item: str(item["metadata"]["name"]))

    async def pods(self, labels: str = "") -> builtins.list[Json]:
        """Pods that are not on their way out."""
        return [pod for pod in await self.list(PODS, labels) if "deletionTimestamp" not in pod["metadata"]]

    async def cloneset(self, name: str = "web") -> Json:
        return await self.get(CLONE_SETS, name)

    async def events(self, name: str = "", reason: str = "") -> builtins.list[Json]:
        found = await self.list(EVENTS)
        return [
            event
            for event in found
            if name in ("", event["involvedObject"]["name"]) and reason in ("", event["reason"])
        ]


class LocalWorld(World):
    """The local cluster on virtual time, with the manager in its process."""

    def __init__(self, cluster: LocalCluster, options: Options, features: Sequence[Feature], seed: int) -> None:
        super().__init__(cluster.client("scenario"), "default", cluster.clock)
        self.cluster = cluster
        self.options = options
        self.features = features
        self.grants = rights.grants_with(tuple(features), rights.MANAGER, options.gates)
        """What the manager may do."""
        self._random = Random(seed)
        self._manager: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    def start_manager(self, transport: Transport | None = None) -> None:
        """Start a manager, which has the rights of an installation with its gates and no others; `transport` stands
        between it and the API."""
        assert self._manager is None, "a manager is running already"
        user = rights.user_of(rights.MANAGER)
        inner = transport or InProcessTransport(self.cluster.core)
        self.guard = rights.Guarded(inner, lambda: self.grants, user)
        manager = embedded_manager(
            self.cluster, self.features, embedded_options(self.options), random=self._random, transport=self.guard
        )
        self.manager = manager
        self.journal = manager.journal
        self._cache = manager._cache
        self._stop = asyncio.Event()
        self._manager = asyncio.create_task(manager.run(self._stop), name="manager")

    def may(self, resource: Resource[Any], *verbs: str) -> None:
        """What an admin gives the manager for a kind of somebody else."""
        rule = {"apiGroups": [resource.group], "resources": [resource.plural], "verbs": verbs}
        self.grants = rights.with_more(self.grants, rule)

    async def stop_manager(self) -> None:
        """End it in order."""
        if self._manager is not None:
            self._stop.set()
            await self._manager
            self._manager = None

    async def kill_manager(self) -> None:
        """End it as a crash does: nothing is finished, nothing is told."""
        if self._manager is not None:
            self._manager.cancel()
            await asyncio.wait({self._manager})
            self._manager = None

    @property
    def waiting_for(self) -> Mapping[str, str]:
        """Kinds that the manager cannot list, and why: what its readiness tells."""
        return self._cache.waiting_for

    @property
    def manager_is_running(self) -> bool:
        return self._manager is not None and not self._manager.done()


@contextlib.asynccontextmanager
async def local_world(
    *,
    seed: int = 1,
    nodes: int = 6,
    feature_gates: str = "",
    features: Sequence[Feature] = kinds.features(),
    start: bool = True,
    node_daemon: bool = True,
    **options: Any,
) -> AsyncIterator[LocalWorld]:
    """A local world; to be entered on a virtual loop. Without `node_daemon`, somebody else brings one, or nobody."""
    clock = VirtualClock(asyncio.get_running_loop())
    cluster = LocalCluster(ClusterOptions(nodes=nodes, seed=seed, node_daemon=node_daemon), clock=clock)
    running = asyncio.create_task(cluster.run(), name="cluster")
    await cluster.ready.wait()
    await install(cluster, features)
    chosen = Options(gates=gates.resolve(gates.parse(feature_gates)), **options)
    world = LocalWorld(cluster, chosen, features, seed)
    if start:
        world.start_manager()
        await asyncio.sleep(1)
    try:
        yield world
        if running.done():
            running.result()
    finally:
        await world.kill_manager()
        running.cancel()
        await asyncio.wait({running})


def run_local(scenario: Callable[[LocalWorld], Awaitable[None]], **options: Any) -> None:
    """Run a scenario in a local world of its own, on virtual time."""

    async def main() -> None:
        async with local_world(**options) as world:
            await scenario(world)

    run_virtual(main())
