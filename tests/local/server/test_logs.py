"""Logs of pods: which container, which options, read and followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.local.apicore import errors
from kruise.local.apicore.errors import StatusError
from kruise.local.server.logs import LogOptions, chosen_container
from kruise.machinery.clock import VIRTUAL_EPOCH, ManualClock
from tests.local.server.harness import PODS, pod, serving


class Scribe:
    """A source that writes down what it is asked, and says a few lines."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.more: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def read(self, *where: str, **options: Any) -> bytes:
        self.asked.append((*where, options))
        if options["previous"]:
            raise errors.bad_request('previous terminated container "main" in pod "p" not found')
        return b"one\ntwo\n"

    async def follow(self, *where: str, **options: Any) -> AsyncIterator[bytes]:
        self.asked.append((*where, options))
        yield b"one\n"
        while True:
            piece = await self.more.get()
            if piece is None:
                return
            yield piece


async def test_a_log_is_read() -> None:
    scribe = Scribe()
    async with serving(logs=scribe, clock=ManualClock()) as api:
        await api.post(PODS, pod("p"))
        query = "tailLines=5&limitBytes=100&sinceSeconds=60&timestamps=true"
        answer = await api.get(f"{PODS}/p/log?{query}")
        assert (answer.code, answer.headers["Content-Type"], answer.raw) == (200, "text/plain", b"one\ntwo\n")
    namespace, name, container, options = scribe.asked[0]
    assert (namespace, name, container) == ("default", "p", "main")
    assert (options["tail"], options["limit"], options["timestamps"]) == (5, 100, True)
    assert (VIRTUAL_EPOCH - options["since"]).total_seconds() == 60


async def test_a_log_is_followed_until_the_container_ends() -> None:
    scribe = Scribe()
    async with serving(logs=scribe) as api:
        await api.post(PODS, pod("p"))
        async with api.stream(f"{PODS}/p/log?follow=true") as log:
            assert await log.content.readline() == b"one\n"
            scribe.more.put_nowait(b"two\n")
            assert await log.content.readline() == b"two\n"
            scribe.more.put_nowait(None)
            assert await log.content.read() == b""


async def test_stopping_ends_followed_logs() -> None:
    async with serving(logs=Scribe()) as api:
        await api.post(PODS, pod("p"))
        async with api.stream(f"{PODS}/p/log?follow=true") as log:
            assert await log.content.readline() == b"one\n"
            async with asyncio.timeout(1.5):
                await api.server.stop()


async def test_what_the_source_refuses() -> None:
    async with serving(logs=Scribe()) as api:
        await api.post(PODS, pod("p"))
        refused = await api.get(f"{PODS}/p/log?previous=true")
        assert (refused.code, refused.json["reason"]) == (400, "BadRequest")
        assert (await api.get(f"{PODS}/missing/log")).code == 404
        assert (await api.send("PUT", f"{PODS}/p/log", {})).code == 405


async def test_a_pod_without_node_has_no_log() -> None:
    async with serving(logs=Scribe()) as api:
        await api.post(PODS, pod("p", node=""))
        answer = await api.get(f"{PODS}/p/log")
        assert (answer.code, answer.raw) == (204, b"")


def test_which_container() -> None:
    two = {**pod("p", containers=("a", "b"), initContainers=[{"name": "i"}])}
    assert chosen_container(pod("p"), "") == "main"
    assert chosen_container(two, "i") == "i"
    for asked, text in (
        ("", "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"),
        ("x", "container x is not valid for pod p"),
    ):
        with pytest.raises(StatusError) as refused:
            chosen_container(two, asked)
        assert refused.value.message == text


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ((("tailLines", "x"),), 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ((("tailLines", "-1"),), 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ((("limitBytes", "0"),), 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ((("sinceSeconds", "0"),), 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ((("sinceSeconds", "1"), ("sinceTime", "2020-01-01T00:00:00Z")), 422, "at most one of"),
        ((("sinceTime", "yesterday"),), 400, "yesterday"),
    ],
)
def test_options_that_are_refused(query: Any, code: int, text: str) -> None:
    with pytest.raises(StatusError) as refused:
        LogOptions.from_query(query, "p")
    assert (refused.value.code, text in refused.value.message) == (code, True)


def test_since_a_time() -> None:
    options = LogOptions.from_query((("sinceTime", "2020-01-01T00:00:00Z"),), "p")
    assert options.since(VIRTUAL_EPOCH) == datetime(2020, 1, 1, tzinfo=UTC)
