"""How a StatefulSet's pods get to their revision: order, partition, limits, hooks, and repairs that nothing blocks."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import PODS
from kruise.inplace import keys
from kruise.machinery.plan import Plan
from kruise.model.world import Json
from tests.support.modelled import BROKEN
from tests.workloads.statefulset.modelled import IN_PLACE, ModelledStatefulSet, document, template, writes

SPECIFIED = {keys.SPECIFIED_DELETE_LABEL: "true"}


def _settled(given: Json, gates: dict[str, bool] | None = None) -> ModelledStatefulSet:
    model = ModelledStatefulSet(given, gates=gates)
    model.settle()
    return model


def _rolling(model: ModelledStatefulSet, **fields: Any) -> None:
    model.edit_spec(lambda spec: spec["updateStrategy"]["rollingUpdate"].update(fields))


def _down(model: ModelledStatefulSet, name: str) -> None:
    def edit(pod: Json) -> None:
        for condition in pod["status"]["conditions"]:
            if condition["type"] in ("Ready", "ContainersReady"):
                condition["status"] = "False"

    model.change(PODS, name, edit)


def _in_place(plan: Plan) -> list[str]:
    return sorted(chain[-1].target.name for phase in plan.phases if phase.name == "update" for chain in phase.chains)


# Order and partition


@pytest.mark.parametrize("parallel", [False, True])
def test_pods_are_recreated_one_by_one_from_the_highest_on(parallel: bool) -> None:  # ST-72, ST-75, ST-77
    model = _settled(document(3, parallel=parallel))
    before = {pod.metadata.name: pod.metadata.uid for pod in model.pods}
    model.set_image("nginx:2")
    done = model.settle()
    assert done == [f"{verb} web-{place}" for place in (2, 1, 0) for verb in ("delete", "create")]
    assert set(model.images.values()) == {"nginx:2"}
    assert all(before[pod.metadata.name] != pod.metadata.uid for pod in model.pods)


def test_in_place_keeps_the_pods() -> None:  # ST-76, ST-113, ST-141
    model = _settled(document(3, rolling=IN_PLACE))
    before = {pod.metadata.name: pod.metadata.uid for pod in model.pods}
    model.set_image("nginx:2")
    assert _in_place(model.reconcile()) == ["web-2"]
    assert model.settle() == []
    assert {pod.metadata.name: pod.metadata.uid for pod in model.pods} == before
    assert set(model.images.values()) == {"nginx:2"}
    assert {pod.metadata.labels[keys.STATE_LABEL] for pod in model.pods} == {"Normal"}


def test_max_unavailable_pods_go_together() -> None:  # ST-69, ST-75, ST-140
    model = _settled(document(5, parallel=True, rolling={"maxUnavailable": 3, "partition": 4}))
    model.set_image("nginx:2")
    assert model.settle() == ["delete web-4", "create web-4"]
    _rolling(model, partition=0)
    assert sorted(writes(model.reconcile())) == ["delete web-1", "delete web-2", "delete web-3"]
    plan = model.reconcile()
    assert model.causes(plan, "web-0") == ["max-unavailable"]
    model.settle()
    assert len(model.updated) == 5


def test_a_percentage_is_rounded_down_but_never_to_nothing() -> None:  # ST-69
    model = _settled(document(3, parallel=True, rolling={"maxUnavailable": "10%"}))
    model.set_image("nginx:2")
    assert writes(model.reconcile()) == ["delete web-2"]


def test_the_partition_keeps_the_lowest_ordinals() -> None:  # ST-56, ST-72, ST-122
    model = _settled(document(3, rolling={"partition": 2}))
    model.set_image("nginx:2")
    model.settle()
    assert model.updated == ["web-2"]
    assert model.causes(model.reconcile(), "web-0") == ["partition"]
    for name in ("web-0", "web-2"):
        model.delete_pod(name)
    model.settle()
    assert model.images == {"web-0": "nginx:1", "web-1": "nginx:1", "web-2": "nginx:2"}


def test_the_partition_does_not_count_reserved_ordinals() -> None:  # ST-72, ST-125
    model = _settled(document(3, rolling={"partition": 2}, reserveOrdinals=[1, 3]))
    model.set_image("nginx:2")
    model.settle()
    assert model.updated == ["web-4"]


def test_a_partition_that_keeps_all_updates_nobody_but_tells_the_revision() -> None:  # ST-17, ST-121
    model = _settled(document(2, rolling={"partition": 5}))
    before = model.statefulset.status.update_revision
    model.set_image("nginx:2")
    assert model.settle(5) == []
    status = model.statefulset.status
    assert (status.current_revision, status.update_revision != before) == (before, True)


def test_pods_below_the_partition_use_up_the_limit_too() -> None:  # ST-123
    model = _settled(document(6, parallel=True, rolling={"maxUnavailable": 2, "partition": 3}))
    for name in ("web-0", "web-2"):
        model.delete_pod(name)
    model.set_image("nginx:2")
    assert writes(model.reconcile()) == []


def test_paused_freezes_updates_and_not_scaling() -> None:  # ST-68, ST-142
    model = _settled(document(2, rolling={"paused": True}))
    model.set_image("nginx:2")
    model.label("web-0", **SPECIFIED)
    model.edit_spec(lambda spec: spec.update(replicas=3))
    assert model.settle() == ["create web-2"]
    plan = model.reconcile()
    assert model.causes(plan, "web-1") == ["paused"]
    assert model.causes(plan, "web-0") == ["paused"]


def test_on_delete_leaves_pods_until_somebody_deletes_them() -> None:  # ST-55, ST-79
    given = document(2)
    given["spec"]["updateStrategy"] = {"type": "OnDelete"}
    model = _settled(given)
    current = model.statefulset.status.current_revision
    model.set_image("nginx:2")
    model.label("web-1", **SPECIFIED)
    assert model.settle(5) == []
    assert model.causes(model.reconcile(), "web-0") == ["on-delete"]
    model.delete_pod("web-0")
    model.settle()
    assert model.images == {"web-0": "nginx:2", "web-1": "nginx:1"}
    assert model.statefulset.status.current_revision == current


def test_scaling_precedes_updating() -> None:  # ST-59
    model = _settled(document(3))
    model.set_image("nginx:2")
    model.edit_spec(lambda spec: spec.update(replicas=2))
    plan = model.reconcile()
    assert writes(plan) == ["delete web-2"]
    assert model.causes(plan, "web-1") == ["order"]
    assert model.settle() == ["delete web-1", "create web-1", "delete web-0", "create web-0"]


def test_without_a_strategy_nothing_is_kept_old() -> None:  # ST-58
    given = document(1)
    given["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    model = _settled(given)
    model.set_image("nginx:2")
    model.settle()
    assert model.images == {"web-0": "nginx:2"}


def test_going_back_uses_the_old_revision_again() -> None:  # ST-52, ST-120
    model = _settled(document(2))
    first = model.statefulset.status.update_revision
    model.set_image("nginx:2")
    model.settle()
    model.set_image("nginx:1")
    model.settle()
    status = model.statefulset.status
    assert (status.update_revision, status.current_revision) == (first, first)
    assert len(model.revisions) == 2


# Unordered


def test_unordered_updates_follow_the_weights() -> None:  # ST-73, ST-78
    weights = [{"weight": 50, "matchSelector": {"matchLabels": {"statefulset.kubernetes.io/pod-name": "web-0"}}}]
    rolling = {"unorderedUpdate": {"priorityStrategy": {"weightPriority": weights}}}
    model = _settled(document(3, parallel=True, rolling=rolling))
    model.set_image("nginx:2")
    assert model.settle()[::2] == ["delete web-0", "delete web-2", "delete web-1"]


def test_unordered_updates_keep_their_number_and_not_their_place() -> None:  # ST-57, ST-73
    weights = [{"weight": 50, "matchSelector": {"matchLabels": {"statefulset.kubernetes.io/pod-name": "web-0"}}}]
    rolling = {"unorderedUpdate": {"priorityStrategy": {"weightPriority": weights}}, "partition": 2}
    model = _settled(document(3, parallel=True, rolling=rolling))
    model.set_image("nginx:2")
    model.settle()
    assert model.updated == ["web-0"]
    model.delete_pod("web-2")
    model.settle()
    assert model.updated == ["web-0"]


# What cannot be done in place


def test_what_cannot_be_done_in_place_is_recreated() -> None:  # ST-76
    model = _settled(document(1, rolling=IN_PLACE))
    model.edit_spec(lambda spec: spec["template"]["spec"].update(hostNetwork=True))
    assert model.settle() == ["delete web-0", "create web-0"]


def test_in_place_only_never_deletes() -> None:  # ST-76
    model = _settled(document(2, rolling={"podUpdatePolicy": "InPlaceOnly"}))
    model.edit_spec(lambda spec: spec["template"]["spec"].update(hostNetwork=True))
    assert model.settle(5) == []
    assert model.causes(model.reconcile(), "web-1") == ["in-place-only"]
    assert any(item.type == "FailedUpdatePod" for item in model.statefulset.status.conditions)


# A broken revision never blocks its own repair


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("rolling", [{}, IN_PLACE], ids=["recreate", "in-place"])
@pytest.mark.parametrize("budget", ["", "1", "0:rollback"])
def test_a_broken_revision_is_repaired_by_the_next_template(
    parallel: bool, rolling: dict[str, Any], budget: str
) -> None:  # ST-75, ST-128
    metadata = {"annotations": {"apps.kruise.io/failure-budget": budget}} if budget else {}
    model = _settled(document(3, parallel=parallel, rolling=rolling, metadata=metadata))
    model.set_image(BROKEN)
    model.settle(20, seconds=30)
    model.set_image("nginx:3")
    model.settle(60)
    assert set(model.images.values()) == {"nginx:3"}
    assert model.statefulset.status.ready_replicas == 3


def test_a_broken_pod_is_repaired_before_its_turn() -> None:
    """web-2 serves at the bad revision, and web-1 does not: without an exception web-2 would have to go first, and
    could not, because web-1 is down."""
    model = _settled(document(3, rolling=IN_PLACE))
    model.set_image("nginx:2")
    model.settle(12)
    _down(model, "web-0")
    model.set_image("nginx:3")
    model.reconcile()
    model.pass_time(120)
    assert "web-0" in _in_place(model.reconcile())


def test_a_pod_that_is_down_for_a_moment_does_not_jump_the_queue() -> None:
    model = _settled(document(3))
    _down(model, "web-0")
    model.set_image("nginx:2")
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web-2") == ["max-unavailable"]
    assert model.causes(plan, "web-0") == ["next"]
    assert any("broken" in wake.reason for wake in plan.wakes)


def test_with_an_order_nobody_follows_a_pod_that_has_not_arrived() -> None:
    """A bad revision does not spread over pods that happen to be down for a moment."""
    model = _settled(document(3, rolling=IN_PLACE))
    model.set_image(BROKEN)
    model.settle(3)
    _down(model, "web-1")
    assert _in_place(model.reconcile()) == []


def test_everything_that_an_update_broke_is_repaired_at_once_with_parallel() -> None:  # ST-128
    model = _settled(
        document(3, parallel=True, rolling={"maxUnavailable": "100%"}, scaleStrategy={"maxUnavailable": "100%"})
    )
    model.set_image(BROKEN)
    model.settle(5)
    model.set_image("nginx:3")
    assert sorted(writes(model.reconcile())) == ["delete web-0", "delete web-1", "delete web-2"]


def test_a_used_up_failure_budget_stops_the_rollout_and_keeps_the_other_pods() -> None:
    model = _settled(document(3, metadata={"annotations": {"apps.kruise.io/failure-budget": "0"}}))
    model.set_image(BROKEN)
    model.settle(30, seconds=60)
    assert model.images == {"web-0": "nginx:1", "web-1": "nginx:1", "web-2": BROKEN}
    assert model.causes(model.reconcile(), "web-1") == ["failure-budget"]


def test_a_rollout_that_goes_back_takes_its_pods_back() -> None:
    model = _settled(
        document(3, rolling=IN_PLACE, metadata={"annotations": {"apps.kruise.io/failure-budget": "0:rollback"}})
    )
    model.set_image(BROKEN)
    model.settle(60, seconds=60)
    assert set(model.images.values()) == {"nginx:1"}
    assert model.statefulset.status.ready_replicas == 3


# Hooks


HOOKS = {"inPlaceUpdate": {"labelsHandler": {"example.com/hold": "true"}}}
HELD = template(labels={"example.com/hold": "true"})


@pytest.mark.parametrize("parallel", [False, True])
def test_a_pod_that_its_hook_lets_go_is_updated(parallel: bool) -> None:  # ST-67, ST-99, ST-101, ST-102, ST-106
    model = _settled(document(2, parallel=parallel, rolling=IN_PLACE, lifecycle=HOOKS, template=HELD))
    model.set_image("nginx:2")
    model.settle(5)
    pod = model.pod("web-1")
    assert pod is not None
    assert pod.metadata.labels[keys.STATE_LABEL] == "PreparingUpdate"
    assert model.causes(model.reconcile(), "web-1") == ["hook"]
    assert model.statefulset.status.current_replicas == 1  # ST-13
    model.label("web-1", **{"example.com/hold": "false"})
    model.settle(10)
    assert model.images["web-1"] == "nginx:2"
    assert model.pod("web-1").metadata.labels[keys.STATE_LABEL] == "Updated"  # type: ignore[union-attr]
    model.label("web-1", **{"example.com/hold": "true"})
    model.settle(10)
    assert model.pod("web-1").metadata.labels[keys.STATE_LABEL] == "Normal"  # type: ignore[union-attr]


def test_a_pod_that_was_prepared_goes_on_although_others_come_first_by_now() -> None:  # ST-106
    """They wait for it, since it is out of service: it must not wait for them."""
    first = {"weightPriority": [{"weight": 50, "matchSelector": {"matchLabels": {"first": "yes"}}}]}
    rolling = {**IN_PLACE, "unorderedUpdate": {"priorityStrategy": first}}
    model = _settled(document(3, parallel=True, rolling=rolling, lifecycle=HOOKS, template=HELD))
    model.label("web-0", first="yes")
    model.set_image("nginx:2")
    model.settle(5)
    model.label("web-0", first=None)
    model.label("web-2", first="yes")
    model.label("web-0", **{"example.com/hold": None})
    model.settle(5)
    assert model.updated == ["web-0"]


def test_a_pod_that_was_prepared_goes_back_when_the_template_does() -> None:  # ST-103, ST-129
    model = _settled(document(2, rolling=IN_PLACE, lifecycle=HOOKS, template=HELD))
    model.set_image("nginx:2")
    model.settle(5)
    model.set_image("nginx:1")
    model.settle(5)
    assert {pod.metadata.labels[keys.STATE_LABEL] for pod in model.pods} == {"Normal"}


def test_a_pod_that_was_prepared_goes_back_when_the_partition_keeps_it() -> None:
    model = _settled(document(2, rolling=IN_PLACE, lifecycle=HOOKS, template=HELD))
    model.set_image("nginx:2")
    model.settle(5)
    _rolling(model, partition=2)
    model.settle(5)
    assert {pod.metadata.labels[keys.STATE_LABEL] for pod in model.pods} == {"Normal"}


@pytest.mark.parametrize("parallel", [False, True])
def test_a_recreate_waits_for_the_pre_delete_hook_and_goes_on(parallel: bool) -> None:  # ST-105, ST-106
    hooks = {"preDelete": {"labelsHandler": {"example.com/hold": "true"}}}
    model = _settled(document(2, parallel=parallel, lifecycle=hooks, template=HELD))
    model.set_image("nginx:2")
    assert model.settle(5) == []
    assert model.causes(model.reconcile(), "web-1") == ["hook"]
    model.label("web-1", **{"example.com/hold": "false"})
    assert model.settle(5) == ["delete web-1", "create web-1"]


def test_the_grace_period_is_waited_for() -> None:  # ST-47, ST-141
    model = _settled(document(1, rolling={**IN_PLACE, "inPlaceUpdateStrategy": {"gracePeriodSeconds": 10}}))
    model.set_image("nginx:2")
    plan = model.reconcile()
    assert any("grace" in wake.reason for wake in plan.wakes)
    model.settle(5)
    assert model.images == {"web-0": "nginx:1"}
    model.settle(15)
    assert model.images == {"web-0": "nginx:2"}


# Deletions that somebody asks for


def test_pods_marked_for_deletion_go_one_at_a_time() -> None:  # ST-71, ST-90
    model = _settled(document(3, parallel=True))
    model.label("web-0", **SPECIFIED)
    model.label("web-2", **SPECIFIED)
    plan = model.reconcile()
    assert writes(plan) == ["delete web-2"]
    assert model.causes(plan, "web-0") == ["deletion-budget"]
    assert model.settle() == ["create web-2", "delete web-0", "create web-0"]


def test_a_marked_pod_comes_back_on_its_side_of_the_partition() -> None:  # ST-90, ST-127
    model = _settled(document(4, parallel=True, rolling={"partition": 2}))
    model.set_image("nginx:2")
    model.settle()
    for name in ("web-1", "web-2"):
        model.label(name, **SPECIFIED)
    model.settle()
    assert model.images == {"web-0": "nginx:1", "web-1": "nginx:1", "web-2": "nginx:2", "web-3": "nginx:2"}


def test_a_marked_pod_that_is_down_goes_whatever_the_limit_says() -> None:  # ST-90
    model = _settled(document(2))
    _down(model, "web-0")
    model.label("web-0", **SPECIFIED)
    assert writes(model.reconcile()) == ["delete web-0"]
