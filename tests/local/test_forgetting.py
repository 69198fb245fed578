"""A cluster that runs for days keeps what is there, and of what was there as much as a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import GoneError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.codec import decode

NODE = {"apiVersion": "v1", "kind": "Node", "name": "gone"}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def in_a_cluster(story: Callable[[LocalCluster, Client], Awaitable[None]]) -> None:
    async def main() -> None:
        cluster = LocalCluster(ClusterOptions(nodes=1, seed=1), clock=VirtualClock(asyncio.get_running_loop()))
        running = asyncio.create_task(cluster.run())
        await cluster.ready.wait()
        await story(cluster, cluster.client("test"))
        running.cancel()
        await asyncio.wait({running})

    run_virtual(main())


def event(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "involvedObject": NODE, "reason": "Seen", "message": "m", "type": "Normal"}


def test_an_event_ends_an_hour_after_it_was_last_written() -> None:
    async def names(client: Client) -> set[str]:
        found = (await client.list(EVENTS, "default")).items
        return {item.metadata.name for item in found if item.involved_object.name == "gone"}

    async def story(cluster: LocalCluster, client: Client) -> None:
        for name in ("once", "again"):
            await client.create(EVENTS, event(name), "default")
        await asyncio.sleep(3000)
        await client.patch(EVENTS, "again", {"count": 2}, "default")
        await asyncio.sleep(500)
        assert await names(client) == {"once", "again"}
        await asyncio.sleep(700)
        assert await names(client) == {"again"}
        await asyncio.sleep(3600)
        assert await names(client) == set()

    in_a_cluster(story)


def test_a_watch_in_which_nothing_happens_goes_on() -> None:
    """However much others change meanwhile, and without bookmarks."""

    async def story(cluster: LocalCluster, client: Client) -> None:
        query = (("watch", "true"), ("resourceVersion", str(cluster.core.storage.version)))
        request = Request(Verb.WATCH, PERSISTENT_VOLUME_CLAIMS, "default", query=query)
        async with client.transport.stream(request) as lines:
            for number in range(20):
                await client.create(EVENTS, event(f"e{number}"), "default")
                await asyncio.sleep(200)
            await client.create(PERSISTENT_VOLUME_CLAIMS, CLAIM, "default")
            assert decode(await anext(aiter(lines)), dict)["type"] == "ADDED"

    in_a_cluster(story)


def test_a_version_of_long_ago_is_too_old() -> None:
    async def story(cluster: LocalCluster, client: Client) -> None:
        begun = cluster.core.storage.version
        await client.create(EVENTS, event("one"), "default")
        query = (("resourceVersion", str(begun)), ("resourceVersionMatch", "Exact"))
        request = Request(Verb.LIST, EVENTS, "default", query=query)
        assert (await client.send(request)).status == 200
        await asyncio.sleep(700)
        with pytest.raises(GoneError, match="too old") as refused:
            await client.send(request)
        assert refused.value.code == 410

    in_a_cluster(story)


def test_the_next_page_is_of_its_moment_or_too_old() -> None:
    """Where something has changed meanwhile; then there is a token that goes on with what is there."""

    async def story(cluster: LocalCluster, client: Client) -> None:
        async def page(*query: tuple[str, str]) -> tuple[int, dict[str, Any], list[str]]:
            answer = await client.transport.send(Request(Verb.LIST, CONFIG_MAPS, "pages", query=query))
            found = decode(answer.body, dict)
            return answer.status, found["metadata"], [item["metadata"]["name"] for item in found.get("items", ())]

        await client.create(NAMESPACES, {"metadata": {"name": "pages"}})
        for name in ("a", "b", "c"):
            await client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "pages")
        status, metadata, names = await page(("limit", "1"))
        assert (status, names) == (200, ["a"])
        going_on = ("continue", metadata["continue"])
        await asyncio.sleep(700)
        assert (await page(going_on))[::2] == (200, ["b", "c"]), "nothing has changed"
        await client.delete(CONFIG_MAPS, "b", "pages")
        assert (await page(going_on))[::2] == (200, ["b", "c"])
        await asyncio.sleep(700)
        status, metadata, _ = await page(going_on)
        assert status == 410
        assert (await page(("continue", metadata["continue"])))[::2] == (200, ["c"])

    in_a_cluster(story)


def test_a_watcher_that_is_behind_is_told_to_begin_anew() -> None:
    async def story(cluster: LocalCluster, client: Client) -> None:
        query = (("watch", "true"), ("resourceVersion", str(cluster.core.storage.version)))
        request = Request(Verb.WATCH, PERSISTENT_VOLUME_CLAIMS, "default", query=query)
        async with client.transport.stream(request) as lines:
            await client.create(PERSISTENT_VOLUME_CLAIMS, CLAIM, "default")
            await asyncio.sleep(700)
            told = [decode(line, dict) async for line in lines]
            assert [(one["type"], one["object"]["code"]) for one in told] == [("ERROR", 410)]

    in_a_cluster(story)
