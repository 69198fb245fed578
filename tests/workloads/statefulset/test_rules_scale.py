"""How pods of a StatefulSet come and go: order, limits, identity, ordinals."""

from __future__ import annotations

import pytest

from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.model.world import Json
from kruise.workloads.shared.ordinals import START_GATE
from tests.support.modelled import BROKEN
from tests.workloads.statefulset.modelled import ModelledStatefulSet, document, template, writes


def _settled(given: Json, gates: dict[str, bool] | None = None) -> ModelledStatefulSet:
    model = ModelledStatefulSet(given, gates=gates)
    model.settle()
    return model


def _scale(model: ModelledStatefulSet, replicas: int) -> None:
    model.edit_spec(lambda spec: spec.update(replicas=replicas))


def _unready(model: ModelledStatefulSet, name: str) -> None:
    def edit(pod: Json) -> None:
        for condition in pod["status"]["conditions"]:
            if condition["type"] in ("Ready", "ContainersReady"):
                condition["status"] = "False"
        for status in pod["status"]["containerStatuses"]:
            status["ready"] = False

    model.change(PODS, name, edit)


# Identity


def test_a_new_pod_carries_its_identity() -> None:  # ST-8, ST-35, ST-36, ST-37
    model = _settled(document(1))
    pod = model.pod("web-0")
    assert pod is not None
    assert pod.metadata.labels == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-0",
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": model.statefulset.status.update_revision,
        "lifecycle.apps.kruise.io/state": "Normal",
    }
    [owner] = pod.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name) == ("apps.kruise.io/v1beta1", "StatefulSet", "web")
    assert (owner.controller, owner.block_owner_deletion) == (True, True)


def test_host_name_subdomain_and_the_time_of_the_state_are_written_at_creation() -> None:  # ST-36, ST-37
    model = ModelledStatefulSet(document(1))
    [create] = [action for action in model.reconcile().actions() if action.target.resource == PODS]
    assert create.body["spec"]["hostname"] == "web-0"
    assert create.body["spec"]["subdomain"] == "svc"
    assert create.body["metadata"]["generateName"] == "web-"
    assert keys.STATE_TIME_ANNOTATION in create.body["metadata"]["annotations"]


def test_the_index_label_follows_its_gate() -> None:  # ST-37
    model = _settled(document(1), {"PodIndexLabel": False})
    pod = model.pod("web-0")
    assert pod is not None
    assert "apps.kubernetes.io/pod-index" not in pod.metadata.labels


def test_labels_that_somebody_took_off_are_put_back() -> None:  # ST-60
    model = _settled(document(1))
    model.label("web-0", **{"statefulset.kubernetes.io/pod-name": None})
    model.settle(3)
    pod = model.pod("web-0")
    assert pod is not None
    assert pod.metadata.labels["statefulset.kubernetes.io/pod-name"] == "web-0"


# Order


def test_pods_start_one_after_the_other() -> None:  # ST-60, ST-61
    model = ModelledStatefulSet(document(3))
    assert writes(model.reconcile()) == ["create web-0"]
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web") == ["order"]
    assert model.settle() == ["create web-1", "create web-2"]


def test_parallel_starts_all_at_once() -> None:  # ST-61
    model = ModelledStatefulSet(document(3, parallel=True))
    assert writes(model.reconcile()) == ["create web-0", "create web-1", "create web-2"]


def test_a_gap_is_filled_although_a_higher_pod_is_not_ready() -> None:  # ST-61
    model = _settled(document(3))
    _unready(model, "web-1")
    model.delete_pod("web-0")
    model.kubelet("web-0")
    assert writes(model.reconcile()) == ["create web-0"]


def test_scaling_down_removes_the_highest_first_and_one_at_a_time() -> None:  # ST-63
    model = _settled(document(3))
    _scale(model, 1)
    assert writes(model.reconcile()) == ["delete web-2"]
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web-1") == ["order"]
    assert model.causes(plan, "web-2") == ["terminating"]
    assert model.settle() == ["delete web-1"]
    assert model.names == ["web-0"]


