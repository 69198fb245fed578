"""Protection and distribution: what budgets cost those who use them and those who do not, and what copies cost.

The local cluster in one process, with the manager in it: server and manager share the core, so what counts are ratios
and numbers of writes. A rollout in place runs twice: in a cluster without budgets, and in one with a hundred budgets
over other pods. Then a budget is asked by hundreds of clients at the same moment. A distribution copies a Secret into a
thousand namespaces, is changed, and one copy drifts.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from bench import processes
from bench.report import Report, Row
from kruise import kinds
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.native.config import SECRETS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.embedded import install
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType, Request
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import RealClock
from kruise.manager import gates
from kruise.manager.options import Options
from tests.support.world import LocalWorld

_NAMESPACE = "default"
_GATES = "PodUnavailableBudgetUpdateGate=true,ResourceDistributionGate=true"


class _Counted:
    """The manager's way to the API: what it writes."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.writes: Counter[str] = Counter()

    async def send(self, request: Request) -> Response:
        if request.verb.writes and request.resource is not None:
            self.writes[request.resource.plural] += 1
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


class _Cluster:
    """A cluster with a manager, and what it was asked."""

    async def __aenter__(self) -> _Cluster:
        self._cluster = LocalCluster(ClusterOptions(nodes=20, seed=1), clock=RealClock())
        self._running = asyncio.create_task(self._cluster.run())
        await self._cluster.ready.wait()
        await install(self._cluster, kinds.features())
        self.counted = _Counted(InProcessTransport(self._cluster.core))
        options = Options(gates=gates.resolve(gates.parse(_GATES)))
        self._world = LocalWorld(self._cluster, options, kinds.features(), 1)
        self._world.start_manager(self.counted)
        await asyncio.sleep(2)
        self.client: Client = self._cluster.client("bench")
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._world.kill_manager()
        self._running.cancel()
        await asyncio.wait({self._running})


def _clones(name: str, replicas: int, image: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    rolling = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "25%"}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, "updateStrategy": strategy}
    return {"metadata": {"name": name}, "spec": spec}


def _budget(name: str, app: str, much: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "maxUnavailable": much}}


async def _until_ready(client: Client, name: str, count: int) -> None:
    while True:
        found = await client.get(CLONE_SETS, name, _NAMESPACE)
        status = found.status
        if (status.updated_ready_replicas, status.observed_generation) == (count, found.metadata.generation):
            return
        await asyncio.sleep(0.02)


async def _rollout(count: int, budgets: int) -> float:
    """Pods a second that are updated in place."""
    async with _Cluster() as cluster:
        client = cluster.client
        await client.create(CLONE_SETS, _clones("web", count, "nginx:1.25"), _NAMESPACE)
        for number in range(budgets):
            await client.create(POD_UNAVAILABLE_BUDGETS, _budget(f"b{number}", f"other-{number}", 1), _NAMESPACE)
        await _until_ready(client, "web", count)
        processes.settle_heap()
        began = time.perf_counter()
        change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"}]
        await client.patch(CLONE_SETS, "web", change, _NAMESPACE, patch_type=PatchType.JSON)
        await _until_ready(client, "web", count)
        return count / (time.perf_counter() - began)


@dataclasses.dataclass(frozen=True)
class _Rush:
    answers: float
    """A second."""
    writes: int
    let: int
    others: int
    """Answers that are neither a yes nor a refusal."""


