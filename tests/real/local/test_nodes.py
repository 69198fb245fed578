"""Simulated nodes on a real control plane: real scheduler and controllers, our kubelet."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kruise.api.native.apps import DEPLOYMENTS, JOBS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, is_ready
from kruise.local.nodes import NodeModel, make_nodes
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.clock import RealClock
from tests.support.realcluster import ControlPlane

Json = dict[str, Any]


class Field:
    """Three nodes of the test's own, in its own namespace."""

    def __init__(self, client: Client, model: NodeModel, namespace: str, prefix: str) -> None:
        self.client = client
        self.model = model
        self.namespace = namespace
        self.prefix = prefix

    def template(self, name: str, container: Json, **spec: Any) -> Json:
        """Bound to the test's own nodes, of which other tests know nothing."""
        inside = {"nodeSelector": {"test": self.prefix[:-1]}, "containers": [container], **spec}
        return {"metadata": {"labels": {"app": name}}, "spec": inside}

    async def pod(self, name: str) -> Json:
        answer = await self.client.send(Request(Verb.GET, PODS, self.namespace, name))
        found: Json = json.loads(answer.body)
        return found

    async def until(self, name: str, check: Callable[[Json], bool], seconds: float = 30.0) -> Json:
        deadline = time.monotonic() + seconds
        while True:
            found = await self.pod(name)
            if check(found):
                return found
            assert time.monotonic() < deadline, json.dumps(found["status"], indent=1)
            await asyncio.sleep(0.1)

    async def deploy(self, name: str, replicas: int) -> None:
        body = {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": self.template(name, {"name": "app", "image": "nginx:1.25"}),
            },
        }
        await self.client.create(DEPLOYMENTS, body, self.namespace)

    async def available(self, name: str, replicas: int, seconds: float = 60.0) -> None:
        async def is_so() -> bool:
            found = await self.client.get(DEPLOYMENTS, name, self.namespace)
            return found.status.available_replicas == replicas

        await _poll(is_so, seconds)

    async def said(self, name: str) -> list[tuple[str, str, str, str]]:
        await self.model.flush_events()
        page = await self.client.list(EVENTS, self.namespace, fields=f"involvedObject.name={name}")
        return [(item.source.component, item.source.host, item.reason, item.message) for item in page.items]


async def _poll(check: Callable[[], Any], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not await check():
        assert time.monotonic() < deadline, "not reached in time"
        await asyncio.sleep(0.1)


@pytest.fixture
async def field(cluster: ControlPlane, namespace: str) -> AsyncIterator[Field]:
    prefix = f"sim-{namespace[-8:]}-"
    clock = RealClock()
    client = Client(HttpTransport(load(cluster.kubeconfig), user_agent="kruise-nodes"), clock=clock)
    cache = Cache(client, clock=clock)
    specs = make_nodes(3, zones=["a", "b", "c"], prefix=prefix, pods=500, labels={"test": prefix[:-1]})
    model = NodeModel(client, cache, clock=clock, nodes=specs, heartbeat=True)
    tasks = [asyncio.create_task(cache.run()), asyncio.create_task(model.run())]
    try:
        ready = asyncio.create_task(model.ready.wait())
        done, _ = await asyncio.wait([ready, *tasks], timeout=20, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

        async def untainted() -> bool:
            # A control plane keeps pods off a new node until it has seen it ready.
            found = (await client.list(NODES, labels=f"test={prefix[:-1]}")).items
            return len(found) == 3 and not any(node.spec.taints for node in found)

        await _poll(untainted, 20)
        yield Field(client, model, namespace, prefix)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.delete_collection(NODES, labels=f"test={prefix[:-1]}")
        await client.close()


@pytest.mark.smoke
async def test_a_deployment_becomes_available_and_is_rolled_out(field: Field) -> None:
    await field.deploy("web", 20)
    await field.available("web", 20)
    pods = (await field.client.list(PODS, field.namespace)).items
    assert len(pods) == 20
    assert len({pod.status.pod_ip for pod in pods}) == 20
    assert {pod.spec.node_name for pod in pods} == {f"{field.prefix}{number}" for number in (1, 2, 3)}
    node = await field.client.get(NODES, f"{field.prefix}2")
    assert node.metadata.labels["topology.kubernetes.io/zone"] == "b"
    assert not node.spec.taints

    patch = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "nginx:1.26"}]}}}}
    await field.client.patch(DEPLOYMENTS, "web", patch, field.namespace, patch_type=PatchType.STRATEGIC)

    async def all_new() -> bool:
        # Graceful deletion of the old ones ends with a delete by the kubelet.
        found = (await field.client.list(PODS, field.namespace)).items
        return len(found) == 20 and all(pod.spec.containers[0].image == "nginx:1.26" and is_ready(pod) for pod in found)

    await _poll(all_new, 60)


