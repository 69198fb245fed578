"""Forecasts and room on nodes: which pods find no node, why, and what that makes of the rollout."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod, condition
from kruise.foresight.forecast import Forecast, How
from kruise.foresight.foreseeing import foresee
from kruise.foresight.rendering.report import Report
from kruise.foresight.rendering.verdict import Verdict, headline, verdict_of
from kruise.inplace.resizing import RESIZE_PENDING
from kruise.kinds import features
from kruise.machinery import codec
from kruise.model.room import RoomNotReadError
from tests.foresight.scenes import CLONE_SETS, KEY, NOW, Json, Scene, codes, manifest, node, options

THREE = tuple(node(number) for number in (1, 2, 3))


def template(document: Json, **spec: Any) -> Json:
    """The document with other fields of its pods' spec; `cpu` is what the container asks for."""
    pod = document["spec"]["template"]["spec"]
    if "cpu" in spec:
        pod["containers"][0]["resources"] = {"requests": {"cpu": spec.pop("cpu")}}
    pod |= spec
    return document


def creation(document: Json, nodes: tuple[Node, ...] | None = THREE, elsewhere: Any = ()) -> Forecast:
    objects: dict[Any, Any] = {} if nodes is None else {NODES: nodes}
    return foresee(
        CLONE_SETS, KEY, document, objects, elsewhere=elsewhere, features=features(), settings=options(), now=NOW
    )


def other_pod(name: str, on: str, *, cpu: str = "", phase: str = "Running") -> Pod:
    requests = {"cpu": cpu} if cpu else {}
    body = {
        "metadata": {"name": name, "namespace": "another", "uid": f"uid-{name}"},
        "spec": {"nodeName": on, "containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {"phase": phase},
    }
    return codec.convert(body, Pod)


def told(forecast: Forecast) -> str:
    return headline(Report(subject="web", forecast=forecast, pods=frozenset(), is_new=True))


def test_more_cpu_than_any_node_has() -> None:
    forecast = creation(template(manifest(5), cpu="100"))
    assert verdict_of(forecast) is Verdict.STUCK
    assert [stop.message for stop in forecast.stops] == [
        "5 pods find no node: 0/3 nodes are available: 3 Insufficient cpu."
    ]
    assert codes(forecast.staying) == ["unscheduled"] * 5
    assert forecast.available_after == 0
    assert told(forecast).startswith("5 pods in 1 wave: 5 created; then it gets stuck, after about 0s: 5 pods find no")


@pytest.mark.parametrize(
    ("spec", "nodes", "reason"),
    [
        ({"nodeSelector": {"disk": "tape"}}, THREE, "3 node(s) didn't match Pod's node affinity/selector"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
                            ]
                        }
                    }
                }
            },
            THREE,
            "3 node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {},
            tuple(node(one, taints=[{"key": "dedicated", "effect": "NoSchedule"}]) for one in (1, 2, 3)),
            "3 node(s) had untolerated taint(s)",
        ),
        ({}, tuple(node(one, unschedulable=True) for one in (1, 2)), "2 node(s) were unschedulable"),
    ],
)
def test_nodes_that_labels_and_taints_rule_out(spec: Json, nodes: tuple[Node, ...], reason: str) -> None:
    forecast = creation(template(manifest(2), **spec), nodes)
    assert verdict_of(forecast) is Verdict.STUCK
    [stop] = forecast.stops
    assert stop.message == f"2 pods find no node: 0/{len(nodes)} nodes are available: {reason}."


def test_a_toleration_lets_them_in() -> None:
    nodes = tuple(node(one, taints=[{"key": "dedicated", "effect": "NoSchedule"}]) for one in (1, 2))
    forecast = creation(template(manifest(2), tolerations=[{"operator": "Exists"}]), nodes)
    assert verdict_of(forecast) is Verdict.COMPLETE


def test_a_thousand_pods_and_330_slots() -> None:
    forecast = creation(manifest(1000))
    assert verdict_of(forecast) is Verdict.STUCK
    [stop] = forecast.stops
    assert stop.message == "670 pods find no node: 0/3 nodes are available: 3 Too many pods."
    assert forecast.available_after == 330


def test_no_nodes_at_all() -> None:
    [stop] = creation(manifest(1), ()).stops
    assert stop.message == "1 pod finds no node: no nodes available to schedule pods"


