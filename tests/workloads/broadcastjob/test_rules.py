"""Rules of the BroadcastJob, each shown in the model of a cluster (BJ-33)."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from kruise.api.apps.broadcastjob import BROADCAST_JOBS, NAME_LABEL, UID_LABEL, BroadcastJob
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Plan
from kruise.model.world import Json
from kruise.workloads.broadcastjob.advice import warnings_of
from kruise.workloads.broadcastjob.fitting import judge_of, pod_obstacle
from kruise.workloads.broadcastjob.numbers import UNLIMITED, limit_of
from kruise.workloads.broadcastjob.situation import is_over
from kruise.workloads.broadcastjob.status import wire_form
from kruise.workloads.shared.validation import Candidate
from tests.support.modelled import START, UID
from tests.workloads.broadcastjob.modelled import ROOM, ModelledJob, document, held, template

NEVER = {"type": "Never"}
CONTINUE, PAUSE = {"type": "Continue"}, {"type": "Pause"}
TAINT = [{"key": "example.com/own", "effect": "NoSchedule"}]


def created(plan: Plan) -> list[str]:
    """The nodes that get a pod, in order."""
    terms = (
        action.body["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for action in plan.actions()
        if action.verb is Verb.CREATE
    )
    return [term["nodeSelectorTerms"][0]["matchFields"][0]["values"][0] for term in terms]


# Nodes


def test_each_node_gets_a_pod_that_names_it() -> None:  # BJ-20, BJ-25, BJ-35, BJ-55 to BJ-57, BJ-59
    model = ModelledJob()
    model.reconcile()
    assert model.served == ["node-0", "node-1", "node-2"]
    pod = model.on("node-1")
    assert pod.metadata.labels == {"app": "task", NAME_LABEL: "job", UID_LABEL: UID}
    assert pod.metadata.generate_name == "job-"
    [owner] = pod.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == (
        "apps.kruise.io/v1beta1",
        "BroadcastJob",
        "job",
        UID,
    )
    assert owner.controller
    assert owner.block_owner_deletion
    assert not model.reconcile().phases


def test_affinity_of_the_template_is_replaced_and_the_rest_stays() -> None:  # BJ-57
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
        }
    }
    model = ModelledJob(document(template=template(affinity=affinity)))
    model.add_node("node-a", labels={"zone": "a"})
    [action] = model.reconcile().actions()
    told = action.body["spec"]["affinity"]["nodeAffinity"]
    assert told["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
    ]
    assert told["preferredDuringSchedulingIgnoredDuringExecution"] == [{"weight": 1, "preference": {}}]


def test_without_the_scheduler_pods_name_their_node() -> None:  # BJ-58
    model = ModelledJob(by_scheduler=False)
    bodies = [action.body["spec"] for action in model.reconcile().actions()]
    assert [spec["nodeName"] for spec in bodies] == ["node-0", "node-1", "node-2"]
    assert not any("affinity" in spec for spec in bodies)


@pytest.mark.parametrize(
    ("asked", "node", "fits"),
    [
        ({}, {}, True),
        ({"nodeSelector": {"disk": "ssd"}}, {}, False),
        ({"nodeSelector": {"disk": "ssd"}}, {"labels": {"disk": "ssd"}}, True),
        ({}, {"taints": TAINT}, False),
        ({"tolerations": [{"key": "example.com/own", "operator": "Exists"}]}, {"taints": TAINT}, True),
        ({}, {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}, True),
        ({}, {"taints": [{"key": "a", "effect": "NoExecute"}]}, False),
        ({}, {"unschedulable": True}, False),
        (
            {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
            {"unschedulable": True},
            True,
        ),
        ({}, {"status": {}}, False),
        ({"containers": [{"name": "a", "resources": {"requests": {"cpu": "5"}}}]}, {}, False),
        ({"containers": [{"name": "a", "resources": {"requests": {"cpu": "4"}}}]}, {}, True),
        ({"containers": [{"name": "a", "resources": {"requests": {"example.com/gpu": "1"}}}]}, {}, False),
        ({"nodeName": "elsewhere"}, {}, True),
    ],
)
def test_which_nodes_fit(asked: Json, node: dict[str, Any], fits: bool) -> None:  # BJ-22 to BJ-24
    model = ModelledJob(document(template=template(**asked)), nodes=0)
    model.add_node("node-x", **node)
    model.reconcile()
    assert model.status.desired == int(fits)
    assert model.served == (["node-x"] if fits else [])


def test_a_node_that_does_not_suit_any_more_loses_its_pod() -> None:  # BJ-21, BJ-34, BJ-69
    model = ModelledJob(document(completionPolicy=NEVER))
    model.reconcile()
    model.end("node-0")
    model.edit_node("node-0", lambda doc: doc.setdefault("spec", {}).update(unschedulable=True))
    plan = model.reconcile()
    assert [action.verb for action in plan.actions()] == [Verb.DELETE]
    assert model.counts == (2, 2, 1, 1)  # active does not sink: the pod that went had finished
    model.passes()
    assert model.counts == (2, 2, 0, 0)
    model.edit_node("node-0", lambda doc: doc.update(spec={}))
    assert created(model.reconcile()) == ["node-0"]


def test_the_affinity_of_the_template_is_not_asked_again() -> None:  # BJ-21
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    model = ModelledJob(document(template=template(affinity={"nodeAffinity": required})))
    model.add_node("node-a", labels={"zone": "a"})
    model.passes()
    model.edit_node("node-a", lambda doc: doc["metadata"].update(labels={}))
    assert not model.reconcile().phases
    assert model.status.desired == 1


def test_two_pods_on_a_node_are_told_of_and_stay() -> None:  # BJ-26
    model = ModelledJob(nodes=1)
    model.reconcile()
    twin = codec.evolve(model.on("node-0"), metadata=codec.evolve(model.on("node-0").metadata, name="z", uid="z"))
    model.world.add(PODS, [twin])
    told = model.events()
    assert ("DuplicatePodCreatedOnSameNode", "pod z is on node node-0, which has another pod of the job") in told
    assert len(model.pods) == 2


def test_pods_of_others_do_not_count() -> None:  # BJ-27
    model = ModelledJob(nodes=1)
    model.reconcile()
    pod = model.on("node-0")
    labels = {**pod.metadata.labels, UID_LABEL: "another"}
    model.change(PODS, pod.metadata.name, lambda doc: doc["metadata"].update(labels=labels))
    model.reconcile()
    assert len(model.pods) == 2


# Parallelism


@pytest.mark.parametrize(
    ("given", "desired", "limit"),
    [
        (None, 3, UNLIMITED),
        (2, 3, 2),
        ("40%", 5, 2),
        ("50%", 3, 2),
        ("5", 100, 5),
        ("0%", 3, 0),
        (-1, 3, -1),
        ("%%10%", 10, 1),
    ],
)
def test_the_limit_as_a_number(given: Any, desired: int, limit: int) -> None:  # BJ-60, BJ-62, BJ-63
    assert limit_of(given, desired).pods == limit


def test_not_more_at_a_time_and_the_next_when_one_finished() -> None:  # BJ-61, BJ-67
    model = ModelledJob(document(parallelism=2), nodes=5)
    assert created(model.reconcile()) == ["node-0", "node-1"]
    assert model.counts == (5, 2, 0, 0)
    assert held(model.reconcile()) == {"job": "parallelism"}
    model.end("node-1")
    assert created(model.reconcile()) == ["node-2"]
    assert model.counts == (5, 2, 1, 0)


def test_ten_nodes_in_one_pass() -> None:  # BJ-65, BJ-66
    model = ModelledJob(nodes=10)
    [phase] = model.reconcile().phases
    assert phase.slow_start
    assert model.counts == (10, 10, 0, 0)


def test_a_higher_and_a_lower_limit_count_at_once() -> None:  # BJ-61, BJ-64
    model = ModelledJob(document(parallelism=1), nodes=3)
    model.reconcile()
    model.edit_spec(lambda spec: spec.update(parallelism=3))
    model.reconcile()
    assert len(model.pods) == 3
    model.edit_spec(lambda spec: spec.update(parallelism=1))
    assert ("TooManyActivePods", "Number of active pods exceed parallelism limit") in model.events()
    assert len(model.pods) == 3


@pytest.mark.parametrize("value", [0, "0%", -1, "abc"])
def test_a_limit_that_lets_nothing_happen(value: Any) -> None:  # BJ-62, BJ-63
    model = ModelledJob(document(parallelism=value))
    plan = model.reconcile()
    assert held(plan) == {"job": "no-parallelism"}
    assert not model.pods
    assert (model.status.phase, model.status.desired) == ("running", 3)


# Ends


def test_it_completes_when_every_node_is_done() -> None:  # BJ-8, BJ-9, BJ-10, BJ-46, BJ-50
    model = ModelledJob()
    model.reconcile()
    assert (model.status.phase, model.status.start_time) == ("running", START)
    for node in ("node-0", "node-1"):
        model.end(node)
    assert held(model.reconcile()) == {"job": "tasks"}
    model.end("node-2")
    message = "Job demo/job is completed, 3 pods succeeded, 0 pods failed"
    assert model.events() == [("JobComplete", message)]
    [condition] = model.status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Complete", "True", "Complete")
    assert condition.message == "Job completed, 3 pods succeeded, 0 pods failed"
    assert (model.status.phase, model.status.completion_time, model.counts) == ("completed", START, (3, 0, 3, 0))
    model.add_node("node-9")
    model.passes()
    assert model.counts == (3, 0, 3, 0)
    assert "node-9" not in model.served


def test_the_status_has_its_numbers_even_when_0() -> None:  # BJ-8
    assert wire_form(document_status()) == {"active": 0, "succeeded": 0, "failed": 0, "desired": 0, "phase": ""}


def document_status() -> Any:
    return codec.convert(document(), BROADCAST_JOBS.type).status


def test_without_nodes_it_waits_for_ever_and_says_why() -> None:  # BJ-46
    model = ModelledJob(document(template=template(nodeSelector={"disk": "ssd"})))
    plan = model.reconcile()
    assert (model.status.phase, model.status.desired) == ("running", 0)
    [item] = plan.held
    assert item.causes[0].code == "no-node"
    assert "3 nodes: its labels do not match" in item.causes[0].message


@pytest.mark.parametrize(("ttl", "phase"), [(0, "Succeeded"), (30, "Succeeded"), (30, "Failed")])
def test_a_finished_job_goes_when_its_time_is_over(ttl: int, phase: str) -> None:  # BJ-47
    model = ModelledJob(document(completionPolicy={"type": "Always", "ttlSecondsAfterFinished": ttl}), nodes=1)
    model.pass_time(0.7)
    model.reconcile()
    model.end("node-0", phase)
    model.reconcile()
    assert model.status.phase in ("completed", "failed")
    model.pass_time(ttl - 0.1 if ttl else 0)
    model.reconcile()
    assert not model.gone(), "never early, though times have whole seconds"
    model.pass_time(1)
    model.reconcile()
    assert model.gone()


def test_the_plan_tells_when_it_is_over_and_when_it_goes() -> None:  # BJ-47, BJ-48
    policy = {"type": "Always", "activeDeadlineSeconds": 7200, "ttlSecondsAfterFinished": 86400}
    model = ModelledJob(document(completionPolicy=policy), nodes=1)
    assert [wake.after for wake in model.reconcile().wakes] == [7200]
    model.end("node-0")
    model.reconcile()
    assert model.status.phase == "completed"
    assert [wake.after for wake in model.reconcile().wakes] == [86400]


def test_the_deadline_fails_it_and_takes_its_pods() -> None:  # BJ-36, BJ-48, BJ-49
    policy = {"type": "Always", "activeDeadlineSeconds": 10}
    model = ModelledJob(document(completionPolicy=policy, failurePolicy=CONTINUE))
    plan = model.reconcile()
    assert [wake.after for wake in plan.wakes] == [10]
    model.end("node-0")
    model.pass_time(4)
    assert [wake.after for wake in model.reconcile().wakes] == [6]
    model.pass_time(6)
    message = "Job demo/job was active longer than specified deadline"
    told = dict(model.events())
    counts = "1 pods succeeded, 2 pods failed (2 of them had not ended, and were deleted)"
    assert told["DeadlineExceeded"] == f"{message}: {counts}"
    said = f"{message}; 2 pods had not ended, and count as failed"
    assert [condition.message for condition in model.status.conditions] == [said]
    assert (model.status.phase, model.counts) == ("failed", (3, 0, 1, 2))


@pytest.mark.parametrize("fraction", [0, 0.4])
def test_a_deadline_of_0_fails_at_once(fraction: float) -> None:  # BJ-48
    model = ModelledJob(document(completionPolicy={"type": "Always", "activeDeadlineSeconds": 0}))
    model.pass_time(fraction)
    model.reconcile()
    assert model.status.phase == "failed"
    assert not model.pods


def test_never_goes_on_for_new_nodes() -> None:  # BJ-51, BJ-52
    model = ModelledJob(document(completionPolicy=NEVER), nodes=1)
    model.reconcile()
    model.end("node-0")
    assert held(model.passes()) == {"job": "never-completes"}
    assert model.status.phase == "running"
    model.add_node("node-1")
    model.reconcile()
    assert model.served == ["node-0", "node-1"]
    model.end("node-1")
    model.world.remove(PODS, model.on("node-0"))
    assert created(model.reconcile()) == ["node-0"]


def test_one_that_has_completed_goes_on_when_it_is_never_to_complete() -> None:  # BJ-19, BJ-51, BJ-52
    """And is still completed, also when it may complete again."""
    model = ModelledJob()
    model.reconcile()
    for node in model.served:
        model.end(node)
    model.passes(2)
    model.edit_spec(lambda spec: spec.update(completionPolicy=NEVER))
    model.add_node("node-9")
    model.passes(2)
    assert "node-9" in model.served
    assert (model.status.phase, model.counts) == ("completed", (4, 1, 3, 0))
    [source] = [one for one in model.loop.controllers[0].spec.sources if one.resource == NODES]
    node = model.world.store(NODES).get("", "node-9")
    assert [*source.keys(None, node, model.world)] == [model.key]
    model.edit_spec(lambda spec: spec.update(completionPolicy={"type": "Always"}))
    model.passes(2)
    assert model.status.phase == "completed"


def test_never_may_fail_and_is_only_counted_then() -> None:  # BJ-37, BJ-51
    model = ModelledJob(document(completionPolicy=NEVER), nodes=2)
    model.reconcile()
    model.end("node-0", "Failed")
    model.reconcile()
    assert (model.status.phase, len(model.status.conditions)) == ("failed", 1)
    model.add_node("node-5")
    plan = model.passes()
    assert held(plan) == {"job": "job-failed", model.on("node-0").metadata.name: "task-failed"}
    assert "node-5" not in model.served
    assert len(model.status.conditions) == 1


def test_a_changed_template_counts_for_later_pods() -> None:  # BJ-53
    model = ModelledJob(document(parallelism=1), nodes=2)
    model.reconcile()
    model.edit_spec(lambda spec: spec["template"]["spec"]["containers"][0].update(image="busybox:2"))
    model.end("node-0")
    model.reconcile()
    images = {node: model.on(node).spec.containers[0].image for node in model.served}
    assert images == {"node-0": "busybox:1", "node-1": "busybox:2"}


def test_a_job_that_is_deleted_makes_no_pods() -> None:  # BJ-54
    model = ModelledJob()
    gone = START.isoformat().replace("+00:00", "Z")
    model.change(BROADCAST_JOBS, "job", lambda doc: doc["metadata"].update(deletionTimestamp=gone, finalizers=["a/b"]))
    plan = model.reconcile()
    assert not model.pods
    assert model.status.desired == 3
    assert plan.held == (), "no node waits for its turn"


# Failures


def test_fail_fast() -> None:  # BJ-28 to BJ-31, BJ-36, BJ-37
    model = ModelledJob()
    model.reconcile()
    model.end("node-0", "Failed")
    words = "failure policy is FailurePolicyTypeFailFast and failed pod is found"
    told = [item for item in model.events() if item[0] == "failed pod is found"]
    assert [text for _, text in told] == [
        f"{words}: 0 pods succeeded, 1 pods failed",
        f"{words}: 0 pods succeeded, 3 pods failed (2 of them had not ended, and were deleted)",
    ]
    assert (model.status.phase, model.counts) == ("failed", (3, 0, 0, 3))
    [condition] = model.status.conditions
    assert (condition.type, condition.reason) == ("Failed", "Failed")
    assert condition.message == f"{words}; 2 pods had not ended, and count as failed"
    assert model.status.completion_time == START


def test_the_message_tells_only_of_pods_that_were_deleted() -> None:  # BJ-37
    model = ModelledJob(nodes=2)
    model.reconcile()
    model.end("node-0")
    model.end("node-1", "Failed")
    model.reconcile()
    [condition] = model.status.conditions
    assert condition.message == "failure policy is FailurePolicyTypeFailFast and failed pod is found"
    assert model.counts == (2, 0, 1, 1)


def test_pods_that_leave_when_the_job_fails_count_as_failed() -> None:  # BJ-36
    """Somebody has deleted one, and its node has not stopped it yet."""
    model = ModelledJob()
    model.reconcile()
    for pod in model.pods:
        model.kubelet(pod.metadata.name)
    model.delete_pod(model.on("node-2").metadata.name)
    model.end("node-0", "Failed")
    model.reconcile()
    assert (model.status.phase, model.counts) == ("failed", (3, 0, 0, 3))


def test_pods_that_could_not_be_deleted_go_later() -> None:  # BJ-36
    model = ModelledJob()
    model.reconcile()
    for pod in model.pods:
        model.kubelet(pod.metadata.name)
    model.end("node-0", "Failed")
    plan = model.reconcile(die_at=2)  # the end is told, and one pod deleted
    assert [phase.name for phase in plan.phases] == ["end", "delete"]
    assert (model.status.phase, model.counts) == ("failed", (3, 0, 0, 3))
    running = [pod for pod in model.pods if not is_over(pod)]
    assert len(running) == 1
    plan = model.reconcile()
    assert [action.target.name for action in plan.actions()] == [running[0].metadata.name]
    assert model.counts == (3, 0, 0, 3)
    assert not model.reconcile().phases


def test_a_job_that_has_failed_tells_which_pods_did() -> None:  # BJ-46
    model = ModelledJob(nodes=2)
    model.reconcile()
    state = {"terminated": {"exitCode": 3, "message": "no disk\n"}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": state}]}
    failed = model.on("node-1").metadata.name
    model.change(PODS, failed, lambda doc: doc.update(status=status))
    plan = model.passes(3)
    assert held(plan) == {"job": "job-failed", failed: "task-failed"}
    told = {item.target.name: item.causes[0] for item in plan.held}
    assert told[failed].message == "container main ended with exit code 3: no disk"
    assert f"kubectl logs {failed} -n demo" in told[failed].remedy
    assert f"kubectl logs {failed} -n demo" in told["job"].remedy


def test_continue_goes_on_and_completes() -> None:  # BJ-38
    model = ModelledJob(document(failurePolicy=CONTINUE, parallelism=1), nodes=2)
    model.reconcile()
    model.end("node-0", "Failed")
    assert created(model.reconcile()) == ["node-1"]
    model.end("node-1", "Failed")
    model.reconcile()
    assert model.status.phase == "completed"
    assert model.status.conditions[0].message == "Job completed, 0 pods succeeded, 2 pods failed"


def test_pause_waits_until_the_failed_pod_is_gone() -> None:  # BJ-39, BJ-42
    model = ModelledJob(document(failurePolicy=PAUSE, parallelism=1), nodes=2)
    model.reconcile()
    model.end("node-0", "Failed")
    assert ("Paused", "job is paused, due to failed pod") in model.events()
    assert (model.status.phase, model.counts) == ("paused", (2, 0, 0, 1))
    assert model.events() == []
    assert held(model.reconcile()) == {"job": "failure-pauses"}
    model.world.remove(PODS, model.on("node-0"))
    assert ("Continue", "continue to process job") in model.events()
    assert (model.status.phase, model.served) == ("running", ["node-0"])


def test_restarts_count_for_each_pod() -> None:  # BJ-32
    policy = {"type": "FailFast", "restartLimit": 1}
    model = ModelledJob(document(failurePolicy=policy, template=template(restartPolicy="OnFailure")), nodes=2)
    model.reconcile()
    model.restart("node-0", 1)
    model.restart("node-1", 1)
    model.reconcile()
    assert (model.status.phase, model.counts) == ("running", (2, 2, 0, 0))
    model.restart("node-0", 2)
    name = model.on("node-0").metadata.name
    model.reconcile()
    assert (model.status.phase, model.counts) == ("failed", (2, 0, 0, 2))
    assert model.served == [], "the one that failed would restart for ever (BJ-36)"
    [told] = [one.message for one in model.status.conditions if one.type == "Failed"]
    assert told.endswith(f"; pod {name}: container main ended with exit code 3"), (
        "nobody can see it in the pod any more"
    )


def test_one_over_the_limit_that_runs_blocks_completion() -> None:  # BJ-32, BJ-46
    model = ModelledJob(document(failurePolicy=CONTINUE, template=template(restartPolicy="OnFailure")), nodes=2)
    model.reconcile()
    model.end("node-1")
    model.restart("node-0", 1)
    plan = model.reconcile()
    assert (model.status.phase, model.counts) == ("running", (2, 0, 1, 1))
    assert held(plan)[model.on("node-0").metadata.name] == "restarts"


def test_an_unknown_failure_policy_continues() -> None:  # BJ-19
    model = ModelledJob(document(failurePolicy={"type": "Foo"}, completionPolicy={"type": "Bar"}), nodes=1)
    model.reconcile()
    model.end("node-0", "Failed")
    model.reconcile()
    assert model.status.phase == "completed"


# Pause


def test_paused_from_the_start() -> None:  # BJ-40, BJ-41, BJ-42
    model = ModelledJob(document(paused=True))
    assert held(model.reconcile()) == {"job": "job-paused"}
    assert (model.status.phase, model.counts, model.pods) == ("paused", (3, 0, 0, 0), ())
    model.edit_spec(lambda spec: spec.update(paused=False))
    assert ("Continue", "continue to process job") in model.events()
    assert (model.status.phase, len(model.pods)) == ("running", 3)


def test_while_paused_pods_go_on_and_nothing_ends() -> None:  # BJ-40, BJ-43, BJ-44, BJ-45
    policy = {"type": "Always", "activeDeadlineSeconds": 5}
    model = ModelledJob(document(completionPolicy=policy), nodes=2)
    model.reconcile()
    model.edit_spec(lambda spec: spec.update(paused=True))
    model.end("node-0")
    model.pass_time(60)
    assert not model.reconcile().wakes
    assert (model.status.phase, model.counts) == ("paused", (2, 1, 1, 0))
    model.edit_spec(lambda spec: spec.update(paused=False))
    model.reconcile()
    assert model.status.phase == "failed"
    model.edit_spec(lambda spec: spec.update(paused=True))
    model.passes()
    assert model.status.phase == "failed"


def test_all_pods_finish_while_paused() -> None:  # BJ-43
    model = ModelledJob(nodes=1)
    model.reconcile()
    model.edit_spec(lambda spec: spec.update(paused=True))
    model.end("node-0")
    model.passes()
    assert model.status.phase == "paused"
    model.edit_spec(lambda spec: spec.update(paused=False))
    model.reconcile()
    assert model.status.phase == "completed"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"completionPolicy": {"activeDeadlineSeconds": 0}}, "0 lets the job fail at once"),
        ({"completionPolicy": {"ttlSecondsAfterFinished": -7}}, "-7 deletes the job as soon as it ends"),
        ({"failurePolicy": {"restartLimit": -1}}, "-1 lets pods that may restart fail before they begin"),
        ({"completionPolicy": {"ttlSecondsAfterFinished": 0}, "failurePolicy": {"restartLimit": 0}}, ""),
        ({"completionPolicy": {"type": "Sometimes"}}, '"Sometimes" is not known, and counts as Always'),
        ({"parallelism": "5"}, '"5" is a text, and means 5% of the nodes'),
        ({"parallelism": 0}, "0 lets no pod be created"),
    ],
)
def test_what_is_accepted_and_warned_of(given: Json, told: str) -> None:  # BJ-19
    body = document(**given)
    candidate = Candidate(body=body, reading=codec.convert(body, BroadcastJob).spec)
    warnings = [text for text in warnings_of(candidate, {}, {}) if text]
    assert [told in text for text in warnings] == ([True] if told else [])


# What makes a job be looked at


def test_nodes_are_looked_at_where_they_change_something() -> None:  # BJ-68, BJ-69
    model = ModelledJob(nodes=1)
    model.passes()
    [source] = [one for one in model.loop.controllers[0].spec.sources if one.resource == NODES]
    node = model.world.store(NODES).get("", "node-0")
    assert node is not None
    labelled = codec.evolve(node, metadata=codec.evolve(node.metadata, labels={"a": "b"}))
    cordoned = codec.evolve(node, spec=codec.evolve(node.spec, unschedulable=True))
    full = codec.evolve(node, status=codec.evolve(node.status, allocatable={}))
    assert not [*source.keys(node, labelled, model.world)]
    for changed in (cordoned, full, None):
        assert [*source.keys(node, changed, model.world)] == [model.key]
        assert [*source.keys(changed, node, model.world)] == [model.key]


def test_resources_are_those_of_an_empty_node() -> None:  # BJ-22
    asked = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "3"}}}]}
    model = ModelledJob(document(template=template(**asked)), nodes=1)
    other = {"metadata": {"name": "o", "namespace": "x", "uid": "o"}, "spec": {"nodeName": "node-0", **asked}}
    model.world.add(PODS, [codec.convert(other, PODS.type)])
    model.reconcile()
    assert (model.status.desired, ROOM["allocatable"]["cpu"]) == (1, "4")


@pytest.mark.parametrize("broken", [b'{"spec": {"containers": 7}}', b'{"spec": [1]}', b"[]"])
def test_a_template_that_cannot_be_read_is_a_reason_and_no_error(broken: bytes) -> None:  # BJ-22
    node = codec.convert({"metadata": {"name": "n", "uid": "u"}}, Node)
    assert "the template of the job cannot be read" in judge_of(codec.Raw(broken))(node)


def test_a_pod_keeps_the_answer_about_its_node_but_not_the_node() -> None:
    def node(version: str, **spec: Any) -> Node:
        metadata = {"name": "n", "uid": "u", "resourceVersion": version}
        return codec.convert({"metadata": metadata, "spec": spec, "status": {"allocatable": {"pods": "9"}}}, Node)

    pod, first = codec.convert({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}}, Pod), node("1")
    before = sys.getrefcount(first)
    assert pod_obstacle(pod, first) == ""
    assert sys.getrefcount(first) == before
    assert "not tolerated" in pod_obstacle(pod, node("2", taints=TAINT))