def test_scaling_down_halts_while_another_pod_is_not_ready() -> None:  # ST-63
    model = _settled(document(3))
    _unready(model, "web-0")
    _scale(model, 1)
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web-2") == ["order"]


def test_scaling_to_nothing_halts_while_several_are_not_ready() -> None:  # ST-63
    model = _settled(document(3))
    for name in model.names:
        _unready(model, name)
    _scale(model, 0)
    assert writes(model.reconcile()) == []


def test_the_only_pod_that_is_not_ready_may_go() -> None:  # ST-63
    model = _settled(document(2))
    _unready(model, "web-1")
    _scale(model, 1)
    assert writes(model.reconcile()) == ["delete web-1"]


def test_parallel_removes_all_at_once_whatever_their_health() -> None:  # ST-63, ST-65
    model = _settled(document(4, parallel=True))
    _unready(model, "web-0")
    _unready(model, "web-3")
    _scale(model, 1)
    assert sorted(writes(model.reconcile())) == ["delete web-1", "delete web-2", "delete web-3"]


def test_scale_down_waits_for_min_ready_seconds_and_asks_to_be_looked_at_again() -> None:  # ST-47, ST-63, ST-106
    model = ModelledStatefulSet(document(2, rolling={"minReadySeconds": 30}))
    model.settle(80)
    assert model.names == ["web-0", "web-1"]
    _unready(model, "web-0")
    for _ in range(3):
        model.kubelet("web-0")
    _scale(model, 1)
    done = model.loop.run(model.loop.controllers[0], model.key)
    assert done is not None
    assert writes(done.plan) == []
    assert any("minReadySeconds" in wake.reason for wake in done.conclusion.wakes)


def test_the_pod_that_goes_must_be_available_itself() -> None:  # ST-63, ST-106
    """It came too late to be missed, yet whoever scales up and down at once must not lose the wrong one."""
    model = ModelledStatefulSet(document(2, rolling={"minReadySeconds": 30}))
    while (pod := model.pod("web-1")) is None or not is_ready(pod):
        model.settle(1)
    _scale(model, 1)
    done = model.loop.run(model.loop.controllers[0], model.key)
    assert done is not None
    assert writes(done.plan) == []
    assert model.causes(done.plan, "web-1") == ["order"]
    assert any("minReadySeconds" in wake.reason for wake in done.conclusion.wakes)
    assert model.settle(35) == ["delete web-1"]


# Pods that end


@pytest.mark.parametrize("parallel", [False, True])
def test_a_pod_that_failed_is_replaced(parallel: bool) -> None:  # ST-60
    model = _settled(document(2, parallel=parallel))
    pod = model.pod("web-0")
    assert pod is not None
    model.kubelets.fail(pod)
    assert writes(model.reconcile()) == ["delete web-0"]
    assert model.settle() == ["create web-0"]


def test_a_failed_pod_is_deleted_although_it_uses_up_the_limit() -> None:  # ST-64
    model = _settled(document(3, parallel=True, scaleStrategy={"maxUnavailable": 1}))
    pod = model.pod("web-1")
    assert pod is not None
    model.kubelets.fail(pod)
    assert writes(model.reconcile()) == ["delete web-1"]


# Limits


def test_the_scale_limit_counts_what_is_not_available() -> None:  # ST-64
    model = _settled(document(3, parallel=True, scaleStrategy={"maxUnavailable": 2}))
    _scale(model, 10)
    assert writes(model.reconcile()) == ["create web-3", "create web-4"]
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web") == ["scale-limit"]
    model.settle(80)
    assert len(model.names) == 10


