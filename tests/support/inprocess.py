"""A client, its faults and a cache over an API core in process, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.local.apicore.builtin import custom_kind
from kruise.local.apicore.core import ApiCore
from kruise.local.apicore.storage import MemoryStorage
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.clock import VirtualClock
from kruise.machinery.codec import Struct
from tests.support.background import in_background
from tests.support.faults import FaultyTransport, Rule

OWNER_UID = "00000000-0000-4000-8000-00000000abcd"


class ToySpec(Struct):
    replicas: int = 0
    image: str = ""


class ToyStatus(Struct):
    replicas: int = 0
    observed_generation: int = 0


class Toy(Struct):
    """A custom kind with a number of pods."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ToySpec = ToySpec()
    status: ToyStatus = ToyStatus()


TOYS = Resource("example.com", "v1", "toys", "Toy", True, Toy)


class InProcess:
    """Everything below a controller. `faults` stands between the client and the core."""

    def __init__(self, rules: Sequence[Rule] = (), *, seed: int = 0) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.core = ApiCore(
            native_registry([custom_kind(TOYS)]),
            clock=self.clock,
            storage=MemoryStorage(start_version=100),
            seed=seed,
        )
        self.inner = InProcessTransport(self.core)
        self.faults = FaultyTransport(self.inner, rules, seed=seed, clock=self.clock)
        self.client = Client(self.faults, clock=self.clock)
        self.direct = Client(self.inner, clock=self.clock)
        """Past the faults, as somebody else would come."""
        self.cache = Cache(self.client, clock=self.clock)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """With the cache in step."""
        async with in_background(self.cache.run()):
            await self.cache.wait_synced(600)
            yield

    async def pods(self) -> list[str]:
        return [pod.metadata.name for pod in (await self.direct.list(PODS, "default")).items]

    async def add_pod(self, name: str, **metadata: Any) -> Pod:
        return await self.direct.create(PODS, pod_body(name, **metadata), "default")


def pod_body(name: str, *, owner_uid: str = "", node: str = "", **metadata: Any) -> dict[str, Any]:
    if owner_uid:
        owner = {"apiVersion": "example.com/v1", "kind": "Toy", "name": "toy", "uid": owner_uid, "controller": True}
        metadata["ownerReferences"] = [owner]
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "app:1"}]}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": spec,
    }
