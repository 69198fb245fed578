"""The collector at work over a core in process, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.native.config import CONFIG_MAPS, SECRETS
from kruise.api.native.events import EVENTS
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.nodes import NODES
from kruise.api.resource import Resource
from kruise.local.apicore import MemoryStorage, custom_kind
from kruise.local.collector import GarbageCollector, of_registry
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.clock import VirtualClock, run_virtual
from tests.local.harness import Api
from tests.support.background import in_background
from tests.support.faults import FaultyTransport, Rule, storm

DOLLS = Resource("toys.kruise.io", "v1", "dolls", "Doll", True, PartialObject)


class World:
    def __init__(self, rules: tuple[Rule, ...] = (), seed: int = 1) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.api = Api(clock=self.clock, storage=MemoryStorage(start_version=1))
        self.core = self.api.core
        self.client = Client(self.api.transport, clock=self.clock)
        transport = FaultyTransport(self.api.transport, rules, seed=seed, clock=self.clock)
        self.collector = GarbageCollector(
            Client(transport, clock=self.clock), clock=self.clock, discover=of_registry(self.core.registry)
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with in_background(self.collector.run()):
            await asyncio.sleep(1)
            yield

    async def make(self, name: str, *owners: Any, resource: Resource[Any] = CONFIG_MAPS, **metadata: Any) -> Any:
        about = {"name": name, **metadata}
        if owners:
            about["ownerReferences"] = list(owners)
        namespace = metadata.get("namespace", "default") if resource.namespaced else ""
        return await self.client.create(resource, {"metadata": about}, namespace)

    async def names(self, resource: Resource[Any] = CONFIG_MAPS, namespace: str = "default") -> list[str]:
        return [obj.metadata.name for obj in (await self.client.list(resource, namespace)).items]

    async def get(self, name: str, resource: Resource[Any] = CONFIG_MAPS) -> dict[str, Any]:
        _, found = await self.api.get(resource, name)
        return dict(found)

    async def delete(self, name: str, propagation: str = "", resource: Resource[Any] = CONFIG_MAPS) -> None:
        await self.client.delete(resource, name, "default" if resource.namespaced else "", propagation=propagation)


def by(owner: Any, resource: Resource[Any] = CONFIG_MAPS, **more: Any) -> dict[str, Any]:
    about = owner.metadata
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": about.name, "uid": about.uid, **more}


def virtually(scenario: Callable[[World], Awaitable[None]], *rules: Rule) -> None:
    async def main() -> None:
        await scenario(World(rules))

    run_virtual(main())


def test_what_loses_its_owner_goes_and_what_it_owned_follows() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a = await world.make("a")
            b = await world.make("b", by(a))
            await world.make("c", by(b), resource=SECRETS)
            await world.make("free")
            await asyncio.sleep(10)
            assert await world.names() == ["a", "b", "free"]
            await world.delete("a")
            await asyncio.sleep(10)
            assert await world.names() == ["free"]
            assert await world.names(SECRETS) == []

    virtually(scenario)


def test_one_owner_of_two_is_enough_and_the_lost_one_is_dropped() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a, b = await world.make("a"), await world.make("b")
            await world.make("c", by(a), by(b, controller=True))
            await world.delete("a")
            await asyncio.sleep(10)
            assert (await world.get("c"))["metadata"]["ownerReferences"] == [by(b, controller=True)]
            await world.delete("b")
            await asyncio.sleep(10)
            assert await world.names() == []

    virtually(scenario)


def test_owners_that_never_were_are_noticed_also_from_before_the_start() -> None:
    async def scenario(world: World) -> None:
        nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "no-such-uid"}
        await world.make("old", nobody)
        async with world.running():
            await asyncio.sleep(5)
            assert await world.names() == []
            await world.make("new", nobody)
            await asyncio.sleep(5)
            assert await world.names() == []

    virtually(scenario)


def test_another_object_of_the_owners_name_does_not_count() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a = await world.make("a")
            await world.make("b", by(a), finalizers=["kruise.io/stay"])
            await world.delete("a")
            await world.make("a")
            await asyncio.sleep(10)
            assert (await world.get("b"))["metadata"]["deletionTimestamp"]

    virtually(scenario)


def test_foreground_waits_for_those_that_block_and_not_for_others() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a = await world.make("a")
            await world.make("blocking", by(a, blockOwnerDeletion=True), finalizers=["kruise.io/stay"])
            await world.make("other", by(a), finalizers=["kruise.io/stay"])
            await world.delete("a", "Foreground")
            await asyncio.sleep(10)
            assert await world.names() == ["a", "blocking", "other"]
            for name in ("a", "blocking", "other"):
                assert (await world.get(name))["metadata"]["deletionTimestamp"], name
            await world.client.patch(CONFIG_MAPS, "blocking", {"metadata": {"finalizers": None}}, "default")
            await asyncio.sleep(10)
            assert await world.names() == ["other"]

    virtually(scenario)


def test_foreground_goes_through_the_generations_from_below() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a = await world.make("a")
            b = await world.make("b", by(a, blockOwnerDeletion=True))
            await world.make("c", by(b, blockOwnerDeletion=True), finalizers=["kruise.io/stay"])
            await world.delete("a", "Foreground")
            await asyncio.sleep(10)
            assert await world.names() == ["a", "b", "c"]
            assert (await world.get("b"))["metadata"]["finalizers"] == ["foregroundDeletion"]
            await world.client.patch(CONFIG_MAPS, "c", {"metadata": {"finalizers": None}}, "default")
            await asyncio.sleep(10)
            assert await world.names() == []

    virtually(scenario)


def test_an_owner_that_waits_is_dropped_by_what_has_another_one() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a, b = await world.make("a"), await world.make("b")
            await world.make("c", by(a, blockOwnerDeletion=True), by(b))
            await world.delete("a", "Foreground")
            await asyncio.sleep(10)
            assert await world.names() == ["b", "c"]
            assert (await world.get("c"))["metadata"]["ownerReferences"] == [by(b)]

    virtually(scenario)


def test_a_circle_ends() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a = await world.make("a")
            b = await world.make("b", by(a, blockOwnerDeletion=True))
            c = await world.make("c", by(b, blockOwnerDeletion=True))
            owners = {"metadata": {"ownerReferences": [by(c, blockOwnerDeletion=True)]}}
            await world.client.patch(CONFIG_MAPS, "a", owners, "default")
            await world.delete("a", "Foreground")
            await asyncio.sleep(60)
            assert await world.names() == []

    virtually(scenario)


def test_orphans_lose_the_reference_and_live() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a, b = await world.make("a"), await world.make("b")
            await world.make("c", by(a))
            await world.make("d", by(a), by(b))
            await world.delete("a", "Orphan")
            await asyncio.sleep(10)
            assert await world.names() == ["b", "c", "d"]
            assert "ownerReferences" not in (await world.get("c"))["metadata"]
            assert (await world.get("d"))["metadata"]["ownerReferences"] == [by(b)]

    virtually(scenario)


def test_an_owner_in_another_namespace_counts_as_absent_and_is_told() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a = await world.make("a", namespace="other")
            await world.make("b", by(a))
            await asyncio.sleep(10)
            assert await world.names() == []
            assert await world.names(CONFIG_MAPS, "other") == ["a"]
            (event,) = (await world.client.list(EVENTS, "default")).items
            assert (event.type, event.reason, event.involved_object.name) == (
                "Warning",
                "OwnerRefInvalidNamespace",
                "b",
            )
            owner = f"[v1/ConfigMap, namespace: default, name: a, uid: {a.metadata.uid}]"
            assert event.message == f'ownerRef {owner} does not exist in namespace "default"'
            assert event.source.component == "garbage-collector-controller"

    virtually(scenario)


def test_cluster_scoped_owners_own_in_any_namespace_but_cannot_be_owned_from_one() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            node = await world.make("n", resource=NODES)
            await world.make("b", by(node, NODES))
            a = await world.make("a")
            await world.make("m", by(a), resource=NODES)
            await asyncio.sleep(10)
            assert await world.names() == ["a", "b"]
            await world.delete("n", resource=NODES)
            await world.delete("a")
            await asyncio.sleep(10)
            assert await world.names() == []
            assert await world.names(NODES, "") == ["m"]

    virtually(scenario)


def test_a_kind_that_is_not_served_keeps_what_names_it() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            await world.make("b", {"apiVersion": "nowhere.io/v1", "kind": "Ghost", "name": "g", "uid": "u"})
            await asyncio.sleep(300)
            assert await world.names() == ["b"]

    virtually(scenario)


def test_kinds_come_and_go() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            assert "dolls.toys.kruise.io" not in world.collector.watched
            world.core.registry.add(custom_kind(DOLLS))
            await world.make("dolls.toys.kruise.io", resource=CUSTOM_RESOURCE_DEFINITIONS)
            await asyncio.sleep(2)
            assert "dolls.toys.kruise.io" in world.collector.watched
            doll = await world.make("d", resource=DOLLS)
            await world.make("b", by(doll, DOLLS))
            await asyncio.sleep(2)
            world.core.registry.remove("toys.kruise.io", "dolls")
            await asyncio.sleep(60)
            assert "dolls.toys.kruise.io" not in world.collector.watched
            assert await world.names() == ["b"], "a kind that is gone says nothing about its objects"

    virtually(scenario)


def test_faults_do_not_keep_it_from_its_end() -> None:
    """Lost answers, refusals and torn watches: the same end state, and nothing that has an owner is lost."""

    async def scenario(world: World) -> None:
        async with world.running():
            keeper = await world.make("keeper")
            for number in range(20):
                owner = await world.make(f"owner-{number}")
                await world.make(f"lost-{number}", by(owner))
                await world.make(f"kept-{number}", by(owner), by(keeper))
            await asyncio.sleep(5)
            for number in range(20):
                await world.delete(f"owner-{number}")
                if number == 10:
                    world.api.transport.cut_watches()
            await asyncio.sleep(600)
            assert await world.names() == sorted(["keeper", *(f"kept-{number}" for number in range(20))])

    virtually(scenario, *storm(0.1))


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a = await world.make("a")
            await world.make("b", by(a))
            await asyncio.sleep(10)
            before = world.core.storage.version
            await asyncio.sleep(3600)
            assert world.core.storage.version == before

    virtually(scenario)


def test_two_runs_write_the_same() -> None:
    def run() -> list[str]:
        found: list[str] = []

        async def scenario(world: World) -> None:
            async with world.running():
                a = await world.make("a")
                for number in range(5):
                    await world.make(f"b{number}", by(a, blockOwnerDeletion=True))
                await world.delete("a", "Foreground")
                await asyncio.sleep(30)
                log = world.core.storage.since("configmaps", 0)
                found.extend(f"{event.type} {event.key} {event.version}" for event in log)

        virtually(scenario)
        return found

    first = run()
    assert first == run()
    assert any("DELETED" in line for line in first)


def test_a_gone_object_is_no_trouble() -> None:
    async def scenario(world: World) -> None:
        async with world.running():
            a = await world.make("a")
            await world.make("b", by(a))
            await world.delete("a")
            with contextlib.suppress(NotFoundError):
                await world.delete("b")
            await asyncio.sleep(10)
            assert await world.names() == []

    virtually(scenario)
