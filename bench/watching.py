"""The event path of a manager in a process of its own: `python -m bench.watching URL CA PODS EVENTS ROUNDS`.

Says as JSON: the memory once all pods are listed and updated, and for rounds in turns the seconds for the same number
of events through the event path and through bare `readline` and decode. After each round of ours comes a full garbage
collection: pods that were decoded since the last one are what it has to look at.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from bench import processes
from bench.memory import memory
from bench.recorded import FIRST_VERSION
from kruise.api.meta import PartialObject
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.machinery.cache import Cache
from kruise.machinery.client.answers import WatchEvent
from kruise.machinery.client.client import Client
from kruise.machinery.client.config import ClusterConfig, Pem
from kruise.machinery.client.http import READ_BUFFER, HttpTransport
from kruise.machinery.clock import RealClock
from kruise.machinery.codec import decode
from kruise.machinery.queue import Queue
from kruise.machinery.spec import OWNER_INDEX, owner_keys
from kruise.machinery.watched import Watched

OWNERS = Resource("apps.kruise.io", "v1alpha1", "clonesets", "CloneSet", True, PartialObject)
LINE_LIMIT = 1 << 22


def by_node(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,)


class Manager:
    """What stands between the API server and the reconciles of a manager: one kind, two indexes, one queue."""

    def __init__(self, url: str, ca: str) -> None:
        clock = RealClock()
        self.client = Client(HttpTransport(ClusterConfig(server=url, ca=Pem(path=ca))))
        self.cache = Cache(self.client, clock=clock)
        self.store = self.cache.add(Watched(PODS, indexes={**OWNER_INDEX, "node": by_node}))
        self.queue = Queue("bench", clock=clock)
        self._keys = owner_keys(OWNERS)
        self._left = 0
        self._first = 0.0
        self._last = asyncio.Event()
        self.passes = 0
        self.store.subscribe(self._changed)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        for key in self._keys(old, new, self.cache):
            self.queue.add(key)
        if old is not None:
            if not self._first:
                self._first = time.perf_counter()
            self._left -= 1
            if not self._left:
                self._last.set()

    async def work(self) -> None:
        """A worker whose passes take no time."""
        while True:
            self.queue.done(await self.queue.get())
            self.passes += 1

    @contextlib.asynccontextmanager
    async def watching(self, events: int) -> AsyncIterator[None]:
        """Goes on from the version that the store has; the body begins when so many updates have come."""
        self._left, self._first = events, 0.0
        self._last.clear()
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(self.cache.run()), asyncio.create_task(self.work())]
        tasks.append(asyncio.create_task(self._last.wait()))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def round(self, events: int) -> tuple[float, float]:
        """Wall and CPU seconds from the first update to the last."""
        cpu = time.process_time()
        async with self.watching(events):
            return time.perf_counter() - self._first, time.process_time() - cpu


async def bare_round(session: aiohttp.ClientSession, url: str, events: int) -> tuple[float, float]:
    """The least: lines off the same stream, decoded into the same struct, dropped."""
    cpu = time.process_time()
    first = 0.0
    address = f"{url}{PODS.path()}?watch=true&resourceVersion={FIRST_VERSION}"
    async with session.get(address, read_bufsize=READ_BUFFER, headers={"Accept-Encoding": "identity"}) as response:
        readline = response.content.readline
        for _ in range(events):
            decode(await readline(max_line_length=LINE_LIMIT), WatchEvent[Pod])
            first = first or time.perf_counter()
        return time.perf_counter() - first, time.process_time() - cpu


def full_collection() -> tuple[float, float]:
    """How long it holds up everything else, and the CPU seconds that it takes."""
    began, cpu = time.perf_counter(), time.process_time()
    gc.collect()
    return time.perf_counter() - began, time.process_time() - cpu


async def main(url: str, ca: str, pods: int, events: int, rounds: int) -> None:
    manager = Manager(url, ca)
    before = memory()
    processes.settle_heap()
    async with manager.watching(events):
        found = {"start": before["rss"], **memory()}
        if len(manager.store) != pods:
            raise RuntimeError(f"the store holds {len(manager.store)} of {pods} pods")
    ours, bare, pauses = [], [], [full_collection()]
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca))
    async with manager.client, aiohttp.ClientSession(connector=connector) as session:
        for _ in range(rounds):
            bare.append(await bare_round(session, url, events))
            ours.append(await manager.round(events))
            pauses.append(full_collection())
    processes.say({**found, "ours": ours, "bare": bare, "pauses": pauses, "passes": manager.passes})


if __name__ == "__main__":
    _url, _ca, *_numbers = sys.argv[1:]
    processes.run(main(_url, _ca, *map(int, _numbers)))
