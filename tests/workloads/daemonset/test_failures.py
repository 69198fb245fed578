"""A DaemonSet whose new pods fail, and one that says what nobody can read."""

from __future__ import annotations

from typing import Any

from kruise.api.native.pod import PODS
from kruise.workloads.shared.failure_budget import ANNOTATION
from tests.support.modelled import BROKEN
from tests.workloads.daemonset.modelled import ModelledDaemonSet, document

ALL_AT_ONCE = {"maxUnavailable": "100%"}


def running(budget: str, rolling: Any = None) -> ModelledDaemonSet:
    made = document(rolling)
    made["metadata"]["annotations"] = {ANNOTATION: budget}
    model = ModelledDaemonSet(made)
    model.settle(25)
    return model


def stopped(model: ModelledDaemonSet) -> list[str]:
    return [item.reason for item in model.daemon_set.status.conditions if item.type == "FailureBudgetExceeded"]


def test_the_budget_stops_a_rollout_while_nodes_have_old_pods() -> None:
    model = running("0")
    assert model.daemon_set.status.failure_budget is None  # all pods arrived, so nothing is on trial
    model.set_image(BROKEN)
    model.settle(70, seconds=10)
    assert list(model.images.values()).count(BROKEN) == 1
    assert stopped(model) == ["Paused"]


def test_the_budget_speaks_although_every_node_has_moved_already() -> None:
    model = running("0", ALL_AT_ONCE)
    model.set_image(BROKEN)
    model.settle(6)
    assert set(model.images.values()) == {BROKEN}
    model.settle(70, seconds=10)
    assert stopped(model) == ["Paused"]
    model.set_image("nginx:3")
    model.settle(30)
    assert set(model.images.values()) == {"nginx:3"}
    assert stopped(model) == []
    assert model.daemon_set.status.failure_budget is None


def test_the_budget_speaks_of_the_first_rollout_too() -> None:
    made = document()
    made["metadata"]["annotations"] = {ANNOTATION: "1"}
    made["spec"]["template"] = {**made["spec"]["template"], "spec": {"containers": [{"name": "main", "image": BROKEN}]}}
    model = ModelledDaemonSet(made)
    model.settle(70, seconds=10)
    assert stopped(model) == ["Paused"]


def test_what_breaks_after_a_rollout_has_other_causes() -> None:
    model = running("0", ALL_AT_ONCE)
    model.set_image("nginx:2")
    model.settle(30)
    assert model.daemon_set.status.failure_budget is None
    for pod in model.pods:
        model.change(PODS, pod.metadata.name, _crashing)
    model.settle(1)
    assert stopped(model) == []


def _crashing(pod: dict[str, Any]) -> None:
    for condition in pod["status"]["conditions"]:
        if condition["type"] in ("Ready", "ContainersReady"):
            condition["status"] = "False"
    for status in pod["status"]["containerStatuses"]:
        status.update(ready=False, restartCount=5, state={"waiting": {"reason": "CrashLoopBackOff"}})


def test_a_node_selector_that_nobody_can_read_selects_no_node() -> None:
    """Only one from before there was admission can be so."""
    model = ModelledDaemonSet(
        document({"maxUnavailable": 1, "selector": {"matchExpressions": [{"key": "zone", "operator": "Near"}]}})
    )
    model.settle(8)
    assert len(model.pods) == 3
    model.set_image("nginx:2")
    plan = model.reconcile()
    assert {cause.code for held in plan.held for cause in held.causes} == {"node-not-selected"}
    model.settle(10)
    assert set(model.images.values()) == {"nginx:1.25"}
