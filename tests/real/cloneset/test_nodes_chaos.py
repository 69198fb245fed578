"""A rollout on three real nodes while something dies: each container is still replaced once, within the limits."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.kruisecluster import SHORT_LEASE, KruiseCluster
from tests.support.nodescene import (
    CACHE,
    SPREAD,
    STATE,
    TICKER,
    UPDATE_GRACE,
    Json,
    Scene,
    check_unbroken,
    cloneset,
    container,
    identity,
    image_of,
    is_ready,
    revision_of,
    status_of,
)
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("own-nodes")]


@pytest.fixture(scope="module")
def real_nodes(own_nodes: RealNodes) -> RealNodes:
    return own_nodes


@pytest.fixture(scope="module")
def kruise_on_nodes(own_nodes: RealNodes) -> Iterator[KruiseCluster]:
    with KruiseCluster(own_nodes, flags=SHORT_LEASE) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def manager_afterwards(kruise_on_nodes: KruiseCluster) -> Iterator[None]:
    """Whatever a test did to the manager, the next one has one."""
    yield
    kruise_on_nodes.keep_manager()


def _begin(scene: Scene, grace: int = 0) -> tuple[dict[str, Json], int]:
    """Three pods on three nodes, and a rollout that takes one at a time."""
    scene.create(
        cloneset(
            containers=[container(), TICKER],
            rolling={"inPlaceUpdateStrategy": {"gracePeriodSeconds": grace}},
            pod={"volumes": [CACHE], "topologySpreadConstraints": [SPREAD]},
        )
    )
    before = scene.settled()
    mark = scene.log.mark()
    scene.set_image("nginx:1.26")
    return before, mark


def _replaced_once(scene: Scene, before: dict[str, Json], since: int) -> None:
    after = scene.settled("nginx:1.26")
    for name, pod in after.items():
        assert identity(pod) == identity(before[name])
        assert status_of(pod)["restartCount"] == 1
        assert "nginx 1.26" in scene.page(pod)
    check_unbroken(scene, after, before, after)
    assert scene.fewest_ready(since) == 2
    revisions = scene.items("/apis/apps/v1/namespaces/{}/controllerrevisions")
    assert sorted(each["revision"] for each in revisions) == [1, 2]


def test_the_manager_dies_after_the_first_change(scene: Scene) -> None:
    """kill -9 as soon as one pod has the new image; the next manager goes on from what it finds."""
    before, mark = _begin(scene)
    scene.until_change(lambda change: image_of(change.object) == "nginx:1.26", since=mark)
    scene.kruise.kill_manager()
    time.sleep(3)
    # The kubelet did its part; nobody says that the pod is ready again, and nobody goes on.
    assert [image_of(pod) for pod in scene.pods()].count("nginx:1.26") == 1
    assert sum(map(is_ready, scene.pods())) == 2
    scene.kruise.start_manager()
    _replaced_once(scene, before, mark)


def test_the_manager_dies_in_a_grace_period(scene: Scene) -> None:
    """It ends while nobody is there; the change comes with the next manager (IPU-70)."""
    before, mark = _begin(scene, grace=3)
    scene.until_change(lambda change: UPDATE_GRACE in change.object["metadata"].get("annotations", {}), since=mark)
    scene.kruise.kill_manager()
    time.sleep(4)
    assert {image_of(pod) for pod in scene.pods()} == {"nginx:1.25"}
    scene.kruise.start_manager()
    _replaced_once(scene, before, mark)


def test_a_kubelet_dies(scene: Scene) -> None:
    """The rollout waits for the pod whose node does not answer, and goes on when it does. Containers run on."""
    before, mark = _begin(scene)
    first = scene.until_change(lambda change: image_of(change.object) == "nginx:1.26", since=mark)
    old = revision_of(next(iter(before.values())))
    name, pod = next((name, pod) for name, pod in before.items() if name != first.name)
    node = pod["spec"]["nodeName"]
    scene.cluster.kill_kubelet(node)
    try:
        waiting = scene.until_pod(name, lambda pod: revision_of(pod) != old)
        time.sleep(4)
        # The one on the dead node holds up what was left.
        waiting = scene.by_name()[name]
        assert waiting["metadata"]["labels"][STATE] == "Updating"
        assert status_of(waiting) == status_of(pod)
        assert "nginx 1.25" in scene.page(pod)
        assert sum(map(is_ready, scene.pods())) == 2
    finally:
        scene.cluster.start_kubelet(node)
    _replaced_once(scene, before, mark)


def test_the_api_server_dies(scene: Scene) -> None:
    """It comes back with all that it had; a manager that lost its lease meanwhile is started again."""
    before, mark = _begin(scene)
    scene.until_change(lambda change: image_of(change.object) == "nginx:1.26", since=mark)
    scene.cluster.kill_apiserver()
    time.sleep(1)
    for pod in before.values():
        assert scene.cluster.run_on_node(pod["spec"]["nodeName"], "ctr", "--namespace=k8s.io", "tasks", "list")
    scene.cluster.start_apiserver()

    def settled() -> None:
        # When it notices that its lease is lost is up to the manager: at any moment until all is done.
        scene.kruise.keep_manager()
        scene.settled("nginx:1.26", within=0)

    scene.until(settled)
    _replaced_once(scene, before, mark)
