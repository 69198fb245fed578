"""In-place resize: what the node grants, and what it has still to do or to refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kruise.inplace.resizing import ERROR, RESIZE_IN_PROGRESS, RESIZE_PENDING, RefusedResize
from kruise.local.nodes.containers import Record
from kruise.local.nodes.pods import Container, Pod, amounts
from kruise.local.nodes.status import Condition
from kruise.machinery.codec import encode

RoomCheck = Callable[[Pod], RefusedResize | None]


@dataclasses.dataclass(slots=True)
class Resize:
    """How a resize stands."""

    refused: RefusedResize | None = None
    started: bool = False
    error: str = ""
    """Why the runtime did not take it; it is tried again."""

    def allocate(self, pod: Pod, records: Mapping[str, Record], room_for: RoomCheck) -> None:
        """Grant what the spec asks for, for all containers together or for none."""
        waiting = [
            (record, wanted)
            for container in resizable(pod)
            if (record := records.get(container.name)) is not None
            and record.allocated is not None
            and (wanted := amounts(container.resources)) != record.allocated
        ]
        if not waiting:
            self.refused = None
            return
        self.refused = room_for(pod)
        if self.refused is None:
            self.started = True
            for record, wanted in waiting:
                record.allocated = wanted

    def in_progress(self, pod: Pod, records: Mapping[str, Record]) -> bool:
        """Granted, but the runtime does not know yet. A container that does not run gets it at its start."""
        for container in resizable(pod):
            record = records.get(container.name)
            if record is None or record.running is None or record.allocated is None:
                continue
            if record.running.resources != record.allocated:
                return True
        return False

    @property
    def is_deferred(self) -> bool:
        return self.refused is not None and not self.refused.is_final

    def finish(self, pod: Pod) -> str:
        """The resize is complete; what to say about it."""
        self.started, self.error = False, ""
        summary: dict[str, Any] = {}
        for name, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
            if containers:
                summary[name] = [{"name": item.name, "resources": amounts(item.resources)} for item in containers]
        return f"Pod resize completed: {encode(summary).decode()}"

    def conditions(self) -> list[Condition]:
        found: list[Condition] = []
        if self.refused is not None:
            found.append((RESIZE_PENDING, "True", *self.refused))
        if self.started:
            found.append((RESIZE_IN_PROGRESS, "True", ERROR if self.error else "", self.error))
        return found


def resizable(pod: Pod) -> Iterator[Container]:
    """The containers that run for as long as the pod does."""
    yield from (item for item in pod.spec.init_containers if item.is_sidecar)
    yield from pod.spec.containers
