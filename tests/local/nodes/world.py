"""A core, a client and simulated nodes on virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kruise.api.native.events import EVENTS
from kruise.api.native.pod import PODS
from kruise.local.apicore import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.local.nodes import ContainerLogs, NodeModel, NodeSpec, make_nodes
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual

Json = dict[str, Any]


class World:
    def __init__(self, nodes: Sequence[NodeSpec] | int = 1, *, seed: int = 1, **options: Any) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.core = ApiCore(native_registry(), clock=self.clock, seed=seed)
        self.transport = InProcessTransport(self.core)
        self.client = Client(self.transport, clock=self.clock)
        self.specs = make_nodes(nodes) if isinstance(nodes, int) else list(nodes)
        self.seed = seed
        self.options = options
        self.tasks: list[asyncio.Task[None]] = []
        self.model = self._model()

    def _model(self) -> NodeModel:
        self.cache = Cache(self.client, clock=self.clock)
        return NodeModel(self.client, self.cache, clock=self.clock, seed=self.seed, nodes=self.specs, **self.options)

    async def start(self) -> None:
        self.tasks = [asyncio.create_task(self.cache.run()), asyncio.create_task(self.model.run())]
        await self.model.ready.wait()

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        for task in self.tasks:
            try:
                await task
            except asyncio.CancelledError:
                continue

    async def restart(self) -> None:
        """Another process takes over."""
        await self.stop()
        self.model = self._model()
        await self.start()

    @property
    def logs(self) -> ContainerLogs:
        return ContainerLogs(self.model)

    # Short words

    async def create(self, name: str = "web", *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Json:
        await self.client.create(PODS, pod(name, annotations=annotations, **spec), "default")
        return await self.pod(name)

    async def pod(self, name: str = "web") -> Json:
        answer = await self.client.send(Request(Verb.GET, PODS, "default", name))
        found: Json = json.loads(answer.body)
        return found

    async def exists(self, name: str = "web") -> bool:
        return self.core.storage.get("pods", ("default", name)) is not None

    async def patch(self, body: Json, name: str = "web", *, subresource: str = "") -> None:
        await self.client.patch(PODS, name, body, "default", patch_type=PatchType.STRATEGIC, subresource=subresource)

    async def set_image(self, image: str, container: str = "app", name: str = "web") -> None:
        await self.patch({"spec": {"containers": [{"name": container, "image": image}]}}, name)

    async def until(self, check: Callable[[Json], bool], name: str = "web", seconds: float = 600.0) -> Json:
        """Wait for a state of the pod; fails in the end with what it is."""
        for _ in range(int(seconds / 0.05)):
            found = await self.pod(name)
            if check(found):
                return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"not reached: {json.dumps(await self.pod(name), indent=1)}")

    async def until_ready(self, name: str = "web") -> Json:
        return await self.until(is_ready, name)

    async def gone(self, name: str = "web", seconds: float = 600.0) -> float:
        """Wait until the pod is gone; how long it took."""
        began = self.clock.monotonic()
        for _ in range(int(seconds / 0.05)):
            if not await self.exists(name):
                return self.clock.monotonic() - began
            await asyncio.sleep(0.05)
        raise AssertionError(f"still there: {await self.pod(name)}")

    async def events(self, name: str = "web") -> list[Json]:
        await self.model.flush_events()
        answer = await self.client.send(Request(Verb.LIST, EVENTS, "default"))
        items: list[Json] = json.loads(answer.body)["items"]
        return [item for item in items if item["involvedObject"]["name"] == name]

    async def said(self, name: str = "web") -> list[tuple[str, str]]:
        """Reason and message of every event, in the order in which they were first said."""
        return [(item["reason"], item["message"]) for item in await self.events(name)]


def pod(name: str = "web", *, node: str = "node-1", annotations: Mapping[str, str] | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name}
    if annotations:
        metadata["annotations"] = dict(annotations)
    usual = {
        "nodeName": node,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "containers": [container()],
    }
    return {"metadata": metadata, "spec": {**usual, **spec}}


def container(name: str = "app", image: str = "nginx:1.25", **more: Any) -> Json:
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", **more}


def script(text: str, name: str = "app", **more: Any) -> Json:
    return container(name, "busybox:1.36", command=["sh", "-c", text], **more)


def condition(found: Json, kind: str) -> Json:
    return next((item for item in found["status"].get("conditions", ()) if item["type"] == kind), {})


def is_ready(found: Json) -> bool:
    return condition(found, "Ready").get("status") == "True"


def status(found: Json, name: str = "app") -> Json:
    parts = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    nothing: Json = {"state": {}, "lastState": {}, "restartCount": 0, "image": "", "ready": False}
    return next((item for part in parts for item in found["status"].get(part, ()) if item["name"] == name), nothing)


def waiting(found: Json, name: str = "app") -> str:
    reason: str = status(found, name).get("state", {}).get("waiting", {}).get("reason", "")
    return reason


def virtually(
    scenario: Callable[[World], Awaitable[None]], nodes: Sequence[NodeSpec] | int = 1, **options: Any
) -> None:
    async def main() -> None:
        world = World(nodes, **options)
        await world.start()
        try:
            await scenario(world)
        finally:
            await world.stop()

    run_virtual(main())
