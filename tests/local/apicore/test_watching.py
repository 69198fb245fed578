"""Watches: what they deliver, when they end, and that watchers share their bytes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kruise.local.apicore import MemoryStorage
from kruise.machinery.client.errors import InternalError, TransportError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from tests.local.harness import CONFIG_MAPS, PODS, Api, cm, pod


def outline(events: list[Any]) -> list[tuple[str, str, str]]:
    return [(kind, obj["metadata"].get("name", ""), obj["metadata"]["resourceVersion"]) for kind, obj in events]


async def test_replay_from_a_version() -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a"))
    await api.create(CONFIG_MAPS, cm("b"))
    await api.patch(CONFIG_MAPS, "a", {"data": {"a": "2"}})
    await api.delete(CONFIG_MAPS, "b")
    assert outline(await api.events_since(CONFIG_MAPS, "1")) == [
        ("ADDED", "b", "2"),
        ("MODIFIED", "a", "3"),
        ("DELETED", "b", "4"),
    ]
    assert await api.events_since(CONFIG_MAPS, "4") == []


@pytest.mark.parametrize("version", ["", "0"])
async def test_without_a_version_the_state_comes_first(version: str) -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("b"))
    await api.create(CONFIG_MAPS, cm("a"))
    await api.patch(CONFIG_MAPS, "b", {"data": {"a": "2"}})
    assert outline(await api.events_since(CONFIG_MAPS, version)) == [("ADDED", "a", "2"), ("ADDED", "b", "3")]


async def test_initial_events_end_with_a_marked_bookmark() -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a"))
    asked = (
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
    )
    events = await api.events_since(CONFIG_MAPS, "", *asked)
    assert outline(events) == [("ADDED", "a", "1"), ("BOOKMARK", "", "1")]
    assert events[1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert events[1][1]["kind"] == "ConfigMap"
    none = await api.events_since(CONFIG_MAPS, "", ("sendInitialEvents", "false"), asked[1])
    assert none == []


async def test_selectors_turn_changes_into_comings_and_goings() -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a", labels={"x": "1"}))
    await api.patch(CONFIG_MAPS, "a", {"data": {"a": "2"}})
    await api.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "2"}}})
    await api.patch(CONFIG_MAPS, "a", {"data": {"a": "3"}})
    await api.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "1"}}})
    await api.delete(CONFIG_MAPS, "a")
    events = await api.events_since(CONFIG_MAPS, "1", ("labelSelector", "x=1"))
    assert outline(events) == [
        ("MODIFIED", "a", "2"),
        ("DELETED", "a", "3"),
        ("ADDED", "a", "5"),
        ("DELETED", "a", "6"),
    ]
    assert events[1][1]["metadata"]["labels"] == {"x": "1"}, "the last state that the watcher may see"


async def test_namespace_and_field_filters() -> None:
    api = Api()
    await api.create(PODS, pod("a", node="n1"))
    await api.create(PODS, pod("b", node="n2"))
    await api.create(PODS, pod("c", node="n1"), namespace="elsewhere")
    await api.patch(PODS, "a", {"status": {"phase": "Running"}}, subresource="status")
    start = await api.list(PODS, ("limit", "1"), ("resourceVersion", "1"))
    assert start[0] == 200
    assert outline(await api.events_since(PODS, "1", ("fieldSelector", "spec.nodeName=n1"))) == [("MODIFIED", "a", "4")]
    async with api.watch(PODS, ("resourceVersion", "1"), ("timeoutSeconds", "0"), namespace="") as events:
        assert [obj["metadata"]["name"] async for _, obj in events] == ["b", "c", "a"]


async def test_one_object_can_be_watched_by_name() -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a"))
    await api.create(CONFIG_MAPS, cm("b"))
    request = Request(Verb.WATCH, CONFIG_MAPS, "default", "b", query=(("timeoutSeconds", "0"),))
    async with api.transport.stream(request) as lines:
        assert [json.loads(line)["object"]["metadata"]["name"] async for line in lines] == ["b"]


async def test_compacted_version_is_told_in_the_stream() -> None:
    """As on a real server: the watch opens, says 410 in an ERROR event, and ends."""
    api = Api()
    for number in range(3):
        await api.create(CONFIG_MAPS, cm(f"c{number}"))
    api.core.storage.compact(2)
    [(kind, status)] = await api.events_since(CONFIG_MAPS, "1")
    assert (kind, status["kind"], status["code"], status["reason"]) == ("ERROR", "Status", 410, "Expired")
    assert status["message"] == "too old resource version: 1 (2)"


async def test_refused_before_it_opens() -> None:
    api = Api()
    with pytest.raises(InternalError, match="resourceVersion: Invalid value"):
        await api.events_since(CONFIG_MAPS, "words")


def test_events_arrive_as_they_happen_and_timeout_ends_the_watch() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        api = Api(clock=VirtualClock(loop))
        seen: list[tuple[float, str]] = []

        async def reader() -> None:
            async with api.watch(CONFIG_MAPS, ("resourceVersion", "0"), ("timeoutSeconds", "90")) as events:
                async for kind, _ in events:
                    seen.append((loop.time(), kind))

        task = asyncio.create_task(reader())
        await asyncio.sleep(10)
        await api.create(CONFIG_MAPS, cm("a"))
        await asyncio.sleep(20)
        await api.delete(CONFIG_MAPS, "a")
        await task
        assert seen == [(10, "ADDED"), (30, "DELETED")]
        assert loop.time() == 90
        assert api.transport.open_watches == 0

    run_virtual(main())


def test_bookmarks_tell_how_far_everything_is() -> None:
    """A bookmark's version covers changes of other kinds, too: a quiet watcher stays young."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        api = Api(clock=VirtualClock(loop))
        asked = (("resourceVersion", "0"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "150"))
        async with api.watch(CONFIG_MAPS, *asked) as events:
            await api.create(PODS, pod("a"))
            seen = [(loop.time(), kind, obj["metadata"]["resourceVersion"]) async for kind, obj in events]
        assert seen == [(60, "BOOKMARK", "1"), (120, "BOOKMARK", "1")]
        without = (("resourceVersion", "0"), ("timeoutSeconds", "150"))
        async with api.watch(CONFIG_MAPS, *without) as events:
            assert [kind async for kind, _ in events] == []

    run_virtual(main())


