"""Workloads of kinds that nobody watches, counted on the local cluster: with a scale, and without."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import TooManyRequestsError
from tests.support.world import LocalWorld, run_local

GAMES = Resource("example.com", "v1", "games", "Game", True, PartialObject)
NUMBERS = ("unavailable_allowed", "current_available", "desired_available", "total_replicas")


def definition(*, scales: bool) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    }
    if scales:
        paths = {"specReplicasPath": ".spec.players", "statusReplicasPath": ".status.players"}
        version["subresources"] = {"scale": {**paths, "labelSelectorPath": ".status.selector"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "games.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "games", "singular": "game", "kind": "Game", "listKind": "GameList"},
            "versions": [version],
        },
    }


async def _play(world: LocalWorld, *, scales: bool, spec: dict[str, Any], **more: Any) -> None:
    """Three pods of a Game `web`, which the manager may list, and a budget over it."""
    world.may(GAMES, "list")
    await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(scales=scales))

    async def served() -> None:
        found = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "games.example.com")
        assert any(one.type == "Established" and one.status == "True" for one in found.status.conditions)

    await world.until(served)
    body = {"apiVersion": "example.com/v1", "kind": "Game", "metadata": {"name": "web"}, "spec": spec}
    game = await world.client.create(GAMES, body, world.namespace)
    owner = {"apiVersion": "example.com/v1", "kind": "Game", "name": "web", "uid": game.metadata.uid}
    for name in ("web-a", "web-b", "web-c"):
        metadata = {"name": name, "ownerReferences": [{**owner, "controller": True}]}
        containers = [{"name": "main", "image": "nginx:1.25"}]
        await world.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
        )
    about = {"apiVersion": "example.com/v1", "kind": "Game", "name": "web"}
    manifest = {
        "apiVersion": POD_UNAVAILABLE_BUDGETS.api_version,
        "kind": "PodUnavailableBudget",
        "metadata": {"name": "pub"},
        "spec": {"targetRef": about, "maxUnavailable": 1, **more},
    }
    await world.create(manifest)


async def _shows(world: LocalWorld, *expected: int) -> None:
    async def there() -> None:
        status = (await world.client.get(POD_UNAVAILABLE_BUDGETS, "pub", world.namespace)).status
        assert tuple(getattr(status, number) for number in NUMBERS) == expected

    await world.until(there)


@pytest.mark.parametrize("spec", [{"players": 3}, {"replicas": 3}])
def test_a_scale_or_a_number_of_replicas_tells_the_count(spec: dict[str, int]) -> None:  # PUB-30
    async def play(world: LocalWorld) -> None:
        await _play(world, scales="players" in spec, spec=spec)
        await _shows(world, 1, 3, 2, 3)
        await world.client.evict(PODS, "web-a", world.namespace)
        with pytest.raises(TooManyRequestsError):
            await world.client.evict(PODS, "web-b", world.namespace)
        await world.client.patch(GAMES, "web", {"spec": dict.fromkeys(spec, 1)}, world.namespace)
        await _shows(world, 2, 2, 0, 1)  # nobody tells of it: it is asked again after a while
        await world.client.delete(GAMES, "web", world.namespace)
        await asyncio.sleep(60)
        await _shows(world, 0, 0, 0, 0)

    run_local(play)


def test_what_tells_nothing_is_counted_by_the_budget() -> None:  # PUB-33, PUB-34
    async def play(world: LocalWorld) -> None:
        await _play(world, scales=False, spec={}, protectTotalReplicas=3)
        await _shows(world, 1, 3, 2, 3)
        await world.client.patch(
            POD_UNAVAILABLE_BUDGETS, "pub", {"spec": {"protectTotalReplicas": None}}, world.namespace
        )
        await _shows(world, 3, 3, 0, -1)

    run_local(play)


def test_a_kind_that_gets_another_version_is_not_taken_for_gone() -> None:  # PUB-30
    """Its pods are guarded all the time, although nobody can read it by the version that was known."""

    async def play(world: LocalWorld) -> None:
        await _play(world, scales=True, spec={"players": 3})
        await _shows(world, 1, 3, 2, 3)
        (version,) = definition(scales=True)["spec"]["versions"]
        versions = [{**version, "served": False, "storage": False}, {**version, "name": "v2"}]
        change = {"spec": {"versions": versions}}
        await world.client.patch(CUSTOM_RESOURCE_DEFINITIONS, "games.example.com", change)
        for _ in range(120):
            await asyncio.sleep(1)
            status = (await world.client.get(POD_UNAVAILABLE_BUDGETS, "pub", world.namespace)).status
            assert status.desired_available == 2
        newer = dataclasses.replace(GAMES, version="v2")
        await world.client.patch(newer, "web", {"spec": {"players": 2}}, world.namespace)
        await asyncio.sleep(60)
        await _shows(world, 2, 3, 1, 2)

    run_local(play)