def test_a_percentage_is_rounded_down_but_never_to_nothing() -> None:  # ST-64
    model = ModelledStatefulSet(document(15, parallel=True, scaleStrategy={"maxUnavailable": "10%"}))
    assert writes(model.reconcile()) == ["create web-0"]


# Identity is never doubled


@pytest.mark.parametrize("parallel", [False, True])
def test_a_pod_stuck_on_a_dead_node_keeps_its_name_and_says_so(parallel: bool) -> None:  # ST-65
    model = _settled(document(3, parallel=parallel))
    model.delete_pod("web-1")
    model.reconcile()
    plan = model.reconcile()
    assert model.causes(plan, "web-1") == ["terminating"]
    assert any("should be gone" in wake.reason for wake in plan.wakes)
    model.pass_time(200)
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web-1") == ["overdue"]
    condition = next(item for item in model.statefulset.status.conditions if item.type == "Waiting")
    assert "web-1" in condition.message
    model.kubelet("web-1")
    assert writes(model.reconcile()) == ["create web-1"]


def test_parallel_goes_on_beside_a_pod_that_does_not_end() -> None:  # ST-65
    model = _settled(document(4, parallel=True, rolling={"maxUnavailable": 2}))
    model.delete_pod("web-3")
    _scale(model, 6)
    assert writes(model.reconcile()) == ["create web-4", "create web-5"]


def test_a_name_that_somebody_else_has_is_not_created() -> None:  # ST-50
    model = ModelledStatefulSet(document(1))
    other = codec.convert(
        {"metadata": {"name": "web-0", "namespace": "demo", "uid": "other", "labels": {"app": "other"}}}, Pod
    )
    model.world.add(PODS, [other])
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web") == ["name-taken"]


def test_an_orphan_is_adopted_before_anything_is_made() -> None:  # ST-49
    model = _settled(document(2))

    def orphan(made: Json) -> None:
        made["metadata"].pop("ownerReferences")

    model.change(PODS, "web-1", orphan)
    uid = model.pod("web-1").metadata.uid  # type: ignore[union-attr]
    plan = model.reconcile()
    assert [phase.name for phase in plan.phases] == ["adopt"]
    [(check, _)] = plan.phases[0].chains
    assert check.target.name == "web"
    pod = model.pod("web-1")
    assert pod is not None
    assert pod.metadata.uid == uid
    assert [owner.kind for owner in pod.metadata.owner_references] == ["StatefulSet"]
    assert model.settle(3) == []


def test_an_owner_that_is_deleted_by_now_adopts_nothing() -> None:  # ST-49
    model = _settled(document(1))
    model.change(PODS, "web-0", lambda made: made["metadata"].pop("ownerReferences"))

    def deleted(snapshot: object, plan: object) -> None:
        def edit(made: Json) -> None:
            made["metadata"]["generation"] += 1

        model.change(model.resource, "web", edit)

    model.reconcile(decided=deleted)
    assert model.pod("web-0").metadata.owner_references == ()  # type: ignore[union-attr]


def test_a_pod_that_matches_no_longer_is_let_go_and_keeps_its_name() -> None:  # ST-49, ST-50
    model = _settled(document(1))
    model.label("web-0", app="other")
    model.reconcile()
    pod = model.pod("web-0")
    assert pod is not None
    assert pod.metadata.owner_references == ()
    plan = model.reconcile()
    assert model.causes(plan, "web") == ["name-taken"]
    model.label("web-0", app="web")
    model.settle(2)
    assert model.pod("web-0").metadata.owner_references != ()  # type: ignore[union-attr]


# Ordinals


def test_reserving_an_ordinal_moves_its_pod_away() -> None:  # ST-40, ST-42
    model = _settled(document(3))
    model.edit_spec(lambda spec: spec.update(reserveOrdinals=[1]))
    model.settle()
    assert model.names == ["web-0", "web-2", "web-3"]


