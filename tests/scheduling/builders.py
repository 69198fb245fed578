"""Pods and nodes for the scheduler, in a few words."""

from __future__ import annotations

from typing import Any

from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.machinery.codec import convert
from kruise.scheduling.messages import Unschedulable
from kruise.scheduling.placing import Placement, place
from tests.local.workloads.world import node as node_body


def make_node(name: str, **more: Any) -> Node:
    return convert(node_body(name, **more), Node)


def make_pod(name: str, *, cpu: str = "", labels: dict[str, str] | None = None, **more: Any) -> Pod:
    requests = {"cpu": cpu} if cpu else more.pop("requests", {})
    container = {"name": "main", "image": "a", "resources": {"requests": requests}, **more.pop("container", {})}
    metadata: dict[str, Any] = {"name": name, "namespace": more.pop("namespace", "default"), "uid": f"uid-{name}"}
    metadata["labels"] = labels or {}
    owner = more.pop("owner", "")
    if owner:
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    return convert({"metadata": metadata, "spec": {"containers": [container], **more}}, Pod)


def anti_affinity(topology: str, **labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": topology}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def node_affinity(*expressions: dict[str, Any], fields: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    term: dict[str, Any] = {"matchExpressions": list(expressions)} if expressions else {}
    if fields:
        term["matchFields"] = fields
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def why(pod: Any, *nodes: Node, **more: Any) -> str:
    result = place(pod, nodes, more.pop("on", {}), **more)
    assert isinstance(result, Unschedulable)
    return result.message


def where(pod: Any, *nodes: Node, **more: Any) -> str:
    result = place(pod, nodes, more.pop("on", {}), **more)
    assert isinstance(result, Placement)
    return result.node
