"""The transport without sockets: bytes as over HTTP, faults for tests, and the same run each time."""

from __future__ import annotations

import asyncio
import hashlib
import random

import pytest

from kruise.api.native.pod import Pod
from kruise.local.apicore import AdmissionRequest
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ConflictError, NotFoundError, RequestTimeoutError, TransportError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from tests.local.harness import CONFIG_MAPS, PODS, Api, cm, pod


async def test_the_client_runs_on_it_unchanged() -> None:
    api = Api()
    client = Client(api.transport)
    made = await client.create(PODS, pod("a"), "default")
    assert isinstance(made, Pod)
    with pytest.raises(ConflictError):
        await client.delete(PODS, "a", "default", uid="other")
    await client.delete(PODS, "a", "default", uid=made.metadata.uid, grace_period_seconds=0)
    with pytest.raises(NotFoundError) as missing:
        await client.get(PODS, "a", "default")
    assert missing.value.reason == "NotFound"
    version = await client.server_version()
    assert (version.major, version.minor) == (1, 34)
    await client.close()


async def test_watching_through_the_client() -> None:
    api = Api()
    client = Client(api.transport)
    page = await client.list(PODS, "default")
    await client.create(PODS, pod("a"), "default")
    async with client.watch(PODS, "default", resource_version=page.resource_version) as events:
        event = await anext(aiter(events))
    assert (event.type, event.object.metadata.name) == ("ADDED", "a")
    assert api.transport.open_watches == 0


async def test_a_server_that_is_down_and_comes_back() -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a"))
    async with api.watch(CONFIG_MAPS, ("resourceVersion", "1")) as events:
        api.transport.take_down()
        with pytest.raises(TransportError, match="connection refused"):
            await anext(events)
    with pytest.raises(TransportError) as refused:
        await api.get(CONFIG_MAPS, "a")
    assert not refused.value.sent, "trying again is safe"
    with pytest.raises(TransportError):
        await api.events_since(CONFIG_MAPS, "0")
    api.transport.bring_up()
    assert (await api.get(CONFIG_MAPS, "a"))[0] == 200


async def test_watches_that_the_server_ends_in_order() -> None:
    api = Api()
    async with api.watch(CONFIG_MAPS, ("resourceVersion", "0")) as events:
        api.transport.end_watches()
        assert [event async for event in events] == []


def test_an_answer_that_takes_too_long() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        api = Api(clock=VirtualClock(loop))

        async def slow(request: AdmissionRequest) -> None:
            await asyncio.sleep(30)

        api.core.admission.validating.append(slow)
        request = Request(Verb.CREATE, CONFIG_MAPS, "default", body=b'{"metadata":{"name":"a"}}', timeout=10)
        with pytest.raises(RequestTimeoutError, match="no answer within 10 s") as late:
            await api.transport.send(request)
        assert late.value.sent, "the outcome is unknown"
        assert loop.time() == 10

    run_virtual(main())


async def test_health_and_version_are_served() -> None:
    api = Api()
    for path in ("/healthz", "/livez", "/readyz"):
        answer = await api.transport.send(Request(Verb.GET, None, raw_path=path))
        assert (answer.status, answer.body) == (200, b"ok")
    assert (await api.transport.send(Request(Verb.GET, None, raw_path="/nowhere"))).status == 404


def test_same_seed_same_bytes() -> None:
    """Writers, watchers and bookmarks on virtual time: the log of two runs is the same to the byte."""

    def run(seed: int) -> str:
        async def main() -> str:
            api = Api(clock=VirtualClock(asyncio.get_running_loop()), seed=seed)
            digest = hashlib.sha256()

            async def reader(*query: tuple[str, str]) -> None:
                request = Request(Verb.WATCH, PODS, query=(("timeoutSeconds", "300"), *query))
                async with api.transport.stream(request) as lines:
                    async for line in lines:
                        digest.update(line)

            async def writer(number: int) -> None:
                rng = random.Random(number)
                for turn in range(20):
                    await asyncio.sleep(rng.random() * 10)
                    await api.create(PODS, {**pod("x"), "metadata": {"generateName": f"p{number}-"}})
                    if turn % 3 == 0:
                        _, listed = await api.list(PODS)
                        name = rng.choice(listed["items"])["metadata"]["name"]
                        await api.delete(PODS, name, {"gracePeriodSeconds": rng.choice([0, 5])})

            async with asyncio.TaskGroup() as group:
                group.create_task(reader(("allowWatchBookmarks", "true")))
                group.create_task(reader(("fieldSelector", "spec.nodeName=n1")))
                for number in range(4):
                    group.create_task(writer(number))
            return digest.hexdigest()

        return run_virtual(main())

    assert run(3) == run(3)
    assert run(3) != run(4)
