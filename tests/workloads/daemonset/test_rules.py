"""Rules of the DaemonSet, each shown in the model of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import PODS, Pod
from kruise.inplace import keys
from kruise.model.world import Json
from tests.support.modelled import BROKEN
from tests.workloads.daemonset.modelled import ModelledDaemonSet, document, states, writes_to_pods

TAINT = {"key": "example.com/own", "effect": "NoSchedule"}


def running(rolling: Any = None, *, gates: Any = None, **spec: Any) -> ModelledDaemonSet:
    model = ModelledDaemonSet(document(rolling, **spec), gates=gates)
    model.settle(8)
    return model


def held(model: ModelledDaemonSet) -> dict[str, set[str]]:
    plan = model.reconcile()
    return {item.target.name: {cause.code for cause in item.causes} for item in plan.held}


def is_ready(pod: Pod) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions)


# One pod per node


def test_each_node_gets_a_pod_that_names_it() -> None:  # DS-40, DS-46
    model = running()
    assert sorted(model.images) == ["node-0", "node-1", "node-2"]
    [pod] = model.on("node-1")
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    [term] = affinity.node_affinity.required.node_selector_terms
    assert [(item.key, item.values) for item in term.match_fields] == [("metadata.name", ("node-1",))]
    assert pod.metadata.generate_name == "agent-"
    assert pod.metadata.labels[keys.REVISION_LABEL] == model.daemon_set.status.update_revision
    assert keys.STATE_LABEL not in pod.metadata.labels  # DS-48


def test_the_status_counts_nodes() -> None:  # DS section 3
    status = running().daemon_set.status
    assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_ready) == (3, 3, 3)
    assert (status.number_available, status.number_unavailable, status.updated_number_scheduled) == (3, 0, 3)
    assert status.observed_generation == 1
    assert status.collision_count is None


def test_daemons_tolerate_nodes_in_trouble() -> None:  # DS-30
    model = running()
    [pod] = model.on("node-0")
    assert {item.key for item in pod.spec.tolerations} >= {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
    }


def test_a_node_that_joins_gets_a_pod_and_one_that_is_tainted_keeps_its_own() -> None:  # DS-31
    model = running()
    model.add_node("node-3")
    model.add_node("node-4", taints=[TAINT])
    model.settle(6)
    assert len(model.on("node-3")) == 1
    assert not model.on("node-4")

    def taint(node: Json) -> None:
        node.setdefault("spec", {})["taints"] = [TAINT]

    model.edit_node("node-0", taint)
    model.settle(6)
    assert len(model.on("node-0")) == 1
    status = model.daemon_set.status
    assert (status.desired_number_scheduled, status.number_misscheduled) == (3, 1)


def test_a_taint_that_drives_away_takes_the_pod() -> None:  # DS-31
    model = running()

    def taint(node: Json) -> None:
        node.setdefault("spec", {})["taints"] = [{**TAINT, "effect": "NoExecute"}]

    model.edit_node("node-0", taint)
    model.settle(6)
    assert not model.on("node-0")


def test_a_pod_deleted_by_hand_comes_back_on_its_node() -> None:  # DS-101
    model = running()
    [pod] = model.on("node-2")
    model.delete_pod(pod.metadata.name)
    model.settle(6)
    [successor] = model.on("node-2")
    assert successor.metadata.uid != pod.metadata.uid


def test_a_failed_pod_is_replaced_after_a_delay_that_grows() -> None:  # DS-44
    model = running()
    waits = []
    for _ in range(3):
        [pod] = model.on("node-1")
        model.change(PODS, pod.metadata.name, lambda doc: doc["status"].update(phase="Failed", reason="Evicted"))
        seconds = 0
        while model.pod(pod.metadata.name) is not None:
            model.reconcile()
            model.kubelet(pod.metadata.name)
            model.pass_time(1)
            seconds += 1
            assert seconds < 60
        waits.append(seconds)
        model.settle(6, seconds=0)
    assert waits == sorted(waits)
    assert waits[-1] > waits[0]


def test_why_a_failed_pod_stays() -> None:  # DS-44
    model = running()
    for _ in range(2):
        [pod] = model.on("node-1")
        model.change(PODS, pod.metadata.name, lambda doc: doc["status"].update(phase="Failed"))
        model.reconcile()
        model.reconcile()
        for other in model.pods:
            for _ in range(3):
                model.kubelet(other.metadata.name)
    [pod] = model.on("node-1")
    model.change(PODS, pod.metadata.name, lambda doc: doc["status"].update(phase="Failed"))
    assert held(model)[pod.metadata.name] == {"failed-pod"}


def test_not_more_than_burst_replicas_at_a_time() -> None:  # DS-45
    model = ModelledDaemonSet(document(burstReplicas=1))
    counts = []
    for _ in range(4):
        counts.append(writes_to_pods(model.reconcile()).count("create"))
    assert counts == [1, 1, 1, 0]


def test_a_small_percentage_still_moves_one() -> None:  # DS-108, better: nothing waits for ever
    model = ModelledDaemonSet(document(burstReplicas="1%"))
    model.settle(8)
    assert len(model.pods) == 3


def test_no_burst_is_said() -> None:
    model = ModelledDaemonSet(document(burstReplicas=0))
    model.reconcile()
    assert held(model)["agent"] == {"no-burst"}


# Rolling update


def test_one_node_after_the_other_from_the_last_name() -> None:  # DS-62, DS-64, DS-65
    model = running()
    before = {pod.metadata.name: pod.spec.node_name for pod in model.pods}
    model.set_image("nginx:2")
    gone: list[str] = []
    for _ in range(40):
        model.reconcile()
        there = {pod.metadata.name for pod in model.pods}
        gone += [node for name, node in before.items() if name not in there and node not in gone]
        assert sum(len(model.on(node)) == 0 for node in ("node-0", "node-1", "node-2")) <= 1
        for pod in model.pods:
            model.kubelet(pod.metadata.name)
        model.pass_time(1)
    assert gone == ["node-2", "node-1", "node-0"]
    assert set(model.images.values()) == {"nginx:2"}


@pytest.mark.parametrize(("partition", "updated"), [(1, 2), (2, 1), (3, 0), (7, 0), ("34%", 2), ("100%", 0)])
def test_the_partition_keeps_old_pods(partition: Any, updated: int) -> None:  # DS-62, DS-63
    model = running({"maxUnavailable": 1, "partition": partition})
    model.set_image("nginx:2")
    model.settle()
    assert list(model.images.values()).count("nginx:2") == updated
    if updated < 3:
        assert {"partition"} in held(model).values()


def test_only_selected_nodes_are_updated() -> None:  # DS-63
    model = running({"maxUnavailable": 1, "selector": {"matchLabels": {"zone": "a"}}})
    model.edit_node("node-1", lambda node: node["metadata"].update(labels={"zone": "a"}))
    model.set_image("nginx:2")
    model.settle()
    assert {node for node, image in model.images.items() if image == "nginx:2"} == {"node-1"}
    assert sorted(held(model).values(), key=sorted) == [{"node-not-selected"}, {"node-not-selected"}]


def test_a_deleted_pod_comes_back_new_whatever_the_partition_says() -> None:  # DS-42
    model = running({"maxUnavailable": 1, "partition": 3})
    model.set_image("nginx:2")
    [pod] = model.on("node-0")
    model.delete_pod(pod.metadata.name)
    model.settle(8)
    assert model.images["node-0"] == "nginx:2"


def test_paused_stops_updates_and_nothing_else() -> None:  # DS-70
    model = running({"maxUnavailable": 1, "paused": True})
    model.set_image("nginx:2")
    model.add_node("node-3")
    model.settle(10)
    assert model.images == {"node-0": "nginx:1.25", "node-1": "nginx:1.25", "node-2": "nginx:1.25", "node-3": "nginx:2"}
    assert sorted(held(model).values(), key=sorted) == [{"paused"}] * 3


def test_on_delete_waits_for_somebody() -> None:  # DS-70
    given = document(updateStrategy={"type": "OnDelete"})
    model = ModelledDaemonSet(given)
    model.settle(8)
    model.set_image("nginx:2")
    model.settle(8)
    assert set(model.images.values()) == {"nginx:1.25"}
    assert sorted(held(model).values(), key=sorted) == [{"on-delete"}] * 3


def test_a_broken_pod_is_replaced_beyond_the_limit() -> None:  # DS-64, DS-106
    model = running()
    model.set_image(BROKEN)
    model.settle(20)
    assert list(model.images.values()).count(BROKEN) == 1
    model.set_image("nginx:3")
    model.settle()
    assert set(model.images.values()) == {"nginx:3"}


def test_a_surge_brings_the_new_pod_first() -> None:  # DS-68, DS-69
    model = running({"maxSurge": "100%", "maxUnavailable": 0}, minReadySeconds=10)
    model.settle(14)
    model.set_image("nginx:2")
    most = 0
    for _ in range(60):
        model.reconcile()
        ready = {
            pod.spec.node_name
            for pod in model.pods
            if any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)
        }
        assert ready == {"node-0", "node-1", "node-2"}
        most = max(most, len(model.pods))
        for pod in model.pods:
            model.kubelet(pod.metadata.name)
        model.pass_time(1)
    assert most == 6
    assert set(model.images.values()) == {"nginx:2"}
    assert len(model.pods) == 3


def test_a_surge_keeps_an_old_pod_that_serves_though_its_own_update_has_not_arrived() -> None:  # DS-68
    """Its node puts new resources off, maybe for ever; it serves all the same, until the new pod does."""
    rolling = {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 3}
    model = running(rolling, gates={"InPlaceWorkloadVerticalScaling": True})
    model.set_cpus("1")
    model.settle(16)
    pods = {pod.metadata.name for pod in model.pods}
    model.set_cpus("50")
    model.settle(8)
    assert {pod.metadata.name for pod in model.pods if is_ready(pod)} == pods

    def surge(spec: Json) -> None:
        spec["updateStrategy"]["rollingUpdate"] = {"maxSurge": "100%", "maxUnavailable": 0}
        spec["template"]["spec"]["containers"][0]["resources"] = {}
        spec["template"]["spec"]["containers"][0]["image"] = "nginx:2"

    model.edit_spec(surge)
    for _ in range(40):
        model.reconcile()
        assert {pod.spec.node_name for pod in model.pods if is_ready(pod)} == {"node-0", "node-1", "node-2"}
        for pod in model.pods:
            model.kubelet(pod.metadata.name)
        model.pass_time(1)
    assert set(model.images.values()) == {"nginx:2"}


def test_going_back_makes_pods_updated_at_once() -> None:  # DS-24, DS-105
    model = running({"maxUnavailable": 1, "partition": 2})
    first = model.daemon_set.status.update_revision
    model.set_image("nginx:2")
    model.settle(12)
    model.set_image("nginx:1.25")
    model.reconcile()
    assert model.daemon_set.status.update_revision == first
    assert model.daemon_set.status.updated_number_scheduled == 2


# In place


IN_PLACE = {"maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"}


def test_an_image_is_changed_in_place() -> None:  # DS-66, DS-67
    model = running(IN_PLACE)
    before = {pod.metadata.uid for pod in model.pods}
    model.set_image("nginx:2")
    model.settle()
    assert {pod.metadata.uid for pod in model.pods} == before
    assert set(model.images.values()) == {"nginx:2"}


def test_pods_without_the_gate_are_made_anew_once() -> None:  # DS-66
    model = running()
    before = {pod.metadata.uid for pod in model.pods}
    model.edit_spec(lambda spec: spec["updateStrategy"].update(rollingUpdate=dict(IN_PLACE)))
    model.set_image("nginx:2")
    model.settle()
    between = {pod.metadata.uid for pod in model.pods}
    assert not before & between
    model.set_image("nginx:3")
    model.settle()
    assert {pod.metadata.uid for pod in model.pods} == between


def test_what_cannot_be_changed_in_place_is_made_anew() -> None:  # DS-67
    model = running(IN_PLACE)
    before = {pod.metadata.uid for pod in model.pods}

    def edit(spec: Json) -> None:
        spec["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]

    model.edit_spec(edit)
    model.settle()
    assert not before & {pod.metadata.uid for pod in model.pods}


# Hooks


def test_the_hook_holds_a_pod_until_its_label_goes() -> None:  # DS-50 to DS-52
    hook = {"preDelete": {"labelsHandler": {"example.io/block-deleting": "true"}}}
    template: Any = {**document()["spec"]["template"]}
    template = {**template, "metadata": {"labels": {"app": "web", "example.io/block-deleting": "true"}}}
    model = running(template=template, lifecycle=hook)
    model.set_image("nginx:2")
    model.settle(10)
    assert states(model) == {"node-0": "", "node-1": "", "node-2": "PreparingDelete"}
    [waiting] = model.on("node-2")
    assert held(model)[waiting.metadata.name] == {"hook"}
    model.change(PODS, waiting.metadata.name, lambda doc: doc["metadata"]["labels"].pop("example.io/block-deleting"))
    model.settle(12)
    assert states(model) == {"node-0": "", "node-1": "PreparingDelete", "node-2": ""}
    assert model.images["node-2"] == "nginx:2"


def test_nothing_changes_once_everything_is_as_it_should_be() -> None:
    model = running()
    writes = model.writes
    model.settle(5)
    assert model.writes == writes
