"""Nodes whose every step somebody chooses: which pod, which step, in any order, at any time.

For tests of promises. `nodes` makes of the same steps what usually happens, in the time that it usually takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from kruise.api.native.daemon_pods import target_node
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Container, ContainerStatus, Pod, PodStatus
from kruise.inplace.resizing import RefusedResize
from kruise.machinery import codec
from kruise.model import agent, kubelet, podstates
from kruise.model.images import ImageIds
from kruise.model.world import World


class Kubelets:
    """`works`: whether a container of this sort ever becomes ready. `grants`: what is said to one that is to be resized
    to what its spec says; None: it is. `reports`: the node agent tells of containers."""

    def __init__(
        self,
        world: World,
        *,
        works: Callable[[Container], bool] = lambda _: True,
        grants: Callable[[Container], RefusedResize | None] = lambda _: None,
        reports: bool = False,
    ) -> None:
        self._world = world
        self._works = works
        self._grants = grants
        self._reports = reports
        self._images = ImageIds()

    def step(self, pod: Pod) -> bool:
        """The next thing that happens to a pod by itself: it gets a node; a container stops, starts, becomes ready
        or gets its resources; the agent tells of it; a pod that was deleted ends. Whether there was any."""
        if pod.metadata.deletion_timestamp is not None:
            if self._world.has_ended(pod):
                return False
            self._world.pod_ended(pod)
            return True
        if pod.status.phase in ("Failed", "Succeeded") or pod.spec.scheduling_gates:
            return False
        if not pod.spec.node_name:
            self._world.put(PODS, kubelet.bound(pod, target_node(pod) or self._node(), self._world.now))
            return True
        return self._put(pod, next(self._statuses(pod), pod.status))

    def _node(self) -> str:
        """The one with the fewest pods."""
        load = Counter(pod.spec.node_name for pod in self._world.store(PODS).list())
        names = (node.metadata.name for node in self._world.store(NODES).list())
        return min(names, key=lambda name: (load[name], name), default="a-node")

    def crash(self, pod: Pod) -> None:
        """All containers start anew."""
        containers = {container.name: container for container in pod.spec.containers}
        statuses = [
            self._started(pod, containers[status.name], status) if status.name in containers else status
            for status in pod.status.container_statuses
        ]
        self._put(pod, codec.evolve(pod.status, container_statuses=tuple(statuses)))

    def fail(self, pod: Pod) -> None:
        """Evicted: over for good, but still there."""
        self._world.put(PODS, codec.evolve(pod, status=codec.evolve(pod.status, phase="Failed")))

    def succeed(self, pod: Pod) -> None:
        """All containers ended well, although they should not have."""
        self._world.put(PODS, codec.evolve(pod, status=codec.evolve(pod.status, phase="Succeeded")))

    def _statuses(self, pod: Pod) -> Iterator[PodStatus]:
        """What comes next for the containers, the first of them first."""
        found = {status.name: status for status in pod.status.container_statuses}
        for container in pod.spec.containers:
            known = found.get(container.name)
            if known is None:
                after = self._started(pod, container, None)
            elif not self._images.runs(pod, container):
                after = codec.evolve(known, ready=False) if known.ready else self._started(pod, container, known)
            elif not known.ready and self._works(container):
                after = codec.evolve(known, ready=True, started=True)
            elif known.resources != container.resources:
                if (refused := self._grants(container)) is not None:
                    told = kubelet.not_resized(pod, refused, self._world.now)
                    if told != pod.status:
                        yield told
                    continue
                after = codec.evolve(known, resources=container.resources)
            else:
                continue
            yield kubelet.with_containers(pod, {**found, container.name: after}.values(), self._world.now)
        if all(found[item.name].resources == item.resources for item in pod.spec.containers):
            yield kubelet.resized(pod)

    def _started(self, pod: Pod, container: Container, before: ContainerStatus | None) -> ContainerStatus:
        now = self._world.now
        image_id = self._images.id_of(container.image)
        return kubelet.started(pod, container, before, began=now, ended=now, image_id=image_id, is_ready=False)

    def _put(self, pod: Pod, status: PodStatus) -> bool:
        after = podstates.with_readiness(codec.evolve(pod, status=status), self._world.now)
        if after.status == pod.status and self._reports:
            after = agent.reporting(pod)
        if after == pod:
            return False
        self._world.put(PODS, after)
        return True
