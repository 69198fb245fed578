"""Every cause that `kruise why` can name is reached on the local cluster, and told the same by the journal and anew."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.events import EVENTS, LEASES
from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.cli import journal_access
from kruise.cli.deciding import Asking
from kruise.faces.native import STATEFUL_SET
from kruise.inplace import keys
from kruise.kinds import faces, features
from kruise.machinery.causes import Act
from kruise.machinery.client.requests import PatchType
from kruise.machinery.times import format_micro_time
from kruise.manager.options import Options, Role
from kruise.reasons import causes
from kruise.reasons.assembling import Facts, assemble
from kruise.reasons.links import OBJECT, Answer, Source
from kruise.workloads.cloneset.causes import CAUSES
from kruise.workloads.shared.causes import SHARED
from tests.reasons.asking import ask, ask_both, ask_journal, ask_pod, codes, ends, is_helped
from tests.scenarios.daemons import DaemonStage
from tests.scenarios.stage import OK_GATE, Stage, names
from tests.support.world import Json, LocalWorld, run_local

HOOK = "example.com/hook"
MISSING = "nginx:missing"
KNOB = "sim.kruise.io"
RESIZING = "InPlaceWorkloadVerticalScaling=true"
Play = Callable[[Any, pytest.MonkeyPatch], Awaitable[Answer | None]]


@dataclasses.dataclass(frozen=True)
class Scene:
    play: Play
    codes: tuple[str, ...]
    gates: str = ""
    stage: type[Stage] = Stage


SCENES: list[Scene] = []


def reaches(*reached: str, gates: str = "", stage: type[Stage] = Stage) -> Callable[[Play], Play]:
    def enlist(play: Play) -> Play:
        SCENES.append(Scene(play, reached, gates, stage))
        return play

    return enlist


def world_of(stage: Stage) -> LocalWorld:
    assert isinstance(stage.world, LocalWorld)
    return stage.world


def sized(cpu: str) -> Json:
    return {"name": "main", "image": "nginx:1.25", "resources": {"requests": {"cpu": cpu}}}


# What the spec asks for


@reaches("partition")
async def the_partition_is_reached(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=3, rolling={"partition": 2})
    await stage.set_image("nginx:1.26")
    await stage.reaches(updatedAvailableReplicas=1)
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.INTENDED
    return answer


@reaches("paused")
async def the_update_is_paused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=2, rolling={"paused": True})
    await stage.set_image("nginx:1.26")
    await stage.seen()
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.INTENDED
    assert "kruise rollout resume cloneset/web" in answer.ends(next(iter(answer.waiting)))[0].remedy
    return answer


@reaches("on-delete")
async def pods_are_updated_on_delete(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=2, strategy={"type": "OnDelete"})
    await stage.set_image("nginx:1.26")
    await stage.seen()
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.INTENDED
    return answer


# Limits, and those who use them up


@reaches("max-unavailable", "updating", "image-pull")
async def an_image_that_nobody_has(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=3, rolling={"maxUnavailable": 1})
    await stage.set_image(MISSING)
    await stage.reaches(updatedReplicas=1, availableReplicas=2)
    for _ in range(12):  # the kubelet tells now of the pull, now of the container that it stopped
        await stage.world.sleep(7)
        answer = await ask_both(stage, monkeypatch)
        assert ends(answer) == {"image-pull"}
        assert answer.act is Act.SOMEBODY
    return answer


@reaches("resize-refused", "max-unavailable", gates=RESIZING)
async def resources_that_no_node_has(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=2, rolling={"maxUnavailable": 1}, containers=[sized("1")])
    await stage.edit_template({"spec": {"containers": [sized("500")]}})
    await stage.world.sleep(5)
    answer = await ask_journal(stage, monkeypatch)
    assert ends(answer) == {"resize-refused"}
    assert answer.act is Act.SOMEBODY
    await stage.edit_template({"spec": {"containers": [sized("2")]}})
    await stage.complete()  # what is refused never holds up what corrects it
    return answer


@reaches("resize-deferred", "max-unavailable", gates=RESIZING)
async def resources_that_the_node_has_given_away(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    node = (await stage.client.list(NODES)).items[0].metadata.name
    both_on_it = {"nodeSelector": {"kubernetes.io/hostname": node}}
    await stage.start(replicas=2, rolling={"maxUnavailable": 1}, containers=[sized("4")], pod=both_on_it)
    await stage.edit_template({"spec": {"containers": [sized("7")]}})
    await stage.world.sleep(90)
    answer = await ask_journal(stage, monkeypatch)
    assert ends(answer) == {"resize-deferred"}
    return answer


@reaches("resize-failed", "max-unavailable", gates=RESIZING)
async def resources_that_the_node_fails_to_give(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=2, rolling={"maxUnavailable": 1}, containers=[sized("1")])
    told = {f"{KNOB}/resize-error": "the container uses more than that"}
    await stage.edit_template({"metadata": {"annotations": told}, "spec": {"containers": [sized("2")]}})
    await stage.world.sleep(90)
    answer = await ask_journal(stage, monkeypatch)
    assert ends(answer) == {"resize-failed"}
    assert answer.act is Act.SOMEBODY
    told = {f"{KNOB}/resize-error": None}
    await stage.edit_template({"metadata": {"annotations": told}, "spec": {"containers": [sized("3")]}})
    await stage.complete()  # what fails never holds up what corrects it
    return answer


@reaches("max-unavailable", "crash-loop")
async def new_pods_crash(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=3, policy="ReCreate", rolling={"maxUnavailable": 1}, minReadySeconds=5)
    await stage.edit_template({"metadata": {"annotations": {f"{KNOB}/crash-loop": "3 after 1s"}}})
    await stage.world.sleep(60)
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer) == {"crash-loop"}
    [end] = answer.ends(next(iter(answer.waiting)))
    assert "exit code 3" in end.message
    assert "--previous" in end.remedy
    return answer


@reaches("surge", "max-unavailable", "probe")
async def a_surge_pod_does_not_come_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=2, policy="ReCreate", rolling={"maxSurge": 1, "maxUnavailable": 0})
    await stage.edit_template({"metadata": {"annotations": {f"{KNOB}/never-ready": "true"}}})
    await stage.world.sleep(20)
    young = await ask_both(stage, monkeypatch)
    assert young.act is Act.NOBODY, "it has just begun"
    await stage.world.sleep(60)
    return await ask_both(stage, monkeypatch)


@reaches("deletion-budget")
async def a_deletion_that_would_cost_too_much(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    first, second = names(await stage.start(replicas=2, rolling={"maxUnavailable": 1}))
    await stage.annotate(first, {f"{KNOB}/never-ready": "true"})
    await stage.reaches(availableReplicas=1)
    await stage.set_labels(second, {keys.SPECIFIED_DELETE_LABEL: "true"})
    await stage.world.sleep(90)
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer, second) == {"probe"}
    return answer


@reaches("scale-limit")
async def scaling_up_pod_by_pod(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.create(replicas=3, scale={"maxUnavailable": 1}, annotations={f"{KNOB}/never-ready": "true"})
    await stage.reaches(replicas=1)
    await stage.world.sleep(90)
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer, OBJECT) == {"probe"}
    return answer


@reaches("scale-limit", "to-delete")
async def a_limit_that_lets_nobody_come(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """The limit is used up by nobody: waiting does not help."""
    first, _ = names(await stage.start(replicas=2, rolling={"maxUnavailable": 2}))
    await stage.change({"replicas": 3, "scaleStrategy": {"maxUnavailable": 0}})
    await stage.seen()
    await stop_controllers(stage)
    await stage.set_labels(first, {keys.SPECIFIED_DELETE_LABEL: "true"})
    await stage.set_image("nginx:1.26")
    answer = await ask(stage)
    limits = [link for link in answer.ends(OBJECT) if link.code == "scale-limit"]
    assert [link.act for link in limits] == [Act.SOMEBODY]
    assert "raise scaleStrategy.maxUnavailable" in limits[0].remedy
    return answer


@reaches("next", "moving")
async def others_come_first(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """The state of one pod is written before any pod moves; the plan does not speak of the others."""
    first, second = names(await stage.start(replicas=2, rolling={"maxUnavailable": "100%"}))
    await stop_controllers(stage)
    await stage.set_labels(first, {keys.STATE_LABEL: "PreparingNormal"})
    await stage.set_image("nginx:1.26")
    answer = await ask(stage)
    assert [link.code for link in answer.waiting[second].links] == ["next"]
    return answer


@reaches("failure-budget", "image-pull")
async def too_many_failures(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    budget = {"annotations": {"apps.kruise.io/failure-budget": "0"}}
    await stage.start(replicas=4, metadata=budget, rolling={"maxUnavailable": 2})
    await stage.set_image(MISSING)
    await stage.world.sleep(90)
    return await ask_both(stage, monkeypatch)


# In place


@reaches("in-place-only", "stopped")
async def a_change_that_cannot_be_made_in_place(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, maximum: str = "100%"
) -> Answer:
    await stage.start(replicas=3, policy="InPlaceOnly", rolling={"maxUnavailable": maximum})
    await stage.edit_template({"spec": {"containers": [{"name": "main", "args": ["--verbose"]}]}})
    await stage.world.sleep(10)
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer) == {"in-place-only"}
    assert "update-refused" not in codes(answer), "it is told once"
    return answer


@reaches("in-place-only", "max-unavailable")
async def a_pod_that_cannot_move_keeps_its_turn(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    return await a_change_that_cannot_be_made_in_place(stage, monkeypatch, "34%")


@reaches("grace")
async def the_grace_period_runs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    grace = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 60}}
    await stage.start(replicas=1, rolling={"maxUnavailable": 1, **grace})
    await stage.set_image("nginx:1.26")
    await stage.world.sleep(10)
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.NOBODY
    return answer


@reaches("broken-annotation")
async def an_annotation_that_cannot_be_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    grace = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 60}}
    [name] = names(await stage.start(replicas=1, rolling={"maxUnavailable": 1, **grace}))
    await stage.set_image("nginx:1.26")
    await stage.world.sleep(10)
    await stage.annotate(name, {keys.UPDATE_STATE_ANNOTATION: "{"})
    await stage.world.sleep(5)
    return await ask_both(stage, monkeypatch)


# Hooks and states


@reaches("hook")
async def a_hook_that_nobody_answers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    lifecycle = {"inPlaceUpdate": {"labelsHandler": {HOOK: "true"}}}
    await stage.start(replicas=2, lifecycle=lifecycle, labels={HOOK: "true"}, rolling={"maxUnavailable": 1})
    await stage.set_image("nginx:1.26")
    await stage.world.sleep(30)
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer) == {"hook"}
    [end] = answer.ends(next(iter(answer.waiting)))
    assert end.message == f"label {HOOK}=true must be removed"
    assert re.search(rf"by hand: kubectl label pod web-\w{{5}} {HOOK}-$", end.remedy)
    return answer


@reaches("preparing-delete", "hook")
async def a_deletion_that_a_hook_holds(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    lifecycle = {"preDelete": {"labelsHandler": {HOOK: "true"}, "markPodNotReady": True}}
    await stage.start(replicas=3, lifecycle=lifecycle, labels={HOOK: "true"})
    await stage.scale(2)
    await stage.world.sleep(10)
    await stage.scale(1)
    await stage.world.sleep(10)
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer, OBJECT) == {"hook"}
    return answer


@reaches("lifecycle-state")
async def a_pod_in_a_state_of_nobody(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    await lone(stage, labels={keys.STATE_LABEL: "PreparingDelete"})
    await stage.world.sleep(10)
    [link] = await ask_pod(stage, "solo")
    assert (link.code, link.act) == ("lifecycle-state", Act.NOBODY)


# Pods


@reaches("unscheduled")
async def no_node_takes_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.create(replicas=1, pod={"nodeSelector": {"nobody": "here"}})
    await stage.world.sleep(10)
    answer = await ask_both(stage, monkeypatch)
    [end] = answer.ends(next(iter(answer.waiting)))
    assert end.message.endswith("6 node(s) didn't match Pod's node affinity/selector")
    return answer


@reaches("scheduling-gate")
async def a_scheduling_gate(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.create(replicas=1, pod={"schedulingGates": [{"name": "example.com/later"}]})
    await stage.world.sleep(10)
    return await ask_both(stage, monkeypatch)


@reaches("readiness-gate")
async def a_readiness_gate(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.create(replicas=1, pod={"readinessGates": [{"conditionType": OK_GATE}]})
    await stage.world.sleep(20)
    return await ask_both(stage, monkeypatch)


@reaches("min-ready")
async def time_is_missing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.create(replicas=1, minReadySeconds=300)
    await stage.reaches(readyReplicas=1)
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.NOBODY
    return answer


@reaches("starting", "not-starting")
async def a_pod_is_being_started(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """First the image takes its time, then the node says what it cannot do."""
    await stage.create(replicas=1, annotations={f"{KNOB}/image-size": "900Gi"})
    await stage.reaches(replicas=1)
    await stage.world.sleep(10)
    before = await ask_both(stage, monkeypatch)
    assert ends(before) == {"starting"}
    [pod] = await stage.pods()
    await warn(stage, pod, "FailedMount", 'MountVolume.SetUp failed for volume "config": configmap "web" not found')
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer) == {"not-starting"}
    return merged(before, answer)


@reaches("container-error")
async def a_container_cannot_be_made(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    [name] = names(await stage.start(replicas=1))
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "web" not found'}
    status = {"name": "main", "ready": False, "state": {"running": None, "waiting": waiting}}
    await play_kubelet(stage, name, "False", containerStatuses=[status])
    return await ask(stage)


@reaches("not-ready")
async def a_pod_that_does_not_tell(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    [name] = names(await stage.start(replicas=1))
    await play_kubelet(stage, name, "False")
    return await ask(stage)


@reaches("finished")
async def a_pod_that_has_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    await lone(stage, annotations={f"{KNOB}/exit": "1"}, restartPolicy="Never")
    await stage.world.sleep(20)
    [link] = await ask_pod(stage, "solo")
    assert link.code == "finished"


@reaches("terminating")
async def a_pod_that_cannot_go(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """It holds nobody back, but somebody should know."""
    [name] = names(await stage.start(replicas=1))
    await stage.set_finalizers(name, add=["example.com/mine"])
    await stage.delete_pod(name)
    await stage.complete()
    await stage.world.sleep(60)
    answer = await ask_both(stage, monkeypatch)
    assert set(answer.waiting) == {name}
    assert "example.com/mine" in answer.ends(name)[0].message
    return answer


@reaches("node-not-ready", "node-gone")
async def a_node_goes_down(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    [pod] = await stage.start(replicas=1)
    node = pod["spec"]["nodeName"]
    await stage.client.patch(NODES, node, {"metadata": {"annotations": {"kruise.io/sim-node": "down"}}})
    await stage.world.sleep(60)
    silent = await ask_both(stage, monkeypatch)
    assert ends(silent) == {"node-not-ready"}
    await stage.client.delete(NODES, node)
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer) == {"node-gone"}
    return merged(silent, answer)


# The workload and its manager


@reaches("not-observed", "moving", "creating")
async def the_manager_has_not_looked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=2)
    await stop_controllers(stage)
    await stage.set_image("nginx:1.26")
    changed = await ask(stage)
    await stage.scale(3)
    return merged(changed, await ask(stage))


@reaches("manager-down")
async def no_manager_is_at_work(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=2)
    await stop_controllers(stage)
    await stage.set_image("nginx:1.26")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kruise-manager", "namespace": "kruise-system"},
        "spec": {
            "holderIdentity": "manager-0_1",
            "leaseDurationSeconds": 15,
            "renewTime": format_micro_time(stage.world.clock.now()),
        },
    }
    await stage.client.create(LEASES, lease, "kruise-system")
    assert "manager-down" not in codes(await ask(stage)), "it was here a moment ago"
    await stage.world.sleep(90)
    answer = await ask(stage)
    moving = [name for name, waiting in answer.waiting.items() if waiting.links[0].code == "moving"]
    assert "manager-down" in ends(answer, moving[0])
    return answer


@reaches("controller-off")
async def its_gate_is_off(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """The manager answers, and runs no controller of this kind."""
    await stage.start(replicas=2)

    async def answers(*_: object, **__: object) -> None:
        raise journal_access.NoControllerError("the manager keeps no snapshot of it: no controller is called so")

    monkeypatch.setattr(journal_access, "latest_decision", answers)
    still = await ask(stage, asking=Asking())
    assert codes(still) == {"controller-off"}, "nothing else waits, and still nobody looks at it"
    await stop_controllers(stage)
    await stage.set_image("nginx:1.26")
    answer = await ask(stage, asking=Asking())
    moving = [name for name, waiting in answer.waiting.items() if waiting.links[0].code == "moving"]
    assert ends(answer, moving[0]) == {"controller-off"}
    [link] = [link for link in answer.waiting[OBJECT].links if link.code == "controller-off"]
    assert link.message.startswith("the manager runs no cloneset-controller")
    return answer


@reaches("no-controller")
async def the_local_cluster_has_no_controller(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """The words are those of a cluster without one: tests/local/test_attendance.py goes the whole way."""
    document = {"metadata": {"name": "db", "namespace": "default", "generation": 1}, "spec": {"replicas": 3}}
    words = "the local cluster has no controller for StatefulSets"
    facts = Facts(
        kind=STATEFUL_SET,
        document=document,
        pods=(),
        now=stage.world.clock.now(),
        source=Source(words="the live pods"),
        missing_controller=words,
    )
    answer = assemble(facts)
    assert [link.message for link in answer.ends(OBJECT)] == [words]
    return answer


@reaches("manager-fails")
async def the_code_of_the_kind_fails(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=2)
    answers = []
    for step in ("decide", "conclude"):
        with monkeypatch.context() as broken:
            broken.setattr(f"kruise.workloads.cloneset.controller.{step}", _fails)
            await _restart(stage)
            await stage.scale(3)
            await stage.world.sleep(2)
            answers.append(await ask_journal(stage, monkeypatch))
            if step == "decide":
                answers.append(await ask(stage))
    assert all("ZeroDivisionError" in answer.ends(OBJECT)[0].message for answer in answers)
    return answers[-1]


def _fails(*facts: Any) -> Any:
    return 1 / 0


async def _restart(stage: Stage) -> None:
    await world_of(stage).stop_manager()
    world_of(stage).start_manager()
    await stage.world.sleep(1)


@reaches("create-refused")
async def pods_are_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    name = "w" * 60
    await stage.create(name)
    await stage.world.sleep(10)
    answer = await ask(stage, name)
    assert "must be no more than 63" in answer.ends(OBJECT)[0].message
    return answer


@reaches("update-refused")
async def changes_are_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=1)
    await stop_controllers(stage)
    refused = {"type": "FailedUpdate", "status": "True", "message": 'admission webhook "x" denied the request'}
    await stage.world.patch(CLONE_SETS, "web", {"status": {"conditions": [refused]}}, subresource="status")
    return await ask(stage)


@reaches("deleting")
async def the_workload_goes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(replicas=1, metadata={"finalizers": ["example.com/mine"]})
    await stage.world.delete(CLONE_SETS, "web")
    await stage.world.sleep(5)
    answer = await ask_both(stage, monkeypatch)
    assert answer.ends(OBJECT)[0].act is Act.SOMEBODY
    return answer


# Kubernetes' own kinds


@reaches("old-template", "image-pull")
async def a_deployment_hangs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    labels = {"app": "api"}
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}}
    spec: Json = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"}, "spec": spec}
    await stage.client.create(DEPLOYMENTS, body, stage.namespace)
    await stage.world.sleep(20)
    assert (await ask(stage, "api", kind="deployment")).act is None
    template["spec"]["containers"][0]["image"] = MISSING
    await stage.client.patch(DEPLOYMENTS, "api", {"spec": spec}, stage.namespace)
    await stage.world.sleep(20)
    answer = await ask(stage, "api", kind="deployment")
    assert ends(answer) == {"image-pull"}
    return answer


# DaemonSets


@reaches("node-not-selected", stage=DaemonStage)
async def the_update_is_for_other_nodes(stage: DaemonStage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(rolling={"selector": {"matchLabels": {"nobody": "here"}}})
    await stage.set_image("nginx:1.26")
    await stage.seen()
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.INTENDED
    return answer


@reaches("max-surge", "successor", "probe", stage=DaemonStage)
async def the_new_pod_of_a_node_does_not_come_up(stage: DaemonStage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(rolling={"maxSurge": 1, "maxUnavailable": 0})
    await stage.edit_template({"metadata": {"annotations": {f"{KNOB}/never-ready": "true"}}})
    await stage.world.sleep(90)
    answer = await ask_both(stage, monkeypatch)
    assert ends(answer) == {"probe"}
    return answer


@reaches("max-surge", "two-pods", "hook", stage=DaemonStage)
async def a_hook_holds_the_new_pod_that_is_to_go(stage: DaemonStage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """It was never ready, and the next template wants its place: nothing goes on before somebody answers the hook."""
    rolling, lifecycle = {"maxSurge": 1, "maxUnavailable": 0}, {"preDelete": {"labelsHandler": {HOOK: "true"}}}
    await stage.start(rolling=rolling, lifecycle=lifecycle, labels={HOOK: "true"})
    await stage.set_image(MISSING)
    await stage.world.sleep(90)
    await stage.set_image("nginx:1.26")
    await stage.world.sleep(90)
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.SOMEBODY
    assert "hook" in ends(answer) <= {"hook", "image-pull"}
    return answer


@reaches("misplaced", stage=DaemonStage)
async def a_taint_keeps_the_new_pod_away(stage: DaemonStage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start(rolling={"maxSurge": 1, "maxUnavailable": 0})
    node = (await stage.nodes())[0]
    taint = {"key": "example.com/own", "effect": "NoSchedule"}
    await stage.client.patch(NODES, node, {"spec": {"taints": [taint]}})
    await stage.set_image("nginx:1.26")
    await stage.reaches(updatedNumberScheduled=5, numberMisscheduled=1, numberAvailable=5)
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.SOMEBODY
    return answer


@reaches("failed-pod", stage=DaemonStage)
async def a_node_refuses_pod_after_pod(stage: DaemonStage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """How often it has failed, only the manager remembers."""
    await stage.start()
    node = (await stage.nodes())[0]
    failed = {"status": {"phase": "Failed", "reason": "OutOfpods", "message": "too many pods"}}
    while True:
        name = (await stage.by_node())[node]["metadata"]["name"]
        await stage.world.patch(PODS, name, failed, subresource="status")
        await stage.world.sleep(1)
        answer = await ask_journal(stage, monkeypatch)
        if "failed-pod" in codes(answer):
            return answer
        await stage.complete()


@reaches("no-burst", stage=DaemonStage)
async def nothing_may_be_written(stage: DaemonStage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.create(burstReplicas=0)
    await stage.world.sleep(5)
    answer = await ask_both(stage, monkeypatch)
    assert answer.act is Act.SOMEBODY
    return answer


@reaches("burst", stage=DaemonStage)
async def a_few_are_written_at_a_time(stage: DaemonStage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    await stage.start()
    await stop_controllers(stage)
    await stage.change({"burstReplicas": 1, "template": {"spec": {"nodeSelector": {"nobody": "here"}}}})
    return await ask(stage)


@reaches("selects-all", stage=DaemonStage)
async def a_selector_for_every_pod(stage: DaemonStage, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Only one that was stored before anybody looked can be so (DS-34)."""
    world = world_of(stage)
    await world.stop_manager()
    await drop_webhooks(stage)
    await stage.create(selector={})
    world.start_manager()
    await stage.has_event("SelectingAll", "non-empty selector", type="Warning")
    assert await stage.pods() == []
    return await ask_journal(stage, monkeypatch)


