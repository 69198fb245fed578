"""What the API server forgets: changes after five to ten minutes, and events an hour after they were last written, as
a real one does. A cluster may run for days, and neither would ever end otherwise."""

from __future__ import annotations

import asyncio
import collections

from kruise.api.native.events import EVENTS
from kruise.local.apicore.storage import Storage

TURN_SECONDS = 300.0
EVENTS_LAST_TURNS = 12
"""An hour."""


async def forget(storage: Storage) -> None:
    """Until cancelled."""
    marks = collections.deque[int](maxlen=EVENTS_LAST_TURNS)
    """The version at each of the last turns. Versions tell the age: nobody has to read a clock for it."""
    while True:
        await asyncio.sleep(TURN_SECONDS)
        if marks:
            storage.trim(marks[-1])
        if len(marks) == EVENTS_LAST_TURNS:
            _end_events(storage, marks[0])
        marks.append(storage.version)


def _end_events(storage: Storage, version: int) -> None:
    """Those that were last written at a version or before."""
    resource = EVENTS.group_resource
    old = [
        key
        for key, event in storage.scan(resource, "", "", storage.version)
        if int(event["metadata"]["resourceVersion"]) <= version
    ]
    for key in old:
        storage.delete(resource, key)
