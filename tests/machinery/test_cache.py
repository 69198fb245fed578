"""Shared watches, the barrier at the start, fresh lists and the way in for answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.config import CONFIG_MAPS, SECRETS, ConfigMap
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.local.apicore.builtin import custom_kind
from kruise.local.apicore.core import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.cache import Cache, NotSyncedError
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import TransportError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.codec import evolve
from kruise.machinery.watched import Watched
from tests.support.background import in_background
from tests.support.faults import Answer, Rule
from tests.support.inprocess import TOYS, InProcess
from tests.support.scripted import ScriptedTransport, listing, refusal, thing
from tests.support.store_model import config_map

NEWER_TOYS = Resource("example.com", "v2", "toys", "Toy", True, PartialObject)


def by_app(obj: Any) -> list[str]:
    return [obj.metadata.labels["app"]] if "app" in obj.metadata.labels else []


def by_name(obj: Any) -> list[str]:
    return [obj.metadata.name]


@contextlib.asynccontextmanager
async def running(cache: Cache) -> AsyncGenerator[None, None]:
    async with in_background(cache.run()):
        yield


def cache_over(transport: Any, **options: Any) -> Cache:
    clock = VirtualClock(asyncio.get_running_loop())
    return Cache(Client(transport, clock=clock), clock=clock, **options)


async def make(world: InProcess, name: str, namespace: str = "default", **labels: str) -> ConfigMap:
    return await world.direct.create(CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}}, namespace)


def watches(world: InProcess) -> int:
    return world.inner.open_watches


class TestSharing:
    def test_one_watch_serves_all_and_indexes_are_merged(self) -> None:
        async def main() -> None:
            world = InProcess()
            first = world.cache.add(Watched(CONFIG_MAPS, indexes={"app": by_app}))
            second = world.cache.add(Watched(CONFIG_MAPS, indexes={"app": by_app, "name": by_name}))
            assert first is second is world.cache.store(CONFIG_MAPS)
            async with world.running():
                await make(world, "a", app="x")
                await asyncio.sleep(1)
                assert watches(world) == 1
                assert [obj.metadata.name for obj in first.by_index("app", "x")] == ["a"]
                assert [obj.metadata.name for obj in first.by_index("name", "a")] == ["a"]

        run_virtual(main())

    def test_a_kind_added_later_is_watched_at_once(self) -> None:
        async def main() -> None:
            world = InProcess()
            world.cache.add(CONFIG_MAPS)
            await make(world, "a", app="x")
            async with world.running():
                pods = world.cache.add(PODS)
                assert not pods.synced
                await world.cache.wait_synced(10)
                assert pods.synced
                store = world.cache.add(Watched(CONFIG_MAPS, indexes={"app": by_app}))
                assert [obj.metadata.name for obj in store.by_index("app", "x")] == ["a"]
                await asyncio.sleep(1)
                assert watches(world) == 2
                assert world.cache.resources == (CONFIG_MAPS, PODS)

        run_virtual(main())

    def test_versions_of_a_kind_share_nothing(self) -> None:
        async def main() -> None:
            cache = cache_over(ScriptedTransport())
            assert cache.add(TOYS) is not cache.add(NEWER_TOYS)
            assert cache.add(PODS) is not cache.add(CONFIG_MAPS)  # type: ignore[comparison-overlap]

        run_virtual(main())

    @pytest.mark.parametrize(
        ("kind", "options", "said"),
        [
            (CONFIG_MAPS, {"labels": "app=x"}, "with scope"),
            (CONFIG_MAPS, {"fields": "metadata.name=a"}, "with scope"),
            (Watched(CONFIG_MAPS, trim=lambda obj: obj), {}, "with trim"),
        ],
    )
    def test_users_of_a_kind_must_agree(self, kind: Any, options: dict[str, str], said: str) -> None:
        async def main() -> None:
            cache = cache_over(ScriptedTransport())
            cache.add(CONFIG_MAPS)
            with pytest.raises(ValueError, match=f"configmaps is watched already {said}"):
                cache.add(kind, **options)

        run_virtual(main())

    def test_another_struct_for_the_same_kind_is_refused(self) -> None:
        async def main() -> None:
            cache = cache_over(ScriptedTransport())
            cache.add(PODS)
            with pytest.raises(ValueError, match="struct"):
                cache.add(Resource("", "v1", "pods", "Pod", True, PartialObject))

        run_virtual(main())

    def test_an_unwatched_kind_is_named(self) -> None:
        async def main() -> None:
            cache = cache_over(ScriptedTransport())
            with pytest.raises(LookupError, match="v1 pods is not watched"):
                cache.store(PODS)
            assert cache.find(PODS, "ns", "a") is None
            cache.written(PODS, Pod())
            cache.delete_answered(PODS, "uid")

        run_virtual(main())

    def test_a_second_run_is_refused(self) -> None:
        async def main() -> None:
            cache = cache_over(ScriptedTransport())
            async with running(cache):
                await asyncio.sleep(0)
                with pytest.raises(RuntimeError, match="runs already"):
                    await cache.run()

        run_virtual(main())


class TestScope:
    def test_a_namespace_restricts_namespaced_kinds_only(self) -> None:
        async def main() -> None:
            transport = ScriptedTransport()
            cache = cache_over(transport, namespace="team")
            cache.add(PODS)
            cache.add(NODES)
            async with running(cache):
                await asyncio.sleep(1)
            assert sorted(request.path for request in transport.requests) == [
                "/api/v1/namespaces/team/pods",
                "/api/v1/nodes",
            ]

        run_virtual(main())

    def test_answers_outside_the_scope_are_not_stored(self) -> None:
        async def main() -> None:
            world = InProcess()
            cache = cache_over(world.inner, namespace="default")
            store = cache.add(CONFIG_MAPS, labels="app=x", fields="metadata.name!=c")
            async with running(cache):
                await cache.wait_synced(10)
                for name, namespace, labels in (
                    ("a", "default", {"app": "x"}),
                    ("b", "default", {"app": "y"}),
                    ("c", "default", {"app": "x"}),
                    ("d", "other", {"app": "x"}),
                ):
                    cache.written(CONFIG_MAPS, await make(world, name, namespace, **labels))
                assert [obj.metadata.name for obj in store.list()] == ["a"]
                await asyncio.sleep(5)
                assert [obj.metadata.name for obj in store.list()] == ["a"]

        run_virtual(main())

    def test_fields_that_the_struct_does_not_have_count_as_outside(self) -> None:
        async def main() -> None:
            cache = cache_over(ScriptedTransport())
            store = cache.add(CONFIG_MAPS, fields="spec.unknown=1")
            cache.written(CONFIG_MAPS, config_map("a", 3))
            assert len(store) == 0
            pods = cache.add(PODS, fields="spec.nodeName=n1")
            pod = Pod(kind="Pod", metadata=config_map("a", 3).metadata)
            cache.written(PODS, pod)
            assert len(pods) == 0
            cache.written(PODS, evolve(pod, spec=evolve(pod.spec, node_name="n1")))
            assert len(pods) == 1

        run_virtual(main())


class TestStart:
    def test_the_barrier_names_what_is_late_and_why(self) -> None:
        async def main() -> None:
            world = InProcess([Rule(Answer(403, "Forbidden", "no rights"), resource="secrets")])
            world.cache.add(CONFIG_MAPS)
            world.cache.add(SECRETS)
            async with running(world.cache):
                with pytest.raises(NotSyncedError, match=r"not listed within 5 s: secrets \(v1\): no rights") as caught:
                    await world.cache.wait_synced(5)
                assert list(caught.value.waiting_for) == ["secrets (v1)"]
                await world.cache.wait_synced(5, resources=[CONFIG_MAPS])

        run_virtual(main())

    def test_a_server_that_never_answers_is_said_so(self) -> None:
        async def main() -> None:
            cache = cache_over(ScriptedTransport())
            cache.add(CONFIG_MAPS)
            async with running(cache):
                with pytest.raises(NotSyncedError, match="the first list is not finished"):
                    await cache.wait_synced(5)

        run_virtual(main())

    def test_a_kind_that_is_installed_later_is_waited_for(self) -> None:
        """MGR-22: nothing else is held up, the readiness detail says why, and no restart is needed."""

        async def main() -> None:
            world = InProcess()
            world.cache.add(CONFIG_MAPS)
            gadgets = Resource("example.com", "v1", "gadgets", "Gadget", True, PartialObject)
            store = world.cache.add(gadgets)
            async with running(world.cache):
                await world.cache.wait_synced(10, resources=[CONFIG_MAPS])
                await asyncio.sleep(100)
                assert list(world.cache.waiting_for) == ["gadgets.example.com (example.com/v1)"]
                assert (
                    "is not installed in this cluster"
                    in world.cache.waiting_for["gadgets.example.com (example.com/v1)"]
                )
                status = {str(item.resource): item for item in world.cache.status()}
                assert status["configmaps"].waiting_for == ""
                assert not status["gadgets.example.com"].synced
                world.core.registry.add(custom_kind(gadgets))
                await world.direct.create(gadgets, {"metadata": {"name": "g"}}, "default")
                await world.cache.wait_synced(11)
                assert store.get("default", "g") is not None
                assert world.cache.waiting_for == {}

        run_virtual(main())

    def test_an_outage_later_keeps_the_store_and_shows_the_trouble(self) -> None:
        async def main() -> None:
            world = InProcess()
            store = world.cache.add(CONFIG_MAPS)
            await make(world, "a")
            async with world.running():
                world.inner.take_down("connection refused")
                await asyncio.sleep(60)
                (status,) = world.cache.status()
                assert status.trouble == "connection refused"
                assert status.waiting_for == "", "what was delivered is still good"
                assert len(store) == 1
                world.inner.bring_up()
                await make(world, "b")
                await asyncio.sleep(31)
                assert len(store) == 2
                assert world.cache.status()[0].trouble == ""

        run_virtual(main())


class LaggingWatches:
    """A transport whose watches say nothing: as far behind as a watch can be."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.listed = 0

    async def send(self, request: Request) -> Response:
        self.listed += request.verb is Verb.LIST
        answer: Response = await self.inner.send(request)
        return answer

    def stream(self, request: Request) -> Any:
        return ScriptedTransport().stream(request)

    async def close(self) -> None: ...


