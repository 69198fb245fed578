"""DaemonSets on virtual time, with the scheduler and a kubelet that only moves the status of pods."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.daemon_pods import Verdict
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod, PodSpec, PodStatus
from kruise.local import scheduler
from kruise.local.workloads import daemon_rollout, specs
from kruise.local.workloads.daemon_nodes import DaemonNode, DaemonPod
from kruise.local.workloads.objects import DAEMON_SETS, DaemonSet
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import run_virtual
from kruise.machinery.codec import convert
from kruise.machinery.delays import Delay, next_delay, seconds_left
from tests.local.workloads import bodies
from tests.local.workloads.world import Habits, World, node
from tests.support.examples import EXAMPLES

NOW = datetime(2030, 1, 1, tzinfo=UTC)
Scenario = Callable[[World], Awaitable[None]]
ONE_AT_A_TIME = {"rollingUpdate": {"maxUnavailable": 1}}


def play(scenario: Scenario, habits: Habits | None = None, *, nodes: int = 3) -> None:
    async def main() -> None:
        world = World(specs, scheduler.specs, habits=habits)
        await world.add_nodes(nodes)
        async with world.running():
            await scenario(world)

    run_virtual(main())


async def make(world: World, **spec: Any) -> None:
    await world.create(DAEMON_SETS, bodies.daemon_set("agent", **spec))


async def change(world: World, spec: dict[str, Any]) -> None:
    await world.patch(DAEMON_SETS, "agent", {"spec": spec})


async def set_image(world: World, image: str) -> None:
    await world.patch(DAEMON_SETS, "agent", bodies.image(image), patch_type=PatchType.STRATEGIC)


async def by_node(world: World) -> dict[str, list[str]]:
    """The images of the pods on each node."""
    found: dict[str, list[str]] = {}
    for pod in (await world.pods()).values():
        found.setdefault(pod.spec.node_name, []).append(pod.spec.containers[0].image)
    return {name: sorted(found[name]) for name in sorted(found)}


async def status_of(world: World) -> Any:
    return (await world.get(DAEMON_SETS, "agent")).status


async def taint(world: World, name: str, *taints: tuple[str, str]) -> None:
    body = [{"key": key, "effect": effect} for key, effect in taints]
    await world.patch(NODES, name, {"spec": {"taints": body}})


def test_every_node_gets_a_pod_that_names_it() -> None:
    async def scenario(world: World) -> None:
        await make(world)
        await asyncio.sleep(5)
        assert await by_node(world) == {"n0": ["app:1"], "n1": ["app:1"], "n2": ["app:1"]}
        pods = await world.pods()
        (revision,) = await world.list(CONTROLLER_REVISIONS)
        for name, pod in pods.items():
            value = revision.metadata.labels["controller-revision-hash"]
            assert pod.metadata.labels == {
                "app": "agent",
                "controller-revision-hash": value,
                "pod-template-generation": "1",
            }
            assert revision.metadata.name == f"agent-{value}"
            assert name.startswith(pod.metadata.generate_name)
            assert pod.spec.affinity is not None
            assert pod.spec.affinity.node_affinity is not None
            assert pod.spec.affinity.node_affinity.required is not None
            (term,) = pod.spec.affinity.node_affinity.required.node_selector_terms
            assert [(item.key, item.operator, item.values) for item in term.match_fields] == [
                ("metadata.name", "In", (pod.spec.node_name,))
            ]
            tolerated = {(item.key.partition("/")[2], item.effect) for item in pod.spec.tolerations}
            assert tolerated == {
                ("not-ready", "NoExecute"),
                ("unreachable", "NoExecute"),
                ("disk-pressure", "NoSchedule"),
                ("memory-pressure", "NoSchedule"),
                ("pid-pressure", "NoSchedule"),
                ("unschedulable", "NoSchedule"),
            }
        status = await status_of(world)
        assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_ready) == (3, 3, 3)
        assert (status.updated_number_scheduled, status.number_available, status.number_unavailable) == (3, 3, 0)
        assert (status.number_misscheduled, status.observed_generation) == (0, 1)
        expected = sorted(("SuccessfulCreate", f"Created pod: {name}") for name in pods)
        assert sorted(await world.messages("daemonset-controller")) == expected

    play(scenario)


def test_nodes_come_and_go_and_change() -> None:
    async def scenario(world: World) -> None:
        template = bodies.template({"app": "agent"}, node="", nodeSelector={"disk": "ssd"})
        await make(world, template=template)
        await asyncio.sleep(2)
        assert await world.pods() == {}
        await world.create(NODES, node("n9", labels={"disk": "ssd"}))
        await world.patch(NODES, "n0", {"metadata": {"labels": {"disk": "ssd"}}})
        await asyncio.sleep(5)
        assert list(await by_node(world)) == ["n0", "n9"]
        await world.patch(NODES, "n0", {"metadata": {"labels": {"disk": "rust"}}})
        await asyncio.sleep(5)
        assert list(await by_node(world)) == ["n9"]
        await world.delete(NODES, "n9")
        await asyncio.sleep(5)
        assert (await status_of(world)).desired_number_scheduled == 0

    play(scenario, nodes=2)


def test_taints_keep_new_pods_away_and_the_deadly_ones_take_old_ones() -> None:
    async def scenario(world: World) -> None:
        await taint(world, "n0", ("gpu", "NoSchedule"))
        await make(world)
        await asyncio.sleep(5)
        assert list(await by_node(world)) == ["n1", "n2"]
        await taint(world, "n1", ("gpu", "NoSchedule"))
        await taint(world, "n2", ("gpu", "NoExecute"))
        await asyncio.sleep(5)
        status = await status_of(world)
        assert list(await by_node(world)) == ["n1"]
        assert (status.desired_number_scheduled, status.number_misscheduled) == (0, 1)
        await taint(world, "n0")
        await taint(world, "n1")
        await asyncio.sleep(5)
        status = await status_of(world)
        assert (status.desired_number_scheduled, status.number_ready, status.number_misscheduled) == (2, 2, 0)

    play(scenario)


def test_a_cordoned_node_is_served_and_one_that_is_full_waits() -> None:
    async def scenario(world: World) -> None:
        cordon = {
            "unschedulable": True,
            "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        }
        await world.patch(NODES, "n0", {"spec": cordon})
        await world.create(NODES, node("small", cpu="10m"))
        body = bodies.template({"app": "agent"}, node="")
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
        await make(world, template=body)
        await asyncio.sleep(5)
        assert list(await by_node(world)) == ["", "n0"]
        status = await status_of(world)
        assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_ready) == (2, 2, 1)
        # Nobody else would ever remove a pod that waits for a node that is gone.
        await world.delete(NODES, "small")
        await asyncio.sleep(5)
        assert list(await by_node(world)) == ["n0"]

    play(scenario, nodes=1)


def test_a_new_revision_replaces_as_many_pods_as_may_be_missing() -> None:
    async def scenario(world: World) -> None:
        await make(world, updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
        await asyncio.sleep(5)
        await set_image(world, "app:2")
        await asyncio.sleep(0.3)
        pods = (await world.pods()).values()
        assert sum(pod.metadata.deletion_timestamp is not None for pod in pods) == 2
        await asyncio.sleep(10)
        assert await by_node(world) == {f"n{number}": ["app:2"] for number in range(4)}
        status = await status_of(world)
        assert (status.updated_number_scheduled, status.number_available) == (4, 4)

    play(scenario, nodes=4)


def test_a_revision_that_never_gets_ready_stops_at_the_limit_and_is_repaired_by_the_next() -> None:
    async def scenario(world: World) -> None:
        await make(world, updateStrategy=ONE_AT_A_TIME)
        await asyncio.sleep(5)
        await set_image(world, "broken")
        await asyncio.sleep(20)
        assert sorted(image for (image,) in (await by_node(world)).values()) == ["app:1", "app:1", "broken"]
        await set_image(world, "app:2")
        await asyncio.sleep(20)
        assert list((await by_node(world)).values()) == [["app:2"]] * 3

    play(scenario, Habits(ready=lambda pod: pod.spec.containers[0].image != "broken"))


def test_a_surge_puts_the_new_pod_beside_the_old_one() -> None:
    async def scenario(world: World) -> None:
        await make(world, updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, minReadySeconds=3)
        await asyncio.sleep(10)
        await set_image(world, "app:2")
        fewest, doubled = 3, 0
        for _ in range(60):
            await asyncio.sleep(0.5)
            images = await by_node(world)
            doubled = max(doubled, sum(len(found) > 1 for found in images.values()))
            fewest = min(fewest, (await status_of(world)).number_available)
        assert images == {f"n{number}": ["app:2"] for number in range(3)}
        # While an old pod ends, its node still has two; the next node begins meanwhile.
        assert 1 <= doubled <= 2
        assert fewest >= 2

    play(scenario)


def test_on_delete_waits_for_somebody_to_delete() -> None:
    async def scenario(world: World) -> None:
        await make(world, updateStrategy={"type": "OnDelete"})
        await asyncio.sleep(5)
        await set_image(world, "app:2")
        await asyncio.sleep(5)
        assert (await status_of(world)).updated_number_scheduled == 0
        on_first = next(name for name, pod in (await world.pods()).items() if pod.spec.node_name == "n0")
        await world.delete(PODS, on_first)
        await asyncio.sleep(5)
        assert await by_node(world) == {"n0": ["app:2"], "n1": ["app:1"], "n2": ["app:1"]}

    play(scenario)


def test_failed_pods_are_replaced_with_growing_delays() -> None:
    made: list[float] = []

    async def scenario(world: World) -> None:
        loop = asyncio.get_running_loop()

        def run(pod: Pod) -> float:
            made.append(loop.time())
            return 0.1

        world.kubelet.habits = Habits(start=lambda pod: 0.1, run=run, exit_code=lambda pod: 1, stop=lambda pod: 0.1)
        await make(world)
        await asyncio.sleep(70)
        gaps = [after - before for before, after in itertools.pairwise(made)]
        assert gaps[0] < 1.5
        assert gaps[4] > 6
        assert gaps == sorted(gaps)
        reasons = {reason for reason, _ in await world.messages("daemonset-controller")}
        assert reasons == {"SuccessfulCreate", "SuccessfulDelete", "FailedDaemonPod"}
        text = next(text for reason, text in await world.messages() if reason == "FailedDaemonPod")
        assert text.startswith("Found failed daemon pod default/agent-")
        assert text.endswith(" on node n0, will try to kill it")

    play(scenario, nodes=1)


def test_a_pod_that_succeeds_is_made_again() -> None:
    async def scenario(world: World) -> None:
        await make(world)
        await asyncio.sleep(5)
        (before,) = await world.pods()
        await world.patch(PODS, before, {"status": {"phase": "Succeeded"}}, subresource="status")
        await asyncio.sleep(5)
        (after,) = (await world.pods()).values()
        assert (after.metadata.name != before, after.status.phase) == (True, "Running")
        message = f"Found succeeded daemon pod default/{before} on node n0, will try to delete it"
        assert ("SucceededDaemonPod", message) in await world.messages()

    play(scenario, nodes=1)


def test_going_back_takes_the_old_revision_and_history_is_limited() -> None:
    async def scenario(world: World) -> None:
        await make(world, revisionHistoryLimit=1)
        for image in ("app:1", "app:2", "app:3"):
            await set_image(world, image)
            await asyncio.sleep(5)
        numbers = {item.metadata.name: item.revision for item in await world.list(CONTROLLER_REVISIONS)}
        assert sorted(numbers.values()) == [2, 3]
        await set_image(world, "app:2")
        await asyncio.sleep(5)
        after = {item.metadata.name: item.revision for item in await world.list(CONTROLLER_REVISIONS)}
        assert set(after) == set(numbers)
        assert sorted(after.values()) == [3, 4]

    play(scenario, nodes=1)


def test_a_twin_of_the_current_revision_goes_and_its_pods_are_relabelled() -> None:
    async def scenario(world: World) -> None:
        await make(world)
        await asyncio.sleep(5)
        (revision,) = await world.list(CONTROLLER_REVISIONS)
        raw = world.core.storage.get(CONTROLLER_REVISIONS.group_resource, ("default", revision.metadata.name))
        assert raw is not None
        twin = {"metadata": {"name": "twin", "labels": {"app": "agent"}}, "data": raw["data"], "revision": 5}
        await world.create(CONTROLLER_REVISIONS, twin)
        await asyncio.sleep(5)
        (kept,) = await world.list(CONTROLLER_REVISIONS)
        assert (kept.metadata.name, kept.metadata.labels["controller-revision-hash"]) == ("twin", "twin")
        (pod,) = (await world.pods()).values()
        assert pod.metadata.labels["controller-revision-hash"] == "twin"

    play(scenario, nodes=1)


def test_a_pod_too_many_goes_and_a_stranger_is_released() -> None:
    async def scenario(world: World) -> None:
        await make(world)
        await asyncio.sleep(5)
        (first,) = await world.pods()
        await world.create(PODS, bodies.pod("late", node="n0", labels={"app": "agent"}))
        await asyncio.sleep(5)
        assert list(await world.pods()) == [first]
        await world.patch(PODS, first, {"metadata": {"labels": {"app": "else"}}})
        await asyncio.sleep(5)
        pods = await world.pods()
        assert len(pods) == 2
        assert pods[first].metadata.owner_references == ()

    play(scenario, nodes=1)


# Pure


def test_delays_double_up_to_a_limit_and_begin_anew_after_a_long_peace() -> None:
    delay: Delay | None = None
    seconds = []
    now = NOW
    for _ in range(12):
        delay = next_delay(delay, now, first=1, most=900)
        seconds.append(delay.seconds)
        now += timedelta(seconds=delay.seconds)
    assert seconds == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    assert delay is not None
    assert seconds_left(delay, delay.since + timedelta(seconds=899)) == 1
    assert next_delay(delay, delay.since + timedelta(seconds=1801), first=1, most=900).seconds == 1


def _pod(name: str, *, new: bool, available: bool, terminating: bool) -> DaemonPod:
    pod = Pod(metadata=ObjectMeta(name=name), spec=PodSpec(node_name="n"), status=PodStatus(phase="Running"))
    return DaemonPod(pod, new, terminating, available, 0.0 if available else None)


pods_on_a_node = st.lists(
    st.builds(_pod, st.uuids().map(str), new=st.booleans(), available=st.booleans(), terminating=st.booleans()),
    max_size=3,
)


@settings(max_examples=EXAMPLES)
@given(
    nodes=st.lists(st.tuples(st.booleans(), pods_on_a_node), max_size=8),
    unavailable=st.integers(1, 4),
    surge=st.integers(0, 3),
)
def test_a_rollout_keeps_its_limits(nodes: list[tuple[bool, list[DaemonPod]]], unavailable: int, surge: int) -> None:
    """What a step takes away from service stays within maxUnavailable; second pods stay within maxSurge."""
    limits = {"maxSurge": surge, "maxUnavailable": 0} if surge else {"maxUnavailable": unavailable}
    body = bodies.daemon_set("agent", updateStrategy={"type": "RollingUpdate", "rollingUpdate": limits})
    known = [
        DaemonNode(f"n{number}", Verdict(should_run, True), True, tuple(pods))
        for number, (should_run, pods) in enumerate(nodes)
    ]
    work = daemon_rollout.roll(convert(body, DaemonSet), known)
    leaving = {item.name for item in work.pods}
    alive = {node.name: [item for item in node.pods if not item.is_terminating] for node in known}
    assert all(not item.is_terminating for item in work.pods)
    assert all(not item.is_new for item in work.pods)
    if surge:
        second = [name for name in work.nodes if any(item.is_available for item in alive[name])]
        doubled = [name for name, pods in alive.items() if {item.is_new for item in pods} == {True, False}]
        waiting = [name for name in doubled if not any(item.is_new and item.is_available for item in alive[name])]
        assert len(second) <= max(0, surge - len([name for name in waiting if len(alive[name]) == 2]))
        return
    assert not work.nodes
    served = [name for name, pods in alive.items() if any(item.is_available for item in pods)]
    left = [name for name in served if any(item.is_available and item.name not in leaving for item in alive[name])]
    lost = len(served) - len(left)
    concerned = [node for node in known if node.pods or node.verdict.should_run]
    assert lost == 0 or len(concerned) - len(left) <= unavailable
