"""Watches and stores against a real API server: what the store takes for granted about versions is checked here."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from random import Random
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.config import CONFIG_MAPS, ConfigMap
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.machinery import watch as watch_module
from kruise.machinery.cache import Cache
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import RealClock
from kruise.machinery.store import Store
from kruise.machinery.watch import Scope, Watcher
from kruise.machinery.watch_states import Cause, State, Task
from kruise.machinery.watched import Watched
from tests.support.background import in_background
from tests.support.realcluster import ControlPlane


class Observer:
    def __init__(self) -> None:
        self.ended: list[tuple[str, str]] = []

    def task_ended(self, resource: Any, task: Task, cause: Cause, seconds: float) -> None:
        self.ended.append((str(task), str(cause)))


def connect(cluster: ControlPlane) -> Client:
    return Client(HttpTransport(kubeconfig.load(cluster.kubeconfig, env={})), field_manager="kruise-test")


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with connect(control_plane) as made:
        yield made


async def until(check: Callable[[], bool], seconds: float = 30) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not check():
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.02)


def shown(store: Store[Any]) -> dict[str, str]:
    return {obj.metadata.name: obj.metadata.resource_version for obj in store.list()}


async def served(client: Client, resource: Resource[Any], namespace: str) -> dict[str, str]:
    page = await client.list(resource, namespace)
    return {obj.metadata.name: obj.metadata.resource_version for obj in page.items}


def by_group(obj: ConfigMap) -> list[str]:
    return [obj.metadata.labels["group"]] if "group" in obj.metadata.labels else []


def config_map(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"c{number:03}", "labels": {"group": f"g{number % 3}"}},
    }


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "example/main:1"}]},
    }


def new_kind() -> Resource[PartialObject]:
    return Resource(f"g{uuid.uuid4().hex[:8]}.example.com", "v1", "gadgets", "Gadget", True, PartialObject)


def gadget(kind: Resource[Any]) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "g"}}


@contextlib.asynccontextmanager
async def installed(client: Client, kind: Resource[Any]) -> AsyncGenerator[None, None]:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.group_resource},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "kind": kind.kind},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    try:
        yield
    finally:
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, kind.group_resource)


async def make_many(client: Client, namespace: str, numbers: range) -> list[ConfigMap]:
    limit = asyncio.Semaphore(20)

    async def make(number: int) -> ConfigMap:
        async with limit:
            return await client.create(CONFIG_MAPS, config_map(number), namespace)

    return list(await asyncio.gather(*(make(number) for number in numbers)))


@pytest.mark.smoke
async def test_list_watch_and_index_300_objects(client: Client, namespace: str) -> None:
    """Half of them are there before the list, in pages; the others come as events."""
    await make_many(client, namespace, range(150))
    cache = Cache(client, clock=RealClock(), namespace=namespace, page_size=40)
    store = cache.add(Watched(CONFIG_MAPS, indexes={"group": by_group}))
    async with in_background(cache.run()):
        await cache.wait_synced(20)
        assert len(store) >= 150
        await make_many(client, namespace, range(150, 300))
        await until(lambda: len(store.by_index("group", "g1")) == 100)
        await until(lambda: sum(len(store.by_index("group", f"g{number}")) for number in range(3)) == 300)
        assert shown(store) == await served(client, CONFIG_MAPS, namespace)
        assert [obj.metadata.name for obj in store.by_index("group", "g1")] == [f"c{n:03}" for n in range(1, 300, 3)]
        await client.patch(CONFIG_MAPS, "c001", {"metadata": {"labels": {"group": "g0"}}}, namespace)
        await client.delete(CONFIG_MAPS, "c004", namespace)
        await until(lambda: len(store.by_index("group", "g1")) == 98)
        assert len(store.by_index("group", "g0")) == 101


@pytest.mark.smoke
async def test_own_writes_are_visible_at_once_and_echoes_are_silent(client: Client, namespace: str) -> None:
    cache = Cache(client, clock=RealClock(), namespace=namespace)
    store = cache.add(CONFIG_MAPS)
    changes: dict[str, list[str]] = {}

    def handle(old: ConfigMap | None, new: ConfigMap | None) -> None:
        if new is not None:
            changes.setdefault(new.metadata.name, []).append(new.metadata.resource_version)

    async with in_background(cache.run()):
        await cache.wait_synced(20)
        store.subscribe(handle)
        changes.clear()
        expected: dict[str, list[str]] = {}

        async def write(number: int) -> None:
            made = await client.create(CONFIG_MAPS, config_map(number), namespace)
            for step in range(5):
                cache.written(CONFIG_MAPS, made)
                seen = store.get(namespace, made.metadata.name)
                assert seen is not None
                assert int(seen.metadata.resource_version) >= int(made.metadata.resource_version)
                expected.setdefault(made.metadata.name, []).append(made.metadata.resource_version)
                if step < 4:
                    body = {"data": {"step": str(step)}}
                    made = await client.patch(CONFIG_MAPS, made.metadata.name, body, namespace)

        await asyncio.gather(*(write(number) for number in range(30)))
        await client.create(CONFIG_MAPS, config_map(999), namespace)
        await until(lambda: store.get(namespace, "c999") is not None)
        del changes["c999"]
        assert changes == expected, "each version once, whether the answer or the event came first"


@pytest.mark.smoke
async def test_versions_of_deletes_are_as_the_store_takes_them(client: Client, namespace: str) -> None:
    """A delete answers with the version of its own event or with the uid; an answer never brings an object back."""
    store: Store[Pod] = Store(PODS)
    scope = Scope(namespace)
    page = await client.list(PODS, namespace)
    events: dict[str, list[tuple[str, str]]] = {}

    async def read() -> None:
        async with client.watch(PODS, namespace, resource_version=page.resource_version) as stream:
            async for event in stream:
                meta = event.object.metadata
                events.setdefault(meta.name, []).append((event.type, meta.resource_version))

    reader = asyncio.create_task(read())
    watcher = Watcher(client, store, clock=RealClock(), random=Random(1), scope=scope)
    try:
        async with in_background(watcher.run()):
            await watcher.synced.wait()

            # Nothing keeps it: it goes at once.
            made = await client.create(PODS, pod("plain"), namespace)
            store.written(made)
            gone = await client.delete(PODS, "plain", namespace, grace_period_seconds=0)
            store.delete_answered(gone.uid, gone.object)
            left = store.get(namespace, "plain")
            assert left is None or store.is_terminating(left)
            assert gone.uid == made.metadata.uid
            await until(lambda: store.get(namespace, "plain") is None)
            await until(lambda: events["plain"][-1][0] == "DELETED")
            assert gone.object is not None
            assert ("DELETED", gone.object.metadata.resource_version) == events["plain"][-1]

            # A finalizer keeps it; the patch that takes it away ends the object.
            made = await client.create(PODS, pod("kept", finalizers=["example.com/keep"]), namespace)
            store.written(made)
            gone = await client.delete(PODS, "kept", namespace, uid=made.metadata.uid)
            store.delete_answered(gone.uid, gone.object)
            left = store.get(namespace, "kept")
            assert left is not None
            assert store.is_terminating(left)
            last = await client.patch(
                PODS, "kept", [{"op": "remove", "path": "/metadata/finalizers"}], namespace, patch_type=PatchType.JSON
            )
            await until(lambda: events["kept"][-1][0] == "DELETED")
            assert int(last.metadata.resource_version) <= int(events["kept"][-1][1])
            await until(lambda: store.get(namespace, "kept") is None)
            store.written(last)
            assert store.get(namespace, "kept") is None
            assert len(store) == 0
    finally:
        reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reader


@pytest.mark.smoke
async def test_a_version_that_is_too_old_leads_to_a_list(client: Client, namespace: str) -> None:
    """The server's memory of a kind begins when the kind is installed: version 1 is before that."""
    gadgets = new_kind()
    async with installed(client, gadgets):
        store: Store[PartialObject] = Store(gadgets)
        observer = Observer()
        watcher = Watcher(client, store, clock=RealClock(), random=Random(1), scope=Scope(namespace), observer=observer)
        async with in_background(watcher.run()):
            await watcher.synced.wait()
        await client.create(gadgets, gadget(gadgets), namespace)
        store = Store(gadgets)
        store.replace([], 1)
        watcher = Watcher(client, store, clock=RealClock(), random=Random(1), scope=Scope(namespace), observer=observer)
        watcher._state = State(Task.WATCH)
        observer.ended.clear()
        async with in_background(watcher.run()):
            await until(lambda: store.get(namespace, "g") is not None)
            await until(lambda: len(observer.ended) >= 2)
    assert observer.ended[:2] == [("watch", "expired"), ("list", "listed")]