class TestFreshRelist:
    def test_shows_what_the_watch_has_not_delivered(self) -> None:
        """A new leader sees every write of the one before it."""

        async def main() -> None:
            world = InProcess()
            transport = LaggingWatches(world.inner)
            cache = cache_over(transport)
            store = cache.add(CONFIG_MAPS)
            cache.add(PODS)
            async with running(cache):
                await cache.wait_synced(10)
                await make(world, "a")
                await asyncio.sleep(60)
                assert len(store) == 0
                listed = transport.listed
                await cache.fresh_relist(10)
                assert len(store) == 1
                assert transport.listed == listed + 2

        run_virtual(main())

    def test_needs_a_running_cache(self) -> None:
        async def main() -> None:
            with pytest.raises(RuntimeError, match="running cache"):
                await cache_over(ScriptedTransport()).fresh_relist(1)

        run_virtual(main())

    def test_names_what_is_late(self) -> None:
        async def main() -> None:
            world = InProcess()
            world.cache.add(CONFIG_MAPS)
            world.cache.add(PODS)
            async with world.running():
                world.inner.take_down("connection refused")
                with pytest.raises(NotSyncedError, match=r"configmaps .*connection refused.* pods .*refused"):
                    await world.cache.fresh_relist(20)
                world.inner.bring_up()
                await world.cache.fresh_relist(40)

        run_virtual(main())

    def test_is_not_held_up_by_a_missing_kind(self) -> None:
        async def main() -> None:
            world = InProcess()
            missing = world.cache.add(Resource("example.com", "v1", "gadgets", "Gadget", True, PartialObject))
            served = world.cache.add(CONFIG_MAPS)
            await make(world, "a")
            async with running(world.cache):
                await asyncio.sleep(30)
                began = asyncio.get_running_loop().time()
                await world.cache.fresh_relist(10)
                assert asyncio.get_running_loop().time() - began < 1
                assert (len(missing), len(served)) == (0, 1)

        run_virtual(main())