def test_what_others_take_is_taken() -> None:
    document = template(manifest(4), cpu="2")
    assert verdict_of(creation(document, THREE[:1])) is Verdict.COMPLETE
    forecast = creation(document, THREE[:1], [other_pod("a", "node-1", cpu="3"), other_pod("b", "gone", cpu="8")])
    assert [stop.message for stop in forecast.stops] == [
        "2 pods find no node: 0/1 nodes are available: 1 Insufficient cpu."
    ]
    done = [other_pod("a", "node-1", cpu="8", phase="Succeeded")]
    assert verdict_of(creation(document, THREE[:1], done)) is Verdict.COMPLETE


def test_a_pod_that_is_read_twice_counts_once() -> None:
    """The workload's own pods are among all pods of the cluster."""
    scene = Scene.of(template(manifest(4), cpu="2"))
    scene = dataclasses.replace(scene, objects={**scene.objects, NODES: THREE})
    forecast = foresee(
        CLONE_SETS,
        KEY,
        scene.changed(replicas=12),
        scene.objects,
        elsewhere=scene.pods,
        features=features(),
        settings=scene.options,
        now=scene.now,
    )
    assert verdict_of(forecast) is Verdict.COMPLETE


def test_room_is_read_only_where_a_pod_needs_a_node() -> None:
    with pytest.raises(RoomNotReadError):
        creation(manifest(1), elsewhere=None)
    scene = Scene.of(manifest(3))

    def look(**spec: Any) -> Forecast:
        return foresee(
            CLONE_SETS,
            KEY,
            scene.changed(**spec),
            scene.objects,
            elsewhere=None,
            features=features(),
            settings=scene.options,
            now=scene.now,
        )

    assert verdict_of(look(image="nginx:2")) is Verdict.COMPLETE
    with pytest.raises(RoomNotReadError):
        look(image="nginx:2", rolling={"podUpdatePolicy": "ReCreate"})


GATE = "InPlaceWorkloadVerticalScaling=true"


def sized(cpu: str, *, replicas: int = 4, on: str = "", gate: str = GATE, **rolling: Any) -> Scene:
    """Pods that ask for so much CPU, on three nodes or all on one."""
    scene = Scene.of(template(manifest(replicas, rolling=rolling), cpu=cpu), gate)
    if on:
        scene = scene.with_pods(lambda pod, _: codec.evolve(pod, spec=codec.evolve(pod.spec, node_name=on)))
    return dataclasses.replace(scene, objects={**scene.objects, NODES: THREE})


def test_a_resize_to_more_than_the_node_has() -> None:
    """It is refused for good; and what corrects it is granted."""
    scene = sized("1")
    document = template(scene.changed(), cpu="100")
    forecast = scene.foresee(document)
    assert verdict_of(forecast) is Verdict.STUCK
    text = "Node didn't have enough capacity: cpu, requested: 100000, capacity: 8000"
    [refused] = [stop for stop in forecast.stops if stop.code == "resize-refused"]
    assert refused.message == f"the node refuses the new resources (Infeasible: {text})"
    assert len(refused.pods) == 2  # maxUnavailable
    assert {move.how for move in forecast.moves} == {How.IN_PLACE}
    assert "it gets stuck" in told(forecast)
    stuck = scene.after(document, until=timedelta(hours=1))
    assert [pod.status.container_statuses[0].resources.requests for pod in stuck.pods] == [{"cpu": "1"}] * 4
    assert verdict_of(stuck.foresee()) is Verdict.STUCK
    corrected = stuck.after(template(stuck.changed(), cpu="2"))
    assert verdict_of(stuck.foresee(corrected.document)) is Verdict.COMPLETE
    assert [pod for pod in corrected.pods if condition(pod, RESIZE_PENDING)] == []


def test_a_resize_that_waits_for_room() -> None:
    """Three pods of 2 on a node of 8: one of them can have 4, then no other."""
    scene = sized("2", replicas=3, on="node-1", maxUnavailable=3)
    document = template(scene.changed(), cpu="4")
    forecast = scene.foresee(document)
    assert verdict_of(forecast) is Verdict.STUCK
    [put_off] = [stop for stop in forecast.stops if stop.code == "resize-deferred"]
    text = "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000"
    assert put_off.message == f"the node puts the new resources off (Deferred: {text})"
    assert len(put_off.pods) == 2
    waiting = scene.after(document, until=timedelta(hours=1))
    fewer = waiting.foresee(waiting.changed(replicas=2))
    assert verdict_of(fewer) is Verdict.COMPLETE, "what the others leave is granted"


