"""Simulated nodes: a kubelet and a container runtime as a client of the API, without any container."""

from kruise.local.nodes.images import Image
from kruise.local.nodes.logs import ContainerLogs
from kruise.local.nodes.model import NodeModel
from kruise.local.nodes.spec import NodeSpec, make_nodes

__all__ = ["ContainerLogs", "Image", "NodeModel", "NodeSpec", "make_nodes"]
