"""Taking over from OpenKruise, and the way back, on a local cluster on virtual time that is filled as recordings of
OpenKruise show it. The manager that takes over is in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
)
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS
from kruise.api.resource import Resource
from kruise.doctor.surveying import Survey, survey, way_back
from kruise.kinds import features
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError, TransportError
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.manager import gates
from kruise.manager.installation.installer import InstallationError, Installer
from kruise.manager.installation.manifests import manifests
from kruise.manager.installation.takeover.carrying import Carrier
from kruise.manager.installation.takeover.steps import Step
from kruise.manager.options import Options
from tests.support.openkruise import LATEST, NAMESPACE, OLDEST, Json
from tests.support.openkruise_census import BINDINGS, census, changes, documents, installed
from tests.support.openkruise_filled import fill
from tests.support.openkruise_objects import DEMO, OpenKruise
from tests.support.patients import DAEMON_SETS, DEPLOYMENTS
from tests.support.world import LocalWorld

GATES = "ImagePullJobGate=true,ResourceDistributionGate=true"


@dataclasses.dataclass
class Scene:
    world: LocalWorld
    original: OpenKruise
    said: list[str] = dataclasses.field(default_factory=list)

    @property
    def carrier(self) -> Carrier:
        world = self.world
        return Carrier(world.client, namespace=NAMESPACE, clock=world.clock, report=self.said.append, timeout=120)

    async def survey(self, **options: Any) -> Survey:
        world = self.world
        return await survey(world.client, features(), namespace=NAMESPACE, clock=world.clock, **options)

    async def take_over(self) -> None:
        seen = await self.survey(runs=())
        assert seen.obstacles == []
        await self.carrier.carry_out(seen.steps)
        self.world.start_manager()
        await self.world.sleep(300)

    async def go_back(self) -> None:
        world = self.world
        _, steps = await way_back(world.client, features(), namespace=NAMESPACE, clock=world.clock)
        await self.carrier.carry_out(steps)

    async def managers(self) -> list[Pod]:
        pods = await self.world.client.list(PODS, NAMESPACE, labels="control-plane=controller-manager")
        return list(pods.items)

    async def documents(self, resource: Resource[Any], namespace: str = "") -> list[Json]:
        return await documents(self.world.client, resource, namespace)

    async def census(self) -> Json:
        return await census(self.world.client, self.original.release)

    async def installed(self) -> Json:
        return await installed(self.world.client)


@contextlib.asynccontextmanager
async def original(release: str) -> AsyncIterator[Scene]:
    clock = VirtualClock(asyncio.get_running_loop())
    cluster = LocalCluster(ClusterOptions(nodes=6, seed=1, node_daemon=False), clock=clock)
    running = asyncio.create_task(cluster.run(), name="cluster")
    await cluster.ready.wait()
    world = LocalWorld(cluster, Options(gates=gates.resolve(gates.parse(GATES))), features(), 1)
    scene = Scene(world, OpenKruise(world.client, clock.now(), release))
    demo = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DEMO}}
    await world.client.create(NAMESPACES, demo)
    await scene.original.install()
    try:
        yield scene
    finally:
        await world.kill_manager()
        running.cancel()
        await asyncio.wait({running})


def with_openkruise(story: Callable[[Scene], Awaitable[None]], *, filled: bool = True, release: str = LATEST) -> None:
    async def main() -> None:
        async with original(release) as scene:
            if filled:
                await fill(scene.original)
            await scene.original.intercept()
            await scene.world.sleep(30)
            await story(scene)

    run_virtual(main())


RELEASES = pytest.mark.parametrize("release", [LATEST, OLDEST])


@RELEASES
def test_nothing_of_what_people_have_changes(release: str) -> None:
    async def story(scene: Scene) -> None:
        before = await scene.census()
        await scene.take_over()
        after = await scene.census()
        assert changes(before, after) == {}
        # All of them are looked after: the pod that was being updated is ready again, without another restart.
        pods = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in await scene.documents(PODS, DEMO)}
        assert pods["web-b2wx7"]["lifecycle.apps.kruise.io/state"] == "Normal"
        [web] = [item for item in await scene.documents(CLONE_SETS) if item["metadata"]["name"] == "web"]
        assert web["status"]["updatedAvailableReplicas"] == 5
        assert web["status"]["updateRevision"] == web["status"]["currentRevision"]

    with_openkruise(story, release=release)


@RELEASES
def test_the_way_back_leaves_all_as_it_was(release: str) -> None:
    async def story(scene: Scene) -> None:
        objects, before = await scene.census(), await scene.installed()
        await scene.take_over()
        taken = await scene.installed()
        assert taken["CustomResourceDefinition clonesets.apps.kruise.io"]["storedVersions"] == ["v1alpha1"]
        assert "Deployment kruise-controller-manager" not in taken
        await scene.world.stop_manager()
        await scene.go_back()
        back = await scene.installed()
        assert changes(before, back) == {}
        assert changes(objects, await scene.census()) == {}
        await scene.world.sleep(10)
        assert [pod.status.phase for pod in await scene.managers()] == ["Running"] * 2
        with pytest.raises(NotFoundError):
            await scene.world.client.get(CONFIG_MAPS, "kruise-takeover", NAMESPACE)

    with_openkruise(story, release=release)


@RELEASES
def test_the_way_back_after_objects_were_stored_in_a_newer_version(release: str) -> None:
    """And where ours has made pods, which name their owner in it: OpenKruise serves that version no more."""

    async def story(scene: Scene) -> None:
        objects = await scene.census()
        await scene.take_over()
        world = scene.world
        await Installer(world.client, clock=world.clock, report=scene.said.append).install(manifests(features()))
        definition = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "clonesets.apps.kruise.io")
        assert definition.status.stored_versions == ("v1beta1",)
        assert changes(objects, await scene.census()) == {}
        await world.client.patch(CLONE_SETS, "web", {"spec": {"replicas": 6}}, DEMO)
        await world.sleep(60)
        before = await scene.census()
        await scene.go_back()
        await world.kill_manager()
        assert "1 objects name their owner as OpenKruise names it" in " ".join(scene.said)
        definition = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "clonesets.apps.kruise.io")
        assert [version.name for version in definition.spec.versions] == ["v1alpha1"]
        assert definition.status.stored_versions == ("v1alpha1",)
        assert changes(before, await scene.census()) == {}
        owners = {
            owner["apiVersion"]
            for pod in await scene.documents(PODS, DEMO)
            for owner in pod["metadata"].get("ownerReferences", ())
            if owner["kind"] == "CloneSet"
        }
        assert owners == {"apps.kruise.io/v1alpha1"}

    with_openkruise(story, release=release)


def test_ours_start_with_what_openkruise_was_told_and_run_in_its_place() -> None:
    async def story(scene: Scene) -> None:
        seen = await scene.survey(chosen={"manager.image.repository": "kruise", "manager.image.tag": "1"})
        assert seen.inheritance.values == {
            "featureGates": "ImagePullJobGate=true,ResourceDistributionGate=true",
            "manager.replicas": 2,
            "daemon.socketLocation": "/run/k3s",
            "daemon.nodeSelector": {"disk": "ssd"},
        }
        assert seen.inheritance.left == ("--rest-config-burst=100",)
        await scene.carrier.carry_out(seen.steps)
        [deployment] = await scene.documents(DEPLOYMENTS, NAMESPACE)
        [daemons] = await scene.documents(DAEMON_SETS, NAMESPACE)
        for workload, command in ((deployment, ["kruise", "manager"]), (daemons, ["kruise", "daemon"])):
            pod = workload["spec"]["template"]["spec"]
            assert pod["containers"][0]["command"] == command
            assert pod["containers"][0]["image"] == "kruise:1"
            assert f"--feature-gates={GATES}" in pod["containers"][0]["args"]
            # Nothing of what OpenKruise had there is left.
            assert {volume["name"] for volume in pod["volumes"]} <= {"certificates", "logs", "runtime-sockets"}
        assert daemons["spec"]["template"]["spec"]["volumes"][0]["hostPath"]["path"] == "/run/k3s"
        # The binding of the daemons led to another role, which cannot be changed.
        bindings = {one["metadata"]["name"]: one for one in await scene.documents(BINDINGS)}
        assert bindings[DAEMON_BINDING]["roleRef"]["name"] == "kruise-daemon-role"
        # One that only OpenKruise needs is gone: it would give ours what their roles do not.
        assert "kruise-certs-rolebinding" not in bindings
        assert "deployment/kruise-controller-manager in namespace kruise-system is ready" in scene.said
        again = await scene.survey()
        assert [finding.code for finding in again.findings] == ["taken-over"]
        await scene.go_back()
        [deployment] = await scene.documents(DEPLOYMENTS, NAMESPACE)
        assert deployment["spec"]["template"]["spec"]["containers"][0]["command"] == ["/manager"]
        [binding] = [one for one in await scene.documents(BINDINGS) if one["metadata"]["name"] == DAEMON_BINDING]
        assert binding["roleRef"]["name"] == "kruise-manager-role"
        budgets = await scene.documents(POD_DISRUPTION_BUDGETS, NAMESPACE)
        assert budgets == []

    with_openkruise(story, filled=False)


DAEMON_BINDING = "kruise-daemon-rolebinding"


@pytest.mark.parametrize("way", ["there", "back"])
def test_broken_off_at_every_write_it_goes_on_where_it_stopped(way: str) -> None:
    """With two managers that are not of one mind nothing would be left as it was."""

    async def story(scene: Scene) -> None:
        world = scene.world
        before = await scene.installed()
        failing = Failing(world.client.transport)
        client = Client(failing, clock=world.clock)
        chosen = {"manager.image.repository": "kruise"}
        if way == "back":
            await scene.carrier.carry_out((await scene.survey(chosen=chosen)).steps)
        for count in range(200):
            failing.left = count
            carrier = Carrier(client, namespace=NAMESPACE, clock=world.clock, report=scene.said.append, timeout=120)
            try:
                if way == "there":
                    steps: Sequence[Step] = (await scene.survey(chosen=chosen)).steps
                else:
                    steps = (await way_back(world.client, features(), namespace=NAMESPACE, clock=world.clock))[1]
                await carrier.carry_out(steps)
            except TransportError:
                # Never are there two of them.
                images = {
                    pod.spec.containers[0].image
                    for pod in await scene.managers()
                    if pod.metadata.deletion_timestamp is None
                }
                assert len(images) <= 1
                continue
            break
        assert count > 20
        if way == "there":
            note = await world.client.get(CONFIG_MAPS, "kruise-takeover", NAMESPACE)
            assert note.data["state"] == "done"
            assert note.data["original"] == "openkruise/kruise-manager:v1.9.0"
            await scene.go_back()
        assert changes(before, await scene.installed()) == {}

    with_openkruise(story, filled=False)


class Failing:
    """A transport that lets so many writes through, and then none."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.left = 0

    async def send(self, request: Request) -> Response:
        if request.verb.writes and not any(key == "dryRun" for key, _ in request.query):
            if self.left <= 0:
                raise TransportError("the connection is gone", sent=True)
            self.left -= 1
        return await self._inner.send(request)

    def stream(self, request: Request) -> contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def test_nothing_goes_on_while_a_manager_may_be_at_work() -> None:
    async def story(scene: Scene) -> None:
        world = scene.world
        before = await scene.installed()
        hasty = Carrier(world.client, namespace=NAMESPACE, clock=world.clock, report=scene.said.append, timeout=0)
        with pytest.raises(InstallationError, match="Nothing goes on while they may be at work"):
            await hasty.carry_out((await scene.survey()).steps)
        after = await scene.installed()
        changed = {name for name in before if after[name] != before[name]}
        assert changed == {"Deployment kruise-controller-manager"}
        assert after["Deployment kruise-controller-manager"]["spec"]["replicas"] == 0

    with_openkruise(story, filled=False)
