"""Health of objects as they come along in a cluster: never better than what their pods are.

Each story goes through the states of its kind: created, half-updated, held by a partition, paused, stuck, done. At
every look the script for Argo CD must say what `kruise rollout status` says, and never call healthy what has a pod of
an older template.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.resource import Resource
from kruise.kinds import face_of
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.documents import value_at
from tests.gitops.test_kstatus import expected
from tests.support.argocd import argo_cd
from tests.support.health import Health, health_of
from tests.support.kstatus import Status, status_of
from tests.support.world import Json, LocalWorld, run_local

OLD, NEW, BROKEN = "nginx:1.20", "nginx:1.21", "nginx:1.22"
LABELS = {"app": "web"}


def template(image: str = OLD) -> Json:
    annotations = {"sim.kruise.io/never-ready": "true" if image == BROKEN else "false"}
    containers = [{"name": "main", "image": image}]
    return {"metadata": {"labels": LABELS, "annotations": annotations}, "spec": {"containers": containers}}


def manifest(resource: Resource[Any], **spec: Any) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": LABELS}, **spec},
    }


class Watched:
    """An object, looked at all the time."""

    def __init__(self, world: LocalWorld, resource: Resource[Any], container: str = "main") -> None:
        self.world = world
        self.resource = resource
        self.container = container
        face = face_of(resource.group, resource.kind)
        assert face is not None
        self.face = face
        self.seen: set[str] = set()

    async def look(self) -> str:
        found, pods = await self.world.get(self.resource, "web"), await self.world.pods("app=web")
        status, message = argo_cd().health(self.face.group_kind, found)
        assert status == health_of(self.face, found), message
        if self.face.history is not None and "status" in found:
            assert status_of(found) == expected(self.face, found), message
        if status == Health.HEALTHY and await self.world.get(self.resource, "web") == found:
            containers = [one for pod in pods for one in pod["spec"]["containers"] if one["name"] == self.container]
            assert {one["image"] for one in containers} <= {self.image(found)}, f"healthy: {message}"
        self.seen.add(status)
        return status

    def image(self, document: Json) -> str:
        """What all pods should have."""
        path = self.face.template_of(document)
        inner = value_at(document, path, {}) if path else document
        containers = value_at(inner, ("spec", "containers"), [{"image": OLD}])
        return str(containers[0]["image"])

    async def becomes(self, wanted: Health, *, within: float = 120.0) -> None:
        async def check() -> None:
            assert await self.look() == wanted

        await self.world.until(check, within=within, every=0.25)

    async def stays(self, wanted: Health, seconds: float = 20.0) -> None:
        await self.becomes(wanted)
        for _ in range(int(seconds * 2)):
            assert await self.look() == wanted
            await self.world.sleep(0.5)

    async def change(self, spec: Json) -> None:
        await self.world.patch(self.resource, "web", {"spec": spec})

    @contextlib.asynccontextmanager
    async def all_the_time(self) -> AsyncIterator[None]:
        async def looking() -> None:
            while True:
                with contextlib.suppress(NotFoundError):
                    await self.look()
                await self.world.sleep(0.1)

        task = asyncio.create_task(looking())
        try:
            yield
        finally:
            if task.done():
                task.result()
            task.cancel()


ROLLING = [
    pytest.param(CLONE_SETS, {"replicas": 4}, {"maxUnavailable": 1}, id="CloneSet"),
    pytest.param(STATEFUL_SETS, {"replicas": 4, "serviceName": "web"}, {}, id="StatefulSet"),
    pytest.param(DAEMON_SETS, {}, {"maxUnavailable": 1}, id="DaemonSet"),
]


@pytest.mark.parametrize(("resource", "spec", "rolling"), ROLLING)
def test_the_first_status_of_a_new_object_says_that_it_is_not_done(
    resource: Resource[Any], spec: Json, rolling: Json
) -> None:
    """Until then kstatus takes it for done: so it comes with the first pass."""

    async def story(world: LocalWorld) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        made = manifest(resource, **spec, updateStrategy=strategy, template=template())
        await world.create(made)
        found, waited = await world.get(resource, "web"), 0.0
        while "status" not in found:
            assert waited < 0.5
            await world.sleep(0.01)
            waited += 0.01
            found = await world.get(resource, "web")
        assert status_of(found) == Status.IN_PROGRESS, found["status"]

    run_local(story)


@pytest.mark.parametrize(("resource", "spec", "rolling"), ROLLING)
def test_a_rollout_in_all_its_states(resource: Resource[Any], spec: Json, rolling: Json) -> None:
    async def story(world: LocalWorld) -> None:
        watched = Watched(world, resource)

        def strategy(**more: Any) -> Json:
            return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {**rolling, **more}}}

        await world.create(manifest(resource, **spec, **strategy(), template=template()))
        async with watched.all_the_time():
            await watched.becomes(Health.HEALTHY)
            await watched.change(strategy(partition=2))
            await watched.stays(Health.HEALTHY, 5)  # it keeps nothing older
            await watched.change({"template": template(NEW)})
            await watched.stays(Health.SUSPENDED)
            await watched.change(strategy(partition=1, paused=True))
            await watched.stays(Health.SUSPENDED)
            await watched.change(strategy(partition=1, paused=False))
            await watched.becomes(Health.SUSPENDED)
            await watched.change(strategy(partition=0))
            await watched.becomes(Health.HEALTHY)
            await watched.change({"template": template(BROKEN)})
            await watched.becomes(Health.PROGRESSING)
            await world.sleep(60)
            assert await watched.look() in (Health.PROGRESSING, Health.DEGRADED)
            await watched.change({"template": template(OLD)})
            await watched.becomes(Health.HEALTHY, within=300)
            by_hand = {"type": "OnDelete", "rollingUpdate": None}
            await watched.change({"updateStrategy": by_hand, "template": template(NEW)})
            await watched.stays(Health.SUSPENDED)
        assert {Health.HEALTHY, Health.PROGRESSING, Health.SUSPENDED} <= watched.seen

    run_local(story, nodes=4)


def test_a_united_deployment() -> None:
    async def story(world: LocalWorld) -> None:
        watched = Watched(world, UNITED_DEPLOYMENTS)

        def inner(image: str) -> Json:
            spec = {"selector": {"matchLabels": LABELS}, "template": template(image)}
            return {"cloneSetTemplate": {"metadata": {"labels": LABELS}, "spec": spec}}

        subsets = [{"name": name, "replicas": 2} for name in ("a", "b")]
        topology = {"subsets": subsets}
        await world.create(manifest(UNITED_DEPLOYMENTS, replicas=4, template=inner(OLD), topology=topology))
        async with watched.all_the_time():
            await watched.becomes(Health.HEALTHY)
            partitions = {"type": "Manual", "manualUpdate": {"partitions": {"a": 2, "b": 0}}}
            await watched.change({"updateStrategy": partitions, "template": inner(NEW)})
            await watched.stays(Health.SUSPENDED)
            partitions["manualUpdate"] = {"partitions": {"a": 0, "b": 0}}
            await watched.change({"updateStrategy": partitions})
            await watched.becomes(Health.HEALTHY)

    run_local(story, nodes=4)


def test_a_sidecar_set() -> None:
    async def story(world: LocalWorld) -> None:
        watched = Watched(world, SIDECAR_SETS, container="side")

        def side(image: str) -> Json:
            return {"containers": [{"name": "side", "image": image}]}

        await world.create(manifest(SIDECAR_SETS, **side(OLD)))
        await world.create(manifest(CLONE_SETS, replicas=4, template=template()))
        async with watched.all_the_time():
            await world.sleep(10)
            await watched.becomes(Health.HEALTHY)
            await watched.change({"updateStrategy": {"type": "RollingUpdate", "paused": True}})
            await watched.change(side(NEW))
            await watched.stays(Health.SUSPENDED)
            await watched.change({"updateStrategy": {"paused": False, "partition": "50%"}})
            await watched.becomes(Health.PROGRESSING)
            await watched.stays(Health.SUSPENDED)
            await watched.change({"updateStrategy": {"paused": False, "partition": 0}})
            await watched.becomes(Health.HEALTHY)

    run_local(story, nodes=4)


def task(command: str) -> Json:
    container = {"name": "main", "image": OLD, "command": ["sh", "-c", command]}
    return {"metadata": {"labels": LABELS}, "spec": {"restartPolicy": "Never", "containers": [container]}}


@pytest.mark.parametrize(("command", "end"), [("sleep 5", Health.HEALTHY), ("sleep 5; exit 3", Health.DEGRADED)])
def test_a_broadcast_job(command: str, end: Health) -> None:
    async def story(world: LocalWorld) -> None:
        watched = Watched(world, BROADCAST_JOBS)
        given = manifest(BROADCAST_JOBS, paused=True, template=task(command))
        del given["spec"]["selector"]
        await world.create(given)
        async with watched.all_the_time():
            await watched.becomes(Health.SUSPENDED)
            await watched.change({"paused": False})
            await watched.becomes(Health.PROGRESSING)
            await watched.stays(end)

    run_local(story, nodes=3)


def test_an_advanced_cron_job() -> None:
    async def story(world: LocalWorld) -> None:
        watched = Watched(world, ADVANCED_CRON_JOBS)
        inner = {"broadcastJobTemplate": {"spec": {"template": task("sleep 5")}}}
        given = manifest(ADVANCED_CRON_JOBS, schedule="*/1 * * * *", template=inner)
        del given["spec"]["selector"]
        await world.create(given)
        async with watched.all_the_time():
            await watched.stays(Health.HEALTHY, 90)
            await watched.change({"paused": True})
            await watched.becomes(Health.SUSPENDED)

    run_local(story, nodes=2)


@pytest.mark.parametrize(("command", "end"), [("sleep 5", Health.HEALTHY), ("exit 3", Health.DEGRADED)])
def test_an_ephemeral_job(command: str, end: Health) -> None:
    async def story(world: LocalWorld) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", **template()}
        pod["metadata"] = {**pod["metadata"], "name": "web-0"}
        await world.create(pod)
        watched = Watched(world, EPHEMERAL_JOBS)
        container = {
            "name": "debug",
            "image": OLD,
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePolicy": "File",
            "command": ["sh", "-c", command],
        }
        await world.create(manifest(EPHEMERAL_JOBS, paused=True, template={"ephemeralContainers": [container]}))
        async with watched.all_the_time():
            await watched.becomes(Health.SUSPENDED)
            await watched.change({"paused": False})
            await watched.stays(end)

    run_local(story, nodes=1)
