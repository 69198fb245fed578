"""CloneSet rollouts on a real API server with simulated nodes: writes, rate, CPU, memory and latency.

The manager and the nodes are processes of their own. What they wrote is counted from the API server's audit log; the
server's raw rate for the same mix of verbs is measured in the same run, with the same webhooks and watchers.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import aiohttp

from bench import processes
from bench.rawmix import CREATE, Rate, RawLoop, mix_of
from bench.report import Report, Row
from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.native.pod import PODS, condition, is_ready
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.client.requests import Request, Verb
from tests.support.auditlog import AuditEntry
from tests.support.kruisecluster import MANAGER, KruiseCluster

NAMESPACE = "default"
RAW_NAMESPACE = "raw"
_IN_FLIGHT = 40


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One rollout as it was seen from outside."""

    pods: int
    seconds: float
    cpu: float
    entries: tuple[AuditEntry, ...]

    def by_manager(self) -> list[AuditEntry]:
        return [entry for entry in self.entries if entry.user == MANAGER and entry.is_write]

    @property
    def pod_writes(self) -> float:
        return sum(entry.resource == "pods" for entry in self.by_manager()) / self.pods

    @property
    def other_writes(self) -> Counter[str]:
        return Counter(entry.resource for entry in self.by_manager() if entry.resource in ("events", "clonesets"))

    @property
    def conflicts(self) -> int:
        return sum(entry.code in (409, 422) for entry in self.by_manager())

    @property
    def rate(self) -> float:
        """Writes that the server answered, of everybody, in a second."""
        return sum(mix_of(self.entries).values()) / self.seconds


