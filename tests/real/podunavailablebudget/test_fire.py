"""A budget under fire on a real API server: three managers at one address, fifty clients that delete, evict, change
images and mark pods at once while a rollout runs, managers killed, and frozen with all that they were about to send.

`KRUISE_FIRE_REAL=20` plays twenty runs. What is checked is read from watches of pods and budget, and from the audit log
of the API server, see `tests.protection.podunavailablebudget.checker`.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from tests.protection.podunavailablebudget.checker import breaches
from tests.protection.podunavailablebudget.crowd import Crowd
from tests.support.auditlog import AuditEntry
from tests.support.manymanagers import ManyManagers

pytestmark = pytest.mark.long
SEEDS = range(1, 1 + int(os.environ.get("KRUISE_FIRE_REAL", "2")))
STORM, CALM = 20.0, 180.0
CLIENTS = "fire-clients"


@pytest.fixture(scope="module")
def managers() -> Iterator[ManyManagers]:
    with ManyManagers(3, flags=("--feature-gates=PodUnavailableBudgetUpdateGate=true",)) as started:
        yield started


@pytest.mark.parametrize("seed", SEEDS)
def test_the_promise_holds_and_nothing_leaks(managers: ManyManagers, seed: int) -> None:
    """PUB-62, PUB-64, PUB-120, PUB-130."""
    namespace = f"fire-{seed}"
    managers.plane.create_namespace(namespace)
    since = managers.plane.audit_mark()
    wrong = asyncio.run(_play(managers, Random(seed), namespace))
    audited = managers.plane.audit_entries(since)
    answers = Counter(entry.code for entry in audited if _takes_a_pod(entry, namespace))
    print(f"seed {seed}: {dict(answers)}")
    assert not wrong, wrong
    assert answers[200] + answers[201] > 0
    assert answers[403] + answers[429] > 0


def _takes_a_pod(entry: AuditEntry, namespace: str) -> bool:
    is_there = entry.user == CLIENTS and entry.namespace == namespace and entry.resource == "pods"
    return is_there and entry.is_write


async def _play(managers: ManyManagers, random: Random, namespace: str) -> list[str]:
    client = Client(HttpTransport(load(managers.plane.kubeconfig_for(CLIENTS))), field_manager="clients")
    try:
        crowd = Crowd(client, random, namespace=namespace, storm=STORM, calm=CALM)
        begins = await crowd.gather()
        kinds: tuple[Resource[Any], ...] = (PODS, POD_UNAVAILABLE_BUDGETS)
        following = [asyncio.create_task(_follow(client, crowd, kind, namespace, begins)) for kind in kinds]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(crowd.shoot())
            tasks.create_task(_kill(managers, random))
            tasks.create_task(_freeze(managers, random))
        await asyncio.to_thread(managers.keep)
        wrong = []
        try:
            await crowd.unmark()
            await crowd.until_whole()
        except AssertionError as error:
            wrong.append(f"the budget did not become whole again: {error}")
        await asyncio.sleep(1)  # the last events are under way
        assert not any(task.done() for task in following), "a watch ended: what it did not tell cannot be judged"
        for task in following:
            task.cancel()
        await asyncio.wait(following)
        return [*breaches(crowd.history, crowd.floor), *wrong]
    finally:
        await client.close()


async def _follow(client: Client, crowd: Crowd, kind: Resource[Any], namespace: str, version: int) -> None:
    loop = asyncio.get_running_loop()
    async with client.watch(kind, namespace, resource_version=str(version), bookmarks=False) as events:
        async for event in events:
            crowd.saw(event.type, event.object, loop.time())


async def _kill(managers: ManyManagers, random: Random) -> None:
    for _ in range(random.randint(1, 2)):
        await asyncio.sleep(random.uniform(2, STORM / 2))
        await asyncio.to_thread(managers.kill, random.randrange(managers.count))
        await asyncio.sleep(random.uniform(0, 4))
        await asyncio.to_thread(managers.keep)


async def _freeze(managers: ManyManagers, random: Random) -> None:
    for _ in range(random.randint(1, 2)):
        await asyncio.sleep(random.uniform(1, STORM / 2))
        place = random.randrange(managers.count)
        managers.freeze(place)
        try:
            await asyncio.sleep(random.uniform(1, 15))
        finally:
            managers.thaw(place)
