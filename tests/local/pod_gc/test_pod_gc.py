"""Pods that nobody looks after, and nodes in trouble, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, condition
from kruise.local import pod_gc
from kruise.machinery.clock import run_virtual
from tests.local.workloads import bodies
from tests.local.workloads.world import World, node

Scenario = Callable[[World], Awaitable[None]]
NOT_READY = "node.kubernetes.io/not-ready"


def play(scenario: Scenario, *, threshold: int = 100) -> None:
    async def main() -> None:
        world = World(partial(pod_gc.specs, threshold=threshold))
        async with world.running():
            await scenario(world)

    run_virtual(main())


def tolerating(seconds: int | None) -> dict[str, Any]:
    toleration: dict[str, Any] = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    return {"tolerations": [toleration]}


async def set_ready(world: World, name: str, status: str) -> None:
    body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    await world.patch(NODES, name, body, subresource="status")


def test_pods_of_a_node_that_is_gone_are_removed_after_a_while() -> None:
    async def scenario(world: World) -> None:
        world.habits.stop = lambda pod: 10_000.0
        await world.add_nodes(2)
        for number in range(2):
            await world.create(PODS, bodies.pod(f"p{number}", node=f"n{number}"))
        await asyncio.sleep(5)
        await world.delete(NODES, "n1")
        await asyncio.sleep(30)
        assert len(await world.pods()) == 2
        await asyncio.sleep(20)
        assert list(await world.pods()) == ["p0"]

    play(scenario)


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    async def scenario(world: World) -> None:
        await world.add_nodes(1)
        await world.create(PODS, bodies.pod("p"))
        await asyncio.sleep(5)
        await world.delete(NODES, "n0")
        await asyncio.sleep(30)
        await world.add_nodes(1)
        await asyncio.sleep(60)
        assert list(await world.pods()) == ["p"]

    play(scenario)


def test_only_so_many_finished_pods_are_kept() -> None:
    async def scenario(world: World) -> None:
        world.habits.run = lambda pod: 1.0
        await world.add_nodes(1)
        for number in range(5):
            await world.create(PODS, bodies.pod(f"p{number}", restartPolicy="Never"))
            await asyncio.sleep(3)
        assert list(await world.pods()) == ["p3", "p4"]

    play(scenario, threshold=2)


def test_a_node_that_is_not_ready_is_tainted_and_its_pods_evicted_in_their_time() -> None:
    async def scenario(world: World) -> None:
        world.habits.stop = lambda pod: 5.0
        await world.add_nodes(1)
        for name, spec in (("now", {}), ("later", tolerating(60)), ("never", tolerating(None))):
            body = bodies.pod(name, **spec)
            await world.create(PODS, body)
        await asyncio.sleep(5)
        await set_ready(world, "n0", "False")
        await asyncio.sleep(2)
        taints = {(taint.key, taint.effect) for taint in (await world.get(NODES, "n0")).spec.taints}
        assert taints == {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}
        pods = await world.pods()
        gone = pods.pop("now", None)
        assert gone is None or gone.metadata.deletion_timestamp is not None
        assert all(pod.metadata.deletion_timestamp is None for pod in pods.values())
        assert all((shown := condition(pod, "Ready")) and shown.status == "False" for pod in pods.values())
        await asyncio.sleep(70)
        assert list(await world.pods()) == ["never"]
        messages = await world.messages("taint-eviction-controller")
        assert ("TaintManagerEviction", "Marking for deletion Pod default/later") in messages
        await set_ready(world, "n0", "True")
        await asyncio.sleep(2)
        assert (await world.get(NODES, "n0")).spec.taints == ()

    play(scenario)


def test_a_node_that_recovers_in_time_keeps_its_pods() -> None:
    async def scenario(world: World) -> None:
        await world.add_nodes(1)
        await world.create(PODS, bodies.pod("p", **tolerating(60)))
        await asyncio.sleep(5)
        await set_ready(world, "n0", "False")
        await asyncio.sleep(30)
        await set_ready(world, "n0", "True")
        await asyncio.sleep(120)
        assert list(await world.pods()) == ["p"]

    play(scenario)


def test_taints_of_others_stay_and_a_cordon_is_a_taint() -> None:
    async def scenario(world: World) -> None:
        mine = {"key": "mine", "effect": "NoSchedule"}
        await world.create(NODES, node("n0", spec={"taints": [mine], "unschedulable": True}))
        await asyncio.sleep(2)
        keys = [taint.key for taint in (await world.get(NODES, "n0")).spec.taints]
        assert keys == ["mine", "node.kubernetes.io/unschedulable"]
        await world.patch(NODES, "n0", {"spec": {"unschedulable": None}})
        await asyncio.sleep(2)
        assert [taint.key for taint in (await world.get(NODES, "n0")).spec.taints] == ["mine"]

    play(scenario)


def test_terminating_pods_of_a_node_out_of_service_go_at_once() -> None:
    async def scenario(world: World) -> None:
        world.habits.stop = lambda pod: 10_000.0
        await world.add_nodes(1)
        await world.create(PODS, bodies.pod("p", tolerations=[{"operator": "Exists"}]))
        await asyncio.sleep(5)
        await set_ready(world, "n0", "Unknown")
        await world.delete(PODS, "p")
        await asyncio.sleep(60)
        assert list(await world.pods()) == ["p"]
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        taints = (await world.get(NODES, "n0")).spec.taints
        kept = [{"key": item.key, "effect": item.effect} for item in taints]
        await world.patch(NODES, "n0", {"spec": {"taints": [*kept, taint]}})
        await asyncio.sleep(5)
        assert await world.pods() == {}

    play(scenario)
