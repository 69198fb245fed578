"""Deployments on virtual time, with a kubelet that only moves the status of pods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.local.workloads import specs
from kruise.local.workloads.objects import DEPLOYMENTS, REPLICA_SETS, Deployment, ReplicaSet
from kruise.local.workloads.rollout import DESIRED_REPLICAS, MAX_REPLICAS, REVISION, REVISION_HISTORY
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import run_virtual
from tests.local.workloads import bodies
from tests.local.workloads.world import Habits, World

Scenario = Callable[[World], Awaitable[None]]


def play(scenario: Scenario, habits: Habits | None = None) -> None:
    async def main() -> None:
        world = World(specs, habits=habits)
        async with world.running():
            await scenario(world)

    run_virtual(main())


async def set_image(world: World, name: str, image: str) -> None:
    await world.patch(DEPLOYMENTS, name, bodies.image(image), patch_type=PatchType.STRATEGIC)


async def by_image(world: World) -> dict[str, ReplicaSet]:
    """The ReplicaSets by the image of their template."""
    found = {}
    for item in await world.list(REPLICA_SETS):
        text = bytes(item.spec.template).decode()
        found[text.split('"image":"')[1].split('"')[0]] = item
    return found


def conditions(found: Deployment) -> dict[str, tuple[str, str]]:
    return {item.type: (item.status, item.reason) for item in found.status.conditions}


def test_a_new_deployment() -> None:
    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 3))
        await asyncio.sleep(10)
        found = await world.get(DEPLOYMENTS, "web")
        status = found.status
        assert (status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas) == (
            3,
            3,
            3,
            3,
        )
        assert (status.unavailable_replicas, status.observed_generation) == (0, found.metadata.generation)
        assert conditions(found) == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }
        assert found.metadata.annotations[REVISION] == "1"
        (only,) = await world.list(REPLICA_SETS)
        value = only.metadata.labels["pod-template-hash"]
        assert only.metadata.name == f"web-{value}"
        assert only.spec.selector.match_labels == {"app": "web", "pod-template-hash": value}
        assert only.metadata.annotations == {REVISION: "1", DESIRED_REPLICAS: "3", MAX_REPLICAS: "4"}
        pods = await world.pods()
        assert {pod.metadata.labels["pod-template-hash"] for pod in pods.values()} == {value}
        assert await world.messages("deployment-controller") == [
            ("ScalingReplicaSet", f"Scaled up replica set web-{value} from 0 to 3")
        ]
        messages = {item.type: item.message for item in status.conditions}
        assert messages["Progressing"] == f'ReplicaSet "web-{value}" has successfully progressed.'

    play(scenario)


def test_the_name_follows_the_template() -> None:
    """Equal templates make equal names, whatever the order of their keys; another template makes another name."""

    async def scenario(world: World) -> None:
        first = bodies.deployment("web", 1)
        await world.create(DEPLOYMENTS, first)
        await asyncio.sleep(5)
        (before,) = await world.list(REPLICA_SETS)
        await world.delete(DEPLOYMENTS, "web", propagation="Background")
        await world.delete(REPLICA_SETS, before.metadata.name)
        spec = first["spec"]["template"]["spec"]
        first["spec"]["template"]["spec"] = dict(reversed(spec.items()))
        await world.create(DEPLOYMENTS, first)
        await asyncio.sleep(5)
        (after,) = [item for item in await world.list(REPLICA_SETS) if item.metadata.uid != before.metadata.uid]
        assert after.metadata.name == before.metadata.name

    play(scenario)


@pytest.mark.parametrize(("size", "surge", "unavailable"), [(200, "25%", "25%"), (60, 0, 10), (60, 10, 0)])
def test_a_rollout_keeps_its_bounds_at_each_step(size: int, surge: Any, unavailable: Any) -> None:
    """Many pods, each starting and stopping in its own time: never too few available, never too many there."""
    random = Random(7)
    habits = Habits(start=lambda pod: random.uniform(0.5, 20), stop=lambda pod: random.uniform(0.1, 8))

    async def scenario(world: World) -> None:
        strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
        await world.create(DEPLOYMENTS, bodies.deployment("web", size, strategy=strategy))
        await asyncio.sleep(60)
        fewest = size - (size // 4 if unavailable == "25%" else unavailable)
        most = size + (size // 4 if surge == "25%" else surge)
        steps, ready, there, low, high = 0, 0, 0, size, 0
        # Counts follow the events of the pods one by one: what a watcher sees is what must hold.
        states: dict[str, tuple[bool, bool]] = {}

        def changed(old: Pod | None, new: Pod | None) -> None:
            nonlocal steps, ready, there, low, high
            pod = new if new is not None else old
            assert pod is not None
            was_there, was_ready = states.pop(pod.metadata.uid, (False, False))
            is_there = new is not None and new.metadata.deletion_timestamp is None
            now_ready = is_there and is_ready(pod)
            states[pod.metadata.uid] = (is_there, now_ready)
            there += is_there - was_there
            ready += now_ready - was_ready
            steps += len(states) >= size
            low = min(low, ready) if steps else low
            high = max(high, there)

        unsubscribe = world.controllers.cache.store(PODS).subscribe(changed)
        await set_image(world, "web", "app:2")
        await asyncio.sleep(1200)
        unsubscribe()
        found = await world.get(DEPLOYMENTS, "web")
        assert (found.status.updated_replicas, found.status.available_replicas, found.status.replicas) == (size,) * 3
        assert conditions(found)["Progressing"] == ("True", "NewReplicaSetAvailable")
        assert low >= fewest
        assert high <= most
        assert steps > 2 * size
        assert {item: group.spec.replicas for item, group in (await by_image(world)).items()} == {
            "app:1": 0,
            "app:2": size,
        }

    play(scenario, habits)


def test_a_rollout_back_takes_the_old_replica_set_with_a_new_revision() -> None:
    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 2))
        await asyncio.sleep(10)
        for image in ("app:2", "app:1"):
            await set_image(world, "web", image)
            await asyncio.sleep(30)
        groups = await by_image(world)
        assert groups["app:1"].metadata.annotations[REVISION] == "3"
        assert groups["app:1"].metadata.annotations[REVISION_HISTORY] == "1"
        assert groups["app:2"].metadata.annotations[REVISION] == "2"
        assert (groups["app:1"].spec.replicas, groups["app:2"].spec.replicas) == (2, 0)
        assert (await world.get(DEPLOYMENTS, "web")).metadata.annotations[REVISION] == "3"

    play(scenario)


def test_old_replica_sets_beyond_the_limit_go() -> None:
    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 1, revisionHistoryLimit=2))
        for number in range(2, 7):
            await asyncio.sleep(20)
            await set_image(world, "web", f"app:{number}")
        await asyncio.sleep(30)
        assert sorted(await by_image(world)) == ["app:4", "app:5", "app:6"]

    play(scenario)


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    habits = Habits(stop=lambda pod: 15.0)

    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 3, strategy={"type": "Recreate"}))
        await asyncio.sleep(10)
        await set_image(world, "web", "app:2")
        await asyncio.sleep(10)
        pods = await world.pods()
        assert {pod.spec.containers[0].image for pod in pods.values()} == {"app:1"}
        assert all(pod.metadata.deletion_timestamp is not None for pod in pods.values())
        await asyncio.sleep(20)
        pods = await world.pods()
        assert [pod.spec.containers[0].image for pod in pods.values()] == ["app:2"] * 3
        found = await world.get(DEPLOYMENTS, "web")
        assert conditions(found)["Progressing"] == ("True", "NewReplicaSetAvailable")
        words = [message.partition(" from ")[2] for _, message in await world.messages("deployment-controller")]
        assert words == ["0 to 3", "3 to 0", "0 to 3"]

    play(scenario, habits)


def test_a_pause_stops_the_rollout_but_not_the_scaling() -> None:
    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 4))
        await asyncio.sleep(10)
        await world.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}})
        await set_image(world, "web", "app:2")
        await world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 6}})
        await asyncio.sleep(10)
        found = await world.get(DEPLOYMENTS, "web")
        assert conditions(found)["Progressing"] == ("Unknown", "DeploymentPaused")
        assert {item: group.spec.replicas for item, group in (await by_image(world)).items()} == {"app:1": 6}
        assert found.status.observed_generation == found.metadata.generation
        await world.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
        await asyncio.sleep(60)
        found = await world.get(DEPLOYMENTS, "web")
        assert conditions(found)["Progressing"] == ("True", "NewReplicaSetAvailable")
        assert found.status.updated_replicas == 6

    play(scenario)


def test_a_scaling_in_the_middle_of_a_rollout_is_shared() -> None:
    """Both ReplicaSets grow by their share while the new pods do not get ready."""
    habits = Habits(ready=lambda pod: pod.spec.containers[0].image == "app:1")

    async def scenario(world: World) -> None:
        strategy = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        await world.create(DEPLOYMENTS, bodies.deployment("web", 10, strategy=strategy))
        await asyncio.sleep(10)
        await set_image(world, "web", "app:2")
        await asyncio.sleep(10)
        sizes = {item: group.spec.replicas for item, group in (await by_image(world)).items()}
        assert sizes == {"app:1": 8, "app:2": 5}
        await world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
        await asyncio.sleep(10)
        groups = await by_image(world)
        assert {item: group.spec.replicas for item, group in groups.items()} == {"app:1": 11, "app:2": 7}
        assert {group.metadata.annotations[DESIRED_REPLICAS] for group in groups.values()} == {"15"}

    play(scenario, habits)


def test_a_rollout_that_does_not_move_passes_its_deadline() -> None:
    habits = Habits(ready=lambda pod: pod.spec.containers[0].image == "app:1")

    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 4, progressDeadlineSeconds=60))
        await asyncio.sleep(10)
        await set_image(world, "web", "app:2")
        await asyncio.sleep(50)
        found = await world.get(DEPLOYMENTS, "web")
        assert conditions(found)["Progressing"] == ("True", "ReplicaSetUpdated")
        await asyncio.sleep(30)
        found = await world.get(DEPLOYMENTS, "web")
        assert conditions(found) == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("False", "ProgressDeadlineExceeded"),
        }
        assert found.status.unavailable_replicas == 2
        world.habits.ready = lambda pod: True
        await set_image(world, "web", "app:3")
        await asyncio.sleep(60)
        assert conditions(await world.get(DEPLOYMENTS, "web"))["Progressing"] == ("True", "NewReplicaSetAvailable")

    play(scenario, habits)


def test_orphaned_replica_sets_are_adopted() -> None:
    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 2))
        await asyncio.sleep(10)
        before = set(await world.pods())
        await world.delete(DEPLOYMENTS, "web", propagation="Background")
        for item in await world.list(REPLICA_SETS):  # what the garbage collector does for orphans
            await world.patch(REPLICA_SETS, item.metadata.name, {"metadata": {"ownerReferences": None}})
        await world.create(DEPLOYMENTS, bodies.deployment("web", 2))
        await asyncio.sleep(10)
        (only,) = await world.list(REPLICA_SETS)
        found = await world.get(DEPLOYMENTS, "web")
        assert only.metadata.owner_references[0].uid == found.metadata.uid
        assert set(await world.pods()) == before

    play(scenario)


def test_a_taken_name_is_avoided() -> None:
    """Another owner's ReplicaSet has the name that the hash gives: the collision count makes another one."""

    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 1))
        await asyncio.sleep(5)
        (first,) = await world.list(REPLICA_SETS)
        await world.delete(DEPLOYMENTS, "web", propagation="Background")
        await world.delete(REPLICA_SETS, first.metadata.name)
        await world.create(REPLICA_SETS, bodies.replica_set(first.metadata.name, 0, labels={"other": "one"}))
        await world.create(DEPLOYMENTS, bodies.deployment("web", 1))
        await asyncio.sleep(10)
        found = await world.get(DEPLOYMENTS, "web")
        assert found.status.collision_count == 1
        assert found.status.available_replicas == 1
        assert len(await world.list(REPLICA_SETS)) == 2

    play(scenario)


