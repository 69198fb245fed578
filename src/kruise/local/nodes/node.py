"""One simulated node at work: its images, its addresses, and the pods that are bound to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kruise.api.native import nodes as native
from kruise.inplace.resizing import RefusedResize, refusal_of_node
from kruise.local.nodes import images
from kruise.local.nodes.containers import Record
from kruise.local.nodes.knobs import NODE_DOWN, PREFIX, image_table
from kruise.local.nodes.lifecycle import PodMachine
from kruise.local.nodes.pods import Pod, amounts
from kruise.local.nodes.resizing import resizable
from kruise.local.nodes.spec import Addresses, NodeSpec
from kruise.machinery.quantity import parse_quantity
from kruise.scheduling.requests import CPU, MEMORY

_IMAGES = f"{PREFIX}images"
Configs = Callable[[str, str], Mapping[str, str] | None]
"""What a ConfigMap holds, by namespace and name; None: there is none."""


class SimulatedNode:
    """Implements `lifecycle.Node`."""

    def __init__(self, spec: NodeSpec, table: Mapping[str, Any], configs: Configs | None = None) -> None:
        self.spec = spec
        self.images = images.NodeImages(spec.bandwidth, spec.images)
        self.machines: dict[str, PodMachine] = {}
        """By uid of the pod."""
        self.registered = False
        self.stopped = False
        """Taken down by the program, as opposed to by annotation."""
        self.uid = ""
        self.report_at = 0.0
        """When the images will be reported; 0: nothing to report."""
        self._table = table
        self._own_table: Mapping[str, Any] = {}
        self._own_text = ""
        self._annotated_down = False
        self._addresses = Addresses(spec.pod_cidr)
        self._configs = configs

    @property
    def down(self) -> bool:
        return self.stopped or self._annotated_down

    def notice(self, node: native.Node) -> None:
        """The Node object as it is now."""
        annotations = node.metadata.annotations
        self.uid = node.metadata.uid
        self._annotated_down = annotations.get(NODE_DOWN, "") == "down"
        text = annotations.get(_IMAGES, "")
        if text != self._own_text:
            self._own_text, self._own_table = text, image_table(text)

    # What pods share

    def image_tables(self) -> Sequence[Mapping[str, Any]]:
        return (self._own_table, self._table)

    def take_address(self) -> str:
        return self._addresses.take()

    def config(self, namespace: str, name: str) -> Mapping[str, str] | None:
        return self._configs(namespace, name) if self._configs is not None else None

    def room_for(self, pod: Pod) -> RefusedResize | None:
        """As the kubelet answers a resize. What others ask for and were not granted takes nothing."""
        used: Counter[str] = Counter()
        for uid, machine in self.machines.items():
            if uid != pod.metadata.uid and not machine.finished:
                used.update(_requests(machine.pod, machine.records))
        allocatable = {CPU: self.spec.cpu_millis, MEMORY: self.spec.memory_bytes}
        return refusal_of_node(_requests(pod, {}), used=used, allocatable=allocatable)

    # Coming and going

    def add(self, pod: Pod, *, seed: int, now: float) -> PodMachine:
        machine = PodMachine(self, pod, seed=seed, now=now)
        self.machines[pod.metadata.uid] = machine
        if machine.address:
            self._addresses.keep(machine.address)
        for record in machine.records.values():
            if record.current is not None:
                found = images.find(record.current.image, self.image_tables())
                if isinstance(found, images.Image):
                    self.images.arrived(found)
        return machine

    def remove(self, uid: str) -> None:
        machine = self.machines.pop(uid, None)
        if machine is not None and machine.address:
            self._addresses.free(machine.address)


def _requests(pod: Pod, records: Mapping[str, Record]) -> Counter[str]:
    """CPU in thousandths and memory in bytes that a running pod was granted; what it asks for, where nothing is yet."""
    total: Counter[str] = Counter()
    for container in resizable(pod):
        record = records.get(container.name)
        granted = record.allocated if record is not None else None
        stated = (granted if granted is not None else amounts(container.resources)).get("requests", {})
        total[CPU] += parse_quantity(stated.get(CPU, 0)).milli_value()
        total[MEMORY] += parse_quantity(stated.get(MEMORY, 0)).value()
    return total
