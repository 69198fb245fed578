"""A simulated node: what it is made of, and the Node object that its kubelet registers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from kruise.local.nodes.images import Image
from kruise.machinery.quantity import parse_quantity
from kruise.machinery.times import format_time

KUBELET_VERSION = "v1.34.4"
RUNTIME_VERSION = "containerd://1.7.28"
SIMULATED = "node.kruise.io/simulated"
"""A label of every simulated node, to find and to delete them by."""
IMAGES_SHOWN = 50

_POD_NETWORK = IPv4Address("10.244.0.0")
_HOST_NETWORK = IPv4Address("172.18.0.2")

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node. Speeds are seconds on the machine that is simulated; bandwidth is in bytes a second."""

    name: str
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    zone: str = ""
    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    ephemeral_storage: str = "100Gi"
    extended: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Further resources, such as `nvidia.com/gpu`."""
    taints: Sequence[Mapping[str, str]] = ()
    pod_cidr: str = "10.244.0.0/24"
    address: str = "172.18.0.2"
    os: str = "linux"
    arch: str = "amd64"
    images: Sequence[Image] = ()
    """Images that are there from the beginning."""
    bandwidth: float = 100e6
    sandbox_seconds: float = 0.3
    start_seconds: float = 0.15
    stop_seconds: float = 0.2

    @property
    def capacity(self) -> dict[str, str]:
        return {
            "cpu": self.cpu,
            "ephemeral-storage": self.ephemeral_storage,
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": self.memory,
            "pods": str(self.pods),
            **self.extended,
        }

    @property
    def cpu_millis(self) -> int:
        return parse_quantity(self.cpu).milli_value()

    @property
    def memory_bytes(self) -> int:
        return parse_quantity(self.memory).value()


def make_nodes(count: int, *, zones: Sequence[str] = (), prefix: str = "node-", **settings: Any) -> list[NodeSpec]:
    """`count` nodes of one kind, spread over the zones in turn. Names begin with 1, as people count."""
    if not 0 <= count <= 2560:
        raise ValueError(f"{count} nodes: give a number between 0 and 2560")
    nodes = []
    for number in range(count):
        cidr = IPv4Network((_POD_NETWORK + number * 256, 24))
        zone = zones[number % len(zones)] if zones else ""
        address = str(_HOST_NETWORK + number + 2 * (number // 254))
        name = f"{prefix}{number + 1}"
        nodes.append(NodeSpec(**{"name": name, "zone": zone, "pod_cidr": str(cidr), "address": address, **settings}))
    return nodes


def node_object(spec: NodeSpec, now: datetime) -> dict[str, Any]:
    """What the kubelet registers."""
    labels = {
        "beta.kubernetes.io/arch": spec.arch,
        "beta.kubernetes.io/os": spec.os,
        "kubernetes.io/arch": spec.arch,
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": spec.os,
        SIMULATED: "true",
    }
    if spec.zone:
        labels["topology.kubernetes.io/zone"] = spec.zone
        labels["topology.kubernetes.io/region"] = "local"
    metadata: dict[str, Any] = {"name": spec.name, "labels": {**labels, **spec.labels}}
    if spec.annotations:
        metadata["annotations"] = dict(spec.annotations)
    inside: dict[str, Any] = {"podCIDR": spec.pod_cidr, "podCIDRs": [spec.pod_cidr]}
    if spec.taints:
        inside["taints"] = [dict(taint) for taint in spec.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": inside,
        "status": node_status(spec, spec.images, now),
    }


def node_status(spec: NodeSpec, images: Sequence[Image], now: datetime) -> dict[str, Any]:
    capacity = spec.capacity
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": conditions(now, now),
        "addresses": [
            {"type": "InternalIP", "address": spec.address},
            {"type": "Hostname", "address": spec.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": spec.name,
            "systemUUID": spec.name,
            "bootID": spec.name,
            "kernelVersion": "6.1.0",
            "osImage": "PyKruise simulated node",
            "containerRuntimeVersion": RUNTIME_VERSION,
            "kubeletVersion": KUBELET_VERSION,
            "kubeProxyVersion": "",
            "operatingSystem": spec.os,
            "architecture": spec.arch,
        },
        "images": shown_images(images),
    }


def conditions(heartbeat: datetime, since: datetime) -> list[dict[str, str]]:
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": format_time(heartbeat),
            "lastTransitionTime": format_time(since),
        }
        for kind, status, reason, message in _CONDITIONS
    ]


def shown_images(images: Sequence[Image]) -> list[dict[str, Any]]:
    """The largest ones, as a kubelet reports them: names of one image together."""
    by_id: dict[str, tuple[int, list[str]]] = {}
    for image in images:
        by_id.setdefault(image.id, (image.size, [image.id]))[1].append(image.name)
    largest = sorted(by_id.items(), key=lambda item: (-item[1][0], item[0]))[:IMAGES_SHOWN]
    return [{"names": sorted(set(names)), "sizeBytes": size} for _, (size, names) in largest]


class Addresses:
    """The pod addresses of one node, handed out in turn so that one is not used again at once."""

    def __init__(self, cidr: str) -> None:
        network = IPv4Network(cidr)
        self._first = int(network.network_address) + 2
        self._count = max(1, network.num_addresses - 3)
        self._used: set[str] = set()
        self._next = 0

    def take(self) -> str:
        for _ in range(self._count):
            address = str(IPv4Address(self._first + self._next))
            self._next = (self._next + 1) % self._count
            if address not in self._used:
                self._used.add(address)
                return address
        return ""

    def keep(self, address: str) -> None:
        """A pod that runs already has this one."""
        self._used.add(address)

    def free(self, address: str) -> None:
        self._used.discard(address)