# Helpers


async def drop_webhooks(stage: Stage) -> None:
    """Until a manager starts, nobody looks at what is stored."""
    for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        for found in (await stage.client.list(resource)).items:
            await stage.client.patch(resource, found.metadata.name, {"webhooks": []})


async def stop_controllers(stage: Stage) -> None:
    """From now on the manager only answers webhooks, so that objects can still be changed."""
    world = world_of(stage)
    await world.stop_manager()
    world.options = dataclasses.replace(world.options, role=Role.WEBHOOK)
    world.start_manager()
    await stage.world.sleep(1)


async def lone(
    stage: Stage, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None, **spec: Any
) -> None:
    metadata = {"name": "solo", "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    body = {"containers": [{"name": "main", "image": "nginx:1.25"}], **spec}
    await stage.world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body})


async def warn(stage: Stage, pod: Json, reason: str, message: str) -> None:
    """An event as a kubelet writes it."""
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": stage.namespace, **pick(pod["metadata"], "name", "uid")}
    event = {"metadata": {"name": "told.1"}, "involvedObject": about, "type": "Warning", "reason": reason}
    await stage.client.create(EVENTS, {**event, "message": message}, stage.namespace)


async def play_kubelet(stage: Stage, pod: str, ready: str, **status: Any) -> None:
    """The kubelet of its node falls silent: it would set the status right at once."""
    node = (await stage.pod(pod))["spec"]["nodeName"]
    await stage.client.patch(NODES, node, {"metadata": {"annotations": {"kruise.io/sim-node": "down"}}})
    await stage.world.sleep(1)
    conditions = [{"type": "Ready", "status": ready, "reason": "Unlucky"}]
    body = {"status": {"conditions": conditions, **status}}
    await stage.world.patch(PODS, pod, body, subresource="status", patch_type=PatchType.STRATEGIC)


