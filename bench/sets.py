"""StatefulSets and DaemonSets on a real API server with simulated nodes: writes, conflicts, rate, and what order costs.

Measured as `bench.rollouts` measures CloneSets. With OrderedReady each pod waits for the one before it: what counts is
the time from a pod's readiness to the request for the next one. The rest is the pods' own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp

from bench import processes
from bench.rawmix import Rate, RawLoop, mix_of
from bench.report import Report, Row
from bench.rollouts import NAMESPACE, RAW_NAMESPACE, Bench, Run
from kruise.api.apps.daemonset import DAEMON_SETS, DaemonSet
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from tests.support.kruisecluster import KruiseCluster

_IN_FLIGHT = 40
_GATE = {"conditionType": "InPlaceUpdateReady"}


class SetBench(Bench):
    """One object at a time."""

    def __init__(self, cluster: KruiseCluster, client: Client, resource: Resource[Any]) -> None:
        super().__init__(cluster, client)
        self._plane, self._resource = cluster.plane, resource
        self._manager = cluster

    async def run(self, pods: int, change: Mapping[str, Any]) -> Run:
        """Make or change the object `web`, and wait until all pods are there, updated and available."""
        mark = self._plane.audit_mark()
        cpu, began = processes.cpu_seconds(self._manager.manager_pid), time.perf_counter()
        if "kind" in change:
            await self.client.create(self._resource, dict(change), NAMESPACE)
        else:
            await self.client.patch(self._resource, "web", dict(change), NAMESPACE)
        while True:
            if _is_settled(await self.client.get(self._resource, "web", NAMESPACE), pods):
                break
            await asyncio.sleep(0.1)
        seconds = time.perf_counter() - began
        cpu = processes.cpu_seconds(self._manager.manager_pid) - cpu
        await asyncio.sleep(1.5)  # the audit log is written in batches
        return Run(pods=pods, seconds=seconds, cpu=cpu, entries=tuple(self._plane.audit_entries(mark)))

    async def remove(self) -> None:
        await self.client.delete(self._resource, "web", NAMESPACE)
        while True:
            if not (await self.client.list(PODS, NAMESPACE)).items:
                return
            await asyncio.sleep(0.5)


def _is_settled(found: Any, pods: int) -> bool:
    status = found.status
    if isinstance(found, DaemonSet):
        counts = (status.current_number_scheduled, status.updated_number_scheduled, status.number_available)
    else:
        counts = (status.replicas, status.updated_replicas, status.available_replicas)
    return status.observed_generation == found.metadata.generation and counts == (pods,) * 3


def _manifest(resource: Resource[Any], rolling: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "main", "image": "nginx:1", "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "readinessGates": [_GATE]},
            },
            "updateStrategy": {"rollingUpdate": dict(rolling)},
            **spec,
        },
    }


def _new_image() -> dict[str, Any]:
    container = {"name": "main", "image": "nginx:2", "imagePullPolicy": "IfNotPresent"}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@dataclasses.dataclass(slots=True)
class Found:
    runs: dict[str, Run] = dataclasses.field(default_factory=dict)
    raw: dict[str, Rate] = dataclasses.field(default_factory=dict)
    between: list[float] = dataclasses.field(default_factory=list)


def measure(scale: float) -> Report:
    nodes, ordered = max(50, int(500 * scale)), max(20, int(100 * scale))
    with KruiseCluster(nodes=nodes) as cluster:
        cluster.plane.create_namespace(RAW_NAMESPACE)
        found = processes.run(_all(cluster, nodes, ordered))
    return _report(found, nodes, ordered)


async def _all(cluster: KruiseCluster, nodes: int, ordered: int) -> Found:
    found = Found()
    client = Client(HttpTransport(load(cluster.kubeconfig)))
    connector = aiohttp.TCPConnector(ssl=cluster.plane.ssl_context(), limit=0)
    async with client, aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        raw = RawLoop(session, cluster.plane.url, RAW_NAMESPACE, _IN_FLIGHT)

        async def step(name: str, bench: SetBench, run: Run) -> None:
            print(f"  {name}: {run.seconds:.1f} s", file=sys.stderr, flush=True)
            found.runs[name] = run
            found.raw[name] = await raw.measure(mix_of(run.entries), max(2_000, run.pods), await bench.a_pod())
            await asyncio.sleep(2)

        for resource, rolling, spec in (
            (
                STATEFUL_SETS,
                {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"},
                {"replicas": nodes, "serviceName": "web", "podManagementPolicy": "Parallel"},
            ),
            (
                DAEMON_SETS,
                {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "100%"},
                {"burstReplicas": nodes},
            ),
        ):
            bench = SetBench(cluster, client, resource)
            await step(f"{resource.kind}, created", bench, await bench.run(nodes, _manifest(resource, rolling, **spec)))
            await step(f"{resource.kind}, updated in place", bench, await bench.run(nodes, _new_image()))
            await bench.remove()
        found.between = await _in_order(SetBench(cluster, client, STATEFUL_SETS), ordered)
    return found


async def _in_order(bench: SetBench, pods: int) -> list[float]:
    """Seconds from each pod's readiness, as a watch tells it, to the creation of the next one."""
    ready_at: list[datetime] = []
    watcher = asyncio.create_task(bench.waves(asyncio.Event(), ready_at))
    await asyncio.sleep(1)
    spec = {"replicas": pods, "serviceName": "web", "podManagementPolicy": "OrderedReady"}
    run = await bench.run(pods, _manifest(STATEFUL_SETS, {"podUpdatePolicy": "InPlaceIfPossible"}, **spec))
    watcher.cancel()
    made = sorted(
        entry.received.astimezone(UTC)
        for entry in run.by_manager()
        if entry.resource == "pods" and entry.verb == "create" and not entry.subresource
    )
    return [(after - before).total_seconds() for before, after in zip(sorted(ready_at), made[1:], strict=False)]


def _report(found: Found, nodes: int, ordered: int) -> Report:
    bare = statistics.median(rate.cpu_per_write for rate in found.raw.values())
    rows: list[Row] = [Row(what="CPU of a bare write", value=bare * 1e6, unit="us")]
    for name, run in found.runs.items():
        raw = found.raw[name].per_second
        rows += [
            Row(what=f"{name}: seconds", value=run.seconds, unit="s"),
            Row(
                what="  pod writes of the manager per pod",
                value=run.pod_writes,
                below=(2.0 if name.endswith("created") else 3.0) + 0.005,
            ),
            Row(what="  conflicts", value=run.conflicts, below=1),
            Row(what="  writes answered by the server", value=run.rate, unit="/s"),
            Row(what="  raw rate for this mix", value=raw, unit="/s"),
            Row(what="  ratio", value=run.rate / raw, at_least=0.7),
            Row(what="  CPU per pod, in bare writes", value=run.cpu / run.pods / bare, below=40),
        ]
    between = sorted(found.between)
    rows += [
        Row(
            what=f"OrderedReady of {ordered} pods: Ready to the next pod, median",
            value=statistics.median(between) * 1e3,
            unit="ms",
            below=100,
        ),
        Row(what="  p99", value=between[int(len(between) * 0.99)] * 1e3, unit="ms"),
    ]
    setting = f"{nodes:,} pods on {nodes:,} simulated nodes, one each; manager and nodes in processes of their own"
    return Report(name="sets", setting=setting, rows=tuple(rows))
