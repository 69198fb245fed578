"""In-place resize: what the node grants, and what it has still to do or to refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kruise.local.nodes.containers import Record
from kruise.local.nodes.pods import Container, Pod, amounts
from kruise.local.nodes.status import Condition
from kruise.machinery.codec import encode

RoomCheck = Callable[[Pod], tuple[str, str]]


@dataclasses.dataclass(slots=True)
class Resize:
    """How a resize stands. `refused`: reason and message of the one that the node cannot do."""

    refused: tuple[str, str] = ("", "")
    started: bool = False

    def allocate(self, pod: Pod, records: Mapping[str, Record], room_for: RoomCheck) -> None:
        """Grant what the spec asks for, for all containers together or for none."""
        waiting = [
            (record, wanted)
            for container in _resizable(pod)
            if (record := records.get(container.name)) is not None
            and record.allocated is not None
            and (wanted := amounts(container.resources)) != record.allocated
        ]
        if not waiting:
            self.refused = ("", "")
            return
        self.refused = room_for(pod)
        if not self.refused[0]:
            self.started = True
            for record, wanted in waiting:
                record.allocated = wanted

    def in_progress(self, pod: Pod, records: Mapping[str, Record]) -> bool:
        """Granted, but the runtime does not know yet. A container that does not run gets it at its start."""
        for container in _resizable(pod):
            record = records.get(container.name)
            if record is None or record.running is None or record.allocated is None:
                continue
            if record.running.resources != record.allocated:
                return True
        return False

    @property
    def is_deferred(self) -> bool:
        return self.refused[0] == "Deferred"

    def finish(self, pod: Pod) -> str:
        """The resize is complete; what to say about it."""
        self.started = False
        summary: dict[str, Any] = {}
        for name, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
            if containers:
                summary[name] = [{"name": item.name, "resources": amounts(item.resources)} for item in containers]
        return f"Pod resize completed: {encode(summary).decode()}"

    def conditions(self) -> list[Condition]:
        found: list[Condition] = []
        if self.refused[0]:
            found.append(("PodResizePending", "True", *self.refused))
        if self.started:
            found.append(("PodResizeInProgress", "True", "", ""))
        return found


def _resizable(pod: Pod) -> Iterator[Container]:
    yield from (item for item in pod.spec.init_containers if item.is_sidecar)
    yield from pod.spec.containers