async def test_bookmarks_move_the_watermark(client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch of a quiet namespace learns how far the server is, and goes on from there."""
    monkeypatch.setattr(watch_module, "WATCH_SECONDS", (5, 5))
    cache = Cache(client, clock=RealClock(), namespace=namespace)
    store = cache.add(CONFIG_MAPS)
    async with in_background(cache.run()):
        await cache.wait_synced(20)
        before = store.watermark
        name = f"bookmark-{uuid.uuid4().hex[:8]}"
        body = {"metadata": {"name": name}}
        version = int((await client.create(CONFIG_MAPS, body, "default")).metadata.resource_version)
        await client.delete(CONFIG_MAPS, name, "default")
        assert version > before
        await until(lambda: store.watermark >= version, 60)
        assert store.get("default", name) is None


async def test_a_kind_that_is_installed_later(client: Client, namespace: str) -> None:
    """MGR-22: it is waited for and said so; no restart is needed."""
    gadgets = new_kind()
    cache = Cache(client, clock=RealClock(), namespace=namespace)
    store = cache.add(gadgets)
    cache.add(CONFIG_MAPS)
    async with in_background(cache.run()):
        await cache.wait_synced(20, resources=[CONFIG_MAPS])
        await until(lambda: "is not installed" in str(cache.waiting_for))
        async with installed(client, gadgets):
            await cache.wait_synced(30)
            cache.written(gadgets, await client.create(gadgets, gadget(gadgets), namespace))
            assert store.get(namespace, "g") is not None
            await client.delete(gadgets, "g", namespace)
            await until(lambda: len(store) == 0)
            assert cache.waiting_for == {}


async def test_a_fresh_list_shows_everything_written_before_it(client: Client, namespace: str) -> None:
    """What a new leader relies on: writes of another client are there, whatever the watch has delivered."""
    cache = Cache(client, clock=RealClock(), namespace=namespace)
    store = cache.add(CONFIG_MAPS)
    async with in_background(cache.run()):
        await cache.wait_synced(20)
        for number in range(30):
            made = await client.create(CONFIG_MAPS, config_map(number), namespace)
            await cache.fresh_relist(20)
            assert shown(store)[made.metadata.name] == made.metadata.resource_version


async def test_an_api_server_that_is_killed_and_started_again(
    fresh_control_plane: Callable[..., ControlPlane],
) -> None:
    """Writes go on around the outage; in the end the store shows what the server holds."""
    cluster = fresh_control_plane(controller_manager=False, scheduler=False)
    async with connect(cluster) as client:
        observer = Observer()
        cache = Cache(client, clock=RealClock(), namespace="default", observer=observer)
        store = cache.add(Watched(CONFIG_MAPS, indexes={"group": by_group}))
        async with in_background(cache.run()):
            await cache.wait_synced(30)
            for made in await make_many(client, "default", range(100)):
                cache.written(CONFIG_MAPS, made)
            assert len(store) >= 100
            await asyncio.to_thread(cluster.kill_apiserver)
            await until(lambda: cache.status()[0].trouble != "", 30)
            assert len(store) >= 100, "an outage takes nothing away"
            await asyncio.to_thread(cluster.start_apiserver)
            async with connect(cluster) as other:
                await make_many(other, "default", range(100, 150))
                await other.delete(CONFIG_MAPS, "c000", "default")
                truth = await served(other, CONFIG_MAPS, "default")
            await until(lambda: shown(store) == truth, 60)
            assert len(store.by_index("group", "g0")) == 49
            assert any(cause == "torn" for _, cause in observer.ended)
            await until(lambda: cache.status()[0].trouble == "", 30)
