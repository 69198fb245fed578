"""The objects that an API server creates itself when it starts: namespaces, system priorities, its own Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kruise.local.apicore import errors
from kruise.local.apicore.core import ApiCore, Call
from kruise.local.apicore.errors import Json
from kruise.local.kinds.cluster import SYSTEM_CLASSES
from kruise.local.kinds.services import NETWORK

NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
API_ADDRESS: Final = str(NETWORK[1])
_DESCRIPTIONS: Final = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
}


async def create_system_objects(core: ApiCore, *, port: int = 6443) -> None:
    """Create what is missing. `port` is where the API server listens."""
    for group, plural, namespace, obj in _objects(port):
        kind = core.registry.find(group, "v1", plural)
        if kind is None:
            continue
        try:
            await core.create(Call(kind=kind, version="v1", namespace=namespace, manager="kube-apiserver"), obj)
        except errors.StatusError as error:
            if error.reason != "AlreadyExists":
                raise


def _objects(port: int) -> Iterator[tuple[str, str, str, Json]]:
    for name in NAMESPACES:
        yield "", "namespaces", "", {"metadata": {"name": name}}
    for name, value in SYSTEM_CLASSES.items():
        body = {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
        yield "scheduling.k8s.io", "priorityclasses", "", body
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]
    spec = {"clusterIP": API_ADDRESS, "ports": ports, "type": "ClusterIP", "sessionAffinity": "None"}
    yield "", "services", "default", {"metadata": {"name": "kubernetes", "labels": labels}, "spec": spec}
