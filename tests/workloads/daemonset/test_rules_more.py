"""Rules of the DaemonSet beyond the everyday ones: nodes that change, adoption, revisions, status, images ahead."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kruise.api.apps.daemonset import DAEMON_SETS, DaemonSetSpec
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.meta import Key, controller_of
from kruise.api.native import daemon_pods
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.daemon_pods import verdict_on
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod, PodSpec
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import EventNote, Outcome, Plan, Result
from kruise.manager.gates import GATES
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.workloads.daemonset.controller import BY_SCHEDULER, controllers
from kruise.workloads.daemonset.creation import NO_SCHEDULER
from kruise.workloads.daemonset.events import events
from kruise.workloads.daemonset.nodes import survey
from kruise.workloads.daemonset.numbers import limits_of
from tests.support.clonesets import TEMPLATE
from tests.support.modelled import BROKEN, Modelled
from tests.workloads.daemonset.modelled import ModelledDaemonSet, document, writes_to_pods
from tests.workloads.daemonset.test_rules import IN_PLACE, TAINT, held, running

ALONE = {"key": "example.com/own", "effect": "NoExecute"}


def tainted(model: ModelledDaemonSet, node: str, *taints: Json) -> None:
    model.edit_node(node, lambda doc: doc.setdefault("spec", {}).update(taints=list(taints)))


def lonely_pod(name: str, node: str, **labels: str) -> Json:
    """A pod of nobody."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "demo", "uid": f"uid-{name}", "labels": {"app": "web", **labels}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "nginx:1.25"}]},
    }


# Nodes


def node_of(name: str, *taints: Json, labels: Any = None, ready: str = "True") -> Node:
    return codec.convert(
        {
            "metadata": {"name": name, "labels": dict(labels or {})},
            "spec": {"taints": list(taints)},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        },
        Node,
    )


@pytest.mark.parametrize(
    ("old", "new", "is_news"),
    [
        (None, node_of("n"), True),
        (None, node_of("n", ALONE), False),
        (node_of("n"), None, True),
        (node_of("n"), node_of("n", ready="False"), False),
        (node_of("n"), node_of("n", TAINT), True),
        (node_of("n"), node_of("n", labels={"zone": "b"}), True),
        (node_of("n"), node_of("n", labels={"other": "b"}), False),
        (node_of("n", ALONE), node_of("n", ALONE, labels={"zone": "a"}), False),
    ],
)
def test_only_what_means_something_to_it_is_news(old: Node | None, new: Node | None, is_news: bool) -> None:
    """DS-21: a heartbeat costs nobody anything."""
    model = ModelledDaemonSet(document({"maxUnavailable": 1, "selector": {"matchLabels": {"zone": "b"}}}))
    [spec] = controllers(Options())
    [source] = [item for item in spec.sources if getattr(item.kind, "resource", item.kind) == NODES]
    assert list(source.keys(old, new, model.world)) == ([Key("demo", "agent")] if is_news else [])


def test_a_node_is_judged_once_for_a_template() -> None:
    """A node that stays as it is costs nothing, however many passes there are."""
    model = ModelledDaemonSet(document())
    node = node_of("n")
    template = model.daemon_set.spec.template
    assert verdict_on(template, node) is verdict_on(template, node)
    model.edit_spec(lambda spec: spec["template"]["spec"].update(nodeSelector={"zone": "b"}))
    assert not verdict_on(model.daemon_set.spec.template, node).should_run


def test_nodes_that_get_no_pod_and_have_none_are_left_out() -> None:
    """A DaemonSet for a few of thousands of nodes costs as much as one for all nodes of a small cluster."""
    model = ModelledDaemonSet(document())
    model.edit_spec(lambda spec: spec["template"]["spec"].update(nodeSelector={"zone": "b"}))
    strayed = codec.convert(lonely_pod("strayed", "c"), Pod)
    nodes = [node_of(name, labels={"zone": zone}) for name, zone in (("a", "a"), ("b", "b"), ("c", "a"), ("d", "a"))]
    found = survey(model.daemon_set, nodes, [], [strayed])
    assert [(node.name, node.verdict.should_run) for node in found] == [("b", True), ("c", False)]


