"""The watch against scripted answers and against the API core in process, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from random import Random
from typing import Any

import pytest

from kruise.api.native.config import CONFIG_MAPS, ConfigMap
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import TransportError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.store import Store
from kruise.machinery.watch import Watcher
from kruise.machinery.watch_states import Cause, Task
from tests.support.background import in_background
from tests.support.faults import (
    Answer,
    Cut,
    CutWatch,
    ExpireWatch,
    RepeatEvents,
    Rule,
    StaleList,
    storm,
)
from tests.support.inprocess import InProcess
from tests.support.scripted import Line, ScriptedTransport, event, listing, refusal, status, thing


class Observer:
    def __init__(self) -> None:
        self.ended: list[tuple[str, str]] = []

    def task_ended(self, resource: Any, task: Task, cause: Cause, seconds: float) -> None:
        assert seconds >= 0
        self.ended.append((str(task), str(cause)))


class Watched:
    """A store that is fed from a transport."""

    def __init__(self, transport: Any, *, page_size: int = 500, seed: int = 1) -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        self.transport = transport
        self.observer = Observer()
        self.store: Store[ConfigMap] = Store(CONFIG_MAPS)
        self.calls: list[tuple[str, str]] = []
        self.store.subscribe(self._handle)
        self.watcher = Watcher(
            Client(transport, clock=clock),
            self.store,
            clock=clock,
            random=Random(seed),
            page_size=page_size,
            observer=self.observer,
        )

    def _handle(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        self.calls.append(tuple(obj.metadata.resource_version if obj else "" for obj in (old, new)))  # type: ignore[arg-type]

    @property
    def names(self) -> str:
        return " ".join(f"{obj.metadata.name}{obj.metadata.resource_version}" for obj in self.store.list())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        async with in_background(self.watcher.run()):
            yield


def follow(
    lists: list[Any], watches: list[list[Line]], *, seconds: float = 60, page_size: int = 500
) -> tuple[Watched, ScriptedTransport]:
    """Run a watch over a script for some seconds."""

    async def main() -> tuple[Watched, ScriptedTransport]:
        transport = ScriptedTransport(lists, watches)
        watched = Watched(transport, page_size=page_size)
        async with watched.running():
            await asyncio.sleep(seconds)
        return watched, transport

    return run_virtual(main())


def watch_versions(transport: ScriptedTransport) -> list[str]:
    return [request.parameter("resourceVersion") for request in transport.of(Verb.WATCH)]


GONE = {"type": "ERROR", "object": status(410, "Expired")}


def test_lists_all_pages_then_watches_from_the_lists_version() -> None:
    watched, transport = follow(
        [listing(thing("a", 3), version=7, token="more"), listing(thing("b", 4), version=7)],
        [[event("ADDED", "c", 8), event("DELETED", "a", 9)]],
        page_size=1,
    )
    assert watched.names == "b4 c8"
    assert watched.calls == [("", "3"), ("", "4"), ("", "8"), ("3", "")]
    first, second = transport.of(Verb.LIST)
    assert (first.parameter("limit"), second.parameter("continue")) == ("1", "more")
    assert watch_versions(transport)[0] == "7"


def test_no_request_ever_asks_for_any_version() -> None:
    """`resourceVersion=0` may be answered from a cache of any age."""
    _, transport = follow(
        [listing(version=7), listing(version=8)], [[GONE], [TransportError("reset", sent=True)], [float(1)]]
    )
    assert len(transport.requests) > 4
    for request in transport.requests:
        assert request.parameter("resourceVersion") != "0"
        assert request.verb is Verb.WATCH or not request.parameter("resourceVersion")
        assert request.verb is Verb.LIST or request.parameter("allowWatchBookmarks") == "true"


def test_a_watch_that_ends_in_order_goes_on_from_the_last_version() -> None:
    watched, transport = follow(
        [listing(version=7)], [[event("ADDED", "a", 8)], [10.0], [event("MODIFIED", "a", 11), 100.0]]
    )
    assert watched.names == "a11"
    assert watch_versions(transport) == ["7", "8", "8"]
    assert len(transport.of(Verb.LIST)) == 1


def test_a_torn_watch_goes_on_from_the_last_version_after_a_pause() -> None:
    watched, transport = follow(
        [listing(version=7)],
        [[event("ADDED", "a", 8), TransportError("reset", sent=True)], [event("ADDED", "b", 9), 100.0]],
    )
    assert watched.names == "a8 b9"
    assert watch_versions(transport) == ["7", "8"]
    assert 0.1 <= transport.times[-1] - transport.times[-2] <= 0.3


def test_bookmarks_move_the_version_from_which_a_watch_goes_on() -> None:
    bookmark = {"type": "BOOKMARK", "object": {"kind": "ConfigMap", "metadata": {"resourceVersion": "500"}}}
    watched, transport = follow([listing(thing("a", 3), version=7)], [[bookmark, 10.0], [100.0]])
    assert watched.store.watermark == 500
    assert watch_versions(transport) == ["7", "500"]
    assert watched.calls == [("", "3")]


def test_expired_versions_lead_to_a_list_at_once_and_an_atomic_swap() -> None:
    watched, transport = follow(
        [listing(thing("a", 3), thing("b", 4), version=7), listing(thing("b", 4), thing("c", 20), version=21)],
        [[10.0, GONE]],
    )
    assert watched.names == "b4 c20"
    assert sorted(watched.calls[2:]) == [("", "20"), ("3", "")]
    assert transport.times[2] == transport.times[1] + 10
    assert ("watch", "expired") in watched.observer.ended
    assert watched.observer.ended.count(("list", "listed")) == 2


def test_410_when_a_watch_is_opened_is_the_same() -> None:
    async def main() -> None:
        world = InProcess([Rule(ExpireWatch(after=0), times=1)])
        watched = Watched(world.faults)
        async with watched.running():
            await world.direct.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
            await asyncio.sleep(5)
            assert watched.store.get("default", "a") is not None
        assert ("watch", "expired") in watched.observer.ended

    run_virtual(main())


def test_a_server_that_expires_every_watch_is_not_listed_without_a_pause() -> None:
    lists = [listing(version=number) for number in range(10, 200)]
    _, transport = follow(lists, [[GONE] for _ in range(190)], seconds=60)
    assert len(transport.of(Verb.LIST)) < 14


def test_pages_that_expire_are_begun_again_and_in_the_end_asked_for_at_once() -> None:
    page = listing(thing("a", 3), version=7, token="more")
    watched, transport = follow(
        [
            page,
            refusal(410, "Expired"),
            page,
            refusal(410, "Expired"),
            listing(thing("a", 3), thing("b", 4), version=9),
        ],
        [],
        page_size=1,
    )
    assert watched.names == "a3 b4"
    assert [request.parameter("limit") for request in transport.of(Verb.LIST)] == ["1", "1", "1", "1", ""]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (event("ADDED", "x", 9, kind="Secret"), "Secret ns/x: a ConfigMap was expected"),
        (b'{"type":"MODIFIED","object":{"kind":"ConfigMap","metadata":{"name":5}}}', "cannot be read"),
        (b"<html>bad gateway</html>", "is no event"),
        (event("ADDED", "x", 9) | {"type": "SURPRISE"}, "SURPRISE"),
        (
            {"type": "ADDED", "object": thing("x", 9) | {"metadata": {"name": "x", "resourceVersion": "new"}}},
            "no number",
        ),
    ],
    ids=["another kind", "malformed", "html", "unknown type", "version"],
)
def test_an_event_that_cannot_be_read_is_logged_and_nothing_is_lost(
    line: Line, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    watched, _ = follow(
        [listing(thing("a", 3), version=7), listing(thing("a", 3), thing("b", 8), thing("x", 9), version=10)],
        [[event("ADDED", "b", 8), line], [100.0]],
    )
    assert watched.names == "a3 b8 x9"
    assert any(said in str(getattr(record, "error", "")) for record in caplog.records)
    assert ("watch", "unreadable") in watched.observer.ended


def test_repeated_events_are_harmless() -> None:
    watched, transport = follow(
        [listing(version=7)],
        [[event("ADDED", "a", 8), event("ADDED", "a", 8), event("MODIFIED", "a", 9), event("ADDED", "a", 8), 100.0]],
    )
    assert watched.calls == [("", "8"), ("8", "9")]
    assert len(transport.of(Verb.LIST)) == 1


def test_events_out_of_order_lead_to_a_list_if_they_cannot_be_placed() -> None:
    watched, transport = follow(
        [listing(version=7), listing(thing("a", 9), thing("b", 8), version=9)],
        [[event("ADDED", "a", 9), event("ADDED", "b", 8), 100.0], [100.0]],
    )
    assert watched.names == "a9 b8"
    assert len(transport.of(Verb.LIST)) == 2
    assert ("watch", "disorder") in watched.observer.ended


def test_a_kind_that_is_not_installed_is_waited_for() -> None:
    """MGR-22"""

    async def main() -> None:
        transport = ScriptedTransport([refusal(404, "NotFound")] * 5 + [listing(thing("a", 3), version=7)])
        watched = Watched(transport)
        async with watched.running():
            await asyncio.sleep(1)
            assert watched.watcher.waiting_for == "configmaps is not installed in this cluster (404 NotFound)"
            await asyncio.sleep(60)
            assert watched.watcher.waiting_for == ""
            assert watched.names == "a3"

    run_virtual(main())


def test_stale_lists_are_refused_and_in_the_end_said_to_be_final(caplog: pytest.LogCaptureFixture) -> None:
    """A server restored from a backup: what was delivered stays, and the process says that it must be restarted."""
    watched, transport = follow(
        [listing(thing("a", 3), version=700), *[listing(thing("b", 4), version=7)] * 50],
        [[10.0, {"type": "ERROR", "object": status(410, "Expired")}]],
        seconds=600,
    )
    assert watched.names == "a3"
    assert watched.watcher.state.history_lost
    assert "restart this process" in watched.watcher.waiting_for
    assert len(transport.of(Verb.LIST)) < 40
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "must be restarted" in errors[0].message


def test_one_stale_list_is_retried() -> None:
    watched, _ = follow(
        [listing(thing("a", 3), version=700), listing(version=650), listing(thing("b", 710), version=710)],
        [[10.0, GONE]],
    )
    assert watched.names == "b710"
    assert watched.watcher.waiting_for == ""
    assert ("list", "stale") in watched.observer.ended


def test_a_version_that_the_server_does_not_know_leads_to_a_list() -> None:
    """It was restored: watching from there would wait for ever."""
    ahead = status(504, "Timeout") | {"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}
    watched, _ = follow(
        [listing(version=700), listing(thing("a", 705), version=705)], [[{"type": "ERROR", "object": ahead}]]
    )
    assert watched.names == "a705"


@pytest.mark.parametrize("version", ["0", "", "later"])
def test_a_list_without_a_usable_version_is_not_taken(version: str) -> None:
    watched, transport = follow([listing(version=version), listing(thing("a", 3), version=7)], [])
    assert watched.names == "a3"
    assert watch_versions(transport) == ["7"]
    assert ("list", "unreadable") in watched.observer.ended


def test_a_dead_connection_is_noticed_by_the_end_that_never_came() -> None:
    watched, transport = follow([listing(version=7)], [[1e6], [event("ADDED", "a", 8), 1e6]], seconds=700)
    assert watched.names == "a8"
    asked = int(transport.of(Verb.WATCH)[0].parameter("timeoutSeconds"))
    assert 300 <= asked <= 600
    assert ("watch", "torn") in watched.observer.ended


def test_a_server_that_never_accepts_a_watch_is_given_up() -> None:
    class Deaf(ScriptedTransport):
        @contextlib.asynccontextmanager
        async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
            self._note(request)
            await asyncio.sleep(1e6)
            yield self._lines([])

    async def main() -> None:
        transport = Deaf([listing(version=7), listing(thing("a", 8), version=8)])
        watched = Watched(transport)
        async with watched.running():
            await asyncio.sleep(40)
            assert len(transport.of(Verb.WATCH)) == 2
            assert watched.observer.ended[-1] == ("watch", "torn")
            await watched.watcher.relist()
            assert watched.names == "a8"

    run_virtual(main())


def test_a_fault_of_ours_is_logged_with_its_trace_and_survived(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Store.event
    fail = iter([True, False, False])

    def event_once(self: Store[Any], type: str, obj: Any) -> bool:
        if next(fail):
            raise RuntimeError("a bug")
        return real(self, type, obj)

    monkeypatch.setattr(Store, "event", event_once)
    watched, _ = follow(
        [listing(version=7), listing(thing("a", 8), version=9)],
        [[event("ADDED", "a", 8)], [event("ADDED", "b", 10), 99.0]],
    )
    assert watched.names == "a8 b10"
    assert any(record.exc_info and "fault of ours" in record.message for record in caplog.records)


def test_a_long_trouble_is_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    _, transport = follow([TransportError("connection refused", sent=False)] * 1000, [], seconds=3600)
    assert len(transport.of(Verb.LIST)) > 100
    assert 5 < len(caplog.records) < 12


def test_a_kind_that_never_comes_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    _, transport = follow([refusal(404, "NotFound")] * 1000, [], seconds=3600)
    assert len(transport.of(Verb.LIST)) > 100
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO", "kind is not installed: waiting for it")
    ]


def test_a_long_burst_lets_others_run() -> None:
    async def main() -> int:
        burst: list[Line] = [event("ADDED", f"n{number}", 8 + number) for number in range(2000)]
        transport = ScriptedTransport([listing(version=7)], [[*burst, 1e6]])
        watched = Watched(transport)
        turns = 0
        async with watched.running():
            while len(watched.store) < 2000:
                await asyncio.sleep(0)
                turns += 1
        return turns

    assert run_virtual(main()) > 5


async def settle(check: Callable[[], bool], seconds: float = 600) -> None:
    for _ in range(int(seconds)):
        if check():
            return
        await asyncio.sleep(1)
    assert check()


def versions(store: Store[ConfigMap]) -> dict[str, str]:
    return {obj.metadata.name: obj.metadata.resource_version for obj in store.list()}


class TestRelist:
    def test_begins_after_it_is_asked_for(self) -> None:
        async def main() -> None:
            world = InProcess()
            watched = Watched(world.inner)
            async with watched.running():
                await watched.watcher.synced.wait()
                await asyncio.sleep(1)
                await watched.watcher.relist()
                assert watched.observer.ended.count(("list", "listed")) == 2
                await world.direct.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
                await asyncio.gather(watched.watcher.relist(), watched.watcher.relist())
                assert watched.store.get("default", "a") is not None
                assert watched.observer.ended.count(("list", "listed")) == 3

        run_virtual(main())

    def test_a_list_under_way_is_not_enough(self) -> None:
        async def main() -> None:
            transport = ScriptedTransport(
                [listing(thing("a", 3), version=7, token="more"), listing(version=7), listing(thing("b", 8), version=8)]
            )
            watched = Watched(transport)
            async with watched.running():
                await asyncio.sleep(0)  # the first page is asked for
                assert len(transport.requests) == 1
                await watched.watcher.relist()
                assert watched.names == "b8"

        run_virtual(main())

    def test_goes_on_through_failures_and_does_not_wait_for_their_pause(self) -> None:
        async def main() -> None:
            reset = TransportError("reset", sent=True)
            transport = ScriptedTransport([listing(version=7), listing(version=8), listing(version=9)], [[reset]] * 9)
            watched = Watched(transport)
            async with watched.running():
                await asyncio.sleep(15)
                assert watched.watcher.state.delay > 3
                begun = asyncio.get_running_loop().time()
                await watched.watcher.relist()
                assert asyncio.get_running_loop().time() - begun < 0.1
                transport.lists.appendleft(refusal(500))
                transport.lists.appendleft(refusal(500))
                await watched.watcher.relist()
                assert watched.store.watermark == 9

        run_virtual(main())

    def test_of_a_kind_that_is_not_installed_does_not_wait(self) -> None:
        async def main() -> None:
            watched = Watched(ScriptedTransport([refusal(404, "NotFound")] * 100))
            async with watched.running():
                await asyncio.sleep(1)
                async with asyncio.timeout(20):
                    await watched.watcher.relist()
                assert not watched.store.synced

        run_virtual(main())


FAULTS = {
    "cut between lines": [Rule(CutWatch(after=2, how=Cut.TORN), probability=0.7)],
    "cut in a line": [Rule(CutWatch(after=1, how=Cut.MID_LINE), probability=0.7)],
    "ended": [Rule(CutWatch(after=1, how=Cut.ENDED), probability=0.7)],
    "expired": [Rule(ExpireWatch(after=1), probability=0.5)],
    "repeated": [Rule(RepeatEvents(0.5))],
    "stale lists": [Rule(StaleList(), probability=0.5), Rule(ExpireWatch(after=2), probability=0.5)],
    "errors": [Rule(Answer(500), probability=0.4), Rule(Answer(429, retry_after=1), probability=0.2)],
    "html": [Rule(Answer(502, body=b"<html>"), verbs={Verb.LIST, Verb.WATCH}, probability=0.5)],
    "storm": list(storm(0.1)),
}


@pytest.mark.parametrize("seed", range(6 * int(os.environ.get("KRUISE_EXAMPLES", "1"))))
@pytest.mark.parametrize("faults", FAULTS)
def test_under_random_faults_the_store_ends_with_the_servers_state(faults: str, seed: int) -> None:
    async def main() -> None:
        world = InProcess(FAULTS[faults], seed=seed)
        watched = Watched(world.faults, page_size=4, seed=seed)
        random = Random(seed)
        names = [f"n{number}" for number in range(8)]
        mirror: dict[str, str] = {}

        def handle(old: ConfigMap | None, new: ConfigMap | None) -> None:
            if old is not None:
                assert mirror.pop(old.metadata.name) == old.metadata.resource_version
            if new is not None:
                mirror[new.metadata.name] = new.metadata.resource_version

        watched.store.subscribe(handle)
        async with watched.running():
            await settle(lambda: watched.store.synced)
            alive: set[str] = set()
            for _ in range(200):
                name = random.choice(names)
                if random.random() < 0.1:
                    random.choice([world.inner.cut_watches, world.inner.end_watches])()
                if name not in alive:
                    made = await world.direct.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")
                    alive.add(name)
                    answers = random.random() < 0.5
                elif random.random() < 0.4:
                    gone = await world.direct.delete(CONFIG_MAPS, name, "default")
                    alive.discard(name)
                    if random.random() < 0.5:
                        watched.store.delete_answered(gone.uid, gone.object)
                    continue
                else:
                    body = {"data": {"n": str(random.random())}}
                    made = await world.direct.patch(CONFIG_MAPS, name, body, "default")
                    answers = random.random() < 0.5
                if answers:
                    watched.store.written(made)
                    seen = watched.store.get("default", name)
                    assert seen is not None
                    assert int(seen.metadata.resource_version) >= int(made.metadata.resource_version)
                if random.random() < 0.3:
                    await asyncio.sleep(random.random() * 3)
            served = await world.direct.list(CONFIG_MAPS, "default")
            truth = {obj.metadata.name: obj.metadata.resource_version for obj in served.items}
            await settle(lambda: truth == versions(watched.store), 1500)
            assert mirror == truth
        assert world.faults.log, "no fault took place"
        assert not any(cause == Cause.FAULT for _, cause in watched.observer.ended)

    run_virtual(main())
