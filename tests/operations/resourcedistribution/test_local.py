"""ResourceDistributions on the local cluster: the gate, secrets that are seen nowhere, and what idling costs."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import Counter
from typing import Any

import pytest

from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.meta import Key
from kruise.api.native.config import SECRETS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NAMESPACES
from kruise.machinery.client.errors import ForbiddenError
from kruise.machinery.codec import encode
from kruise.machinery.journal import replay
from kruise.operations.resourcedistribution.controller import NAME, controllers
from tests.scenarios.distribution import CONFIG
from tests.support.world import LocalWorld, run_local

GATE = "ResourceDistributionGate=true"
SECRET, OTHER = "hunter2-very-secret", "hunter3-very-secret"
TOKEN = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"k": SECRET}}


def distribution(resource: Any, targets: Any) -> dict[str, Any]:
    head = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "metadata": {"name": "rd"}}
    return {**head, "spec": {"resource": resource, "targets": targets}}


def test_without_the_gate_it_is_refused() -> None:  # RD-10
    async def play(world: LocalWorld) -> None:
        with pytest.raises(ForbiddenError, match="feature-gate ResourceDistributionGate is not enabled"):
            await world.client.create(RESOURCE_DISTRIBUTIONS, distribution(CONFIG, {"allNamespaces": True}))

    run_local(play)


def test_no_secret_is_seen_anywhere(caplog: pytest.LogCaptureFixture) -> None:
    """Not in the journal, its dumps, events or logs; also where a copy cannot be written."""
    caplog.set_level(logging.DEBUG)

    async def play(world: LocalWorld) -> None:
        await world.client.create(RESOURCE_DISTRIBUTIONS, distribution(TOKEN, {"allNamespaces": True}))

        async def there() -> None:
            status = (await world.client.get(RESOURCE_DISTRIBUTIONS, "rd")).status
            assert status.succeeded == status.desired > 0

        await world.until(there)
        await world.client.patch(SECRETS, "token", {"data": {"k": "eA=="}}, "default")

        async def repaired() -> None:
            assert (await world.client.get(SECRETS, "token", "default")).data == {"k": SECRET.encode()}

        await world.until(repaired)
        # A copy that nobody can change any more, and a change that it does not follow.
        frozen = {"data": {"k": "eA=="}, "immutable": True}
        await world.client.patch(SECRETS, "token", frozen, "default")
        change = {"spec": {"resource": {"stringData": {"k": OTHER}}}}
        await world.client.patch(RESOURCE_DISTRIBUTIONS, "rd", change)

        async def refused() -> None:
            found = await world.client.get(RESOURCE_DISTRIBUTIONS, "rd")
            assert found.status.observed_generation == found.metadata.generation
            assert [one.type for one in found.status.conditions if one.status == "True"] == ["UpdateResourceFailed"]

        await world.until(refused)
        status = encode((await world.client.get(RESOURCE_DISTRIBUTIONS, "rd")).status)
        journal = world.journal
        dump = journal.dump(NAME, Key("", "rd"))
        assert dump is not None
        entries = encode(journal.entries())
        events = encode([event async for event in _events(world)])
        assert b"immutable" in dump
        for text in (dump, entries, events, status, caplog.text.encode()):
            for secret in (SECRET, OTHER):
                assert secret.encode() not in text
                assert base64.b64encode(secret.encode()) not in text
        assert replay(dump, controllers(world.options)).plan_equal

    run_local(play, feature_gates=GATE)


async def _events(world: LocalWorld) -> Any:
    for event in (await world.client.list(EVENTS)).items:
        yield event


def test_a_change_costs_a_write_for_each_namespace_and_idling_none() -> None:
    count = 50

    async def play(world: LocalWorld) -> None:
        for number in range(count):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{number}", "labels": {"g": "1"}}}
            await world.client.create(NAMESPACES, body)
        targets = {"namespaceSelector": {"matchLabels": {"g": "1"}}}
        await world.client.create(RESOURCE_DISTRIBUTIONS, distribution(TOKEN, targets))

        async def copied(generation: int) -> None:
            status = (await world.client.get(RESOURCE_DISTRIBUTIONS, "rd")).status
            assert (status.succeeded, status.observed_generation) == (count, generation)

        await world.until(lambda: copied(1))
        writes: Counter[str] = Counter()
        listed = await world.client.list(SECRETS)
        following = asyncio.create_task(_count(world, listed.resource_version, writes))
        await world.sleep(600)
        assert not writes
        change = {"spec": {"resource": {"stringData": {"k": "other"}}}}
        await world.client.patch(RESOURCE_DISTRIBUTIONS, "rd", change)
        await world.until(lambda: copied(2))
        await world.sleep(600)
        following.cancel()
        assert writes == {f"n{number}": 1 for number in range(count)}
        after = (await world.client.list(SECRETS)).items
        assert sum(one.data == {"k": b"other"} for one in after) == count

    run_local(play, feature_gates=GATE)


async def _count(world: LocalWorld, version: str, writes: Counter[str]) -> None:
    """What is done to Secrets from a version on, by namespace."""
    async with world.client.watch(SECRETS, resource_version=version, bookmarks=False) as events:
        async for event in events:
            writes[event.object.metadata.namespace] += 1