@pytest.mark.smoke
async def test_a_bare_pod_restarts_in_place(field: Field) -> None:
    template = field.template("bare", {"name": "app", "image": "nginx:1.25"})
    await field.client.create(PODS, {**template, "metadata": {"name": "bare"}}, field.namespace)
    before = await field.until("bare", _ready)
    patch = {"spec": {"containers": [{"name": "app", "image": "nginx:1.26"}]}}
    await field.client.patch(PODS, "bare", patch, field.namespace, patch_type=PatchType.STRATEGIC)
    after = await field.until("bare", lambda found: _app(found)["restartCount"] == 1)
    for part in (("metadata", "uid"), ("spec", "nodeName"), ("status", "podIP")):
        assert before[part[0]][part[1]] == after[part[0]][part[1]]
    assert _app(after)["imageID"] != _app(before)["imageID"]
    assert _app(after)["lastState"]["terminated"]["containerID"] == _app(before)["containerID"]
    assert after["status"]["observedGeneration"] == after["metadata"]["generation"] == 2
    host = before["spec"]["nodeName"]
    text = "Container app definition changed, will be restarted"
    assert ("kubelet", host, "Killing", text) in await field.said("bare")

    await field.client.delete(PODS, "bare", field.namespace)

    async def gone() -> bool:
        return not (await field.client.list(PODS, field.namespace, fields="metadata.name=bare")).items

    await _poll(gone, 20)  # long before its grace period is over


async def test_a_job_completes(field: Field) -> None:
    container = {"name": "count", "image": "busybox", "command": ["sh", "-c", "for i in 3 2 1; do echo $i; done"]}
    failing = {"name": "count", "image": "busybox", "command": ["sh", "-c", "exit 3"]}
    for name, main in (("good", container), ("bad", failing)):
        spec = {"backoffLimit": 0, "template": field.template(name, main, restartPolicy="Never")}
        await field.client.create(JOBS, {"metadata": {"name": name}, "spec": spec}, field.namespace)

    async def both() -> bool:
        good = await field.client.get(JOBS, "good", field.namespace)
        bad = await field.client.get(JOBS, "bad", field.namespace)
        return good.status.succeeded == 1 and bad.status.failed == 1

    await _poll(both, 30)


async def test_a_pod_is_resized_in_place(field: Field) -> None:
    amounts = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    template = field.template("sized", {"name": "app", "image": "nginx:1.25", "resources": amounts})
    await field.client.create(PODS, {**template, "metadata": {"name": "sized"}}, field.namespace)
    before = await field.until("sized", _ready)
    patch = {"spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "300m"}}}]}}
    await field.client.patch(
        PODS, "sized", patch, field.namespace, patch_type=PatchType.STRATEGIC, subresource="resize"
    )
    after = await field.until("sized", lambda found: _app(found)["resources"]["limits"]["cpu"] == "300m")
    assert _app(after)["containerID"] == _app(before)["containerID"]
    await field.until("sized", lambda found: not _has(found, "PodResizeInProgress"))


async def test_how_many_pods_a_second(field: Field, record_property: Callable[[str, object], None]) -> None:
    """Bound by hand, since a scheduler and its controllers are slower than nodes. The figure is for people."""
    count = 600
    began = time.monotonic()
    limit = asyncio.Semaphore(32)

    async def create(number: int) -> None:
        spec = {"nodeName": f"{field.prefix}{number % 3 + 1}", "containers": [{"name": "app", "image": "nginx:1.25"}]}
        async with limit:
            await field.client.create(PODS, {"metadata": {"name": f"p{number}"}, "spec": spec}, field.namespace)

    await asyncio.gather(*(create(number) for number in range(count)))

    async def all_ready() -> bool:
        return sum(is_ready(pod) for pod in (await field.client.list(PODS, field.namespace)).items) == count

    await _poll(all_ready, 120)
    rate = count / (time.monotonic() - began)
    record_property("pods_per_second", rate)
    print(f"{rate:.0f} pods/s from nothing to ready")


async def test_the_command(cluster: ControlPlane, field: Field) -> None:
    """`kruise nodes` ends in order on a signal."""
    prefix = f"cmd-{field.prefix}"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from kruise.cli.nodes import nodes; nodes()",
        "--count=2",
        "--zones=x,y",
        f"--prefix={prefix}",
        f"--kubeconfig={cluster.kubeconfig}",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        first = await process.stdout.readline()
        assert first.startswith(b"2 simulated nodes ready")
        node = await field.client.get(NODES, f"{prefix}2")
        assert node.metadata.labels["topology.kubernetes.io/zone"] == "y"
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(10):
            rest, _ = await process.communicate()
        assert process.returncode == 0
        assert b"kubectl delete nodes -l" in rest
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        for number in (1, 2):
            await field.client.delete(NODES, f"{prefix}{number}")


def _ready(found: Json) -> bool:
    return any(item["type"] == "Ready" and item["status"] == "True" for item in found["status"].get("conditions", ()))


def _has(found: Json, kind: str) -> bool:
    return any(item["type"] == kind for item in found["status"]["conditions"])


def _app(found: Json) -> Json:
    app: Json = found["status"]["containerStatuses"][0]
    return app
