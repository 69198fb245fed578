"""The Service that `expose` makes."""

from __future__ import annotations

import pytest

from kruise.faces.native import POD, SERVICE, STATEFUL_SET
from kruise.verbs import exposing
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.exposing import Wishes
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from tests.verbs.objects import cloneset, container, native, template

PORTS = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]


def test_a_service_for_a_cloneset() -> None:
    wishes = Wishes(
        ports=(80,), target_port="8080", type="NodePort", session_affinity="ClientIP", external_ip="1.2.3.4"
    )
    assert exposing.service_for(CLONE_SET, cloneset(), wishes) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}],
            "type": "NodePort",
            "sessionAffinity": "ClientIP",
            "externalIPs": ["1.2.3.4"],
        },
    }


def test_ports_come_from_the_containers_with_their_protocols() -> None:
    document = cloneset(pods=template(container(ports=PORTS)))
    ports = exposing.service_for(CLONE_SET, document, Wishes())["spec"]["ports"]
    assert [(one["name"], one["port"], one["protocol"]) for one in ports] == [
        ("port-1", 80, "TCP"),
        ("port-2", 53, "UDP"),
        ("port-3", 53, "TCP"),
    ]


def test_everything_can_be_said_otherwise() -> None:
    wishes = Wishes(
        ports=(80,),
        target_port="http",
        protocol="UDP",
        name="other",
        selector="a=b",
        labels="c=d",
        type="LoadBalancer",
        load_balancer_ip="1.1.1.1",
        overrides={"spec": {"type": "ClusterIP"}},
    )
    made = exposing.service_for(CLONE_SET, cloneset(), wishes)
    assert made["metadata"] == {"name": "other", "labels": {"c": "d"}}
    assert made["spec"] == {
        "selector": {"a": "b"},
        "ports": [{"port": 80, "targetPort": "http", "protocol": "UDP"}],
        "type": "ClusterIP",
        "loadBalancerIP": "1.1.1.1",
    }


def test_pods_and_services_can_be_exposed() -> None:
    pod = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [container(ports=PORTS[:1])]}}
    assert exposing.service_for(POD, pod, Wishes())["spec"]["selector"] == {"a": "b"}
    service = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}
    assert exposing.service_for(SERVICE, service, Wishes(name="t"))["spec"] == {
        "selector": {"a": "b"},
        "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
    }


def test_a_headless_service_needs_no_port() -> None:
    made = exposing.service_for(CLONE_SET, cloneset(), Wishes(cluster_ip="None"))
    assert made["spec"] == {"selector": {"app": "web"}, "clusterIP": "None"}


def test_a_long_name_is_cut() -> None:
    made = exposing.service_for(CLONE_SET, cloneset(name="w" * 80), Wishes(ports=(80,)))
    assert made["metadata"]["name"] == "w" * 63


def test_what_cannot_be_exposed_is_refused() -> None:
    expressions = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    with pytest.raises(VerbError, match="selects its pods by expressions"):
        exposing.service_for(CLONE_SET, cloneset(selector=expressions), Wishes(ports=(80,)))
    with pytest.raises(VerbError, match="has no selector"):
        exposing.service_for(CLONE_SET, cloneset(selector={}), Wishes(ports=(80,)))
    with pytest.raises(VerbError, match="couldn't find port via --port flag or introspection"):
        exposing.service_for(CLONE_SET, cloneset(), Wishes())
    with pytest.raises(VerbError, match="cannot expose a StatefulSet"):
        exposing.service_for(STATEFUL_SET, native("StatefulSet"), Wishes())
    with pytest.raises(VerbError, match="has no labels"):
        exposing.service_for(POD, {"metadata": {"name": "p"}}, Wishes())


def test_ports_of_the_command_line() -> None:
    assert exposing.parse_ports("80,443") == (80, 443)
    for text in ("http", "0", "70000"):
        with pytest.raises(UsageError, match="is no port"):
            exposing.parse_ports(text)