def test_a_start_without_its_gate_is_said() -> None:  # ST-10, ST-40
    model = _settled(document(2, ordinals={"start": 3}))
    assert model.names == ["web-0", "web-1"]
    assert model.causes(model.reconcile(), "web") == ["gate-off"]
    [waiting] = [item for item in model.statefulset.status.conditions if item.type == "Waiting"]
    assert (waiting.status, waiting.reason) == ("True", "GateOff")
    assert "feature gate StatefulSetStartOrdinal" in waiting.message


def test_another_start_is_ordinary_scaling() -> None:  # ST-42
    model = _settled(document(2), {"StatefulSetStartOrdinal": True})
    model.edit_spec(lambda spec: spec.update(ordinals={"start": 2}))
    model.settle()
    assert model.names == ["web-2", "web-3"]


# The preDelete hook


HOOKS = {"preDelete": {"labelsHandler": {"example.com/hold": "true"}}}
HELD = template(labels={"example.com/hold": "true"})


@pytest.mark.parametrize("parallel", [False, True])
def test_a_pod_goes_when_its_hook_lets_it(parallel: bool) -> None:  # ST-105
    model = _settled(document(2, parallel=parallel, lifecycle=HOOKS, template=HELD))
    _scale(model, 1)
    assert model.settle(5) == []
    pod = model.pod("web-1")
    assert pod is not None
    assert pod.metadata.labels[keys.STATE_LABEL] == "PreparingDelete"
    assert model.causes(model.reconcile(), "web-1") == ["hook"]
    model.label("web-1", **{"example.com/hold": "false"})
    assert model.settle(5) == ["delete web-1"]


def test_a_deletion_that_was_begun_ends_although_the_scale_in_is_cancelled() -> None:  # ST-105, ST-106
    model = _settled(document(2, lifecycle=HOOKS, template=HELD))
    _scale(model, 1)
    model.settle(3)
    _scale(model, 2)
    assert model.settle(3) == []
    model.label("web-1", **{"example.com/hold": "false"})
    assert model.settle() == ["delete web-1", "create web-1"]


def test_new_pods_wait_for_the_pre_normal_hook() -> None:  # ST-100, ST-104
    hooks = {"preNormal": {"labelsHandler": {"example.com/okay": "true"}}}
    model = ModelledStatefulSet(document(2, lifecycle=hooks))
    assert model.settle(10) == ["create web-0"]
    pod = model.pod("web-0")
    assert pod is not None
    assert pod.metadata.labels[keys.STATE_LABEL] == "PreparingNormal"
    assert model.causes(model.reconcile(), "web-0") == ["hook"]
    model.label("web-0", **{"example.com/okay": "true"})
    assert model.settle(10) == ["create web-1"]


def test_a_broken_pod_is_not_waited_for_with_parallel() -> None:  # ST-61
    model = ModelledStatefulSet(document(3, parallel=True, template=template(BROKEN)))
    assert len(model.settle(10)) == 3


def test_a_set_that_is_being_deleted_is_left_alone() -> None:  # ST-49, ST-80
    model = _settled(document(2))

    def delete(made: Json) -> None:
        made["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"
        made["metadata"]["finalizers"] = ["orphan"]

    model.change(model.resource, "web", delete)
    _scale(model, 5)
    assert model.settle(3) == []


def test_where_ordinals_end_no_pod_is_made_in_vain() -> None:  # ST-40
    last = 2**31 - 1
    model = ModelledStatefulSet(
        document(3, parallel=True, rolling={"partition": 3}, ordinals={"start": last}), gates={START_GATE: True}
    )
    model.settle(8)
    assert model.names == [f"web-{last}"]
    assert model.causes(model.reconcile(), "web") == ["too-many"]
    [waiting] = [item for item in model.statefulset.status.conditions if item.type == "Waiting"]
    assert (waiting.reason, waiting.message.split(" (")[0]) == ("TooMany", "web: of 3 pods there can be 1")
    model.set_image("nginx:2")
    model.settle(8)
    assert model.updated == []
