"""The parts of a forecast by themselves: times, what is the matter with pods, what a change sets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.api.native.pod import Pod
from kruise.foresight.changes import changes_between
from kruise.foresight.learning import learn
from kruise.machinery import codec
from kruise.model import podstates
from kruise.model.times import Times
from tests.foresight.scenes import NOW, Scene, broken, manifest, with_status


def pod_of(name: str = "web-1", **fields: Any) -> Pod:
    metadata = {
        "name": name,
        "namespace": "demo",
        "uid": f"uid-{name}",
        "resourceVersion": "5",
        "labels": {"app": "web"},
    }
    return codec.convert({"metadata": metadata, **fields}, Pod)


# Times


def test_times_are_learnt_from_the_pods() -> None:
    pod = pod_of(
        spec={"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx"}]},
        status={
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2030-01-01T10:00:02Z"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T10:00:20Z"},
            ],
            "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2030-01-01T10:00:09Z"}}}],
        },
    )
    pod = codec.evolve(pod, metadata=codec.evolve(pod.metadata, creation_timestamp=NOW - timedelta(hours=2)))
    times = learn([pod])
    assert (times.schedule, times.start, times.ready, times.restart) == (2.0, 7.0, 11.0, 7.0)
    assert times.learnt == {"schedule", "start", "ready", "restart"}
    assert times.stop == Times().stop


def test_times_of_updates_in_place_are_learnt_from_the_last_one() -> None:
    scene = Scene.of(manifest(3))
    after = scene.after(scene.changed(image="nginx:2"))
    times = learn(after.pods)
    assert times.restart == pytest.approx(learn(scene.pods).restart, abs=1)
    assert "stop" in times.learnt


def test_nobody_tells_anything() -> None:
    assert learn([]) == Times()
    assert learn([pod_of()]) == Times()


def test_what_took_hours_is_no_sample() -> None:
    pod = Scene.of(manifest(1)).pods[0]
    late = NOW + timedelta(days=1)
    conditions = tuple(
        codec.evolve(item, last_transition_time=late) if item.type == "Ready" else item
        for item in pod.status.conditions
    )
    flapped = codec.evolve(pod, status=codec.evolve(pod.status, conditions=conditions))
    assert "ready" not in learn([flapped]).learnt


# Pods


def test_what_is_the_matter_with_a_pod() -> None:
    pod = Scene.of(manifest(1)).pods[0]
    assert podstates.trouble(pod) == ""
    assert podstates.trouble(broken(pod)) == "container main: CrashLoopBackOff"
    lost = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}
    assert podstates.trouble(with_status(pod, lost)) == "0/3 nodes are available"


def test_ready_follows_from_containers_and_gates() -> None:
    pod = Scene.of(manifest(1)).pods[0]
    assert podstates.with_readiness(pod, NOW) is pod
    conditions = [
        {"type": item.type, "status": "False" if item.type == "InPlaceUpdateReady" else item.status}
        for item in pod.status.conditions
    ]
    held = podstates.with_readiness(with_status(pod, {"conditions": conditions}), NOW)
    ready = next(item for item in held.status.conditions if item.type == "Ready")
    assert (ready.status, ready.reason, ready.last_transition_time) == ("False", "ReadinessGatesNotReady", NOW)


def test_a_pod_that_fell_back_is_not_expected_to_recover() -> None:
    pod = Scene.of(manifest(1)).pods[0]
    started = podstates.started_at(pod.status.container_statuses)
    assert started is not None
    fell = with_status(
        pod,
        {
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T11:30:00Z"}],
            "containerStatuses": [
                {"name": "main", "state": {"running": {"startedAt": "2030-01-01T11:00:00Z"}}, "ready": False}
            ],
        },
    )
    assert podstates.until_ready(fell, 1.0, NOW) is None
    young = with_status(
        pod,
        {
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T11:59:50Z"}],
            "containerStatuses": [
                {"name": "main", "state": {"running": {"startedAt": "2030-01-01T11:59:56Z"}}, "ready": False}
            ],
        },
    )
    assert podstates.until_ready(young, 10.0, NOW) == 6.0


# Changes


def test_changes_are_told_by_field() -> None:
    scene = Scene.of(manifest(2))
    document = scene.changed(image="nginx:2", replicas=3)
    document["spec"]["template"]["metadata"]["annotations"] = {"example.com/note": "x"}
    forecast = scene.foresee(document)
    assert {change.path: (change.before, change.after) for change in forecast.changes} == {
        "spec.replicas": ("2", "3"),
        "spec.template.metadata.annotations": ("", '{"example.com/note":"x"}'),
        "spec.template.spec.containers[main].image": ('"nginx:1"', '"nginx:2"'),
    }


def test_nothing_differs_from_itself() -> None:
    (live,) = [
        obj for resource, items in Scene.of(manifest(1)).objects.items() if resource.kind == "CloneSet" for obj in items
    ]
    assert changes_between(live, live) == ()
    assert [change.path for change in changes_between(None, live)] == ["spec"]