def test_template_annotations_restart_the_pods() -> None:
    """`kubectl rollout restart` is no more than an annotation of the template."""

    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 2))
        await asyncio.sleep(10)
        before = {pod.metadata.uid for pod in (await world.pods()).values()}
        annotation = {"kubectl.kubernetes.io/restartedAt": "2030-01-01T00:00:10Z"}
        await world.patch(DEPLOYMENTS, "web", {"spec": {"template": {"metadata": {"annotations": annotation}}}})
        await asyncio.sleep(30)
        pods = await world.pods()
        assert len(pods) == 2
        assert not before & {pod.metadata.uid for pod in pods.values()}
        assert all(pod.metadata.annotations == annotation for pod in pods.values())

    play(scenario)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scenario(world: World) -> None:
        await world.create(DEPLOYMENTS, bodies.deployment("web", 3))
        await asyncio.sleep(60)
        before = world.core.storage.version
        await asyncio.sleep(3600)
        assert world.core.storage.version == before

    play(scenario)


def test_the_same_seed_gives_the_same_cluster() -> None:
    def run() -> list[tuple[str, str]]:
        async def main() -> list[tuple[str, str]]:
            random = Random(3)
            world = World(specs, seed=5, habits=Habits(start=lambda pod: random.uniform(1, 9)))
            async with world.running():
                await world.create(DEPLOYMENTS, bodies.deployment("web", 6))
                await asyncio.sleep(15)
                await set_image(world, "web", "app:2")
                await asyncio.sleep(60)
                return await world.messages()

        return run_virtual(main())

    first = run()
    assert len(first) > 12
    assert first == run()
