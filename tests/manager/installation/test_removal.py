"""Removal in every state that a manager can be in, on a local cluster on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.config import SECRETS
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.embedded import install, managing
from kruise.kinds import features
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError, NotFoundError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.manager.installation.installer import InstallationError, Installer
from kruise.manager.installation.manifests import manifests
from kruise.manager.installation.removal import Remover

CLONE_SETS = Resource("apps.kruise.io", "v1beta1", "clonesets", "CloneSet", True, PartialObject)
OLDER = dataclasses.replace(CLONE_SETS, version="v1alpha1")
NAME = "clonesets.apps.kruise.io"
CONFIGURATIONS = (
    (MUTATING_WEBHOOK_CONFIGURATIONS, "kruise-mutating-webhook-configuration"),
    (VALIDATING_WEBHOOK_CONFIGURATIONS, "kruise-validating-webhook-configuration"),
)


def clone_set(**metadata: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {
        "apiVersion": CLONE_SETS.api_version,
        "kind": "CloneSet",
        "metadata": {"name": "web", **metadata},
        "spec": spec,
    }


@dataclasses.dataclass
class Scene:
    cluster: LocalCluster
    client: Client
    said: list[str]

    @property
    def remover(self) -> Remover:
        return Remover(self.client, clock=self.cluster.clock, report=self.said.append, timeout=60)

    async def uninstall(self, **options: Any) -> int:
        return await self.remover.uninstall(manifests(features()), **options)

    async def managed(self) -> None:
        """A CloneSet with its pods, made by a manager that ends then, and leaves its webhooks behind."""
        async with managing(self.cluster, features(), random=Random(1)) as manager:
            await manager.serving.wait()
            await self.client.create(CLONE_SETS, clone_set(), "default")
            await asyncio.sleep(30)
        assert len((await self.client.list(PODS, "default")).items) == 2

    async def nothing_is_left(self) -> None:
        for manifest in manifests(features()):
            if manifest["kind"] == "CustomResourceDefinition":
                with pytest.raises(NotFoundError):
                    await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, manifest["metadata"]["name"])
        for resource, name in CONFIGURATIONS:
            with pytest.raises(NotFoundError):
                await self.client.get(resource, name)
        await asyncio.sleep(120)
        assert not (await self.client.list(PODS, "default")).items
        assert await self.uninstall() == 0


@contextlib.asynccontextmanager
async def installed() -> AsyncIterator[Scene]:
    cluster = LocalCluster(ClusterOptions(seed=1), clock=VirtualClock(asyncio.get_running_loop()))
    running = asyncio.create_task(cluster.run())
    await cluster.ready.wait()
    await install(cluster, features())
    yield Scene(cluster, cluster.client("test"), [])
    running.cancel()


def on_a_cluster(story: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        async with installed() as scene:
            await story(scene)

    run_virtual(main())


async def _never_started(scene: Scene) -> None:
    await scene.client.create(CLONE_SETS, clone_set(), "default")


async def _dead(scene: Scene) -> None:
    await scene.managed()
    with pytest.raises(ApiError):
        await scene.client.get(OLDER, "web", "default")
    with pytest.raises(ApiError):
        await scene.client.delete(CLONE_SETS, "web", "default")


async def _dead_without_its_secret(scene: Scene) -> None:
    await scene.managed()
    await scene.client.delete(SECRETS, "kruise-webhook-certs", "kruise-system")


async def _wrong_authority(scene: Scene) -> None:
    await scene.managed()
    for resource, name in CONFIGURATIONS:
        live = await scene.client.get(resource, name)
        wrong = [{**entry, "clientConfig": {"url": "https://127.0.0.1:1/x"}} for entry in live.webhooks]
        await scene.client.patch(resource, name, {"webhooks": wrong})
    path = "/spec/conversion/webhook/clientConfig"
    operations = [{"op": "replace", "path": path, "value": {"url": "https://127.0.0.1:1/convert"}}]
    await scene.client.patch(CUSTOM_RESOURCE_DEFINITIONS, NAME, operations, patch_type=PatchType.JSON)


@pytest.mark.parametrize("state", [_never_started, _dead, _dead_without_its_secret, _wrong_authority])
def test_everything_goes_without_a_manager(state: Callable[[Scene], Awaitable[None]]) -> None:
    async def story(scene: Scene) -> None:
        await state(scene)
        with pytest.raises(InstallationError, match=rf"1 {NAME}.*--webhooks-only.*--with-resources"):
            await scene.uninstall()
        # Who is refused finds everything as it was.
        assert (await scene.client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)).spec.conversion["strategy"] == "Webhook"
        assert await scene.uninstall(with_resources=True) >= len(manifests(features())) - 1
        await scene.nothing_is_left()

    on_a_cluster(story)


def test_objects_of_an_older_version_go_though_nobody_can_read_them() -> None:
    """As an installation of long ago stored them: to count them, they would have to be converted."""

    async def story(scene: Scene) -> None:
        await scene.client.create(CLONE_SETS, clone_set(), "default")
        storage = scene.cluster.core.storage
        stored = storage.get(NAME, ("default", "web"))
        assert stored is not None
        storage.put(NAME, ("default", "web"), {**stored, "apiVersion": OLDER.api_version})
        with pytest.raises(ApiError):
            await scene.client.get(CLONE_SETS, "web", "default")
        with pytest.raises(InstallationError, match=rf"an unknown number \(they cannot be read: .*\) of {NAME}"):
            await scene.uninstall()
        await scene.uninstall(with_resources=True)
        await scene.nothing_is_left()

    on_a_cluster(story)


def test_everything_goes_beside_a_manager_at_work() -> None:
    async def story(scene: Scene) -> None:
        async with managing(scene.cluster, features(), random=Random(1)) as manager:
            await manager.serving.wait()
            await scene.client.create(CLONE_SETS, clone_set(), "default")
            await asyncio.sleep(30)
            await scene.uninstall(with_resources=True)
            await scene.nothing_is_left()

    on_a_cluster(story)


def test_what_a_manager_would_release_is_released_for_it() -> None:
    """Its own finalizers hold an object for ever, once nobody is there who takes them off."""

    async def story(scene: Scene) -> None:
        held = clone_set(finalizers=["job.apps.kruise.io/release"])
        await scene.client.create(CLONE_SETS, held, "default")
        await scene.uninstall(with_resources=True)
        assert f"{NAME}/web in namespace default: released, no manager did" in scene.said
        await scene.nothing_is_left()

    on_a_cluster(story)


def test_what_others_hold_is_named_and_a_second_run_goes_on() -> None:
    async def story(scene: Scene) -> None:
        await scene.client.create(CLONE_SETS, clone_set(finalizers=["example.com/books"]), "default")
        with pytest.raises(InstallationError, match=rf"{NAME}: default/web, held by finalizer example\.com/books"):
            await scene.uninstall(with_resources=True)
        # Rights and certificates stay until the objects are gone: a manager at work may need them.
        assert await scene.client.get(SECRETS, "kruise-webhook-certs", "kruise-system")
        await scene.client.patch(CLONE_SETS, "web", {"metadata": {"finalizers": None}}, "default")
        await scene.uninstall()
        await scene.nothing_is_left()

    on_a_cluster(story)


def test_an_installation_waits_for_a_namespace_that_is_being_deleted() -> None:
    """Whoever installs right after a removal meets it: nothing can be made in it, and it does not come back."""

    async def story(scene: Scene) -> None:
        body = {"metadata": {"finalizers": ["example.com/books"]}}
        await scene.client.patch(NAMESPACES, "kruise-system", body)
        await scene.uninstall()
        installer = Installer(scene.client, clock=scene.cluster.clock, report=scene.said.append, timeout=60)
        with pytest.raises(InstallationError, match="namespaces/kruise-system is still being deleted after 60 s"):
            await installer.install(manifests(features()))
        installing = asyncio.create_task(installer.install(manifests(features())))
        await asyncio.sleep(30)
        assert not installing.done()
        await scene.client.patch(NAMESPACES, "kruise-system", {"metadata": {"finalizers": None}})
        await installing
        assert scene.said.count("namespaces/kruise-system is being deleted: waiting until it is gone") == 2
        assert await scene.client.get(SECRETS, "kruise-webhook-certs", "kruise-system")

    on_a_cluster(story)


class _Meanwhile:
    """The transport of a client beside whose first deletion somebody makes a CloneSet."""

    def __init__(self, other: Client) -> None:
        self._other = other
        self._is_made = False

    async def send(self, request: Request) -> Response:
        if request.verb is Verb.DELETE and not self._is_made:
            self._is_made = True
            await self._other.create(CLONE_SETS, clone_set(), "default")
        return await self._other.transport.send(request)

    def stream(self, request: Request) -> contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._other.transport.stream(request)

    async def close(self) -> None: ...


def test_nothing_goes_without_consent_that_was_made_after_the_check() -> None:
    """It is made when the first thing has gone: the check is over, its definition still there."""

    async def story(scene: Scene) -> None:
        client = Client(_Meanwhile(scene.client), clock=scene.cluster.clock)
        remover = Remover(client, clock=scene.cluster.clock, report=scene.said.append)
        with pytest.raises(
            InstallationError, match=rf"has made {NAME} since this began: default/web\. .*with-resources"
        ):
            await remover.uninstall(manifests(features()))
        assert (await scene.client.get(CLONE_SETS, "web", "default")).metadata.deletion_timestamp is None
        await scene.uninstall(with_resources=True)
        await scene.nothing_is_left()

    on_a_cluster(story)


def test_people_can_work_again_while_no_manager_answers() -> None:
    async def story(scene: Scene) -> None:
        await scene.managed()
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        with pytest.raises(ApiError):
            await scene.client.create(PODS, pod, "default")
        live = [await scene.client.get(resource, name) for resource, name in CONFIGURATIONS]
        assert await scene.remover.clear_webhooks(manifests(features())) == sum(len(one.webhooks) for one in live)
        await scene.client.create(PODS, pod, "default")
        await scene.client.delete(CLONE_SETS, "web", "default")
        assert await scene.remover.clear_webhooks(manifests(features())) == 0
        # A manager that comes back serves as before.
        async with managing(scene.cluster, features(), random=Random(2)) as manager:
            await manager.serving.wait()
            again = [await scene.client.get(resource, name) for resource, name in CONFIGURATIONS]
        assert [one.webhooks for one in again] == [one.webhooks for one in live]

    on_a_cluster(story)


def test_pods_go_with_a_definition_that_is_deleted_by_hand() -> None:
    """Kind and objects go in one moment, and the garbage collector still knows whose pods they were."""

    async def story(scene: Scene) -> None:
        await scene.managed()
        await scene.remover.clear_webhooks(manifests(features()))
        await scene.client.delete(CUSTOM_RESOURCE_DEFINITIONS, NAME)
        await asyncio.sleep(120)
        assert not (await scene.client.list(PODS, "default")).items

    on_a_cluster(story)
