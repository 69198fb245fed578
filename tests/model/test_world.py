"""Objects of the model: patches, guarded writes, what goes and when, moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kruise.api.meta import Key
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.plan import OnError, Phase, Plan, Result, Target
from kruise.model.patching import patched
from kruise.model.world import World

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


def pod_of(name: str = "web-1", *, metadata: dict[str, Any] | None = None, **fields: Any) -> Pod:
    own = {
        "name": name,
        "namespace": "demo",
        "uid": f"uid-{name}",
        "resourceVersion": "5",
        "labels": {"app": "web"},
        **(metadata or {}),
    }
    return codec.convert({"metadata": own, **fields}, Pod)


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


def test_each_door_lets_its_own_parts_through() -> None:
    pod = pod_of(spec={"nodeName": "node-1"}, status={"phase": "Running"})
    body = {"metadata": {"labels": {"team": "a"}}, "spec": {"nodeName": "other"}, "status": {"phase": "Failed"}}
    seen = {}
    for door in ("", "status", "resize"):
        action = plans.patch(Target.of(PODS, pod), body, uid="uid-web-1", reason="", subresource=door)
        after = world_with(pod).write(action).object
        seen[door] = (after.metadata.labels.get("team"), after.spec.node_name, after.status.phase)
    assert seen == {
        "": ("a", "other", "Running"),
        "status": ("a", "node-1", "Failed"),
        "resize": (None, "other", "Running"),
    }


def test_a_write_that_changes_nothing_leaves_no_trace_and_another_spec_is_another_generation() -> None:
    world = world_with(pod_of(spec={"nodeName": "node-1"}))
    version = world.version
    target = Target(PODS, "demo", "web-1")
    same = plans.patch(target, {"metadata": {"labels": {"app": "web"}}}, uid="uid-web-1", reason="")
    assert world.write(same).result is Result.DONE
    assert world.version == version
    world.edit(PODS, Key("demo", "web-1"), lambda document: document["metadata"]["labels"].update(team="a"))
    world.edit(PODS, Key("demo", "web-1"), lambda document: document["spec"].update(nodeName="node-2"))
    [pod] = world.store(PODS).list()
    assert (pod.metadata.labels, pod.metadata.generation) == ({"app": "web", "team": "a"}, 1)
    assert world.version == version + 2
    assert world.edit(PODS, Key("demo", "nobody"), lambda document: None) is None


def _owned_by(*uids: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid} for uid in uids]}


def test_an_object_goes_with_the_last_of_its_owners() -> None:
    first, second = pod_of("first"), pod_of("second")
    both = pod_of("both", metadata=_owned_by("uid-first", "uid-second"))
    strangers = pod_of("strangers", metadata=_owned_by("uid-first", "somebody that was never read"))
    world = world_with(first, second, both, strangers)
    for pod, left in (
        (first, {"second", "both", "strangers"}),
        (second, {"strangers"}),
    ):
        world.delete(PODS, pod)
        assert {pod.metadata.name for pod in world.store(PODS).list()} == left
    late = {"metadata": {"name": "late", "namespace": "demo", **_owned_by("uid-first")}}
    world.write(plans.create(PODS, late, reason=""))
    world.edit(PODS, Key("demo", "late"), lambda document: document["metadata"].update(labels={"a": "b"}))
    assert {pod.metadata.name for pod in world.store(PODS).list()} == {"strangers"}


def test_a_claim_stays_while_a_pod_mounts_it() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-1"}}]
    pod = pod_of(spec={"nodeName": "node-1", "volumes": volumes})
    world = world_with(pod)
    claim = codec.convert({"metadata": {"name": "data-1", "namespace": "demo", "uid": "c"}}, PersistentVolumeClaim)
    [claim] = world.add(PERSISTENT_VOLUME_CLAIMS, [claim]).list()
    world.delete(PERSISTENT_VOLUME_CLAIMS, claim)
    assert len(world.store(PERSISTENT_VOLUME_CLAIMS)) == 1
    world.pod_ended(world.delete(PODS, pod))
    assert len(world.store(PERSISTENT_VOLUME_CLAIMS)) == 0


def test_a_write_that_admission_makes_does_not_take_the_reason_of_the_one_it_admits() -> None:
    """A WorkloadSpread notes each pod that it takes, while the pod is made."""
    world = World(NOW)
    world.add(PODS, [pod_of("other")])
    told: list[tuple[str, str]] = []

    def admit(action: plans.Action) -> dict[str, Any]:
        body = {"metadata": {"annotations": {"seen": "yes"}}}
        world.write(plans.patch(Target.of(PODS, pod_of("other")), body, uid="uid-other", reason="noted"))
        return dict(action.body)

    world.admit = admit
    world.store(PODS).subscribe(lambda old, new: told.append((new.metadata.name, world.reason)) if new else None)
    told.clear()
    body = {"metadata": {"name": "web-1", "namespace": "demo"}, "spec": {"containers": []}}
    world.write(plans.create(PODS, body, reason="missing", owner_uid=""))
    assert told == [("other", "noted"), ("web-1", "missing")]
    assert world.reason == ""
