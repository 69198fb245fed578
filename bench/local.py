"""The local cluster: how fast it starts, writes, rolls out, and how much it holds."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import processes
from bench.report import Report, Row
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.pod import PODS
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.clock import RealClock, VirtualClock, run_virtual

IN_FLIGHT = 16


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "nginx:1.25", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {"containers": [container], "nodeName": "nowhere"},
    }


def deployment(replicas: int, image: str) -> dict[str, Any]:
    labels = {"app": "bench"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "bench"},
        "spec": {
            "replicas": replicas,
            "minReadySeconds": 30,
            "progressDeadlineSeconds": 36_000,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


async def _writes(client: Client, count: int) -> float:
    """Pod creates and status patches, half and half, per second."""
    names = iter(range(count // 2))

    async def lane() -> None:
        for number in names:
            name = f"bench-{number}"
            await client.create(PODS, pod(name), "default")
            body = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
            await client.patch(PODS, name, body, "default", subresource="status")

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))
    return count / (time.perf_counter() - began)


def _in_process(count: int) -> float:
    async def main() -> float:
        cluster = LocalCluster(ClusterOptions(nodes=0, seed=1), clock=RealClock())
        running = asyncio.create_task(cluster.run())
        await cluster.ready.wait()
        await asyncio.sleep(0.5)
        processes.settle_heap()
        rate = await _writes(cluster.client("bench"), count)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return rate

    return processes.run(main())


def _started(directory: str, *flags: str) -> float:
    """Seconds from the command to a cluster that answers."""
    environment = {**os.environ, "KRUISE_STATE": directory}
    command = [sys.executable, "-m", "kruise.cli.main"]
    began = time.perf_counter()
    up = [*command, "up", "--detach", "--port=0", "--no-merge", *flags]
    subprocess.run(up, env=environment, check=True, capture_output=True)
    return time.perf_counter() - began


def _stop(directory: str) -> None:
    environment = {**os.environ, "KRUISE_STATE": directory}
    subprocess.run([sys.executable, "-m", "kruise.cli.main", "down"], env=environment, check=True, capture_output=True)


def _over_https(count: int) -> tuple[float, float]:
    """Seconds of the start (median of three), and writes per second; the server has one core."""
    starts = []
    with tempfile.TemporaryDirectory() as directory:
        for last in (False, False, True):
            starts.append(_started(directory, "--nodes=3" if not last else "--nodes=0"))
            if not last:
                _stop(directory)
        kubeconfig = Path(directory) / "kubeconfig"
        pid = int(Path(directory, "cluster.json").read_text().split('"pid":')[1].split(",")[0])
        os.sched_setaffinity(pid, {0})

        async def main() -> float:
            client = Client(HttpTransport(load(kubeconfig)))
            rate = await _writes(client, count)
            await client.close()
            return rate

        try:
            rate = processes.run(main())
        finally:
            _stop(directory)
    return statistics.median(starts), rate


def _rollout(replicas: int) -> tuple[float, float]:
    """Real seconds to create and to roll out a Deployment on virtual time."""

    async def main() -> tuple[float, float]:
        cluster = LocalCluster(
            ClusterOptions(nodes=max(3, replicas // 50), seed=1), clock=VirtualClock(asyncio.get_running_loop())
        )
        running = asyncio.create_task(cluster.run())
        await cluster.ready.wait()
        await asyncio.sleep(1)
        client = cluster.client("bench")

        async def settled() -> None:
            while True:
                await asyncio.sleep(5)
                found = await client.get(DEPLOYMENTS, "bench", "default")
                status = found.status
                counts = {status.replicas, status.updated_replicas, status.available_replicas}
                if status.observed_generation == found.metadata.generation and counts == {replicas}:
                    return

        began = time.perf_counter()
        await client.create(DEPLOYMENTS, deployment(replicas, "nginx:1.25"), "default")
        await settled()
        created = time.perf_counter()
        await client.patch(DEPLOYMENTS, "bench", {"spec": deployment(replicas, "nginx:1.26")["spec"]}, "default")
        await settled()
        rolled = time.perf_counter()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return created - began, rolled - created

    return run_virtual(main())


def hold(pods: int, nodes: int) -> None:
    """Fills a cluster and prints its resident megabytes; to be run in a process of its own."""

    async def main() -> LocalCluster:
        cluster = LocalCluster(ClusterOptions(nodes=nodes, seed=1), clock=VirtualClock(asyncio.get_running_loop()))
        running = asyncio.create_task(cluster.run())
        await cluster.ready.wait()
        await asyncio.sleep(1)
        client = cluster.client("bench")
        await client.create(DEPLOYMENTS, deployment(pods, "nginx:1.25"), "default")
        while (await client.get(DEPLOYMENTS, "bench", "default")).status.available_replicas < pods:  # noqa: ASYNC110
            await asyncio.sleep(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return cluster

    _ = run_virtual(main())  # still alive when its size is taken
    print(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)


def _held(pods: int, nodes: int) -> float:
    code = f"from bench.local import hold; hold({pods}, {nodes})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(scale: float) -> Report:
    writes = max(200, int(6000 * scale))
    replicas, pods, nodes = max(50, int(1000 * scale)), max(100, int(5000 * scale)), max(10, int(500 * scale))
    in_process = _in_process(writes)
    start, https = _over_https(writes)
    created, rolled = _rollout(replicas)
    held = _held(pods, nodes)
    rows = (
        Row(what="`kruise up` to ready", value=start, unit="s", below=3),
        Row(what="writes in process", value=in_process, unit="/s", at_least=1000),
        Row(what="writes over HTTPS, server on one core", value=https, unit="/s", at_least=400),
        Row(what=f"Deployment of {replicas} pods created, virtual time", value=created, unit="s"),
        Row(what="rolled out with minReadySeconds 30, virtual time", value=rolled, unit="s", below=30),
        Row(what=f"{pods} pods on {nodes} nodes, resident", value=held, unit="MB", below=1000),
    )
    setting = f"{writes} writes, half pod creates, half status patches, {IN_FLIGHT} in flight"
    return Report(name="local", setting=setting, rows=rows)
