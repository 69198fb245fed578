"""Promises that hold for whatever anybody does to a DaemonSet, its pods and its nodes, in any order.

Nodes come, go and are tainted, users change the spec, containers fail, time passes, and in between the manager makes
passes, some of which its death cuts off. Every write of the manager is checked; in the end everybody does their part,
and each node that suits has its one pod.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.daemon_pods import target_node, verdict_on
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.inplace import keys
from kruise.inplace.availability import is_available
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Action, Outcome, Plan, Result
from kruise.machinery.revision_names import short_hash
from kruise.model.world import Json
from kruise.workloads.daemonset import keeping, update
from kruise.workloads.daemonset.numbers import limits_of
from kruise.workloads.daemonset.situation import Snapshot
from tests.support.clonesets import TEMPLATE
from tests.support.examples import story_settings
from tests.support.modelled import BROKEN, UNGRANTED, runs_what_it_should
from tests.workloads.daemonset.modelled import ModelledDaemonSet, document

GUARD = "example.com/guard"
IMAGES = ("nginx:1", "nginx:2", BROKEN)
TAINTS: tuple[list[dict[str, str]], ...] = (
    [],
    [{"key": "example.com/own", "effect": "NoSchedule"}],
    [{"key": "example.com/own", "effect": "NoExecute"}],
)
HOOKED = {**TEMPLATE, "metadata": {"labels": {"app": "web", GUARD: "on"}}}
ZONES = ("a", "b")
SETTINGS = (
    ("partition", 1),
    ("partition", "50%"),
    ("partition", None),
    ("paused", True),
    ("paused", None),
    ("selector", {"matchLabels": {"zone": "a"}}),
    ("selector", None),
)
STRATEGIES: tuple[Json, ...] = (
    {"type": "OnDelete"},
    {"type": "RollingUpdate", "rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2}},
    {"type": "RollingUpdate", "rollingUpdate": {"rollingUpdateType": "Standard", "maxSurge": 1, "maxUnavailable": 0}},
)
PACES = (
    ("burstReplicas", 1),
    ("burstReplicas", "34%"),
    ("burstReplicas", 250),
    ("scaleStrategy", {"partitionedScaling": True}),
    ("scaleStrategy", None),
    ("revisionHistoryLimit", 0),
    ("minReadySeconds", 3),
    ("lifecycle", None),
)
MANY = 200


class Checked:
    """A model whose manager is watched."""

    def __init__(self, model: ModelledDaemonSet) -> None:
        self.model = model
        for number, node in enumerate(model.world.store(NODES).list()):
            zone = ZONES[number % len(ZONES)]
            model.edit_node(node.metadata.name, lambda doc, zone=zone: doc["metadata"].update(labels={"zone": zone}))

    @property
    def suitable(self) -> list[Node]:
        nodes = self.model.world.store(NODES).list()
        return [node for node in nodes if verdict_on(self.model.daemon_set.spec.template, node).should_run]

    def pods_for(self, node: str) -> list[Pod]:
        return [pod for pod in self.model.pods if target_node(pod) == node]

    def serves(self, pod: Pod) -> bool:
        seconds = self.model.daemon_set.spec.min_ready_seconds
        return is_active(pod) and is_available(pod, seconds, self.model.now)

    def is_old(self, pod: Pod) -> bool:
        return short_hash(pod.metadata.labels.get(keys.REVISION_LABEL, "")) != self.hash

    def reconcile(self, die_at: int | None = None) -> None:
        before: dict[str, bool] = {}
        self._old: set[str] = set()

        def decided(snapshot: Snapshot, plan: Any) -> None:
            self.hash = short_hash(plan.memo.update_revision) if plan.memo is not None else ""
            before.update({pod.metadata.name: self.serves(pod) for pod in self.model.pods})
            self._old = {pod.metadata.name for pod in self.model.pods if self.is_old(pod)}
            for held in plan.held:
                assert held.causes, f"{held.target} is held without a cause"

        def wrote(outcome: Outcome) -> None:
            if outcome.result is Result.DONE and outcome.action.target.resource == PODS:
                self._on_write(outcome.action, before)

        plan = self.model.reconcile(die_at=die_at, decided=decided, wrote=wrote)
        if die_at is None and not list(plan.actions()):
            self._explained(plan)

    def _explained(self, plan: Plan) -> None:
        """Nothing is done, so whatever is not where it should be is held for a reason."""
        held = {item.target.name for item in plan.held}
        known = {node.metadata.name for node in self.model.world.store(NODES).list()}
        for pod in filter(is_active, self.model.pods):
            if target_node(pod) not in known or "app" not in pod.metadata.labels:
                continue
            if self.is_old(pod) or pod.metadata.labels.get(keys.STATE_LABEL) == "PreparingDelete":
                assert pod.metadata.name in held, f"nobody says why {pod.metadata.name} stays: {plan.held}"
        for node in self.suitable:
            if not self.pods_for(node.metadata.name):
                assert "agent" in held, f"nobody says why {node.metadata.name} has no pod: {plan.held}"

    def _on_write(self, action: Action, served: dict[str, bool]) -> None:
        limits = limits_of(self.model.daemon_set.spec, len(self.suitable))
        if action.verb is Verb.CREATE:
            created = self.model.pod(action.target.name)
            assert created is not None
            node = target_node(created)
            assert node in {item.metadata.name for item in self.suitable}, f"a pod for {node}, which suits no pod"
            alive = [pod for pod in self.pods_for(node) if is_active(pod)]
            most = 2 if limits.surges else 1
            assert len(alive) <= most, f"{len(alive)} pods on {node}"
        elif action.verb is Verb.DELETE and action.reason == keeping.REPLACED:
            self._has_a_successor(action.target.name, was_serving=served.get(action.target.name, False))
        elif (moved := self._moved(action)) is not None:
            self._was_chosen(moved, limits.partition)
            if served.get(action.target.name):
                self._within_limit(limits.unavailable)

    def _has_a_successor(self, name: str, *, was_serving: bool) -> None:
        """DS-68: a surge is there so that a node is served all the time."""
        gone = self.model.pod(name)
        node = target_node(gone) if gone is not None else ""
        if was_serving and gone is not None:
            assert any(map(self._arrived, self.pods_for(node))), f"{name} served, and nobody on {node} does now"

    def _moved(self, action: Action) -> Pod | None:
        """The pod that the rollout took, by deletion or in place; None: it was another write."""
        pod = self.model.pod(action.target.name)
        if pod is None or action.target.name not in self._old:
            return None
        if action.verb is Verb.DELETE:
            return pod if action.reason == update.REPLACE else None
        if self.is_old(pod):
            return None
        self._old.discard(pod.metadata.name)
        return pod

    def _is_left(self, node: str) -> bool:
        """It has an old pod that nobody has begun to replace."""
        return any(
            self.is_old(pod) and is_active(pod) and pod.metadata.labels.get(keys.STATE_LABEL) != "PreparingDelete"
            for pod in self.pods_for(node)
        )

    def _was_chosen(self, pod: Pod, partition: int) -> None:
        """DS-62, DS-63."""
        rolling = self.model.daemon_set.spec.update_strategy.rolling_update
        assert rolling is not None
        node = self.model.world.store(NODES).get("", target_node(pod))
        if rolling.selector is not None and node is not None:
            assert node.metadata.labels.get("zone") == "a", f"{pod.metadata.name} is moved, and its node not selected"
        left = sum(self._is_left(node.metadata.name) for node in self.model.world.store(NODES).list())
        assert left >= partition, f"{left} nodes are left with an old pod, the partition keeps {partition}"

    def _within_limit(self, limit: int) -> None:
        """After a pod that served was taken for the rollout. Where only some nodes take part, old pods on others do not
        count (DS-62)."""
        without = [node for node in self.suitable if not any(map(self._arrived, self.pods_for(node.metadata.name)))]
        rolling = self.model.daemon_set.spec.update_strategy.rolling_update
        if rolling is not None and not (rolling.partition is None and rolling.selector is None):
            without = [node for node in without if not self._is_left(node.metadata.name)]
        assert len(without) <= limit, f"{len(without)} nodes without an available pod, {limit} may be"

    def _arrived(self, pod: Pod) -> bool:
        """It serves, and is not on its way to another template in place."""
        return self.serves(pod) and runs_what_it_should(pod)


@st.composite
def documents(draw: st.DrawFn) -> Json:
    rolling: dict[str, Any] = {"rollingUpdateType": draw(st.sampled_from(["Standard", "InPlaceIfPossible"]))}
    if rolling["rollingUpdateType"] == "Standard" and draw(st.booleans()):
        rolling |= {"maxSurge": draw(st.sampled_from([1, 2, "100%"])), "maxUnavailable": 0}
    else:
        rolling |= {"maxUnavailable": draw(st.sampled_from([1, 2, "50%"]))}
    rolling |= {
        name: value for name, value in draw(st.lists(st.sampled_from(SETTINGS), max_size=2)) if value is not None
    }
    spec: dict[str, Any] = {"minReadySeconds": draw(st.sampled_from([0, 0, 3]))}
    if draw(st.booleans()):
        spec |= {"lifecycle": {"preDelete": {"labelsHandler": {GUARD: "on"}}}, "template": HOOKED}
    made = document(rolling, **copy.deepcopy(spec))
    made["spec"]["template"] = copy.deepcopy(dict(made["spec"]["template"]))
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return made


def _set_image(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    model.set_image(draw(st.sampled_from(IMAGES)))


def _set_cpus(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    model.set_cpus(draw(st.sampled_from(("1", "2", *UNGRANTED))))


def _set_rolling(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    field, value = draw(st.sampled_from(SETTINGS))
    model.edit_spec(lambda spec: spec["updateStrategy"].get("rollingUpdate", {}).update({field: value}))


def _set_strategy(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    strategy = copy.deepcopy(draw(st.sampled_from(STRATEGIES)))
    model.edit_spec(lambda spec: spec.update(updateStrategy=strategy))


def _set_pace(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    field, value = draw(st.sampled_from(PACES))
    model.edit_spec(lambda spec: spec.update({field: value}))


def _lose_revision(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    """Somebody tidies up."""
    if model.revisions:
        model.world.remove(CONTROLLER_REVISIONS, draw(st.sampled_from(model.revisions)))


def _taint(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    node = draw(st.sampled_from([item.metadata.name for item in model.world.store(NODES).list()]))
    taints = draw(st.sampled_from(TAINTS))
    model.edit_node(node, lambda doc: doc.setdefault("spec", {}).update(taints=taints))


def _add_node(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    name = f"node-{draw(st.integers(3, 6))}"
    if model.world.store(NODES).get("", name) is None:
        model.add_node(name, labels={"zone": draw(st.sampled_from(ZONES))})


def _remove_node(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
    nodes = model.world.store(NODES).list()
    if len(nodes) > 1:
        gone = draw(st.sampled_from(nodes))
        model.world.remove(NODES, gone)
        for pod in model.pods:
            if pod.spec.node_name == gone.metadata.name:
                model.world.remove(PODS, pod)  # as pod GC does


def _of_a_pod(act: Callable[[ModelledDaemonSet, str], None]) -> Callable[[ModelledDaemonSet, st.DrawFn], None]:
    def step(model: ModelledDaemonSet, draw: st.DrawFn) -> None:
        if model.pods:
            act(model, draw(st.sampled_from([pod.metadata.name for pod in model.pods])))

    return step


def _fail(model: ModelledDaemonSet, name: str) -> None:
    model.change(PODS, name, lambda doc: doc.setdefault("status", {}).update(phase="Failed"))


def _succeed(model: ModelledDaemonSet, name: str) -> None:
    model.change(PODS, name, lambda doc: doc.setdefault("status", {}).update(phase="Succeeded"))


def _orphan(model: ModelledDaemonSet, name: str) -> None:
    model.change(PODS, name, lambda doc: doc["metadata"].pop("ownerReferences", None))


def _unguard(model: ModelledDaemonSet, name: str) -> None:
    model.change(PODS, name, lambda doc: doc["metadata"]["labels"].pop(GUARD, None))


STEPS: tuple[Callable[[ModelledDaemonSet, st.DrawFn], None], ...] = (
    _set_image,
    _set_cpus,
    _set_rolling,
    _set_strategy,
    _set_pace,
    _lose_revision,
    _taint,
    _add_node,
    _remove_node,
    _of_a_pod(lambda model, name: model.delete_pod(name)),
    _of_a_pod(_fail),
    _of_a_pod(_succeed),
    _of_a_pod(_orphan),
    _of_a_pod(_unguard),
    lambda model, draw: model.pass_time(draw(st.sampled_from([0.5, 3, 30]))),
)


def _let_go(model: ModelledDaemonSet) -> None:
    free = {"partition": None, "paused": None, "selector": None}
    if model.daemon_set.spec.update_strategy.rolling_update is None:
        model.edit_spec(lambda spec: spec.update(updateStrategy=copy.deepcopy(STRATEGIES[1])))
    model.edit_spec(lambda spec: spec["updateStrategy"]["rollingUpdate"].update(free))
    model.set_image("nginx:9")
    model.set_cpus("1")


def _everybody_does_their_part(checked: Checked) -> None:
    model = checked.model
    idle = 0
    for _ in range(MANY):
        before = model.writes
        checked.reconcile()
        moved = False
        for pod in model.pods:
            if pod.metadata.labels.get(keys.STATE_LABEL) == "PreparingDelete" and GUARD in pod.metadata.labels:
                _unguard(model, pod.metadata.name)
                moved = True
            moved |= model.kubelet(pod.metadata.name)
        model.pass_time(30)
        idle = 0 if moved or model.writes != before else idle + 1
        if idle == 3:
            return
    raise AssertionError("it does not come to rest")


@given(documents(), st.booleans(), st.data())
@story_settings(30)
def test_each_node_that_suits_has_one_pod_in_the_end(given_document: Json, resizes: bool, data: st.DataObject) -> None:
    gates = {"InPlaceWorkloadVerticalScaling": resizes}
    checked = Checked(ModelledDaemonSet(given_document, gates=gates))
    model = checked.model
    draw: Any = data.draw
    if data.draw(st.booleans(), label="runs already"):
        model.settle(8)
        _set_image(model, draw)
    for _ in range(data.draw(st.integers(0, 25), label="steps")):
        kind = data.draw(st.sampled_from(["pass", "pass", "kubelets", "kubelets", "other"]))
        if kind == "pass":
            checked.reconcile(die_at=data.draw(st.sampled_from([None, None, 0, 1, 2])))
        elif kind == "kubelets":
            for pod in model.pods:
                model.kubelet(pod.metadata.name)
        else:
            data.draw(st.sampled_from(STEPS))(model, draw)
    if data.draw(st.booleans(), label="within the limits that are set"):
        _everybody_does_their_part(checked)
    _let_go(model)
    _everybody_does_their_part(checked)
    for node in checked.suitable:
        [pod] = checked.pods_for(node.metadata.name)
        assert pod.spec.containers[0].image == "nginx:9"
        assert checked.serves(pod)
    status = model.daemon_set.status
    assert status.desired_number_scheduled == status.number_available == len(checked.suitable)
    assert codec.encode(status)  # it can be written
