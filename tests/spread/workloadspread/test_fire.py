"""The count under fire: answers lost, writes done twice, watches cut, a manager that dies and the next one.

At no moment has a subset more pods than it may have, no pod is lost, and no place stays taken by nobody (WS, 13).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.native.pod import PODS
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.errors import AlreadyExistsError, ApiError
from kruise.machinery.client.requests import Request, Verb
from tests.spread.workloadspread.stories import MATCHED, create, scale, seen, spread, subset, workload, zones
from tests.support.examples import EXAMPLES
from tests.support.faults import FaultyTransport, storm
from tests.support.world import LocalWorld, run_local

LIMITS = {"a": 8, "b": 12}
PODS_WANTED = 30
SEEDS = range(2 * EXAMPLES)


class Watch:
    """Counts the pods of each subset at every change."""

    def __init__(self, world: LocalWorld) -> None:
        self._world = world
        self._subsets: dict[str, str] = {}
        self.most: Counter[str] = Counter()
        self.changes = 0

    async def run(self) -> None:
        request = Request(Verb.WATCH, PODS, self._world.namespace, query=(("watch", "true"), ("resourceVersion", "0")))
        async with self._world.client.transport.stream(request) as lines:
            async for line in lines:
                self._saw(json.loads(line))

    def _saw(self, event: dict[str, object]) -> None:
        pod = event["object"]
        assert isinstance(pod, dict)
        uid, mark = pod["metadata"]["uid"], pod["metadata"].get("annotations", {}).get(MATCHED)
        if event["type"] == "DELETED" or "deletionTimestamp" in pod["metadata"] or mark is None:
            self._subsets.pop(uid, None)
        else:
            self._subsets[uid] = json.loads(mark)["subset"]
        self.changes += 1
        for name, count in Counter(self._subsets.values()).items():
            self.most[name] = max(self.most[name], count)


async def _story(world: LocalWorld, faulty: FaultyTransport, seed: int) -> None:
    await zones(world, "a", "b")
    await create(world, spread(*(subset(name, name, size) for name, size in LIMITS.items()), subset("rest")))
    faulty.add(*storm(0.04))
    await _insist(world, lambda: create(world, workload(PODS_WANTED)))
    await world.sleep(0.2 + seed * 0.15)
    await world.kill_manager()  # in the middle of it
    await world.sleep(10)
    await _insist(world, lambda: scale(world, PODS_WANTED // 3))
    await world.sleep(3)
    await _insist(world, lambda: scale(world, PODS_WANTED))
    await world.sleep(5)
    for pod in (await world.pods("app=web"))[:3]:
        with contextlib.suppress(ApiError):
            await world.delete(PODS, pod["metadata"]["name"])
    await world.sleep(5)
    faulty.clear()


async def _keep_running(world: LocalWorld, faulty: FaultyTransport) -> None:
    """A manager that ends, as one does that loses its lease, is started again."""
    while True:
        await asyncio.sleep(1)
        if not world.manager_is_running:
            await world.kill_manager()
            world.start_manager(faulty)


async def _insist(world: LocalWorld, write: Callable[[], Awaitable[None]]) -> None:
    """A user whose write fails because no manager answers tries again."""

    async def tried() -> None:
        try:
            await write()
        except AlreadyExistsError:
            return
        except ApiError as error:
            raise AssertionError(str(error)) from error

    await world.until(tried, every=1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_count_is_right_under_fire(seed: int) -> None:
    """WS-22, WS-23, WS-47."""

    async def scenario(world: LocalWorld) -> None:
        watch = Watch(world)
        watching = asyncio.create_task(watch.run())
        faulty = FaultyTransport(InProcessTransport(world.cluster.core), seed=seed, clock=world.clock)
        world.start_manager(faulty)
        keeping = asyncio.create_task(_keep_running(world, faulty))
        await _story(world, faulty, seed)

        async def whole() -> None:
            counts = await seen(world)
            assert sum(replicas for replicas, _ in counts.values()) == PODS_WANTED, counts
            status = (await world.get(WORKLOAD_SPREADS, "ws"))["status"]
            noted = [
                one
                for elements in status["versionedSubsetStatuses"].values()
                for one in elements
                if one.get("creatingPods") or one.get("deletingPods")
            ]
            assert not noted, noted

        await world.until(whole, within=300)
        watching.cancel()
        keeping.cancel()
        assert len(faulty.log) > 20, "nothing was disturbed"
        assert all(0 < watch.most[name] <= limit for name, limit in LIMITS.items()), watch.most

    run_local(scenario, start=False, seed=seed + 1)
