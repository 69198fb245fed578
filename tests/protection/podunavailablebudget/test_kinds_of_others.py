"""Budgets over workloads of kinds that nobody watches (PUB-30, PUB-31), with the rights of an installation."""

from __future__ import annotations

from kruise.api.meta import Key, PartialObject
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from tests.support.custom_kinds import definition, owner
from tests.support.world import Json, LocalWorld, run_local

GAMES = Resource("games.example.io", "v1", "gamesets", "GameSet", True, PartialObject)
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


async def guarded(world: LocalWorld, *, scale: bool) -> None:
    """Four pods of one workload, and a budget over them."""
    made = definition(GAMES)
    if scale:
        made["spec"]["versions"][0]["subresources"] = {"scale": _SCALE}
    await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, made)
    await world.sleep(2)
    head = {"apiVersion": GAMES.api_version, "kind": GAMES.kind, "metadata": {"name": "web"}}
    created = await world.client.create(GAMES, {**head, "spec": {"replicas": 4}}, world.namespace)
    reference = owner({**head, "metadata": {"name": "web", "uid": created.metadata.uid}})
    for number in range(4):
        await world.client.create(
            PODS,
            {
                "metadata": {"name": f"web-{number}", "labels": {"app": "web"}, "ownerReferences": [reference]},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
            },
            world.namespace,
        )
    budget = {"apiVersion": POD_UNAVAILABLE_BUDGETS.api_version, "kind": POD_UNAVAILABLE_BUDGETS.kind}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}
    await world.create({**budget, "metadata": {"name": "pub"}, "spec": spec})


async def total(world: LocalWorld) -> int:
    status: Json = (await world.get(POD_UNAVAILABLE_BUDGETS, "pub")).get("status", {})
    return int(status.get("totalReplicas", 0))


def test_they_are_asked_by_their_scale_which_may_always_be_read() -> None:
    async def scenario(world: LocalWorld) -> None:
        await guarded(world, scale=True)

        async def counted() -> None:
            assert await total(world) == 4

        await world.until(counted)
        await world.client.delete(GAMES, "web", world.namespace, propagation="Orphan")

        async def gone() -> None:
            assert await total(world) == 0

        await world.until(gone)
        assert all(asked.right.verb != "list" for asked in world.guard.used if asked.right.group == GAMES.group)

    run_local(scenario)


def test_without_a_scale_somebody_has_to_let_the_manager_read_them() -> None:
    async def scenario(world: LocalWorld) -> None:
        await guarded(world, scale=False)
        await world.sleep(60)
        [last] = world.journal.entries("podunavailablebudget-controller", Key(world.namespace, "pub"), limit=1)
        assert "GameSet web is gone or has no scale, and the manager may not look: gamesets.games" in last["error"]
        assert last["error"].endswith("Give it `list` on the kind")
        world.may(GAMES, "list")

        async def counted() -> None:
            assert await total(world) == 4

        await world.until(counted, within=300)

    run_local(scenario)
