"""Nodes and namespaces."""

from __future__ import annotations

from datetime import datetime

from kruise.api.meta import Condition, ObjectMeta
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct, field

KUBE_SYSTEM = "kube-system"
"""The control plane's own namespace: its pods come and go whoever is down, so no webhook is asked about them."""


class Taint(Struct):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Struct):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = field(default="", name="providerID")
    pod_cidr: str = field(default="", name="podCIDR")


class NodeAddress(Struct):
    type: str = ""
    address: str = ""


class NodeSystemInfo(Struct):
    kubelet_version: str = ""
    container_runtime_version: str = ""
    os_image: str = field(default="", name="osImage")
    architecture: str = ""


class NodeStatus(Struct):
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(Struct, dict=True, gc=True):
    """With room for what was found out about it (`kruise.machinery.remembered`)."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NamespaceStatus(Struct):
    phase: str = ""


class Namespace(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    status: NamespaceStatus = NamespaceStatus()


NODES = Resource("", "v1", "nodes", "Node", False, Node)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, Namespace)
