"""The scheduler at work on virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS, condition
from kruise.local.scheduler import specs
from kruise.machinery.clock import run_virtual
from tests.local.workloads import bodies
from tests.local.workloads.world import World, node

Scenario = Callable[[World], Awaitable[None]]
BIG = {"containers": [{"name": "main", "image": "a", "resources": {"requests": {"cpu": "6"}}}]}


def play(scenario: Scenario) -> None:
    async def main() -> None:
        world = World(specs)
        async with world.running():
            await scenario(world)

    run_virtual(main())


def test_a_pod_is_bound_and_the_event_says_where() -> None:
    async def scenario(world: World) -> None:
        await world.add_nodes(2)
        await world.create(PODS, bodies.pod("p", node=""))
        await asyncio.sleep(0.5)
        pod = await world.get(PODS, "p")
        assert pod.spec.node_name == "n0"
        shown = condition(pod, "PodScheduled")
        assert shown is not None
        assert shown.status == "True"
        assert await world.messages("default-scheduler") == [("Scheduled", "Successfully assigned default/p to n0")]

    play(scenario)


def test_a_pod_waits_for_room_and_gets_it() -> None:
    async def scenario(world: World) -> None:
        await world.create(PODS, bodies.pod("first", node="", **BIG))
        await asyncio.sleep(1)
        shown = condition(await world.get(PODS, "first"), "PodScheduled")
        assert shown is not None
        assert (shown.status, shown.reason) == ("False", "Unschedulable")
        assert shown.message == "no nodes available to schedule pods"
        await world.add_nodes(1)
        await asyncio.sleep(1)
        assert (await world.get(PODS, "first")).spec.node_name == "n0"
        await world.create(PODS, bodies.pod("second", node="", **BIG))
        await asyncio.sleep(1)
        shown = condition(await world.get(PODS, "second"), "PodScheduled")
        assert shown is not None
        words = (
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )
        assert shown.message == words
        await world.delete(PODS, "first")
        await asyncio.sleep(2)
        assert (await world.get(PODS, "second")).spec.node_name == "n0"
        assert [reason for reason, _ in await world.messages("default-scheduler")] == [
            "FailedScheduling",
            "Scheduled",
            "FailedScheduling",
            "Scheduled",
        ]
        assert ("FailedScheduling", words) in await world.messages()

    play(scenario)


def test_pods_of_other_schedulers_and_behind_gates_are_left_alone() -> None:
    async def scenario(world: World) -> None:
        await world.add_nodes(1)
        await world.create(PODS, bodies.pod("other", node="", schedulerName="mine"))
        await world.create(PODS, bodies.pod("gated", node="", schedulingGates=[{"name": "example.com/g"}]))
        await asyncio.sleep(1)
        assert (await world.get(PODS, "other")).spec.node_name == ""
        gated = await world.get(PODS, "gated")
        shown = condition(gated, "PodScheduled")
        assert shown is not None
        assert (gated.spec.node_name, shown.reason) == ("", "SchedulingGated")
        await world.patch(PODS, "gated", {"spec": {"schedulingGates": None}})
        await asyncio.sleep(1)
        assert (await world.get(PODS, "gated")).spec.node_name == "n0"

    play(scenario)


def test_a_node_that_is_uncordoned_is_used() -> None:
    async def scenario(world: World) -> None:
        await world.create(NODES, node("n0", spec={"unschedulable": True}))
        await world.create(PODS, bodies.pod("p", node=""))
        await asyncio.sleep(1)
        assert (await world.get(PODS, "p")).spec.node_name == ""
        await world.patch(NODES, "n0", {"spec": {"unschedulable": None}})
        await asyncio.sleep(1)
        assert (await world.get(PODS, "p")).spec.node_name == "n0"

    play(scenario)


def test_pods_of_higher_priority_go_first() -> None:
    async def scenario(world: World) -> None:
        for name, priority in (("low", 1), ("high", 100)):
            body = bodies.pod(name, node="", **BIG)
            body["spec"]["priority"] = priority
            await world.create(PODS, body)
        await asyncio.sleep(1)
        await world.add_nodes(1)
        await asyncio.sleep(1)
        assert (await world.get(PODS, "high")).spec.node_name == "n0"
        assert (await world.get(PODS, "low")).spec.node_name == ""

    play(scenario)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scenario(world: World) -> None:
        await world.add_nodes(1)
        await world.create(PODS, bodies.pod("fits", node=""))
        await world.create(PODS, bodies.pod("does-not", node="", nodeSelector={"no": "where"}))
        await asyncio.sleep(60)
        before = world.core.storage.version
        await asyncio.sleep(3600)
        assert world.core.storage.version == before

    play(scenario)


def test_many_pods_on_many_nodes() -> None:
    """400 pods on 200 nodes are spread evenly."""

    async def scenario(world: World) -> None:
        await world.add_nodes(200)
        for number in range(400):
            await world.create(PODS, bodies.pod(f"p{number}", node=""))
        await asyncio.sleep(10)
        spread = Counter(pod.spec.node_name for pod in (await world.pods()).values())
        assert len(spread) == 200
        assert max(spread.values()) == 2

    play(scenario)


def test_a_pod_goes_to_pods_of_namespaces_that_it_selects() -> None:
    async def scenario(world: World) -> None:
        await world.add_nodes(3)
        labels = {"name": "shop", "labels": {"team": "x"}}
        await world.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": labels})
        await world.create(PODS, bodies.pod("db", node="n2", labels={"app": "db"}), namespace="shop")
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "db"}},
            "namespaceSelector": {"matchLabels": {"team": "x"}},
        }
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        await world.create(PODS, bodies.pod("web", node="", affinity=affinity))
        await asyncio.sleep(1)
        assert (await world.get(PODS, "web")).spec.node_name == "n2"

    play(scenario)
