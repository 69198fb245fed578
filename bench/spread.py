"""Spreading: what a WorkloadSpread costs each pod that it lets in, and what a pass over many subsets costs.

The local cluster in one process, with the manager in it: server and manager share the core, so that what counts is the
ratio between the two runs. Pods are created by a CloneSet, once without and once with a WorkloadSpread of three subsets
over it, two of them with a limit; then the same again. A run begins when all that the one before left to do is done,
and pods are counted by a watch: neither run pays for the other, or for being looked at.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from bench import processes
from bench.report import Report, Row
from kruise import kinds
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.native.deletion_cost import DELETION_COST
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.embedded import install
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.machinery import codec
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import RealClock
from kruise.manager.options import Options
from kruise.spread.uniteddeployment.decide import decide
from kruise.spread.uniteddeployment.situation import Snapshot
from tests.spread.uniteddeployment.objects import NOW, child, pods, revision_of, united
from tests.support.world import LocalWorld

_NAMESPACE = "default"
_NODE = "nowhere"
_TIMES = 2


def _clones(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "nginx:1.25"}], "nodeName": _NODE}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _spread(name: str, replicas: int) -> dict[str, Any]:
    target = {"apiVersion": CLONE_SETS.api_version, "kind": CLONE_SETS.kind, "name": name}
    subsets = [{"name": "a", "maxReplicas": replicas // 4}, {"name": "b", "maxReplicas": replicas // 2}, {"name": "c"}]
    return {"metadata": {"name": name}, "spec": {"targetRef": target, "subsets": subsets}}


class _Arrivals:
    """Pods of a namespace as a watch tells of them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: set[str] = set()
        self._marked: set[str] = set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        request = Request(Verb.WATCH, PODS, _NAMESPACE, query=(("watch", "true"), ("resourceVersion", "0")))
        async with self._client.transport.stream(request) as lines:
            async for line in lines:
                pod = codec.decode(line, _Event).object
                self._names.add(pod.metadata.name)
                if DELETION_COST in pod.metadata.annotations:
                    self._marked.add(pod.metadata.name)
                self._changed.set()

    async def reach(self, count: int) -> None:
        while len(self._names) < count:
            self._changed.clear()
            await self._changed.wait()

    async def settle(self) -> None:
        """Nothing has changed for a second."""
        while True:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), 1)
            except TimeoutError:
                return

    @property
    def there(self) -> int:
        return len(self._names)

    @property
    def marked(self) -> int:
        return len(self._marked)


class _Event(codec.Struct):
    object: Pod


async def _created(client: Client, arrivals: _Arrivals, name: str, count: int) -> float:
    """Seconds until so many pods are there."""
    processes.settle_heap()
    wanted = arrivals.there + count
    began = time.perf_counter()
    await client.create(CLONE_SETS, _clones(name, count), _NAMESPACE)
    await arrivals.reach(wanted)
    took = time.perf_counter() - began
    await arrivals.settle()
    return took


async def _rates(count: int) -> tuple[float, float, float]:
    """Pods a second without and with a WorkloadSpread; writes of the WorkloadSpread's status for each pod."""
    cluster = LocalCluster(ClusterOptions(nodes=0, seed=1), clock=RealClock())
    running = asyncio.create_task(cluster.run())
    await cluster.ready.wait()
    await install(cluster, kinds.features())
    counting = _Counting(InProcessTransport(cluster.core))
    world = LocalWorld(cluster, Options(), kinds.features(), 1)
    world.start_manager(counting)
    await asyncio.sleep(2)
    client = cluster.client("bench")
    # A node that nobody runs: pods of a node that does not exist would be collected.
    await client.create(NODES, {"metadata": {"name": _NODE}})
    arrivals = _Arrivals(client)
    looking = asyncio.create_task(arrivals.run())
    await _created(client, arrivals, "warm", max(count // 10, 10))
    without = spread = 0.0
    for number in range(_TIMES):
        without += await _created(client, arrivals, f"plain-{number}", count)
        name = f"spread-{number}"
        await client.create(WORKLOAD_SPREADS, _spread(name, count), _NAMESPACE)
        await asyncio.sleep(1)
        spread += await _created(client, arrivals, name, count)
        found = (await client.get(WORKLOAD_SPREADS, name, _NAMESPACE)).status.subset_statuses
        assert [one.replicas for one in found] == [count // 4, count // 2, count - count // 4 - count // 2], found
        assert arrivals.marked == (number + 1) * count, arrivals.marked
    await world.kill_manager()
    for task in (looking, running):
        task.cancel()
    await asyncio.wait({looking, running})
    pods = count * _TIMES
    return pods / without, pods / spread, counting.statuses / pods


class _Counting:
    """The manager's way to the API."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.statuses = 0

    async def send(self, request: Request) -> Response:
        if request.resource == WORKLOAD_SPREADS and request.verb.writes:
            self.statuses += 1
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def _pass(subsets: int, each: int) -> float:
    """Milliseconds of a decision about so many subsets that are as they should be."""
    subject = united([{"name": f"s{number}"} for number in range(subsets)], replicas=subsets * each)
    children = [child(subject, f"s{number}", each) for number in range(subsets)]
    members = tuple(pod for one in children for pod in pods(one, each))
    snapshot = Snapshot(
        united=subject, clone_sets=tuple(children), pods=members, revisions=(revision_of(subject),), now=NOW
    )
    assert not list(decide(snapshot).actions())
    began = time.perf_counter()
    for _ in range(5):
        decide(snapshot)
    return (time.perf_counter() - began) / 5 * 1000


def measure(scale: float) -> Report:
    count = max(100, int(1000 * scale))
    without, spread, writes = processes.run(_rates(count))
    subsets, each = max(5, int(50 * scale)), 40
    return Report(
        name="spread",
        setting=f"{count} pods of a CloneSet without and with a WorkloadSpread over it, all in one process; a "
        f"UnitedDeployment of {subsets} subsets with {subsets * each} pods",
        rows=(
            Row(what="pods created without", value=without, unit="/s"),
            Row(what="pods created through a WorkloadSpread", value=spread, unit="/s"),
            Row(what="with / without", value=spread / without, at_least=0.5),
            Row(what="writes of the ledger and the count for each pod", value=writes, below=0.5),
            Row(what="a pass over all subsets, nothing to do", value=_pass(subsets, each), unit="ms", below=250),
        ),
    )
