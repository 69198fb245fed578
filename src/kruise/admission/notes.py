"""Events about refusals. A handler is pure, so it only says what there is to tell (`Deny.note`); this publishes it."""

from __future__ import annotations

import asyncio

from kruise.admission.decisions import PublicNote
from kruise.api.native.events import ObjectReference
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock
from kruise.machinery.events import EventRecorder


class Notes:
    """They are written while `run` runs."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._recorders: dict[str, EventRecorder] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def publish(self, note: PublicNote) -> None:
        event, target = note.event, note.event.target
        if target is None:
            raise ValueError(f"an event about a refusal names the object: {event}")
        regarding = ObjectReference(
            api_version=target.resource.api_version,
            kind=target.resource.kind,
            namespace=target.namespace,
            name=target.name,
            uid=event.uid,
        )
        self._recorder(note.component).record(regarding, event.type.value, event.reason, event.message)

    def _recorder(self, component: str) -> EventRecorder:
        found = self._recorders.get(component)
        if found is None:
            found = self._recorders[component] = EventRecorder(self._client, component=component, clock=self._clock)
            if self._tasks is not None:
                self._tasks.create_task(found.run(), name=f"events of {component}")
        return found

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for component, recorder in self._recorders.items():
                    tasks.create_task(recorder.run(), name=f"events of {component}")
                await asyncio.get_running_loop().create_future()
        finally:
            self._tasks = None
