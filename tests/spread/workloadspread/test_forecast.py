"""Forecasts of workloads whose pods are spread, and of those that come back to their nodes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES, PersistentPodState
from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED
from kruise.api.apps.statefulset import StatefulSet
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, WorkloadSpread
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.foresight import foresee
from kruise.foresight.removal.guards import Guards
from kruise.foresight.removal.losing import Around, lose
from kruise.kinds import features
from kruise.machinery.codec import convert, to_builtins
from kruise.machinery.selectors import parse
from kruise.machinery.wording import plural
from tests.foresight.scenes import KEY, LATER, NOW, Scene, manifest, node, options

Json = dict[str, Any]
ZONES = (*(node(number, labels={"zone": "a"}) for number in (1, 2)), node(3, labels={"zone": "b"}))


def zone(name: str) -> Json:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [name]}]}


def spread(**first: Any) -> WorkloadSpread:
    subsets = [
        {"name": "a", "requiredNodeSelector": zone("a"), **first},
        {"name": "b", "requiredNodeSelector": zone("b")},
    ]
    target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}
    metadata = {"name": "ws", "namespace": "demo", "uid": "ws", "generation": 1}
    return convert({"metadata": metadata, "spec": {"targetRef": target, "subsets": subsets}}, WorkloadSpread)


def spreaded(document: Json, spread: WorkloadSpread) -> Scene:
    empty = Scene(document, {NODES: ZONES, WORKLOAD_SPREADS: (spread,)}, NOW, options())
    return empty.after(document)


def places(scene: Scene) -> Counter[str]:
    zones = {one.metadata.name: one.metadata.labels["zone"] for one in ZONES}
    return Counter(zones[pod.spec.node_name] for pod in scene.pods)


def test_pods_go_where_a_workloadspread_puts_them() -> None:
    """WS-22: two into the first subset, and the rest behind; scaled down, those behind go first (WS-45)."""
    scene = spreaded(manifest(5), spread(maxReplicas=2))
    assert places(scene) == {"a": 2, "b": 3}
    assert places(scene.after(scene.changed(replicas=3))) == {"a": 2, "b": 1}


def test_pods_made_again_find_the_places_that_were_given_up() -> None:
    """WS-47: in the model nobody notes deletions, and so they are counted before the next pod comes."""
    scene = spreaded(manifest(5, rolling={"podUpdatePolicy": "ReCreate", "maxUnavailable": 1}), spread(maxReplicas=2))
    after = scene.after(scene.changed(image="nginx:2"))
    assert places(after) == {"a": 2, "b": 3}


@pytest.mark.parametrize("subject", [WORKLOAD_SPREADS, CLONE_SETS], ids=["spread", "workload"])
def test_places_of_a_lost_zone_are_free_for_the_next_pods(subject: Resource[Any]) -> None:
    """WS-22, WS-33: they wait for a node there, whichever of the two is asked about."""
    zones = tuple(node(number, labels={"zone": zone}) for number, zone in ((1, "a"), (2, "b")))
    empty = Scene(manifest(5), {NODES: zones, WORKLOAD_SPREADS: (spread(maxReplicas=2),)}, NOW - LATER, options())
    scene = dataclasses.replace(empty.after(manifest(5)), now=NOW)
    [counted] = scene.objects[WORKLOAD_SPREADS]
    assert [one.replicas for one in counted.status.subset_statuses] == [2, 3]
    around = Around(
        target="web",
        key=KEY if subject == CLONE_SETS else Key("demo", "ws"),
        selector=parse("zone=a"),
        nodes=zones,
        elsewhere=(),
        guards=Guards((), (), gates={}, now=NOW),
        now=NOW,
    )
    document = scene.document if subject == CLONE_SETS else {**to_builtins(counted), "apiVersion": subject.api_version}
    found = lose(around, subject, document, scene.objects, features=features(), settings=options())
    assert (found.before, found.at_once, found.after) == (5, 3, 3)
    assert ["node affinity" in one.why for one in found.homeless] == [True, True]


def test_a_subset_without_nodes_is_a_stop() -> None:
    lost = Scene(manifest(5), {NODES: ZONES[:2], WORKLOAD_SPREADS: (spread(maxReplicas=2),)}, NOW, options())
    forecast = lost.foresee(manifest(5))
    assert forecast.available_after == 2
    assert [stop.code for stop in forecast.stops] == ["unscheduled"]


def test_sidecars_take_room_too() -> None:
    """A pod that would fit alone does not fit with what is put into it."""
    sidecar = {"name": "log", "image": "log:1", "resources": {"requests": {"cpu": "5"}}}
    body = {
        "metadata": {"name": "log", "uid": "log", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [sidecar]},
    }
    sets = (convert(body, SidecarSet),)
    scene = Scene(manifest(4), {NODES: ZONES, SIDECAR_SETS: sets}, NOW, options())
    forecast = scene.foresee(manifest(4))
    assert forecast.available_after == 3
    assert [stop.code for stop in forecast.stops] == ["unscheduled"]
    assert all("log" in {one.name for one in pod.spec.containers} for pod in scene.after(manifest(3)).pods)


def test_a_pod_comes_back_to_its_node_or_waits_for_it() -> None:
    """PPS-30: what was recorded is injected in a forecast, too."""
    document = manifest(1)
    document |= {"kind": "StatefulSet"}
    document["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web"}
    body = {
        "metadata": {"name": "web", "namespace": "demo", "uid": "pps", "generation": 1},
        "spec": {"targetRef": target, "requiredPersistentTopology": {"keys": ["zone"]}},
        "status": {"observedGeneration": 1, "podStates": {"web-0": {"nodeTopologyLabels": {"zone": "b"}}}},
    }
    states = (convert(body, PersistentPodState),)
    for nodes, available in ((ZONES, 1), (ZONES[:2], 0)):
        forecast = foresee(
            ADVANCED,
            KEY,
            document,
            {NODES: nodes, PERSISTENT_POD_STATES: states},
            features=features(),
            settings=options(),
            now=NOW,
        )
        assert forecast.available_after == available


def foreseen(document: Json, scene: Scene) -> Any:
    key = Key("demo", "ws")
    objects = {WORKLOAD_SPREADS: (), **scene.objects}
    return foresee(WORKLOAD_SPREADS, key, document, objects, features=features(), settings=options(), now=scene.now)


def test_a_new_workloadspread_tells_what_it_makes_of_the_pods_that_are_there() -> None:
    """WS-43 to WS-45: which subset gets how many and why, who is surplus; no pod moves."""
    document = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "ws", "namespace": "demo"},
        "spec": {
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
            "subsets": [
                {"name": "a", "maxReplicas": 2, "requiredNodeSelector": zone("a")},
                {"name": "b", "requiredNodeSelector": zone("b")},
            ],
        },
    }
    scene = Scene(manifest(5), {NODES: ZONES}, NOW, options()).after(manifest(5))
    there = places(scene)
    assert there["a"] > 2
    forecast = foreseen(document, scene)
    assert forecast.parts == (
        f"a: {there['a']} pods (maxReplicas 2, {there['a'] - 2} above it, the first to go)",
        f"b: {plural(there['b'], 'pod')} (no maxReplicas)",
    )
    assert (forecast.moves, forecast.is_complete) == ((), True)
    assert any("5 pods stay on the nodes that they run on" in one.message for one in forecast.warnings)
    nobody = Scene(manifest(0), {NODES: ZONES}, NOW, options()).after(manifest(0))
    assert foreseen(document, nobody).parts == (
        "a: 0 pods (maxReplicas 2, 2 places free)",
        "b: 0 pods (no maxReplicas)",
    )


def test_a_new_persistentpodstate_tells_what_it_will_remember() -> None:
    """PPS-20: the places of pods that are ready."""
    document = {**manifest(2), "kind": "StatefulSet"}
    document["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web"}
    pods = [
        convert(
            {
                "metadata": {
                    "name": f"web-{number}",
                    "namespace": "demo",
                    "uid": f"pod-{number}",
                    "labels": {"app": "web"},
                    "resourceVersion": str(number + 1),
                    "ownerReferences": [{**target, "uid": "sts", "controller": True}],
                },
                "spec": {"nodeName": name, "containers": [{"name": "main", "image": "nginx:1"}]},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            },
            Pod,
        )
        for number, name in enumerate(("node-1", "node-3"))
    ]
    workload = convert({**document, "metadata": {**document["metadata"], "uid": "sts"}}, StatefulSet)
    forecast = foresee(
        PERSISTENT_POD_STATES,
        Key("demo", "where"),
        {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "PersistentPodState",
            "metadata": {"name": "where", "namespace": "demo"},
            "spec": {"targetRef": target, "requiredPersistentTopology": {"keys": ["zone"]}},
        },
        {NODES: ZONES, PODS: pods, ADVANCED: (workload,), PERSISTENT_POD_STATES: ()},
        features=[one for one in features() if one.name == "persistentpodstate"],
        settings=options(),
        now=NOW,
    )
    assert forecast.parts == ("web-0: node-1 (zone=a)", "web-1: node-3 (zone=b)")
    assert (forecast.part, forecast.moves, forecast.is_complete) == ("Pod", (), True)
    assert any("2 pods stay as they are" in one.message for one in forecast.warnings)
