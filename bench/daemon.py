"""The node daemon as the process that it is: memory, CPU and writes on a node with a hundred pods.

Its API server is `kruise up` with a manager, its container runtime answers over a socket and does nothing. The node is
not simulated: nobody but the daemon acts on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from bench.processes import cpu_seconds
from bench.report import Report, Row
from bench.runtime import FakeRuntime, serving
from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.apps.images import NODE_IMAGES
from kruise.api.apps.probes import NODE_POD_PROBES, POD_PROBE_MARKERS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.client.requests import PatchType
from tests.support.commandline import COMMAND, local_cluster
from tests.support.ports import free_port

NODE = "bench"
IDLE_SECONDS, WORK_SECONDS = 20.0, 20.0
LIBRARIES = ("grpclib", "grpcio")
"""What a bare process beside it uses, where it is installed."""


def measure(scale: float) -> Report:
    pods = max(int(100 * scale), 2)
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(
            _measured(Path(directory), pods, IDLE_SECONDS * min(scale, 1), WORK_SECONDS * min(scale, 1))
        )
    rows = [
        Row(what="start until it is ready", value=found["start"], unit="s", below=1),
        Row(what="CPU until then", value=found["start_cpu"], unit="ms"),
        Row(what=f"memory, idle with {pods} pods", value=found["idle"], unit="MB", below=48),
        Row(what="CPU, idle", value=found["cpu"], unit="mCPU", below=2),
        Row(what="memory while it pulls, restarts and probes", value=found["working"], unit="MB", below=60),
        Row(what="CPU meanwhile", value=found["busy"], unit="mCPU"),
        Row(what="writes of NodePodProbe for a change of all results", value=found["writes"], below=4),
    ]
    for library in (one for one in LIBRARIES if one in found):
        what = f"beside it: a bare process that asks the runtime with {library}"
        rows.append(Row(what=what, value=found[library], unit="MB"))
    setting = (
        f"one node with {pods} pods of two containers, {pods} commands as probes every second, 20 images to pull, "
        "10 restarts; an API server and a container runtime in other processes"
    )
    return Report(name="daemon", setting=setting, rows=tuple(rows))


async def _measured(directory: Path, pods: int, idle: float, work: float) -> dict[str, float]:
    fake, sockets = FakeRuntime(), directory / "run"
    sockets.mkdir()
    with local_cluster(directory / "state", "--nodes=1") as kubeconfig:
        async with serving(fake, sockets / "containerd.sock"), Client(HttpTransport(load(kubeconfig))) as client:
            await _node(client)
            await _pods(client, fake, pods)
            async with _daemon(kubeconfig, sockets) as (pid, started):
                start_cpu = cpu_seconds(pid)
                await asyncio.sleep(min(idle, 5))
                before, began = cpu_seconds(pid), time.monotonic()
                await asyncio.sleep(idle)
                spent = (cpu_seconds(pid) - before) / (time.monotonic() - began)
                quiet = _resident(pid)
                before, began = cpu_seconds(pid), time.monotonic()
                highest, writes = await _work(client, fake, pid, pods, work)
                busy = (cpu_seconds(pid) - before) / (time.monotonic() - began)
            bare = await _bare(sockets / "containerd.sock")
    return {
        **bare,
        "start": started,
        "start_cpu": start_cpu * 1000,
        "idle": quiet,
        "cpu": spent * 1000,
        "working": highest,
        "busy": busy * 1000,
        "writes": writes,
    }


@contextlib.asynccontextmanager
async def _daemon(kubeconfig: Path, sockets: Path) -> AsyncIterator[tuple[int, float]]:
    port = free_port()
    flags = [f"--kubeconfig={kubeconfig}", f"--socket-dir={sockets}", f"--addr=127.0.0.1:{port}"]
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "daemon", *flags, env={**os.environ, "NODE_NAME": NODE}, stderr=subprocess.DEVNULL
    )
    try:
        while not await _is_well(port):
            if time.monotonic() - began > 30 or process.returncode is not None:
                raise RuntimeError("the daemon does not become ready")
            await asyncio.sleep(0.02)
        yield process.pid, time.monotonic() - began
    finally:
        process.terminate()
        await process.wait()


async def _is_well(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
    except OSError:
        return False
    return b" 200 " in answer


async def _node(client: Client) -> None:
    await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    # The manager would wait for half a minute before it makes these.
    for kind in (NODE_IMAGES, NODE_POD_PROBES):
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": NODE}, "spec": {}}
        await client.create(kind, body)


def _uid(found: Any) -> str:
    return str(found.metadata.uid)


async def _pods(client: Client, fake: FakeRuntime, count: int) -> None:
    env = [{"name": "VERSION", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['version']"}}}]
    containers = [{"name": name, "image": "nginx:1.27", "env": env} for name in ("app", "side")]
    marks = {"kruise.io/sidecarset-hash": "{}"}  # its containers are reported
    for number in range(count):
        metadata = {"name": f"p{number}", "labels": {"version": "1"}, "annotations": marks}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        made = await client.create(PODS, {**body, "spec": {"nodeName": NODE, "containers": containers}}, "default")
        fake.pods[_uid(made)] = ["app", "side"]
        statuses = [
            {
                "name": name,
                "image": "nginx:1.27",
                "imageID": "nginx@sha256:1",
                "ready": True,
                "restartCount": 0,
                "containerID": f"containerd://{fake.container_id(_uid(made), name)}",
            }
            for name in ("app", "side")
        ]
        initialized = [{"type": "Initialized", "status": "True"}]
        status = {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": statuses, "conditions": initialized}
        await client.patch(
            PODS, f"p{number}", {"status": status}, "default", patch_type=PatchType.MERGE, subresource="status"
        )


async def _work(client: Client, fake: FakeRuntime, pid: int, pods: int, seconds: float) -> tuple[float, float]:
    """The highest resident memory, and writes of probe results when all of them change at once."""
    probe = {"name": "p", "containerName": "app", "probe": {"exec": {"command": ["ask"]}}, "podConditionType": "x/y"}
    marker = {"apiVersion": POD_PROBE_MARKERS.api_version, "kind": "PodProbeMarker", "metadata": {"name": "m"}}
    spec = {"selector": {"matchLabels": {"version": "1"}}, "probes": [probe]}
    await client.create(POD_PROBE_MARKERS, {**marker, "spec": spec}, "default")
    tags = [{"tag": str(number), "pullPolicy": {"ttlSecondsAfterFinished": 300}} for number in range(20)]
    images = {"spec": {"images": {"nginx": {"tags": tags}}}}
    await client.patch(NODE_IMAGES, NODE, images, patch_type=PatchType.MERGE)
    for number in range(min(10, pods)):
        request = {"podName": f"p{number}", "containers": [{"name": "app"}]}
        body = {"apiVersion": REQUESTS.api_version, "kind": REQUESTS.kind, "metadata": {"name": f"r{number}"}}
        await client.create(REQUESTS, {**body, "spec": request}, "default")
    highest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        highest = max(highest, _resident(pid))
        await asyncio.sleep(0.1)
    return highest, await _writes_of_a_change(client, fake, pods)


async def _writes_of_a_change(client: Client, fake: FakeRuntime, pods: int) -> float:
    before = (await client.get(NODE_POD_PROBES, NODE)).metadata.resource_version
    fake.answer = b"another answer"
    writes = 0
    watch = client.watch(NODE_POD_PROBES, resource_version=before, fields=f"metadata.name={NODE}")
    async with asyncio.timeout(60), watch as events:
        async for event in events:
            if event.type == "BOOKMARK":
                continue
            writes += 1
            states = [state for one in event.object.status.pod_probe_statuses for state in one.probe_states]
            if len(states) == pods and all(state.message == "another answer" for state in states):
                return float(writes)
    raise AssertionError("the watch ended")


def _resident(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


async def _bare(socket: Path) -> dict[str, float]:
    """What the library alone takes, for each that is installed."""
    found: dict[str, float] = {}
    for library in LIBRARIES:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(Path(__file__).with_name("bare.py")), library, str(socket), stdout=subprocess.PIPE
        )
        said, _ = await process.communicate()
        if process.returncode == 0:
            found[library] = float(said.split()[0])
    return found