def test_nodes_that_join_or_flap_are_judged_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """DS-21: one judgement for each change, and none for a heartbeat."""
    judged: list[str] = []

    def verdict(spec: PodSpec, node: Node) -> daemon_pods.Verdict:
        judged.append(node.metadata.name)
        return really(spec, node)

    really = daemon_pods.verdict
    monkeypatch.setattr(daemon_pods, "verdict", verdict)
    model = ModelledDaemonSet(document())
    model.loop.begin()
    model.loop.settle()
    for number in range(20):
        model.add_node(f"new-{number:02}")
        model.loop.settle()
    assert sorted(judged) == sorted(node.metadata.name for node in model.world.store(NODES).list())
    judged.clear()
    passes = model.loop.passes
    for status in ("False", "True", "False"):
        conditions = [{"type": "Ready", "status": status}]
        model.edit_node("new-07", lambda doc, told=conditions: doc.setdefault("status", {}).update(conditions=told))
        model.loop.settle()
    assert model.loop.passes == passes
    tainted(model, "new-07", TAINT)
    model.loop.settle()
    assert set(judged) <= {"new-07"}


def test_pods_for_a_node_that_is_gone_go() -> None:  # DS-41, DS-111
    model = ModelledDaemonSet(document())
    model.reconcile()
    [gone] = [node for node in model.world.store(NODES).list() if node.metadata.name == "node-1"]
    model.world.remove(NODES, gone)
    model.settle(6)
    assert sorted(model.images) == ["node-0", "node-2"]
    assert model.daemon_set.status.desired_number_scheduled == 2


def test_pods_for_no_node_are_nobodys() -> None:  # DS-33
    model = running()
    owner = codec.to_builtins(model.pods[0].metadata.owner_references)
    body = lonely_pod("stray", "", **{keys.REVISION_LABEL: model.daemon_set.status.update_revision})
    body["metadata"]["ownerReferences"] = owner
    model.world.add(PODS, [codec.convert(body, PODS.type)])
    model.settle(4)
    assert model.pod("stray") is not None
    assert model.daemon_set.status.current_number_scheduled == 3


def test_a_pod_that_waits_for_its_node_counts_there() -> None:  # DS-33
    model = ModelledDaemonSet(document())
    assert writes_to_pods(model.reconcile()).count("create") == 3
    assert writes_to_pods(model.reconcile()).count("create") == 0
    assert model.daemon_set.status.current_number_scheduled == 3


def test_without_the_scheduler_pods_name_their_node() -> None:  # DS-46
    [spec] = controllers(dataclasses.replace(Options(), flags={BY_SCHEDULER.name: False}))
    model: Modelled[Any] = Modelled(spec, document())
    model.reconcile()
    assert sorted(pod.spec.node_name for pod in model.pods) == ["node-0", "node-1", "node-2"]
    created = [action for action in model.reconcile().actions() if action.verb is Verb.CREATE]
    assert not created
    assert {pod.spec.scheduler_name for pod in model.pods} == {NO_SCHEDULER}


def test_the_gate_is_there_once() -> None:  # DS-47, DS-109
    gated = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "readinessGates": [{"conditionType": keys.IN_PLACE_READY}]}}
    model = running(IN_PLACE, template=gated)
    for pod in model.pods:
        assert [gate.condition_type for gate in pod.spec.readiness_gates].count(keys.IN_PLACE_READY) == 1


# Adoption


def test_a_pod_of_nobody_is_adopted_and_its_node_gets_no_other() -> None:  # DS-20, DS-40
    model = ModelledDaemonSet(document())
    model.world.add(PODS, [codec.convert(lonely_pod("stray", "node-1"), PODS.type)])
    plan = model.reconcile()
    assert writes_to_pods(plan).count("create") == 0
    stray = model.pod("stray")
    assert stray is not None
    owner = controller_of(stray)
    assert owner is not None
    assert (owner.api_version, owner.kind, owner.name) == ("apps.kruise.io/v1beta1", "DaemonSet", "agent")  # DS-6
    assert model.daemon_set.status.observed_generation == 0  # DS-36
    assert writes_to_pods(model.reconcile()).count("create") == 2


