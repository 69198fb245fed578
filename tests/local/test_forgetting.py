"""A cluster that runs for days keeps what is there, and of what was there as much as a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kruise.api.native.events import EVENTS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.local.apicore.errors import StatusError
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.codec import decode

NODE = {"apiVersion": "v1", "kind": "Node", "name": "gone"}


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
            claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
            claim["spec"] |= {"resources": {"requests": {"storage": "1Gi"}}}
            await client.create(PERSISTENT_VOLUME_CLAIMS, claim, "default")
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
        with pytest.raises((ClientError, StatusError), match="too old"):
            await client.send(request)

    in_a_cluster(story)
