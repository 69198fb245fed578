"""Where one pod goes: every filter with its words, every score."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.scheduling.placing import Cluster, Placement, place
from kruise.scheduling.requests import requests
from tests.scheduling.builders import anti_affinity, make_node, make_pod, node_affinity, where, why

NO_HELP = (
    "no new claims to deallocate, preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."
)
ZONE = "topology.kubernetes.io/zone"


def test_without_nodes() -> None:
    assert why(make_pod("p")) == "no nodes available to schedule pods"


def test_reasons_are_counted_and_sorted() -> None:
    nodes = [
        make_node("a", spec={"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}),
        make_node("b", cpu="1"),
        make_node("c", cpu="2"),
    ]
    assert why(make_pod("p", cpu="4"), *nodes) == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. " + NO_HELP.format(n=3)
    )


def test_what_the_removal_of_pods_could_help_is_told_apart() -> None:
    """A node that is large enough but full is another matter than one that is too small."""
    nodes = [make_node("big", cpu="8"), make_node("small", cpu="1")]
    on = {"big": [make_pod("other", cpu="6")]}
    assert why(make_pod("p", cpu="4"), *nodes, on=on) == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


@pytest.mark.parametrize(
    ("node", "pod", "reason"),
    [
        ({"spec": {"unschedulable": True}}, {}, "1 node(s) were unschedulable"),
        ({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}, {}, "1 node(s) had untolerated taint(s)"),
        ({}, {"nodeSelector": {"disk": "ssd"}}, "1 node(s) didn't match Pod's node affinity/selector"),
        (
            {"labels": {"gen": "3"}},
            {"affinity": node_affinity({"key": "gen", "operator": "Gt", "values": ["5"]})},
            "1 node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {},
            {"affinity": node_affinity(fields=[{"key": "metadata.name", "operator": "In", "values": ["other"]}])},
            "1 node(s) didn't satisfy plugin(s) [NodeAffinity]",
        ),
        ({}, {"requests": {"memory": "17Gi"}}, "1 Insufficient memory"),
        ({}, {"requests": {"ephemeral-storage": "101Gi"}}, "1 Insufficient ephemeral-storage"),
        ({}, {"requests": {"example.com/gpu": "1"}}, "1 Insufficient example.com/gpu"),
    ],
)
def test_filters(node: dict[str, Any], pod: dict[str, Any], reason: str) -> None:
    message = why(make_pod("p", **pod), make_node("n", **node))
    assert message == f"0/1 nodes are available: {reason}. " + NO_HELP.format(n=1)


def test_too_many_pods_and_ports() -> None:
    full = {"n": [make_pod("other")]}
    pod = make_pod("p")
    victims = (
        "no new claims to deallocate, preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod."
    )
    assert why(pod, make_node("n", pods="1"), on=full) == f"0/1 nodes are available: 1 Too many pods. {victims}"

    def with_port(name: str, **port: Any) -> Any:
        return make_pod(name, container={"ports": [{"containerPort": 80, "hostPort": 80, **port}]})

    taken = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. " + victims
    node = make_node("n")
    assert why(with_port("p"), node, on={"n": [with_port("o")]}) == taken
    assert why(with_port("p", hostIP="10.0.0.1"), node, on={"n": [with_port("o")]}) == taken
    assert where(with_port("p", protocol="UDP"), node, on={"n": [with_port("o")]}) == "n"
    assert where(with_port("p", hostIP="10.0.0.1"), node, on={"n": [with_port("o", hostIP="10.0.0.2")]}) == "n"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], fits: bool) -> None:
    node = make_node("n", spec={"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})
    result = place(make_pod("p", tolerations=[toleration]), [node], {})
    assert isinstance(result, Placement) == fits


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "gen", "operator": "In", "values": ["7"]}, True),
        ({"key": "gen", "operator": "NotIn", "values": ["7"]}, False),
        ({"key": "none", "operator": "NotIn", "values": ["7"]}, True),
        ({"key": "gen", "operator": "Exists"}, True),
        ({"key": "none", "operator": "Exists"}, False),
        ({"key": "none", "operator": "DoesNotExist"}, True),
        ({"key": "gen", "operator": "Gt", "values": ["6"]}, True),
        ({"key": "gen", "operator": "Lt", "values": ["7"]}, False),
        ({"key": "kubernetes.io/hostname", "operator": "Gt", "values": ["6"]}, False),
    ],
)
def test_node_affinity(expression: dict[str, Any], fits: bool) -> None:
    node = make_node("n", labels={"gen": "7"})
    result = place(make_pod("p", affinity=node_affinity(expression)), [node], {})
    assert isinstance(result, Placement) == fits


def test_anti_affinity_holds_both_ways() -> None:
    nodes = [make_node(name, labels={ZONE: zone}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"))]
    strict = make_pod("p", labels={"app": "x"}, affinity=anti_affinity(ZONE, app="x"))
    plain = make_pod("q", labels={"app": "x"})
    assert where(strict, *nodes, on={"a": [plain]}) == "c"
    assert where(plain, *nodes, on={"a": [strict]}) == "c"
    everywhere = {"a": [plain], "c": [make_pod("r", labels={"app": "x"})]}
    assert why(strict, *nodes, on=everywhere).startswith(
        "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. "
    )
    everywhere = {"a": [strict], "c": [make_pod("s", labels={"app": "x"}, affinity=anti_affinity(ZONE, app="x"))]}
    assert why(plain, *nodes, on=everywhere).startswith(
        "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules. "
    )
    assert where(make_pod("t", namespace="other", labels={"app": "x"}), *nodes, on=everywhere) == "b"


def test_anti_affinity_over_namespaces() -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "x"}},
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {"matchLabels": {"team": "red"}},
    }
    pod = make_pod("p", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    other = make_pod("q", namespace="far", labels={"app": "x"})
    node = make_node("n")
    assert where(pod, node, on={"n": [other]}, namespaces={"far": {"team": "blue"}}) == "n"
    assert "anti-affinity" in why(pod, node, on={"n": [other]}, namespaces={"far": {"team": "red"}})


def test_scores_prefer_affinity_then_no_doubts_then_spread_then_idle() -> None:
    nodes = [make_node("a"), make_node("b", labels={"disk": "ssd"}), make_node("c")]
    wish = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 10,
                    "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                }
            ]
        }
    }
    assert where(make_pod("p", affinity=wish), *nodes) == "b"
    doubtful = make_node("a", spec={"taints": [{"key": "k", "effect": "PreferNoSchedule"}]})
    assert where(make_pod("p"), doubtful, make_node("b")) == "b"
    on = {"a": [make_pod("x", owner="rs")], "b": [make_pod("y", cpu="7")]}
    assert where(make_pod("p", owner="rs"), make_node("a"), make_node("b"), on=on) == "b"
    assert where(make_pod("p"), make_node("a"), make_node("b"), on={"a": [make_pod("x", cpu="1")]}) == "b"


def test_an_owners_pods_are_spread_over_zones() -> None:
    nodes = [make_node(name, labels={ZONE: zone}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"))]
    assert where(make_pod("p", owner="rs"), *nodes, on={"a": [make_pod("x", owner="rs")]}) == "c"


def test_requests_count_as_kube_scheduler_counts_them() -> None:
    """Init containers one by one beside the sidecars before them, overhead on top, the pod's own requests first."""

    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"name": "c", "image": "a", "resources": {"requests": {"cpu": cpu}}, **more}

    pod = make_pod(
        "p",
        initContainers=[container("1", restartPolicy="Always"), container("4"), container("1", restartPolicy="Always")],
        containers=[container("500m"), container("1500m")],
        overhead={"cpu": "100m"},
    )
    assert requests(pod) == {"cpu": 5100}
    whole = make_pod("p", containers=[container("1")], resources={"requests": {"cpu": "3"}})
    assert requests(whole) == {"cpu": 3000}


# Claims


def test_a_pod_that_names_its_node_itself() -> None:
    cluster = Cluster([make_node("a", cpu="2", labels={"disk": "ssd"})], {"a": [make_pod("other", cpu="1500m")]})
    assert cluster.refusals(make_pod("p", cpu="500m"), "a") == []
    assert cluster.refusals(make_pod("p", cpu="1", nodeSelector={"disk": "hdd"}), "a") == [
        "node(s) didn't match Pod's node affinity/selector",
        "Insufficient cpu",
    ]
    assert cluster.refusals(make_pod("p"), "b") is None


def test_in_short_without_what_a_preemption_would_help() -> None:
    result = place(make_pod("p", cpu="4"), [make_node("a", cpu="1")], {})
    assert not isinstance(result, Placement)
    assert result.summary == "0/1 nodes are available: 1 Insufficient cpu."
