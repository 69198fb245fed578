"""Kubelets whose steps a test chooses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kruise.api.native.pod import PODS, Pod
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.model.world import World
from tests.support.kubelets_by_hand import Kubelets

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


def world_of(**metadata: Any) -> World:
    own = {"name": "web-1", "namespace": "demo", "uid": "uid-1", **metadata}
    containers = [{"name": "main", "image": "nginx:1"}, {"name": "side", "image": "envoy:1"}]
    world = World(NOW)
    world.add(PODS, [codec.convert({"metadata": own, "spec": {"containers": containers}}, Pod)])
    return world


def the_pod(world: World) -> Pod:
    [pod] = world.store(PODS).list()
    return pod


def told(pod: Pod) -> str:
    """The images that run, a star for those that are ready, and whether the pod is."""
    found = [f"{status.image}{'*' * status.ready}" for status in pod.status.container_statuses]
    ready = [item.status for item in pod.status.conditions if item.type == "Ready"]
    return " ".join([pod.spec.node_name, *found, *ready])


def steps(world: World, kubelets: Kubelets) -> list[str]:
    seen = []
    while kubelets.step(the_pod(world)):
        seen.append(told(the_pod(world)))
        assert len(seen) < 20
    return seen


def test_a_pod_starts_container_by_container() -> None:
    world = world_of()
    assert steps(world, Kubelets(world)) == [
        "a-node",
        "a-node nginx:1 False",
        "a-node nginx:1* False",
        "a-node nginx:1* envoy:1 False",
        "a-node nginx:1* envoy:1* True",
    ]


def test_a_container_with_another_image_stops_starts_and_becomes_ready() -> None:
    world = world_of()
    kubelets = Kubelets(world, works=lambda container: container.image != "nginx:bad")
    steps(world, kubelets)

    def set_image(image: str) -> None:
        pod = the_pod(world)
        first, second = pod.spec.containers
        spec = codec.evolve(pod.spec, containers=(codec.evolve(first, image=image), second))
        world.put(PODS, codec.evolve(pod, spec=spec))

    set_image("nginx:2")
    assert steps(world, kubelets) == [
        "a-node nginx:1 envoy:1* False",
        "a-node nginx:2 envoy:1* False",
        "a-node nginx:2* envoy:1* True",
    ]
    [main, side] = the_pod(world).status.container_statuses
    assert (main.restart_count, side.restart_count) == (1, 0)
    set_image("nginx:bad")
    assert steps(world, kubelets)[-1] == "a-node nginx:bad envoy:1* False"


def test_containers_crash_and_come_back_and_a_failed_pod_does_not() -> None:
    world = world_of()
    kubelets = Kubelets(world)
    steps(world, kubelets)
    kubelets.crash(the_pod(world))
    assert told(the_pod(world)) == "a-node nginx:1 envoy:1 False"
    assert steps(world, kubelets)[-1] == "a-node nginx:1* envoy:1* True"
    assert {status.restart_count for status in the_pod(world).status.container_statuses} == {1}
    kubelets.fail(the_pod(world))
    assert steps(world, kubelets) == []


def test_a_deleted_pod_ends_with_a_step_and_goes_when_nothing_holds_it() -> None:
    world = world_of(finalizers=["example.com/keep"])
    kubelets = Kubelets(world)
    steps(world, kubelets)
    pod = world.delete(PODS, the_pod(world))
    assert kubelets.step(pod)
    assert not kubelets.step(pod)
    free = codec.evolve(pod, metadata=codec.evolve(pod.metadata, finalizers=()))
    world.pod_ended(free)
    assert not world.store(PODS).list()


def test_the_agent_tells_of_containers_where_there_is_one() -> None:
    world = world_of()
    steps(world, Kubelets(world))
    assert keys.CONTAINERS_META_ANNOTATION not in the_pod(world).metadata.annotations
    steps(world, Kubelets(world, reports=True))
    assert "plainHash" in the_pod(world).metadata.annotations[keys.CONTAINERS_META_ANNOTATION]