def test_a_pod_that_no_longer_matches_is_let_go() -> None:  # DS-40
    model = running()
    [pod] = model.on("node-0")
    model.change(PODS, pod.metadata.name, lambda doc: doc["metadata"]["labels"].update(app="other"))
    model.settle(6)
    released = model.pod(pod.metadata.name)
    assert released is not None
    assert controller_of(released) is None
    assert len(model.on("node-0")) == 2


# Status


def test_the_generation_is_told_by_the_pass_after_the_last_change_of_pods() -> None:  # DS-36
    model = ModelledDaemonSet(document())
    model.reconcile()
    assert model.daemon_set.status.observed_generation == 0
    model.reconcile()
    assert model.daemon_set.status.observed_generation == 1
    model.settle(8)
    model.set_image("nginx:2")
    model.reconcile()  # only the update deletes
    assert model.daemon_set.status.observed_generation == 2


def test_available_lags_behind_ready() -> None:  # DS-10, DS-110
    model = ModelledDaemonSet(document(minReadySeconds=30))
    model.settle(8)
    status = model.daemon_set.status
    assert (status.number_ready, status.number_available, status.number_unavailable) == (3, 0, 3)
    done = model.loop.run(model.loop.controllers[0], model.key)
    assert done is not None
    assert done.conclusion is not None
    assert [20 < wake.after <= 30 for wake in done.conclusion.wakes] == [True]


def test_a_surging_pod_wakes_who_waits_for_it() -> None:  # DS-103
    model = running({"maxSurge": 1, "maxUnavailable": 0}, minReadySeconds=30)
    model.settle(35)
    model.set_image("nginx:2")
    model.settle(6)
    done = model.loop.run(model.loop.controllers[0], model.key)
    assert done is not None
    assert done.conclusion is not None
    assert [wake.reason.startswith("pod agent-") for wake in done.conclusion.wakes] == [True]


def test_an_empty_selector_is_told_and_nothing_is_done() -> None:  # DS-34
    model = ModelledDaemonSet(document(selector={}))
    done = model.loop.run(model.loop.controllers[0], model.key)
    assert done is not None
    assert done.conclusion is not None
    assert [(event.reason, event.type.value) for event in done.conclusion.events] == [("SelectingAll", "Warning")]
    assert not list(done.plan.actions())
    assert held(model) == {"agent": {"selects-all"}}


def test_being_deleted_means_doing_nothing() -> None:  # DS-34
    model = running()
    model.change(DAEMON_SETS, "agent", lambda doc: doc["metadata"].update(finalizers=["example.com/mine"]))
    model.world.delete(DAEMON_SETS, model.daemon_set)
    [pod] = model.on("node-0")
    model.delete_pod(pod.metadata.name)
    plan = model.reconcile()
    assert not list(plan.actions())


# Creating


def test_the_partition_limits_creation_where_it_is_asked_to() -> None:  # DS-43
    asked = {"scaleStrategy": {"partitionedScaling": True}}
    model = ModelledDaemonSet(document({"maxUnavailable": 1, "partition": "67%"}, **asked))
    model.settle(8)
    assert sorted(model.images) == ["node-0"]
    assert held(model)["agent"] == {"partition"}
    model.edit_spec(lambda spec: spec["updateStrategy"]["rollingUpdate"].update(partition=1))
    model.settle(8)
    assert sorted(model.images) == ["node-0", "node-1"]


def outcome(error: str, code: int) -> Outcome:
    plan = ModelledDaemonSet(document()).reconcile()
    action = next(action for action in plan.actions() if action.target.resource == PODS)
    return Outcome(action=action, result=Result.FAILED, error=error, error_code=code)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("unable to create new content in namespace demo because it is being terminated", []),
        ('pods "agent-x" is forbidden: exceeded quota', ["FailedCreate"]),
    ],
)
def test_a_namespace_that_goes_is_no_news(error: str, expected: list[str]) -> None:  # DS-45
    told: list[EventNote] = list(events(Plan(), "create", (outcome(error, 403),)))
    assert [event.reason for event in told] == expected
    assert all(event.message == f"Error creating: {error}" for event in told)