def test_a_resize_under_way_goes_on() -> None:
    scene = sized("1", maxUnavailable=4)
    document = template(scene.changed(), cpu="2")
    under_way = scene.after(document, until=timedelta(seconds=0.5))
    assert [pod.status.container_statuses[0].resources.requests for pod in under_way.pods] == [{"cpu": "1"}] * 4
    assert under_way.foresee().is_complete
    full = other_pod("other", "node-1", cpu="7")
    stopped = dataclasses.replace(under_way, objects={**under_way.objects, PODS: (*under_way.pods, full)})
    assert "resize-deferred" in codes(stopped.foresee().stops)


def test_what_others_take_is_asked_for_where_a_pod_asks_for_more() -> None:
    scene = sized("1")

    def look(cpu: str, elsewhere: Any) -> Forecast:
        return foresee(
            CLONE_SETS,
            KEY,
            template(scene.changed(), cpu=cpu),
            scene.objects,
            elsewhere=elsewhere,
            features=features(),
            settings=scene.options,
            now=scene.now,
        )

    assert verdict_of(look("500m", None)) is Verdict.COMPLETE
    with pytest.raises(RoomNotReadError):
        look("2", None)
    assert verdict_of(look("2", ())) is Verdict.COMPLETE
    others = [other_pod(f"other-{number}", f"node-{number}", cpu="6") for number in (1, 2, 3)]
    assert "resize-deferred" in codes(look("2", others).stops)


def test_without_nodes_room_is_not_looked_at() -> None:
    forecast = creation(template(manifest(2), cpu="100"), None)
    assert verdict_of(forecast) is Verdict.COMPLETE
    assert "every new or changed pod finds a node and becomes ready" in forecast.assumptions


def test_whoever_leaves_makes_room() -> None:
    """A full node: a pod is rebuilt where it was, one after the other."""
    document = template(manifest(4, rolling={"podUpdatePolicy": "ReCreate", "maxUnavailable": 1}), cpu="2")
    scene = Scene.of(document)
    scene = scene.with_pods(lambda pod, _: codec.evolve(pod, spec=codec.evolve(pod.spec, node_name="node-1")))
    scene = dataclasses.replace(scene, objects={**scene.objects, NODES: THREE[:1]})
    forecast = scene.foresee(image="nginx:2")
    assert verdict_of(forecast) is Verdict.COMPLETE
    assert len(forecast.moves) == 4
    surging = scene.foresee(image="nginx:2", rolling={"maxUnavailable": 0, "maxSurge": 1})
    assert verdict_of(surging) is Verdict.STUCK
    assert "1 pod finds no node: 0/1 nodes are available: 1 Insufficient cpu." in [
        stop.message for stop in surging.stops
    ]


def test_a_stop_that_was_asked_for_does_not_hide_it() -> None:
    scene = Scene.of(manifest(4))
    document = template(
        scene.changed(image="nginx:2", rolling={"partition": 2, "podUpdatePolicy": "ReCreate"}), cpu="9"
    )
    forecast = scene.foresee(document)
    assert verdict_of(forecast) is Verdict.STUCK
    assert "unscheduled" in codes(forecast.stops)


@pytest.mark.parametrize(
    ("name", "cpu", "why"),
    [
        ("node-9", "1", 'spec.nodeName asks for node "node-9", and there is none of that name'),
        ("node-1", "9", 'spec.nodeName asks for node "node-1": Insufficient cpu'),
    ],
)
def test_a_node_that_the_template_names(name: str, cpu: str, why: str) -> None:
    forecast = creation(template(manifest(1), nodeName=name, cpu=cpu))
    assert verdict_of(forecast) is Verdict.STUCK
    assert [stop.message for stop in forecast.stops] == [f"1 pod finds no node: {why}"]


def test_a_node_that_the_template_names_and_that_has_room() -> None:
    assert verdict_of(creation(template(manifest(2), nodeName="node-1", cpu="1"))) is Verdict.COMPLETE