class Bench:
    def __init__(self, cluster: KruiseCluster, client: Client) -> None:
        self._cluster = cluster
        self.client = client

    async def rollout(self, pods: int, change: Mapping[str, Any], names: tuple[str, ...] = ("web",)) -> Run:
        """Make a change and wait until all pods are there, updated and available."""
        mark = self._cluster.plane.audit_mark()
        cpu, began = processes.cpu_seconds(self._cluster.manager_pid), time.perf_counter()
        for name in names:
            await self.client.patch(CLONE_SETS, name, dict(change), NAMESPACE)
        await asyncio.gather(*(self._settled(name, pods // len(names)) for name in names))
        seconds = time.perf_counter() - began
        cpu = processes.cpu_seconds(self._cluster.manager_pid) - cpu
        await asyncio.sleep(1.5)  # the audit log is written in batches
        return Run(pods=pods, seconds=seconds, cpu=cpu, entries=tuple(self._cluster.plane.audit_entries(mark)))

    async def _settled(self, name: str, pods: int) -> None:
        while True:
            if _is_settled(await self.client.get(CLONE_SETS, name, NAMESPACE), pods):
                return
            await asyncio.sleep(0.2)

    async def create(self, name: str, **strategy: Any) -> None:
        labels = {"app": name}
        body = {
            "apiVersion": CLONE_SETS.api_version,
            "kind": "CloneSet",
            "metadata": {"name": name},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [_container("1")]}},
                "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", **strategy}},
            },
        }
        await self.client.create(CLONE_SETS, body, NAMESPACE)

    async def a_pod(self) -> dict[str, Any]:
        """One of the pods, as the server holds it."""
        query = (("limit", "1"),)
        answer = await self.client.send(Request(Verb.LIST, PODS, NAMESPACE, query=query))
        pod: dict[str, Any] = json.loads(answer.body)["items"][0]
        return pod

    async def waves(self, stop: asyncio.Event, ready_at: list[datetime]) -> None:
        """Note when this process hears that a pod became Ready again."""
        page = await self.client.list(PODS, NAMESPACE)
        was_ready = {pod.metadata.name: is_ready(pod) for pod in page.items}
        async with self.client.watch(PODS, NAMESPACE, resource_version=page.resource_version) as watch:
            async for event in watch:
                if event.type in ("ADDED", "MODIFIED"):
                    pod, now_ready = event.object, is_ready(event.object)
                    if now_ready and not was_ready.get(pod.metadata.name) and condition(pod, "Ready"):
                        ready_at.append(datetime.now(UTC))
                    was_ready[pod.metadata.name] = now_ready
                if stop.is_set():
                    return

    def memory(self) -> float:
        """Of the manager now, in MB."""
        status = Path(f"/proc/{self._cluster.manager_pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1000

    def validating_calls(self) -> float:
        """Reviews of pods that the manager was asked for validation."""
        with urlopen(f"{self._cluster.metrics_url}/metrics") as answer:
            text = answer.read().decode()
        pattern = r'controller_runtime_webhook_requests_total\{[^}]*webhook="/validate-pod"[^}]*\} ([0-9.e+]+)'
        return sum(float(value) for value in re.findall(pattern, text))


def _is_settled(cloneset: CloneSet, pods: int) -> bool:
    status = cloneset.status
    counts = (status.replicas, status.updated_replicas, status.updated_available_replicas)
    return status.observed_generation == cloneset.metadata.generation and counts == (pods,) * 3


def _container(version: str) -> dict[str, str]:
    return {"name": "main", "image": f"nginx:{version}", "imagePullPolicy": "IfNotPresent"}


def _image(version: str, **rolling: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": {"spec": {"containers": [_container(version)]}}}
    if rolling:
        spec["updateStrategy"] = {"rollingUpdate": rolling}
    return {"spec": spec}


def delays(run: Run, ready_at: list[datetime]) -> list[float]:
    """Seconds from each Ready event to the first write of the wave that it made room for. The last ones made room for
    nobody."""
    seen: set[str] = set()
    starts: list[datetime] = []
    for entry in sorted(run.by_manager(), key=lambda entry: entry.received):
        if entry.resource == "pods" and entry.subresource == "status" and entry.name not in seen:
            seen.add(entry.name)
            starts.append(entry.received)
    found = []
    position = 0
    for moment in sorted(ready_at):
        while position < len(starts) and starts[position] < moment:
            position += 1
        if position == len(starts):
            break
        found.append((starts[position] - moment).total_seconds())
    return found


@dataclasses.dataclass(slots=True)
class Found:
    runs: dict[str, Run] = dataclasses.field(default_factory=dict)
    raw: dict[str, Rate] = dataclasses.field(default_factory=dict)
    latencies: list[float] = dataclasses.field(default_factory=list)
    memory: dict[str, float] = dataclasses.field(default_factory=lambda: defaultdict(float))
    validating: float = 0.0
    idle: float = 0.0
    idle_pods: int = 0


def measure(scale: float) -> Report:
    pods = max(100, int(2000 * scale))
    with KruiseCluster(nodes=100) as cluster:
        cluster.plane.create_namespace(RAW_NAMESPACE)
        found = processes.run(_all(cluster, pods))
    return _report(found, pods)


async def _all(cluster: KruiseCluster, pods: int) -> Found:
    found = Found()
    client = Client(HttpTransport(load(cluster.kubeconfig)))
    connector = aiohttp.TCPConnector(ssl=cluster.plane.ssl_context(), limit=0)
    async with client, aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        bench, raw = Bench(cluster, client), RawLoop(session, cluster.plane.url, RAW_NAMESPACE, _IN_FLIGHT)

        async def step(name: str, run: Run) -> None:
            print(f"  {name}: {run.seconds:.1f} s", file=sys.stderr, flush=True)
            found.runs[name] = run
            found.memory[name] = bench.memory()
            found.raw[name] = await raw.measure(mix_of(run.entries), max(400, run.pods), await bench.a_pod())
            await asyncio.sleep(2)

        await bench.create("web", maxUnavailable="100%")
        await step("created", await bench.rollout(pods, {"spec": {"replicas": pods}}))
        await step("updated, maxUnavailable 100%", await bench.rollout(pods, _image("2")))
        stop, watching = asyncio.Event(), list[datetime]()
        watcher = asyncio.create_task(bench.waves(stop, watching))
        await asyncio.sleep(1)
        run = await bench.rollout(pods, _image("3", maxUnavailable="10%"))
        watcher.cancel()
        found.latencies = delays(run, watching)
        await step("updated, maxUnavailable 10%", run)
        await _many(bench, found, pods, step)
        await _idle(cluster, bench, found, pods)
        found.validating = bench.validating_calls()
    return found


async def _many(bench: Bench, found: Found, pods: int, step: Any) -> None:
    await bench.rollout(0, {"spec": {"replicas": 0}})
    names = tuple(f"many-{number:03d}" for number in range(pods // 10))
    for name in names:
        await bench.create(name, maxUnavailable="50%")
    await step(f"created in {len(names)} CloneSets", await bench.rollout(pods, {"spec": {"replicas": 10}}, names))
    await step(f"updated in {len(names)} CloneSets", await bench.rollout(pods, _image("2"), names))


async def _idle(cluster: KruiseCluster, bench: Bench, found: Found, pods: int) -> None:
    """The manager's CPU while nothing happens, with two and a half times the pods."""
    extra = int(pods * 1.5)
    await bench.rollout(extra, {"spec": {"replicas": extra}})
    await asyncio.sleep(10)
    seconds = 20.0
    before = processes.cpu_seconds(cluster.manager_pid)
    await asyncio.sleep(seconds)
    found.idle = (processes.cpu_seconds(cluster.manager_pid) - before) / seconds * 100
    found.idle_pods = pods + extra
    found.memory["idle"] = bench.memory()


def _report(found: Found, pods: int) -> Report:
    bare = statistics.median(rate.cpu_per_write for rate in found.raw.values())
    rows: list[Row] = [Row(what="CPU of a bare write", value=bare * 1e6, unit="us")]
    for name, run in found.runs.items():
        raw = found.raw[name].per_second
        limit = 2.0 if name.startswith(CREATE) else 3.0
        other = run.other_writes
        rows += [
            Row(what=f"{name}: seconds", value=run.seconds, unit="s"),
            Row(what="  pod writes of the manager per pod", value=run.pod_writes, below=limit + 0.005),
            Row(what="  conflicts", value=run.conflicts, below=1),
            Row(what="  status writes of workloads", value=other["clonesets"]),
            Row(what="  event writes", value=other["events"]),
            Row(what="  writes answered by the server", value=run.rate, unit="/s"),
            Row(what="  raw rate for this mix", value=raw, unit="/s"),
            Row(what="  ratio", value=run.rate / raw, at_least=0.6),
            Row(what="  CPU per pod, in bare writes", value=run.cpu / run.pods / bare, below=40),
            Row(what="  memory", value=found.memory[name], unit="MB", below=150),
        ]
    latencies = sorted(found.latencies)
    p99 = latencies[int(len(latencies) * 0.99)] if latencies else float("nan")
    rows += [
        Row(what="Ready to the next wave, median", value=statistics.median(latencies) * 1000, unit="ms"),
        Row(what="Ready to the next wave, p99", value=p99 * 1000, unit="ms", below=250),
        Row(what="validating calls for pods", value=found.validating, below=1),
        Row(what=f"idle with {found.idle_pods:,} pods", value=found.idle, unit="% of a core", below=1),
        Row(what="  memory", value=found.memory["idle"], unit="MB"),
    ]
    setting = f"{pods:,} pods on 100 simulated nodes, manager and nodes in processes of their own"
    return Report(name="rollouts", setting=setting, rows=tuple(rows))
