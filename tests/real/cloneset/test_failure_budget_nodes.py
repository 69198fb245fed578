"""The failure budget on three real nodes: a pull that fails, and containers that crash."""

from __future__ import annotations

import pytest

from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.shared.failure_budget import ANNOTATION
from tests.support.nodescene import (
    Json,
    Scene,
    cloneset,
    condition,
    container,
    identity,
    image_of,
    is_ready,
    status_of,
    waiting_reason,
)

pytestmark = [pytest.mark.nodes, pytest.mark.spread]

SLEEPS, CRASHES = ["sh", "-c", "exec sleep 100000"], ["sh", "-c", "exit 3"]


def with_budget(manifest: Json, budget: str) -> Json:
    manifest["metadata"]["annotations"] = {ANNOTATION: budget}
    return manifest


def until_complete(scene: Scene) -> str:
    """Wait until the revision counts as rolled out; gives it."""

    def complete() -> str:
        status = scene.cloneset()["status"]
        assert status.get("currentRevision", "") == status["updateRevision"], scene.told()
        return str(status["currentRevision"])

    return scene.until(complete)


def until_stopped(scene: Scene, reason: str) -> str:
    def stopped() -> str:
        conditions = scene.cloneset()["status"].get("conditions", [])
        found = [each for each in conditions if each["type"] == FAILURE_BUDGET]
        assert [each["reason"] for each in found] == [reason], scene.told()
        return str(found[0]["message"])

    return scene.until(stopped)


@pytest.mark.smoke
def test_an_image_that_cannot_be_pulled_goes_back_in_place(scene: Scene) -> None:
    scene.create(with_budget(cloneset(replicas=4, rolling={"maxUnavailable": 2}), "0:rollback"))
    before = scene.settled()
    revision = until_complete(scene)
    mark = scene.log.mark()
    scene.set_image("nginx:no-such-tag")
    message = until_stopped(scene, "RolledBack")
    assert "Image" in message
    assert f"go back to {revision}" in message

    def is_back() -> dict[str, Json]:
        pods = scene.by_name()
        assert {image_of(pod) for pod in pods.values()} == {"nginx:1.25"}
        assert all(map(is_ready, pods.values())), scene.told()
        return pods

    after = scene.until(is_back)
    assert {name: identity(pod) for name, pod in after.items()} == {name: identity(pod) for name, pod in before.items()}
    assert scene.fewest_ready(mark) >= 2
    assert len(scene.events(FAILURE_BUDGET)) == 1


def test_crashing_pods_stop_a_rollout_and_are_repaired_first(scene: Scene) -> None:
    """A changed command needs new pods. The crashing one makes its pod ready for a moment each time: where the kubelet
    tells of that, a rollout without minReadySeconds goes on to the next."""
    manifest = cloneset(replicas=3, containers=[container(image="busybox:1.36", command=SLEEPS)])
    manifest["spec"]["minReadySeconds"] = 3
    scene.create(with_budget(manifest, "0"))
    scene.settled()
    until_complete(scene)
    mark = scene.log.mark()

    def set_command(command: list[str]) -> None:
        template = scene.cloneset()["spec"]["template"]
        template["spec"]["containers"][0]["command"] = command
        scene.patch({"template": template})

    set_command(CRASHES)
    assert "1 pod failed" in until_stopped(scene, "Paused")
    revision = scene.cloneset()["status"]["updateRevision"]
    [ill] = [name for name, pod in scene.by_name().items() if status_of(pod).get("restartCount", 0) > 0]
    assert scene.most_of(revision, mark) == 1
    scene.patch({"replicas": 4})

    def has_another_old_one() -> None:
        pods = scene.by_name()
        assert len(pods) == 4
        assert sum(map(is_ready, pods.values())) == 3, scene.told()
        assert scene.most_of(revision, mark) == 1

    scene.until(has_another_old_one)
    assert waiting_reason(scene.by_name()[ill]) in ("", "CrashLoopBackOff")
    set_command(["sh", "-c", "exec sleep 200000"])
    after = scene.settled(replicas=4)
    assert ill not in after
    assert all(condition(pod, "Ready") == "True" for pod in after.values())
    until_complete(scene)
    assert FAILURE_BUDGET not in {each["type"] for each in scene.cloneset()["status"].get("conditions", [])}
