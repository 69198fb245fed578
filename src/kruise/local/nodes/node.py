"""One simulated node at work: its images, its addresses, and the pods that are bound to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.native import nodes as native
from kruise.local.nodes import images
from kruise.local.nodes.knobs import NODE_DOWN, PREFIX, image_table
from kruise.local.nodes.lifecycle import PodMachine
from kruise.local.nodes.pods import Pod, amounts
from kruise.local.nodes.spec import Addresses, NodeSpec
from kruise.machinery.quantity import parse_quantity

_IMAGES = f"{PREFIX}images"


class SimulatedNode:
    """Implements `lifecycle.Node`."""

    def __init__(self, spec: NodeSpec, table: Mapping[str, Any]) -> None:
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

    def room_for(self, pod: Pod) -> tuple[str, str]:
        """As the kubelet answers a resize."""
        cpu, memory = requests(pod)
        if memory > self.spec.memory_bytes:
            text = f"memory, requested: {memory}, capacity: {self.spec.memory_bytes}"
            return "Infeasible", f"Node didn't have enough capacity: {text}"
        if cpu > self.spec.cpu_millis:
            return (
                "Infeasible",
                f"Node didn't have enough capacity: cpu, requested: {cpu}, capacity: {self.spec.cpu_millis}",
            )
        used_cpu = used_memory = 0
        for uid, machine in self.machines.items():
            if uid != pod.metadata.uid and not machine.finished:
                taken = requests(machine.pod)
                used_cpu, used_memory = used_cpu + taken[0], used_memory + taken[1]
        for name, asked, used, capacity in (
            ("cpu", cpu, used_cpu, self.spec.cpu_millis),
            ("memory", memory, used_memory, self.spec.memory_bytes),
        ):
            if asked + used > capacity:
                text = f"{name}, requested: {asked}, used: {used}, capacity: {capacity}"
                return "Deferred", f"Node didn't have enough resource: {text}"
        return "", ""

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


def requests(pod: Pod) -> tuple[int, int]:
    """CPU in thousandths and memory in bytes that a running pod asks for."""
    cpu = memory = 0
    sidecars = [item for item in pod.spec.init_containers if item.is_sidecar]
    for container in (*pod.spec.containers, *sidecars):
        asked = amounts(container.resources).get("requests", {})
        cpu += parse_quantity(asked.get("cpu", 0)).milli_value()
        memory += parse_quantity(asked.get("memory", 0)).value()
    return cpu, memory
