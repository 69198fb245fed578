"""A distribution in a storm: answers get lost, watches are cut, lists are old. Each target has the content in the end,
nobody else ever has a copy, what is not ours is never touched, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.nodes import NAMESPACES
from kruise.machinery.client.errors import InternalError, InvalidError
from tests.support.storms import Witness, in_a_storm
from tests.support.world import Json, LocalWorld

TARGETS = tuple(f"target-{number}" for number in range(6))
TAKEN, OTHER = "taken", "other"
"""A target with an object of that name that is somebody else's, and a namespace that is no target."""


def _config(value: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}, "data": {"k": value}}


async def _copies(world: LocalWorld) -> dict[str, Any]:
    found = (await world.client.list(CONFIG_MAPS)).items
    return {one.metadata.namespace: one for one in found if one.metadata.name == "cfg"}


async def _again(world: LocalWorld, write: Callable[[], Awaitable[Any]]) -> None:
    """The webhook tries a copy, and that fails in a storm like any request: the user is told, and tries again."""

    async def attempt() -> None:
        try:
            await write()
        except (InvalidError, InternalError) as error:
            raise AssertionError(str(error)) from error

    await world.until(attempt, within=60, every=0.3)


async def story(world: LocalWorld) -> None:
    client = world.client
    for name in (*TARGETS, TAKEN, OTHER):
        labels = {} if name == OTHER else {"team": "1"}
        await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    mine = await client.create(CONFIG_MAPS, _config("mine"), TAKEN)

    def hears(kind: str, found: Json) -> None:
        metadata = found["metadata"]
        if metadata["name"] != "cfg":
            return
        assert metadata["namespace"] != OTHER, f"{kind} where nothing is wanted"
        if metadata["namespace"] == TAKEN:
            assert metadata["resourceVersion"] == mine.metadata.resource_version, f"{kind} of what is not ours"

    async def all_have(value: str) -> None:
        found = await _copies(world)
        assert {name: one.data["k"] for name, one in found.items()} == dict.fromkeys(TARGETS, value) | {TAKEN: "mine"}
        status = (await client.get(RESOURCE_DISTRIBUTIONS, "rd")).status
        assert (status.desired, status.succeeded, status.failed) == (len(TARGETS) + 1, len(TARGETS), 1)

    async def only_mine_is_left() -> None:
        assert set(await _copies(world)) == {TAKEN}

    world.namespace = ""  # of all
    async with Witness(world, CONFIG_MAPS, hears):
        spec = {"resource": _config("1"), "targets": {"namespaceSelector": {"matchLabels": {"team": "1"}}}}
        body = {"metadata": {"name": "rd"}, "spec": spec}
        await _again(world, lambda: client.create(RESOURCE_DISTRIBUTIONS, body))
        await world.until(lambda: all_have("1"), within=900)
        await client.patch(CONFIG_MAPS, "cfg", {"data": {"k": "by hand"}}, TARGETS[0])
        await client.delete(CONFIG_MAPS, "cfg", TARGETS[1])
        await world.until(lambda: all_have("1"), within=900)
        change = {"spec": {"resource": {"data": {"k": "2"}}}}
        await _again(world, lambda: client.patch(RESOURCE_DISTRIBUTIONS, "rd", change))
        await client.patch(CONFIG_MAPS, "cfg", {"metadata": {"ownerReferences": None}}, TARGETS[2])
        await world.until(lambda: all_have("2"), within=900)
        await client.delete(RESOURCE_DISTRIBUTIONS, "rd")
        await world.until(only_mine_is_left, within=900)
        await world.sleep(60)
        await only_mine_is_left()


@pytest.mark.parametrize("seed", range(30))
def test_a_storm(seed: int) -> None:
    """RD-33, RD-34, RD-37, RD-39, RD-50, RD-51, RD-75."""
    gates = "ResourceDistributionGate=true"
    assert in_a_storm(story, kinds=("resourcedistribution",), seed=seed, rate=0.15, feature_gates=gates) >= 5
