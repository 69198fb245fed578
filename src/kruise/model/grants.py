"""What kubelets have granted to the pods on their nodes, and what they say to one that asks for more."""

from __future__ import annotations

from collections.abc import Iterable

from kruise.api.native.nodes import Node
from kruise.api.native.pod import Container, ContainerStatus, Pod
from kruise.inplace.resizing import RefusedResize, refusal_of_node
from kruise.machinery import codec
from kruise.scheduling.requests import CPU, MEMORY, Amounts, amounts, requests


class Grants:
    def __init__(self, nodes: Iterable[Node]) -> None:
        self._allocatable = {
            node.metadata.name: amounts(node.status.allocatable or node.status.capacity) for node in nodes
        }
        self._used: dict[str, Amounts] = {name: {} for name in self._allocatable}
        self._granted: dict[str, tuple[str, Amounts]] = {}
        """By uid: the node, and how much of it."""

    def hold(self, pod: Pod, amount: Amounts) -> None:
        """The pod has so much of its node. Of nodes that nobody knows nothing is counted."""
        self.release(pod.metadata.uid)
        used = self._used.get(pod.spec.node_name)
        if used is not None:
            self._granted[pod.metadata.uid] = (pod.spec.node_name, amount)
            for name in (CPU, MEMORY):
                used[name] = used.get(name, 0) + amount.get(name, 0)

    def release(self, uid: str) -> None:
        node, amount = self._granted.pop(uid, ("", {}))
        for name in (CPU, MEMORY) if node else ():
            self._used[node][name] -= amount.get(name, 0)

    def ask(self, pod: Pod) -> RefusedResize | None:
        """Give a pod what its spec says now, or say why not; then it keeps what it has."""
        uid, asked = pod.metadata.uid, requests(pod)
        node, held = self._granted.get(uid, ("", asked))
        if grows(held, asked):
            others = {name: amount - held.get(name, 0) for name, amount in self._used[node].items()}
            refusal = refusal_of_node(asked, used=others, allocatable=self._allocatable[node])
            if refusal is not None:
                return refusal
        self.hold(pod, asked)
        return None


def grows(before: Amounts, after: Amounts) -> bool:
    """Whether a kubelet needs room for it."""
    return any(after.get(name, 0) > before.get(name, 0) for name in (CPU, MEMORY))


def granted(pod: Pod) -> Amounts:
    """What a pod has of its node: as its containers run. Of those that do not, what its spec says."""
    spec, status = pod.spec, pod.status
    containers = _as_they_run(spec.containers, status.container_statuses)
    sidecars = _as_they_run(spec.init_containers, status.init_container_statuses)
    if containers is spec.containers and sidecars is spec.init_containers:
        return requests(pod)
    return requests(codec.evolve(pod, spec=codec.evolve(spec, containers=containers, init_containers=sidecars)))


def _as_they_run(containers: tuple[Container, ...], statuses: Iterable[ContainerStatus]) -> tuple[Container, ...]:
    known = {status.name: status.resources for status in statuses}
    found = [(container, known.get(container.name)) for container in containers]
    if all(present is None or present == container.resources for container, present in found):
        return containers
    return tuple(
        container if present is None else codec.evolve(container, resources=present) for container, present in found
    )