async def test_a_slow_watcher_is_cut_in_order() -> None:
    """It just ends, and the next list and watch find everything."""
    api = Api(watch_max_lag=5)
    await api.create(CONFIG_MAPS, cm("first"))
    async with api.watch(CONFIG_MAPS, ("resourceVersion", "0")) as events:
        assert (await anext(events))[1]["metadata"]["name"] == "first"
        for number in range(6):
            await api.create(CONFIG_MAPS, cm(f"c{number}"))
        assert [event async for event in events] == []
    assert len((await api.list(CONFIG_MAPS))[1]["items"]) == 7


async def test_a_watcher_behind_the_log_is_told_410() -> None:
    api = Api(storage=MemoryStorage(history=3))
    async with api.watch(CONFIG_MAPS, ("resourceVersion", "0")) as events:
        for number in range(6):
            await api.create(CONFIG_MAPS, cm(f"c{number}"))
        [(kind, status)] = [event async for event in events]
        assert (kind, status["code"]) == ("ERROR", 410)


async def test_cut_watches_lose_what_was_not_read() -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a"))
    async with api.watch(CONFIG_MAPS, ("resourceVersion", "0")) as events:
        assert api.transport.cut_watches("cable pulled") == 1
        with pytest.raises(TransportError, match="cable pulled") as torn:
            await anext(events)
        assert torn.value.sent
        assert [event async for event in events] == []


async def test_cut_wakes_a_waiting_reader() -> None:
    api = Api()
    async with api.watch(CONFIG_MAPS, ("resourceVersion", "0")) as events:
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        api.transport.cut_watches()
        with pytest.raises(TransportError):
            await waiting


async def test_watchers_share_the_bytes_of_an_event() -> None:
    api = Api()
    request = Request(Verb.WATCH, CONFIG_MAPS, "default", query=(("resourceVersion", "0"),))
    selecting = Request(Verb.WATCH, CONFIG_MAPS, "", query=(("resourceVersion", "0"), ("labelSelector", "x in (1,2)")))
    async with api.transport.stream(request) as one, api.transport.stream(selecting) as other:
        await api.create(CONFIG_MAPS, cm("a", labels={"x": "1"}))
        assert await anext(aiter(one)) is await anext(aiter(other))


async def test_a_long_backlog_lets_others_run() -> None:
    api = Api()
    for number in range(300):
        await api.create(CONFIG_MAPS, cm(f"c{number}"))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async with api.watch(CONFIG_MAPS, ("resourceVersion", "1"), ("timeoutSeconds", "0")) as events:
        assert len([event async for event in events]) == 299
    task.cancel()
    assert turns >= 4


async def test_a_closed_watch_leaves_nothing_behind() -> None:
    api = Api()
    async with api.watch(CONFIG_MAPS, ("resourceVersion", "0")):
        assert api.transport.open_watches == 1
    assert api.transport.open_watches == 0
    storage = api.core.storage
    assert isinstance(storage, MemoryStorage)
    assert storage.subscriptions("configmaps") == 0