def pick(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: mapping[key] for key in keys}


def merged(first: Answer, second: Answer) -> Answer:
    """Both answers as one, for counting causes."""
    before = {f"{name} before": waiting for name, waiting in first.waiting.items()}
    return dataclasses.replace(second, waiting={**before, **second.waiting})


# The tests


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.play.__name__)
def test_a_cause_is_named(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        answer = await scene.play(scene.stage(world, gates=world.options.gates), monkeypatch)
        if answer is not None:
            assert set(scene.codes) <= codes(answer), answer.waiting
            is_helped(answer)

    run_local(play, feature_gates=scene.gates)


def test_every_code_has_a_scene() -> None:
    """What only another kind knows has its scenes beside this file; what comes of the order in which containers start
    and end, in `tests.sidecars.terminator.test_why`."""
    reached = {code for scene in SCENES for code in scene.codes}
    known = (*SHARED, *CAUSES, *causes.OF_PODS, *causes.OF_WORKLOADS)
    elsewhere = {causes.LAUNCH_ORDER.code, causes.SIDECAR_RUNS.code}
    assert sorted({meaning.code for meaning in known} - reached - elsewhere) == []


def test_controllers_are_called_after_their_kinds() -> None:
    """So that the journal can be asked without loading the code of every kind."""
    specs = [spec for feature in features() for spec in feature.controllers(Options())]
    by_kind = {(kind.resource.group, kind.resource.plural): kind for kind in faces() if kind.is_ours}
    called = {spec.name: by_kind.get((spec.subject.group, spec.subject.plural)) for spec in specs}
    ours = {name: kind.controller for name, kind in called.items() if kind is not None}
    assert ours
    assert all(name == expected for name, expected in ours.items())
