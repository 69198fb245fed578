"""On which nodes daemons run, and how their pods name them."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.daemon_pods import bound_for, daemon_pod_spec, target_node, verdict, with_tolerations
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.machinery.codec import convert


def node(name: str = "n1", *taints: tuple[str, str], **labels: str) -> Node:
    found = [{"key": key, "effect": effect} for key, effect in taints]
    return convert({"metadata": {"name": name, "labels": labels}, "spec": {"taints": found}}, Node)


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
NO_NETWORK = "node.kubernetes.io/network-unavailable"
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}


@pytest.mark.parametrize(
    ("spec", "found", "expected"),
    [
        ({}, node(), (True, True)),
        ({"nodeName": "n1"}, node(), (True, True)),
        ({"nodeName": "n2"}, node(), (False, False)),
        ({"nodeSelector": {"disk": "ssd"}}, node(disk="ssd"), (True, True)),
        ({"nodeSelector": {"disk": "ssd"}}, node(), (False, False)),
        (required({"matchExpressions": [SSD]}), node(disk="ssd"), (True, True)),
        (required({"matchExpressions": [SSD]}), node(disk="hdd"), (False, False)),
        (required({}), node(), (False, False)),
        ({}, node("n1", ("gpu", "NoSchedule")), (False, True)),
        ({}, node("n1", ("gpu", "NoExecute")), (False, False)),
        ({}, node("n1", ("gpu", "PreferNoSchedule")), (True, True)),
        ({"tolerations": [{"operator": "Exists"}]}, node("n1", ("gpu", "NoExecute")), (True, True)),
        ({}, node("n1", ("node.kubernetes.io/unschedulable", "NoSchedule")), (True, True)),
        ({}, node("n1", (NOT_READY, "NoExecute"), (UNREACHABLE, "NoExecute")), (True, True)),
        ({}, node("n1", (NOT_READY, "NoSchedule")), (False, True)),
        ({}, node("n1", (NO_NETWORK, "NoSchedule")), (False, True)),
        ({"hostNetwork": True}, node("n1", (NO_NETWORK, "NoSchedule")), (True, True)),
    ],
)
def test_which_nodes_suit(
    spec: dict[str, Any], found: Node, expected: tuple[bool, bool]
) -> None:  # DS-30, DS-31, DS-32
    assert verdict(daemon_pod_spec(spec), found) == expected


def test_a_toleration_for_a_while_becomes_one_for_ever() -> None:  # DS-30
    limited = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    other = {"key": "gpu", "operator": "Exists"}
    given = with_tolerations({"tolerations": [limited, other]})["tolerations"]
    assert given[:2] == [{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}, other]
    assert len(given) == 7
    assert with_tolerations({"tolerations": given})["tolerations"] == given


def test_a_pod_names_its_node_and_keeps_what_it_prefers() -> None:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [SSD]}}]
    affinity = {
        "nodeAffinity": {
            **required({"matchExpressions": [SSD]})["affinity"]["nodeAffinity"],
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
        "podAntiAffinity": {},
    }
    spec = bound_for({"affinity": affinity, "containers": []}, "n7")
    assert spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == preferred
    assert spec["affinity"]["podAntiAffinity"] == {}
    assert target_node(convert({"spec": spec}, Pod)) == "n7"
    assert target_node(convert({"spec": {**spec, "nodeName": "n8"}}, Pod)) == "n8"
    several = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}
    for lost in ({}, required({"matchExpressions": [SSD]}), required(several)):
        assert target_node(convert({"spec": lost}, Pod)) == ""