class TestAnswers:
    def test_own_writes_are_visible_at_once(self) -> None:
        async def main() -> None:
            world = InProcess()
            transport = LaggingWatches(world.inner)
            cache = cache_over(transport)
            store = cache.add(CONFIG_MAPS)
            async with running(cache):
                await cache.wait_synced(10)
                made = await make(world, "a")
                cache.written(CONFIG_MAPS, made)
                assert cache.find(CONFIG_MAPS, "default", "a") == made
                gone = await world.direct.delete(CONFIG_MAPS, "a", "default")
                cache.delete_answered(CONFIG_MAPS, gone.uid, gone.object)
                found = store.get("default", "a")
                assert found is not None
                assert store.is_terminating(found)
                await cache.fresh_relist(10)
                assert len(store) == 0

        run_virtual(main())

    def test_answers_that_are_no_such_object_are_not_stored(self, caplog: pytest.LogCaptureFixture) -> None:
        """A scale subresource answers with the name, uid and version of the object, but is another kind."""

        async def main() -> None:
            cache = cache_over(ScriptedTransport())
            store = cache.add(CONFIG_MAPS)
            cache.written(CONFIG_MAPS, evolve(config_map("a", 3), kind="Scale"))
            cache.written(CONFIG_MAPS, Pod(metadata=config_map("a", 3).metadata))
            cache.written(CONFIG_MAPS, ConfigMap())
            assert len(store) == 0
            cache.delete_answered(CONFIG_MAPS, "uid-a", ConfigMap())
            cache.written(CONFIG_MAPS, config_map("a", 3))
            assert store.is_terminating(config_map("a", 3))

        run_virtual(main())
        assert len(caplog.records) == 4

    def test_a_handler_that_raises_is_logged_and_the_watch_goes_on(self, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            world = InProcess()
            store = world.cache.add(CONFIG_MAPS)

            def handler(old: Any, new: Any) -> None:
                raise RuntimeError("a bug in a handler")

            store.subscribe(handler)
            async with world.running():
                await make(world, "a")
                await make(world, "b")
                await asyncio.sleep(1)
                assert len(store) == 2

        run_virtual(main())
        errors = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 2
        assert "configmaps default/a" in errors[0].callback  # type: ignore[attr-defined]
        assert errors[0].exc_info


def test_a_restart_begins_with_the_servers_state() -> None:
    """What was in flight to the process before is of no interest to the new one."""

    async def main() -> None:
        world = InProcess()
        for name in "abc":
            await make(world, name)
        for _ in range(3):
            cache = cache_over(world.inner)
            store = cache.add(CONFIG_MAPS)
            async with running(cache):
                await cache.wait_synced(10)
                assert [obj.metadata.name for obj in store.list()] == ["a", "b", "c"]
            assert watches(world) == 0, "a watch was left open"

    run_virtual(main())


def test_the_same_seed_gives_the_same_pauses() -> None:
    async def main(seed: int) -> list[float]:
        transport = ScriptedTransport([TransportError("refused", sent=False)] * 30 + [refusal(500)] * 5)
        cache = cache_over(transport, seed=seed)
        cache.add(CONFIG_MAPS)
        async with running(cache):
            await asyncio.sleep(100)
        return transport.times

    assert run_virtual(main(1)) == run_virtual(main(1))
    assert run_virtual(main(1)) != run_virtual(main(2))


def test_a_list_that_works_clears_the_trouble() -> None:
    async def main() -> None:
        transport = ScriptedTransport([refusal(403, "Forbidden")] * 2 + [listing(thing("a", 3), version=7)])
        cache = cache_over(transport)
        cache.add(CONFIG_MAPS)
        async with running(cache):
            await cache.wait_synced(10)
            await asyncio.sleep(1)
            assert cache.status()[0].trouble == ""

    run_virtual(main())


def test_an_empty_server_is_listed_too() -> None:
    """A fresh core has a version before anything is written, so that its first, empty list can be taken."""

    async def main() -> bool:
        clock = VirtualClock(asyncio.get_running_loop())
        cache = Cache(Client(InProcessTransport(ApiCore(native_registry(), clock=clock)), clock=clock), clock=clock)
        cache.add(PODS)
        running = asyncio.create_task(cache.run())
        await cache.wait_synced(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return cache.store(PODS).synced

    assert run_virtual(main())