# Revisions


def test_twins_are_merged_and_their_pods_keep_running() -> None:  # DS-24, DS-104
    model = running()
    [known] = model.revisions
    twin = codec.to_builtins(known)
    labels = {**twin["metadata"]["labels"], keys.REVISION_LABEL: "twin"}
    twin["metadata"] |= {"name": "agent-twin", "uid": "uid-twin", "labels": labels}
    twin["revision"] = 7
    model.world.add(CONTROLLER_REVISIONS, [codec.convert(twin, CONTROLLER_REVISIONS.type)])
    before = {pod.metadata.uid for pod in model.pods}
    model.settle(4)
    assert [item.metadata.name for item in model.revisions] == ["agent-twin"]
    assert {pod.metadata.uid for pod in model.pods} == before
    assert {pod.metadata.labels[keys.REVISION_LABEL] for pod in model.pods} == {"twin"}


def test_the_old_count_of_the_template_is_understood() -> None:  # DS-27
    given = document()
    given["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "4"}
    model = ModelledDaemonSet(given)
    model.settle(8)
    assert {pod.metadata.labels["pod-template-generation"] for pod in model.pods} == {"4"}
    model.set_image("nginx:2")
    model.settle(8)
    assert set(model.images.values()) == {"nginx:1.25"}, "by their count they are updated"


def test_old_revisions_go_but_for_those_that_pods_have() -> None:  # DS-26
    model = running({"maxUnavailable": 1, "partition": 2}, revisionHistoryLimit=0)
    for image in ("nginx:2", "nginx:3"):
        model.set_image(image)
        model.settle(12)
    names = {pod.metadata.labels[keys.REVISION_LABEL] for pod in model.pods}
    assert {item.metadata.name.rpartition("-")[2] for item in model.revisions} == names


# Rolling


def excluded(model: ModelledDaemonSet) -> None:
    """Node-2 is dead: its pod cannot go. The new template is not for that node."""
    [stuck] = model.on("node-2")
    model.change(PODS, stuck.metadata.name, lambda doc: doc["metadata"].update(finalizers=["example.com/dead"]))
    for node in ("node-0", "node-1"):
        model.edit_node(node, lambda doc: doc["metadata"].update(labels={"alive": "yes"}))

    def edit(spec: Json) -> None:
        spec["template"]["spec"]["nodeSelector"] = {"alive": "yes"}
        spec["template"]["spec"]["containers"][0]["image"] = "nginx:2"

    model.edit_spec(edit)
    model.settle(40)


@pytest.mark.parametrize("prune", [True, False])
def test_nodes_that_are_left_out_use_up_the_limit_unless_pruned(prune: bool) -> None:  # DS-60, DS-71
    model = running(gates={"DaemonSetPruneIneligibleNodes": prune})
    excluded(model)
    moved = [node for node, image in model.images.items() if image == "nginx:2"]
    assert len(moved) == (2 if prune else 0)


def test_an_old_pod_beside_one_that_a_hook_holds_says_so() -> None:  # DS-68
    """The first new pods never got ready, and the next template wants their places: they use the surge up, not the old
    ones beside them, which serve."""
    guarded = {**TEMPLATE, "metadata": {"labels": {"app": "web", "guard": "on"}}}
    hook = {"preDelete": {"labelsHandler": {"guard": "on"}}}
    model = ModelledDaemonSet(document({"maxSurge": 2, "maxUnavailable": 0}, template=guarded, lifecycle=hook))
    model.settle(12)
    for image in (BROKEN, "nginx:2"):
        model.set_image(image)
        model.settle(12)
    plan = model.reconcile()
    assert writes_to_pods(plan) == []
    held = {item.target.name: item.causes for item in plan.held}
    leaving = {
        pod.metadata.name for pod in model.pods if pod.metadata.labels.get(keys.STATE_LABEL) == "PreparingDelete"
    }
    assert len(leaving) == 2
    for pod in model.pods:
        name = pod.metadata.name
        [cause] = held[name]
        if name in leaving:
            assert cause.code == "hook"
        elif {name} == {other.metadata.name for other in model.on(pod.spec.node_name)}:
            assert cause.code == "max-surge"
            assert set(cause.details["unavailable"]) == leaving
        else:
            assert cause.code == "two-pods"
            assert set(cause.details["unavailable"]) == leaving & {
                one.metadata.name for one in model.on(pod.spec.node_name)
            }


def test_an_old_pod_that_a_hook_holds_uses_no_surge_up() -> None:  # DS-52, DS-68
    """It counts as absent, so the other nodes go on; and none gets a third pod."""
    guarded = {**TEMPLATE, "metadata": {"labels": {"app": "web", "guard": "on"}}}
    hook = {"preDelete": {"labelsHandler": {"guard": "on"}}}
    model = ModelledDaemonSet(document({"maxSurge": 1, "maxUnavailable": 0}, template=guarded, lifecycle=hook))
    model.settle(12)
    model.set_image("nginx:2")
    model.settle(40)
    for node in ("node-0", "node-1", "node-2"):
        assert sorted(pod.spec.containers[0].image for pod in model.on(node)) == ["nginx:1.25", "nginx:2"]


def test_an_update_in_place_passes_the_hook_by() -> None:  # DS-53
    hook = {"preDelete": {"labelsHandler": {"example.io/block-deleting": "true"}}}
    template: Any = {**TEMPLATE, "metadata": {"labels": {"app": "web", "example.io/block-deleting": "true"}}}
    model = running(IN_PLACE, template=template, lifecycle=hook)
    before = {pod.metadata.uid for pod in model.pods}
    model.set_image("nginx:2")
    model.settle()
    assert set(model.images.values()) == {"nginx:2"}
    assert {pod.metadata.uid for pod in model.pods} == before


def test_a_broken_pod_counts_while_it_is_replaced() -> None:  # DS-64, better
    model = running()
    [pod] = model.on("node-0")
    model.change(PODS, pod.metadata.name, lambda doc: doc["spec"]["containers"][0].update(image=BROKEN))
    for item in ("Ready", "ContainersReady"):
        model.change(PODS, pod.metadata.name, lambda doc, item=item: _unready(doc, item))
    model.set_image("nginx:2")
    plan = model.reconcile()
    gone = [action.target.name for action in plan.actions() if action.verb is Verb.DELETE]
    assert gone == [pod.metadata.name]


def _unready(doc: Json, kind: str) -> None:
    for condition in doc["status"]["conditions"]:
        if condition["type"] == kind:
            condition["status"] = "False"


# Images pulled ahead

PULLING = {"PreDownloadImageForDaemonSetUpdate": True, "KruiseDaemon": True}


def pulling(rolling: Any = None, **spec: Any) -> ModelledDaemonSet:
    model = ModelledDaemonSet(document(rolling, **spec), gates=PULLING)
    model.settle(8)
    return model


def jobs(model: ModelledDaemonSet) -> list[str]:
    return [job.metadata.name for job in model.world.store(IMAGE_PULL_JOBS).list()]


def test_images_come_ahead_and_jobs_go_with_the_rollout() -> None:  # DS-80
    model = pulling({"maxUnavailable": 1, "partition": 2})
    assert jobs(model) == []
    model.set_image("nginx:2")
    model.settle(10)
    assert jobs(model) == [f"agent-{model.daemon_set.status.update_revision}-main"]
    model.edit_spec(lambda spec: spec["updateStrategy"]["rollingUpdate"].update(partition=0))
    model.settle()
    assert jobs(model) == []


@pytest.mark.parametrize(
    ("rolling", "why"),
    [({"maxUnavailable": "100%"}, "all at once"), ({"maxUnavailable": 1, "partition": 3}, "nobody moves")],
)
def test_nothing_is_pulled_in_vain(rolling: Json, why: str) -> None:  # DS-80
    model = pulling(rolling)
    model.set_image("nginx:2")
    model.reconcile()
    model.reconcile()
    assert jobs(model) == [], why


def test_on_delete_has_no_settings_to_ask() -> None:  # DS-81
    model = ModelledDaemonSet(document(updateStrategy={"type": "OnDelete"}), gates=PULLING)
    model.settle(8)
    model.set_image("nginx:2")
    model.settle(4)
    assert jobs(model) == []


# Numbers, order, repeated looks


@pytest.mark.parametrize(
    ("rolling", "unavailable", "surge", "partition"),
    [
        ({}, 1, 0, 0),
        ({"maxUnavailable": 0, "maxSurge": 0}, 1, 0, 0),
        ({"maxUnavailable": "34%", "partition": "34%"}, 2, 0, 1),
        ({"maxSurge": "34%"}, 0, 2, 0),
        ({"maxUnavailable": 0, "maxSurge": 1}, 0, 1, 0),
    ],
)
def test_limits_as_numbers_of_nodes(rolling: Json, unavailable: int, surge: int, partition: int) -> None:
    """DS-14, DS-61, DS-102."""
    spec = codec.convert({**document()["spec"], "updateStrategy": {"rollingUpdate": rolling}}, DaemonSetSpec)
    limits = limits_of(spec, 3)
    assert (limits.unavailable, limits.surge, limits.partition) == (unavailable, surge, partition)


def test_the_old_pod_stands_for_its_node_while_it_surges() -> None:  # DS-9
    model = running({"maxSurge": 3, "maxUnavailable": 0}, minReadySeconds=20)
    model.settle(25)
    model.set_image("nginx:2")
    model.settle(6)
    assert len(model.pods) == 6
    status = model.daemon_set.status
    assert (status.number_available, status.updated_number_scheduled) == (3, 0)
    model.settle(30)
    assert model.daemon_set.status.updated_number_scheduled == 3


def test_phases_come_in_order() -> None:  # DS-35
    model = ModelledDaemonSet(document())
    assert [phase.name for phase in model.reconcile().phases] == ["revision", "create"]
    model.settle(8)
    model.set_image("nginx:2")
    [gone] = model.on("node-0")
    model.delete_pod(gone.metadata.name)
    model.settle(3)
    names = [phase.name for phase in model.reconcile().phases]
    assert "update" not in names


def test_pods_that_are_made_do_not_wait_for_hundreds_of_others() -> None:  # DS-45
    """A pass over many nodes ends soon, so that the first pods get their conditions while the others are made: later,
    somebody else would write them, and each pod would cost one write more. It detaches nothing: only a pod that is
    there shows which node it is for, and a node must not get two."""
    [create] = [phase for phase in ModelledDaemonSet(document()).reconcile().phases if phase.name == "create"]
    assert create.pause_after is not None
    assert create.pause_after < 1
    assert not create.detaches


def test_the_shortest_wait_counts() -> None:  # DS-22, DS-44
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
    assert [0 < wake.after <= 2 for wake in model.reconcile().wakes] == [True]


def test_what_was_written_is_seen_by_the_next_pass() -> None:  # DS-37
    model = ModelledDaemonSet(document())
    assert writes_to_pods(model.reconcile()) == ["create"] * 3
    assert "create" not in writes_to_pods(model.reconcile())


def test_a_name_that_is_taken_is_counted() -> None:  # DS-25
    first = ModelledDaemonSet(document())
    first.reconcile()
    [wanted] = first.revisions
    taken = codec.to_builtins(wanted)
    taken["metadata"] = {"name": wanted.metadata.name, "namespace": "demo", "uid": "uid-taken"}
    taken["data"] = {"spec": {"template": {"$patch": "replace"}}}
    model = ModelledDaemonSet(document())
    model.world.add(CONTROLLER_REVISIONS, [codec.convert(taken, CONTROLLER_REVISIONS.type)])
    model.settle(8)
    assert model.daemon_set.status.collision_count == 1
    assert len(model.pods) == 3
    assert model.daemon_set.status.update_revision not in wanted.metadata.name


def test_gates_and_flags() -> None:  # DS-7, DS-8
    wanted = {
        "PreDownloadImageForDaemonSetUpdate": False,
        "DaemonSetPruneIneligibleNodes": False,
        "InPlaceUpdateEnvFromMetadata": True,
        "InPlaceWorkloadVerticalScaling": False,
    }
    assert {name: GATES[name].default for name in wanted} == wanted
    assert Options().flag(BY_SCHEDULER) is True
    assert Options().workers_of("daemonset") == 3
