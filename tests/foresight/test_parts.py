"""The parts of a forecast by themselves: times, patches, the world, what a change sets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.api.native.pod import PODS, Pod
from kruise.foresight.changes import changes_between
from kruise.foresight.learning import learn
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.plan import OnError, Phase, Plan, Result, Target
from kruise.model import podstates
from kruise.model.patching import patched
from kruise.model.times import Times
from kruise.model.world import World
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


# Patches


def test_a_patch_leaves_other_parts_the_very_same() -> None:
    pod = pod_of(
        spec={"nodeName": "node-1"}, status={"phase": "Running", "conditions": [{"type": "A", "status": "True"}]}
    )
    body = {"status": {"conditions": [{"type": "B", "status": "False"}]}}
    after = patched(PODS, pod, body, PatchType.STRATEGIC)
    assert {item.type for item in after.status.conditions} == {"A", "B"}
    assert after.spec is pod.spec
    assert after.metadata is pod.metadata


def test_a_json_patch_tests_what_is_there() -> None:
    pod = pod_of()
    right = [{"op": "test", "path": "/metadata/labels/app", "value": "web"}, _label("team", "a")]
    assert patched(PODS, pod, right, PatchType.JSON).metadata.labels == {"app": "web", "team": "a"}
    with pytest.raises(PatchError):
        patched(PODS, pod, [{"op": "test", "path": "/metadata/labels/app", "value": "other"}], PatchType.JSON)


def test_a_merge_patch_removes_with_null() -> None:
    after = patched(PODS, pod_of(), {"metadata": {"labels": {"app": None, "team": "a"}}}, PatchType.MERGE)
    assert after.metadata.labels == {"team": "a"}


def _label(name: str, value: str) -> dict[str, Any]:
    return {"op": "add", "path": f"/metadata/labels/{name}", "value": value}


# The world


def world_with(*pods: Pod) -> World:
    world = World(NOW)
    world.add(PODS, pods)
    return world


def test_writes_are_guarded() -> None:
    pod = pod_of()
    world = world_with(pod)
    target = Target.of(PODS, pod)
    body = {"metadata": {"labels": {"team": "a"}}}
    assert world.write(plans.patch(target, body, uid="another", reason="")).result is Result.MOVED
    stale = plans.patch(target, body, uid="uid-web-1", resource_version="4", reason="")
    assert world.write(stale).result is Result.MOVED
    assert world.write(plans.patch(target, body, uid="uid-web-1", reason="")).result is Result.DONE
    nobody = Target(PODS, "demo", "web-2")
    assert world.write(plans.patch(nobody, body, uid="x", reason="")).result is Result.GONE
    assert world.write(plans.delete(nobody, uid="x", reason="")).result is Result.DONE


def test_a_create_that_was_done_before_is_done() -> None:
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "owner", "controller": True}
    body = {"metadata": {"name": "web-9", "namespace": "demo", "ownerReferences": [owner]}}
    world = world_with()
    action = plans.create(PODS, body, reason="", owner_uid="owner")
    assert world.write(action).result is Result.DONE
    assert world.write(action).result is Result.DONE
    assert world.write(plans.create(PODS, body, reason="", owner_uid="other")).result is Result.FAILED
    assert len(world.store(PODS)) == 1


def test_phases_go_in_order_and_stop_as_they_say() -> None:
    pod = pod_of()
    world = world_with(pod)
    target = Target.of(PODS, pod)
    good = plans.patch(target, {"metadata": {"labels": {"a": "1"}}}, uid="uid-web-1", reason="")
    bad = plans.create(PODS, {"metadata": {"name": "web-1", "namespace": "demo"}}, reason="")
    plan = Plan(
        phases=(
            Phase(name="first", chains=((good,),)),
            Phase(name="void", chains=((good,),), unless_done=("first",)),
            Phase(name="broken", chains=((bad, good), (good,)), on_error=OnError.STOP_PHASE),
            Phase(name="next", chains=((good,),)),
            Phase(name="fatal", chains=((bad,),)),
            Phase(name="never", chains=((good,),)),
        )
    )
    results = [outcome.result.value for outcome in world.carry_out(plan)]
    assert results == ["done", "skipped", "failed", "skipped", "skipped", "done", "failed", "skipped"]


def test_a_pod_goes_when_it_has_ended_and_no_finalizer_holds_it() -> None:
    pod = pod_of(spec={"nodeName": "node-1"})
    pod = codec.evolve(pod, metadata=codec.evolve(pod.metadata, finalizers=("example.com/keep",)))
    world = world_with(pod)
    world.write(plans.delete(Target.of(PODS, pod), uid="uid-web-1", reason=""))
    leaving = world.store(PODS).get("demo", "web-1")
    assert leaving is not None
    assert leaving.metadata.deletion_timestamp == NOW + timedelta(seconds=30)
    world.pod_ended(leaving)
    assert world.store(PODS).get("demo", "web-1") is not None
    free = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/keep"]}}
    world.write(plans.patch(Target.of(PODS, pod), free, uid="uid-web-1", reason="", patch_type=PatchType.STRATEGIC))
    assert world.store(PODS).get("demo", "web-1") is None


def test_happenings_come_in_their_order() -> None:
    world = World(NOW)
    seen: list[str] = []
    world.after(2, lambda: seen.append("late"))
    world.after(1, lambda: seen.append("early"))
    world.after(1, lambda: (seen.append("second"), world.after(0, lambda: seen.append("at once")))[0])
    world.settle()
    assert seen == []
    assert world.next_moment == NOW + timedelta(seconds=1)
    world.now = NOW + timedelta(seconds=1)
    world.settle()
    assert seen == ["early", "second", "at once"]


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