async def _rush(clients: int) -> _Rush:
    """All evict a pod each, at the same moment."""
    async with _Cluster() as cluster:
        client = cluster.client
        await client.create(CLONE_SETS, _clones("web", clients, "nginx:1.25"), _NAMESPACE)
        await client.create(POD_UNAVAILABLE_BUDGETS, _budget("pub", "web", clients // 10), _NAMESPACE)
        await _until_ready(client, "web", clients)
        while True:
            status = (await client.get(POD_UNAVAILABLE_BUDGETS, "pub", _NAMESPACE)).status
            pods = (await client.list(PODS, _NAMESPACE)).items
            if status.current_available == clients and all(pod.metadata.annotations for pod in pods):
                break
            await asyncio.sleep(0.05)
        processes.settle_heap()
        before = cluster.counted.writes["podunavailablebudgets"]
        began = time.perf_counter()
        answers = await asyncio.gather(
            *(client.evict(PODS, pod.metadata.name, _NAMESPACE) for pod in pods), return_exceptions=True
        )
        seconds = time.perf_counter() - began
        let = sum(not isinstance(answer, BaseException) for answer in answers)
        refused = sum(isinstance(answer, ApiError) and answer.code == 429 for answer in answers)
        writes = cluster.counted.writes["podunavailablebudgets"] - before
        return _Rush(clients / seconds, writes, let, clients - let - refused)


@dataclasses.dataclass(frozen=True)
class _Copies:
    creating: float
    """Writes for each namespace."""
    changing: float
    drifting: int
    idle: int
    seconds: float
    """Until a copy that was changed is as it should be."""


async def _copies(namespaces: int) -> _Copies:
    async with _Cluster() as cluster:
        client, writes = cluster.client, cluster.counted.writes
        for number in range(namespaces):
            await client.create(NAMESPACES, {"metadata": {"name": f"n{number}", "labels": {"g": "1"}}})
        resource = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "token"},
            "stringData": {f"k{number}": "v" * 200 for number in range(20)},
        }
        spec = {"resource": resource, "targets": {"namespaceSelector": {"matchLabels": {"g": "1"}}}}

        async def copied(generation: int) -> int:
            """Writes since the last time."""
            while True:
                status = (await client.get(RESOURCE_DISTRIBUTIONS, "rd")).status
                if (status.succeeded, status.observed_generation) == (namespaces, generation):
                    break
                await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            count = writes["secrets"] + writes["resourcedistributions"]
            writes.clear()
            return count

        writes.clear()
        await client.create(RESOURCE_DISTRIBUTIONS, {"metadata": {"name": "rd"}, "spec": spec})
        creating = await copied(1)
        await client.patch(RESOURCE_DISTRIBUTIONS, "rd", {"spec": {"resource": {"stringData": {"k0": "w"}}}})
        changing = await copied(2)
        await asyncio.sleep(5)
        idle = await copied(2)
        began = time.perf_counter()
        await client.patch(SECRETS, "token", {"data": {"k0": "eA=="}}, "n0")
        while True:
            if (await client.get(SECRETS, "token", "n0")).data["k0"] == b"w":
                break
            await asyncio.sleep(0.005)
        seconds = time.perf_counter() - began
        drifting = await copied(2)
        return _Copies(creating / namespaces, changing / namespaces, drifting, idle, seconds)


def measure(scale: float) -> Report:
    pods, clients, namespaces = (max(50, int(number * scale)) for number in (400, 300, 1000))
    logging.disable(logging.CRITICAL)  # every refusal is a line in the protection log
    without = processes.run(_rollout(pods, 0))
    beside = processes.run(_rollout(pods, 100))
    rush = processes.run(_rush(clients))
    copies = processes.run(_copies(namespaces))
    logging.disable(logging.NOTSET)
    return Report(
        name="protection",
        setting=f"{pods} pods updated in place without budgets and beside 100 over other pods; {clients} evictions at "
        f"once under one budget; a Secret in {namespaces} namespaces; all in one process",
        rows=(
            Row(what="pods updated without budgets", value=without, unit="/s"),
            Row(what="with budgets over others / without", value=beside / without, at_least=0.8),
            Row(what="evictions at once, answered", value=rush.answers, unit="/s"),
            Row(what="of them let through", value=rush.let),
            Row(what="neither let through nor refused", value=rush.others, below=1),
            Row(what="writes of the budget for all of them", value=rush.writes, below=clients / 4),
            Row(what="writes for each namespace, new copies", value=copies.creating, below=1.05),
            Row(what="writes for each namespace, a change", value=copies.changing, below=1.05),
            Row(what="writes for one copy that drifted", value=copies.drifting, below=2),
            Row(what="until it is repaired", value=copies.seconds * 1000, unit="ms"),
            Row(what="writes while nothing happens", value=copies.idle, below=1),
        ),
    )
