"""One sidecar of many pods updated, on a real API server with simulated nodes: writes, conflicts, rate.

Measured as `bench.rollouts` measures CloneSets: a CloneSet makes the pods, a SidecarSet puts one sidecar into each and
updates it.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

import aiohttp

from bench import processes
from bench.rawmix import Rate, RawLoop, mix_of
from bench.report import Report, Row
from bench.rollouts import RAW_NAMESPACE, Bench, Run
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from tests.support.kruisecluster import KruiseCluster

_IN_FLIGHT = 40
_CREATED, _UPDATED = "pods created with it", "its image updated"


class SidecarBench(Bench):
    async def make(self, **strategy: Any) -> None:
        spec = {
            "selector": {"matchLabels": {"app": "web"}},
            "containers": [_sidecar("1")],
            "updateStrategy": strategy,
        }
        body = {"apiVersion": SIDECAR_SETS.api_version, "kind": "SidecarSet", "metadata": {"name": "logs"}}
        await self.client.create(SIDECAR_SETS, {**body, "spec": spec})

    async def update(self, pods: int, change: Mapping[str, Any]) -> Run:
        """Change the SidecarSet and wait until all pods are updated and ready."""
        mark = self._cluster.plane.audit_mark()
        cpu, began = processes.cpu_seconds(self._cluster.manager_pid), time.perf_counter()
        await self.client.patch(SIDECAR_SETS, "logs", dict(change))
        await self.settled(pods)
        seconds = time.perf_counter() - began
        cpu = processes.cpu_seconds(self._cluster.manager_pid) - cpu
        await asyncio.sleep(1.5)  # the audit log is written in batches
        return Run(pods=pods, seconds=seconds, cpu=cpu, entries=tuple(self._cluster.plane.audit_entries(mark)))

    async def settled(self, pods: int) -> None:
        while True:
            found = await self.client.get(SIDECAR_SETS, "logs")
            status = found.status
            counts = (status.matched_pods, status.updated_ready_pods)
            if status.observed_generation == found.metadata.generation and counts == (pods, pods):
                return
            await asyncio.sleep(0.1)


def _sidecar(version: str) -> dict[str, str]:
    return {"name": "agent", "image": f"agent:{version}", "imagePullPolicy": "IfNotPresent"}


def measure(scale: float) -> Report:
    pods = max(100, int(2000 * scale))
    with KruiseCluster(nodes=100) as cluster:
        cluster.plane.create_namespace(RAW_NAMESPACE)
        runs, rates = processes.run(_all(cluster, pods))
    return _report(runs, rates, pods)


async def _all(cluster: KruiseCluster, pods: int) -> tuple[dict[str, Run], dict[str, Rate]]:
    runs: dict[str, Run] = {}
    rates: dict[str, Rate] = {}
    client = Client(HttpTransport(load(cluster.kubeconfig)))
    connector = aiohttp.TCPConnector(ssl=cluster.plane.ssl_context(), limit=0)
    async with client, aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        bench, raw = SidecarBench(cluster, client), RawLoop(session, cluster.plane.url, RAW_NAMESPACE, _IN_FLIGHT)

        async def step(name: str, run: Run) -> None:
            print(f"  {name}: {run.seconds:.1f} s", file=sys.stderr, flush=True)
            runs[name] = run
            rates[name] = await raw.measure(mix_of(run.entries), max(400, run.pods), await bench.a_pod())
            await asyncio.sleep(2)

        await bench.make(maxUnavailable="100%")
        await bench.create("web")
        await step(_CREATED, await bench.rollout(pods, {"spec": {"replicas": pods}}))
        await bench.settled(pods)
        await step(_UPDATED, await bench.update(pods, {"spec": {"containers": [_sidecar("2")]}}))
    return runs, rates


def _report(runs: Mapping[str, Run], rates: Mapping[str, Rate], pods: int) -> Report:
    bare = statistics.median(rate.cpu_per_write for rate in rates.values())
    rows: list[Row] = [Row(what="CPU of a bare write", value=bare * 1e6, unit="us")]
    for name, run in runs.items():
        raw = rates[name].per_second
        told = sum(entry.resource == "sidecarsets" for entry in run.by_manager())
        rows += [
            Row(what=f"{name}: seconds", value=run.seconds, unit="s"),
            Row(
                what="  pod writes of the manager per pod",
                value=run.pod_writes,
                below=(2.0 if name == _CREATED else 3.0) + 0.005,
            ),
            Row(what="  conflicts", value=run.conflicts, below=1),
            Row(what="  status writes of the SidecarSet", value=told),
            Row(what="  writes answered by the server", value=run.rate, unit="/s"),
            Row(what="  raw rate for this mix", value=raw, unit="/s"),
            # What making pods takes is for `rollouts` to judge.
            Row(what="  ratio", value=run.rate / raw, at_least=0.7 if name == _UPDATED else None),
            Row(what="  CPU per pod, in bare writes", value=run.cpu / run.pods / bare),
        ]
    setting = f"{pods:,} pods with one sidecar on 100 simulated nodes; manager and nodes in processes of their own"
    return Report(name="sidecar-rollouts", setting=setting, rows=tuple(rows))
