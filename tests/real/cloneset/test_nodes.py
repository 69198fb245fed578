"""In-place update on three real nodes: what really happens to containers, addresses, volumes and traffic."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import Counter

import pytest

from tests.support.nodescene import (
    CACHE,
    DATA,
    SLICES,
    SPREAD,
    TICKER,
    UPDATE_GRACE,
    UPDATE_STATE,
    Json,
    Scene,
    assert_all,
    check_unbroken,
    cloneset,
    condition,
    container,
    identity,
    image_of,
    revision_of,
    status_of,
    waiting_reason,
)

pytestmark = [pytest.mark.nodes, pytest.mark.spread]


# In place


@pytest.mark.smoke
def test_an_image_update_leaves_everything_else_alone(scene: Scene) -> None:
    """Same pod, address, node and volumes with their data; one container is new, the other's uptime is unbroken.

    IPU-164, IPU-32, IPU-60, CS-104.
    """
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "cache", "mountPath": "/cache"}]
    scene.create(
        cloneset(
            containers=[container(volumeMounts=mounts), TICKER],
            pod={"volumes": [CACHE], "topologySpreadConstraints": [SPREAD]},
            volumeClaimTemplates=[DATA],
        )
    )
    before, claims = scene.settled(), scene.claims()
    assert {pod["spec"]["nodeName"] for pod in before.values()} == set(scene.cluster.nodes)
    for name in before:
        scene.run(name, f"for place in /data /cache /own; do mkdir -p $place; echo {name} > $place/word; done")
    mark = scene.log.mark()
    scene.set_image("nginx:1.26")
    after = scene.settled("nginx:1.26")

    assert {name: identity(pod) for name, pod in after.items()} == {name: identity(pod) for name, pod in before.items()}
    assert {name: each["metadata"]["uid"] for name, each in scene.claims().items()} == {
        name: each["metadata"]["uid"] for name, each in claims.items()
    }
    revision = scene.cloneset()["status"]["updateRevision"]
    for name, pod in after.items():
        old, new = status_of(before[name]), status_of(pod)
        assert new["restartCount"] == 1
        assert new["containerID"] != old["containerID"]
        assert new["imageID"].endswith(scene.cluster.registry.digest("nginx:1.26") or "?")
        # The program was asked to end and did.
        assert new["lastState"]["terminated"]["exitCode"] == 0
        assert scene.run(name, "cat /data/word /cache/word") == f"{name}\n{name}\n"
        # What was in the container itself went with it.
        assert scene.run(name, "ls -d /own 2>/dev/null || echo gone") == "gone\n"
        assert "nginx 1.26" in scene.page(pod)
        assert revision_of(pod) == revision
        state = json.loads(pod["metadata"]["annotations"][UPDATE_STATE])
        assert state["revision"] == revision
        assert state["lastContainerStatuses"] == {"main": {"imageID": old["imageID"]}}
        assert [batch["containers"] for batch in state["containerBatchesRecord"]] == [["main"]]
    check_unbroken(scene, after, before, after)
    assert scene.fewest_ready(mark) == 2
    assert sorted(scene.events("SuccessfulUpdatePodInPlace")) == sorted(
        f"successfully update pod {name} in-place(revision {revision})" for name in after
    )


def test_both_containers_of_a_pod_change_at_once(scene: Scene) -> None:
    """One update, one restart of each of the two; the third runs on (IPU-51)."""
    containers = [container(), container("second", "redis:6"), TICKER]
    scene.create(cloneset(replicas=2, containers=containers, pod={"volumes": [CACHE]}))
    before = scene.settled()
    scene.set_images({0: "nginx:1.26", 1: "redis:7"})
    after = scene.settled("nginx:1.26")
    for name, pod in after.items():
        assert identity(pod) == identity(before[name])
        assert [status_of(pod, each)["restartCount"] for each in ("main", "second", "ticker")] == [1, 1, 0]
        state = json.loads(pod["metadata"]["annotations"][UPDATE_STATE])
        assert [batch["containers"] for batch in state["containerBatchesRecord"]] == [["main", "second"]]
    check_unbroken(scene, after, before, after)
    # Now only one of them: the other keeps its container.
    scene.set_images({1: "redis:6"})
    later = scene.settled("nginx:1.26")
    for name, pod in later.items():
        assert status_of(pod) == status_of(after[name])
        assert status_of(pod, "second")["restartCount"] == 2
    check_unbroken(scene, later, before, later)


def test_containers_of_higher_priority_come_first(scene: Scene) -> None:
    """The other one is stopped only when the first is ready again; a broken first one keeps it running.

    IPU-51, IPU-54.
    """

    def with_priority(priority: int) -> list[Json]:
        reference = {"name": "barrier", "key": f"p_{priority}", "optional": True}
        return [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": reference}}]

    low = container(env=with_priority(0))
    high = container("second", "redis:6", env=with_priority(10))
    scene.create(cloneset(replicas=1, containers=[low, high]))
    ((name, before),) = scene.settled().items()
    scene.set_images({0: "nginx:1.26", 1: "redis:no-such-tag"})
    scene.until_pod(name, lambda pod: "Image" in waiting_reason(pod, "second"))
    time.sleep(2)
    stuck = scene.by_name()[name]
    assert image_of(stuck) == "nginx:1.25"
    assert status_of(stuck) == status_of(before)
    state = json.loads(stuck["metadata"]["annotations"][UPDATE_STATE])
    assert state["nextContainerImages"] == {"main": "nginx:1.26"}
    assert state["preCheckBeforeNext"] == {"containersRequiredReady": ["second"]}

    mark = scene.log.mark()
    scene.set_images({1: "redis:7"})
    after = scene.settled("nginx:1.26")[name]
    assert identity(after) == identity(before)
    assert [status_of(after, each)["restartCount"] for each in ("main", "second")] == [1, 1]
    state = json.loads(after["metadata"]["annotations"][UPDATE_STATE])
    assert [batch["containers"] for batch in state["containerBatchesRecord"]] == [["second"], ["main"]]
    ordered = scene.first(after["metadata"]["uid"], lambda pod: image_of(pod) == "nginx:1.26", since=mark)
    assert status_of(ordered.object, "second")["ready"]
    assert status_of(ordered.object, "second")["imageID"].endswith(scene.cluster.registry.digest("redis:7") or "?")


def test_a_template_change_of_metadata_restarts_nothing(scene: Scene) -> None:
    """Labels and annotations arrive on the same containers (IPU-36)."""
    scene.create(cloneset(replicas=2, labels={"team": "a"}))
    before = scene.settled()
    scene.patch({"template": {"metadata": {"labels": {"team": "b"}, "annotations": {"note": "new"}}}})
    scene.until(lambda: assert_all(scene.pods(), lambda pod: pod["metadata"]["labels"]["team"] == "b"))
    after = scene.settled()
    for name, pod in after.items():
        assert pod["metadata"]["annotations"]["note"] == "new"
        assert status_of(pod) == status_of(before[name])


@pytest.mark.parametrize(("first", "second"), [("nginx:1.26", "nginx:1.26-same"), ("nginx:1.26-same", "nginx:1.26")])
def test_two_names_of_one_image(scene: Scene, first: str, second: str) -> None:
    """The image id does not change, the container does, and the update comes to its end (IPU-61).

    containerd reports one of the names, whichever name a container was started with. Where that is the wanted one from
    the start, the update counts as done a moment too early: only a report of the node can tell better.
    """
    # On one node, which knows both names from the first pod on.
    scene.create(cloneset(replicas=2, containers=[container(image=first)], pod={"nodeName": "node-2"}))
    before = scene.settled(first)
    mark = scene.log.mark()
    scene.set_image(second)
    scene.until(lambda: assert_all(scene.pods(), lambda pod: status_of(pod)["restartCount"] == 1))
    after = scene.settled(second)
    for name, pod in after.items():
        old, new, uid = status_of(before[name]), status_of(pod), pod["metadata"]["uid"]
        assert identity(pod) == identity(before[name])
        assert new["imageID"] == old["imageID"]
        assert new["containerID"] != old["containerID"]
        assert new["restartCount"] == 1
        began = scene.first(uid, lambda pod: image_of(pod) == second, since=mark)
        done = scene.first(uid, lambda pod: condition(pod, "InPlaceUpdateReady") == "True", since=began.version)
        running = status_of(done.object)
        assert running["containerID"] == new["containerID"] or running["image"].endswith(f"/{second}")


def test_the_grace_period_comes_before_the_change(scene: Scene) -> None:
    """Not ready first; the running container is left alone for that long; never early (IPU-42, IPU-70)."""
    scene.create(
        cloneset(replicas=2, rolling={"inPlaceUpdateStrategy": {"gracePeriodSeconds": 3}, "maxUnavailable": "50%"})
    )
    before = scene.settled()
    mark = scene.log.mark()
    scene.set_image("nginx:1.26")
    waiting = scene.until_change(lambda change: UPDATE_GRACE in change.object["metadata"]["annotations"], since=mark)
    # It still serves those who have not heard yet.
    assert "nginx 1.25" in scene.page(waiting.object)
    after = scene.settled("nginx:1.26")
    for name, pod in after.items():
        uid = pod["metadata"]["uid"]
        unready = scene.first(uid, lambda pod: condition(pod, "InPlaceUpdateReady") == "False", since=mark)
        changed = scene.first(uid, lambda pod: image_of(pod) == "nginx:1.26", since=mark)
        # We hear of both a little later than they happen, and not by the same time.
        assert 2.8 <= changed.seen - unready.seen < 10
        for change in scene.history(uid, since=mark):
            if change.version < changed.version:
                assert status_of(change.object)["containerID"] == status_of(before[name])["containerID"]
        assert UPDATE_GRACE not in pod["metadata"]["annotations"]
        assert status_of(pod)["restartCount"] == 1
    assert scene.fewest_ready(mark) == 1


def test_a_pod_leaves_the_service_before_its_container_changes(scene: Scene) -> None:
    """EndpointSlices say not ready before the new container is there, and with a grace period nobody notices.

    IPU-40, IPU-42, IPU-72.
    """
    service = scene.expose()
    scene.create(cloneset(rolling={"inPlaceUpdateStrategy": {"gracePeriodSeconds": 3}}))
    before = scene.settled()
    scene.until(lambda: assert_all(before.values(), lambda pod: scene.is_serving(pod["metadata"]["name"])))
    answers: Counter[str] = Counter()
    over = threading.Event()

    def visit() -> None:
        while not over.is_set():
            try:
                with urllib.request.urlopen(service, timeout=5) as answer:
                    answers[answer.read().decode().partition("<h1>")[2].partition("</h1>")[0]] += 1
            except OSError as error:
                answers[f"failed: {error}"] += 1
            time.sleep(0.02)

    visitor = threading.Thread(target=visit)
    visitor.start()
    try:
        mark = scene.log.mark()
        scene.set_image("nginx:1.26")
        after = scene.settled("nginx:1.26")
        scene.until(lambda: assert_all(after.values(), lambda pod: scene.is_serving(pod["metadata"]["name"])))
    finally:
        over.set()
        visitor.join()
    for name, pod in after.items():
        _left_before_it_changed(scene, before[name], pod, since=mark, before_the_order=True)
    print(f"requests during the rollout: {dict(answers)}")
    assert set(answers) == {"nginx 1.25", "nginx 1.26"}
    # Without a grace period the order is the same, only nobody waits for the news to get around.
    scene.patch({"updateStrategy": {"rollingUpdate": {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 0}}}})
    mark = scene.log.mark()
    scene.set_image("nginx:alpine")
    for name, pod in scene.settled("nginx:alpine").items():
        _left_before_it_changed(scene, after[name], pod, since=mark, before_the_order=False)


def _left_before_it_changed(scene: Scene, before: Json, after: Json, *, since: int, before_the_order: bool) -> None:
    name, uid = after["metadata"]["name"], after["metadata"]["uid"]

    def is_out(item: Json) -> bool:
        return not any(
            endpoint["targetRef"]["name"] == name and endpoint["conditions"]["ready"]
            for endpoint in item.get("endpoints") or []
        )

    left = next(
        change for change in scene.log.changes(SLICES.format(scene.namespace), since=since) if is_out(change.object)
    )
    unready = scene.first(uid, lambda pod: condition(pod, "InPlaceUpdateReady") == "False", since=since)
    ordered = scene.first(uid, lambda pod: image_of(pod) == image_of(after), since=since)
    old = status_of(before)["containerID"]
    changed = scene.first(uid, lambda pod: status_of(pod).get("containerID", old) != old, since=since)
    assert unready.version < left.version < changed.version
    assert unready.version < ordered.version < changed.version
    if before_the_order:
        assert left.version < ordered.version
