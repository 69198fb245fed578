"""A small cluster for tests: controllers over a client, and a kubelet that only moves the status of pods.

The same classes run in process on virtual time and against a real API server: `World` makes the first, whoever has a
client for the second builds `Controllers` and `Kubelet` on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any

from kruise.api.native.events import EVENTS, Event
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore, MemoryStorage
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError, NotFoundError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import Clock, VirtualClock
from kruise.machinery.controller import Controller
from kruise.machinery.events import EventRecorder
from kruise.machinery.spec import ControllerSpec
from kruise.machinery.times import format_time

NAMESPACE = "default"
MakeSpecs = Callable[[], Iterable[ControllerSpec[Any]]]


class Controllers:
    """Controllers of some specs on one cache, each with a recorder that speaks in its name."""

    def __init__(self, client: Client, clock: Clock, makers: Sequence[MakeSpecs], *, seed: int = 0) -> None:
        self.cache = Cache(client, clock=clock, seed=seed)
        self.applier = Applier(client, self.cache, clock=clock)
        self.recorders: list[EventRecorder] = []
        self.controllers: list[Controller[Any]] = []
        for make in makers:
            for spec in make():
                recorder = EventRecorder(client, component=spec.name, clock=clock, capacity=10_000)
                self.recorders.append(recorder)
                self.controllers.append(
                    Controller(
                        spec,
                        cache=self.cache,
                        applier=self.applier,
                        recorder=recorder,
                        clock=clock,
                        seed=seed,
                        grace=0.0,
                    )
                )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.cache.run())
            for recorder in self.recorders:
                group.create_task(recorder.run())
            for controller in self.controllers:
                group.create_task(controller.run())


@dataclasses.dataclass
class Habits:
    """How the kubelet treats pods."""

    start: Callable[[Pod], float] = lambda pod: 1.0
    """Seconds from the binding until a pod runs and is ready."""
    ready: Callable[[Pod], bool] = lambda pod: True
    run: Callable[[Pod], float | None] = lambda pod: None
    """Seconds that a pod runs until it ends by itself; None: for ever."""
    exit_code: Callable[[Pod], int] = lambda pod: 0
    stop: Callable[[Pod], float] = lambda pod: 0.5
    """Seconds that a pod takes to end when it is deleted."""


class Kubelet:
    """Plays the kubelets of all nodes by patches of the pods' status."""

    def __init__(self, client: Client, clock: Clock, habits: Habits | None = None, *, namespace: str = "") -> None:
        self.habits = habits or Habits()
        self._client = client
        self._clock = clock
        self._cache = Cache(client, clock=clock, namespace=namespace)
        self._store = self._cache.add(PODS)
        self._store.subscribe(self._changed)
        self._group: asyncio.TaskGroup | None = None
        self._started: set[str] = set()
        self._stopping: set[str] = set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            await self._cache.run()

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not new.spec.node_name or self._group is None:
            return
        uid = new.metadata.uid
        if new.metadata.deletion_timestamp is not None:
            if uid not in self._stopping:
                self._stopping.add(uid)
                self._group.create_task(self._stop(new))
        elif uid not in self._started:
            self._started.add(uid)
            self._group.create_task(self._live(new))

    async def _live(self, pod: Pod) -> None:
        await asyncio.sleep(self.habits.start(pod))
        if not await self._show(pod, "Running", ready=self.habits.ready(pod)):
            return
        seconds = self.habits.run(pod)
        if seconds is None:
            return
        await asyncio.sleep(seconds)
        code = self.habits.exit_code(pod)
        await self._show(pod, "Failed" if code else "Succeeded", ready=False, exit_code=code)

    async def _stop(self, pod: Pod) -> None:
        await asyncio.sleep(self.habits.stop(pod))
        current = self._store.get(pod.metadata.namespace, pod.metadata.name)
        if current is not None and current.status.phase not in ("Succeeded", "Failed"):
            await self._show(pod, "Failed", ready=False, exit_code=137)
        with contextlib.suppress(ApiError):
            await self._client.delete(
                PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid, grace_period_seconds=0
            )

    async def _show(self, pod: Pod, phase: str, *, ready: bool, exit_code: int = 0) -> bool:
        now = format_time(self._clock.now())
        state: dict[str, Any] = {"running": {"startedAt": now}}
        if phase in ("Succeeded", "Failed"):
            reason = "Error" if exit_code else "Completed"
            state = {"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": now, "finishedAt": now}}
        conditions = [
            {"type": kind, "status": "True" if ready else "False", "lastTransitionTime": now}
            for kind in ("Ready", "ContainersReady")
        ]
        statuses = [
            {
                "name": container.name,
                "image": container.image,
                "imageID": f"sha256:{container.image}",
                "ready": ready,
                "restartCount": 0,
                "state": state,
            }
            for container in pod.spec.containers
        ]
        body = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"phase": phase, "conditions": conditions, "containerStatuses": statuses},
        }
        current = self._store.get(pod.metadata.namespace, pod.metadata.name)
        if current is None or current.metadata.uid != pod.metadata.uid:
            return False
        if current.metadata.deletion_timestamp is not None and phase == "Running":
            return False
        try:
            await self._client.patch(
                PODS,
                pod.metadata.name,
                body,
                pod.metadata.namespace,
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except NotFoundError:
            return False
        return True


class World:
    """An API core in process on virtual time, with controllers and a kubelet."""

    def __init__(self, *makers: MakeSpecs, seed: int = 0, habits: Habits | None = None) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.core = ApiCore(native_registry(), clock=self.clock, storage=MemoryStorage(start_version=100), seed=seed)
        self.client = Client(InProcessTransport(self.core), clock=self.clock)
        self.controllers = Controllers(self.client, self.clock, makers, seed=seed)
        self.kubelet = Kubelet(self.client, self.clock, habits)

    @property
    def habits(self) -> Habits:
        return self.kubelet.habits

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        tasks = [asyncio.create_task(self.controllers.run()), asyncio.create_task(self.kubelet.run())]
        try:
            await asyncio.sleep(0.1)
            yield
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def create(self, resource: Resource[Any], body: dict[str, Any], namespace: str = NAMESPACE) -> Any:
        return await self.client.create(resource, body, namespace if resource.namespaced else "")

    async def get(self, resource: Resource[Any], name: str, namespace: str = NAMESPACE) -> Any:
        return await self.client.get(resource, name, namespace if resource.namespaced else "")

    async def find(self, resource: Resource[Any], name: str, namespace: str = NAMESPACE) -> Any:
        try:
            return await self.get(resource, name, namespace)
        except NotFoundError:
            return None

    async def patch(self, resource: Resource[Any], name: str, body: Any, **more: Any) -> Any:
        return await self.client.patch(resource, name, body, NAMESPACE if resource.namespaced else "", **more)

    async def delete(self, resource: Resource[Any], name: str, **more: Any) -> Any:
        return await self.client.delete(resource, name, NAMESPACE if resource.namespaced else "", **more)

    async def list(self, resource: Resource[Any]) -> tuple[Any, ...]:
        return (await self.client.list(resource, NAMESPACE if resource.namespaced else "")).items

    async def pods(self) -> dict[str, Pod]:
        return {pod.metadata.name: pod for pod in await self.list(PODS)}

    async def messages(self, component: str = "") -> list[tuple[str, str]]:
        """Reasons and messages of the events, in the order of their names' times."""
        events: Sequence[Event] = await self.list(EVENTS)
        chosen = [item for item in events if component in ("", item.source.component)]
        chosen.sort(key=lambda item: item.metadata.name.rpartition(".")[2])
        return [(item.reason, item.message) for item in chosen]

    async def add_nodes(self, count: int, **more: Any) -> None:
        for number in range(count):
            await self.create(NODES, node(f"n{number}", **more))


def node(name: str, *, cpu: str = "8", memory: str = "16Gi", pods: str = "110", **more: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **more.pop("amounts", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": more.pop("spec", {}),
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
