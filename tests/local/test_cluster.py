"""The whole local cluster on virtual time: works, repeats itself exactly, opens no socket, and takes over imports."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS, JOBS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.api.resource import Resource
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.codec import encode


def deployment(name: str, replicas: int, image: str = "nginx:1.25", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}},
            **spec,
        },
    }


def bare_pod(name: str, image: str = "nginx:1.25", **container: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": image, **container}, {"name": "side", "image": "redis:7"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


def on_cluster(scenario: Callable[[LocalCluster, Client], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        clock = VirtualClock(asyncio.get_running_loop())
        cluster = LocalCluster(ClusterOptions(**{"seed": 7, **options}), clock=clock)
        running = asyncio.create_task(cluster.run())
        waiting = asyncio.create_task(cluster.ready.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if running.done():
                running.result()
            await asyncio.sleep(1)
            return await scenario(cluster, cluster.client("test"))
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    return run_virtual(main())


async def all_ready(client: Client, namespace: str = "default") -> list[Pod]:
    for _ in range(300):
        pods = [pod for pod in (await client.list(PODS, namespace)).items if not pod.metadata.deletion_timestamp]
        if pods and all(is_ready(pod) for pod in pods):
            return pods
        await asyncio.sleep(1)
    raise AssertionError("pods did not get ready")


def test_a_deployment_rolls_out_over_the_nodes() -> None:
    async def scenario(cluster: LocalCluster, client: Client) -> None:
        await client.create(DEPLOYMENTS, deployment("web", 6), "default")
        pods = await all_ready(client)
        assert {pod.spec.node_name for pod in pods} == {"node-1", "node-2", "node-3"}
        await client.patch(DEPLOYMENTS, "web", {"spec": deployment("web", 6, "nginx:1.26")["spec"]}, "default")
        await asyncio.sleep(60)
        pods = await all_ready(client)
        assert {pod.spec.containers[0].image for pod in pods} == {"nginx:1.26"}
        status = (await client.get(DEPLOYMENTS, "web", "default")).status
        assert (status.replicas, status.updated_replicas, status.available_replicas) == (6, 6, 6)

    on_cluster(scenario)


def test_an_image_is_changed_in_place() -> None:
    async def scenario(cluster: LocalCluster, client: Client) -> None:
        await client.create(PODS, bare_pod("solo"), "default")
        [before] = await all_ready(client)
        await client.patch(
            PODS,
            "solo",
            [{"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:1.26"}],
            "default",
            patch_type=PatchType.JSON,
        )
        await asyncio.sleep(60)
        [after] = await all_ready(client)
        assert (after.metadata.uid, after.spec.node_name, after.status.pod_ip) == (
            before.metadata.uid,
            before.spec.node_name,
            before.status.pod_ip,
        )
        was = {status.name: status for status in before.status.container_statuses}
        now = {status.name: status for status in after.status.container_statuses}
        assert (now["main"].restart_count, now["side"].restart_count) == (1, 0)
        assert now["main"].image_id != was["main"].image_id
        assert now["main"].container_id != was["main"].container_id
        assert now["side"] == was["side"]
        messages = [event.message for event in (await client.list(EVENTS, "default")).items]
        assert "Container main definition changed, will be restarted" in messages

    on_cluster(scenario)


def test_a_job_completes_and_a_namespace_goes_with_all_it_holds() -> None:
    async def scenario(cluster: LocalCluster, client: Client) -> None:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "batch"}})
        template = {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "b", "command": ["true"]}]}
        }
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"template": template}}
        await asyncio.sleep(1)
        await client.create(JOBS, body, "batch")
        await asyncio.sleep(60)
        assert (await client.get(JOBS, "once", "batch")).status.succeeded == 1
        await client.delete(NAMESPACES, "batch")
        await asyncio.sleep(60)
        with pytest.raises(NotFoundError):
            await client.get(NAMESPACES, "batch")
        assert (await client.list(PODS, "batch")).items == ()

    on_cluster(scenario)


def test_a_job_that_ran_is_suspended_and_resumed() -> None:
    async def scenario(cluster: LocalCluster, client: Client) -> None:
        container = {"name": "c", "image": "busybox", "command": ["sleep", "600"]}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "long"}, "spec": {"template": template}}
        await client.create(JOBS, body, "default")
        await asyncio.sleep(30)
        for suspend, active in ((True, 0), (False, 1)):
            await client.patch(JOBS, "long", {"spec": {"suspend": suspend}}, "default")
            await asyncio.sleep(60)
            status = (await client.get(JOBS, "long", "default")).status
            conditions = {item.type: item.status for item in status.conditions}
            assert (conditions, status.active) == ({"Suspended": str(suspend)}, active)
        await asyncio.sleep(900)
        assert (await client.get(JOBS, "long", "default")).status.succeeded == 1

    on_cluster(scenario)


def event_log(seed: int) -> list[bytes]:
    """Everything that happened to pods, deployments and events, in order, as bytes."""

    async def scenario(cluster: LocalCluster, client: Client) -> list[bytes]:
        seen: list[bytes] = []
        kinds: list[Resource[PartialObject]] = [
            Resource(resource.group, resource.version, resource.plural, resource.kind, True, PartialObject)
            for resource in (PODS, DEPLOYMENTS, EVENTS)
        ]

        async def follow(resource: Resource[PartialObject]) -> None:
            async with client.watch(resource, resource_version="1") as events:
                async for event in events:
                    metadata = event.object.metadata
                    seen.append(encode([event.type, resource.kind, metadata]))

        following = [asyncio.create_task(follow(resource)) for resource in kinds]
        await client.create(DEPLOYMENTS, deployment("web", 5), "default")
        await client.create(PODS, bare_pod("solo"), "default")
        await asyncio.sleep(30)
        await client.patch(DEPLOYMENTS, "web", {"spec": deployment("web", 3, "nginx:2")["spec"]}, "default")
        await asyncio.sleep(120)
        await client.delete(DEPLOYMENTS, "web", "default")
        await asyncio.sleep(60)
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        return seen

    found: list[bytes] = on_cluster(scenario, seed=seed)
    return found


def test_the_same_seed_gives_the_same_history() -> None:
    first = event_log(11)
    assert len(first) > 60
    assert event_log(11) == first
    assert event_log(12) != first


def test_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: LocalCluster, client: Client) -> int:
        def refuse(*args: object, **options: object) -> None:
            raise AssertionError("a socket was opened")

        monkeypatch.setattr(socket, "socket", refuse)
        await client.create(DEPLOYMENTS, deployment("web", 3), "default")
        pods = await all_ready(client)
        monkeypatch.undo()
        return len(pods)

    assert on_cluster(scenario) == 3


def test_imported_objects_keep_who_they_are_and_life_goes_on() -> None:
    """A running cluster is exported and imported into another: same uids, nothing restarts, rollouts go on."""

    async def export(cluster: LocalCluster, client: Client) -> list[Any]:
        await client.create(DEPLOYMENTS, deployment("web", 3), "default")
        await all_ready(client)
        found = []
        for plural in ("namespaces", "nodes", "serviceaccounts", "deployments.apps", "replicasets.apps", "pods"):
            storage = cluster.core.storage
            found += [obj for _, obj in storage.scan(plural, "", "", storage.version)]
        return found

    objects = on_cluster(export)
    before = {obj["metadata"]["uid"] for obj in objects if obj["kind"] == "Pod"}

    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        clock.shift(600)
        cluster = LocalCluster(ClusterOptions(seed=3), clock=clock)
        cluster.import_objects(objects)
        running = asyncio.create_task(cluster.run())
        client = cluster.client("test")
        await asyncio.sleep(30)
        pods = await all_ready(client)
        assert {pod.metadata.uid for pod in pods} == before
        assert all(status.restart_count == 0 for pod in pods for status in pod.status.container_statuses)
        await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, "default")
        await asyncio.sleep(30)
        assert before < {pod.metadata.uid for pod in await all_ready(client)}
        assert len((await client.list(NODES)).items) == 3
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_virtual(main())
