"""The daemon at work: its parts as controllers over one cache, with the nodes that it was given."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from kruise.api.meta import Key
from kruise.api.native.events import ObjectReference
from kruise.daemon.jobs import Jobs
from kruise.daemon.parts import Part, Place, Scene
from kruise.daemon.recent import small_journal
from kruise.daemon.runtime import Nodes
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock
from kruise.machinery.controller import Controller
from kruise.machinery.events import EventRecorder
from kruise.machinery.journal import Journal
from kruise.machinery.metrics import Metrics
from kruise.machinery.queue import Backoff

DAEMON = "kruise-daemon"
"""As user agent of what all parts share; each of them adds its own name (DMN-9)."""
FLUSH_SECONDS = 2.0
END_SECONDS = 5.0


class Daemon:
    """`cache` is run by the caller, who may share it with others."""

    def __init__(
        self,
        parts: Sequence[Part[Any]],
        *,
        place: Place,
        nodes: Nodes,
        client: Client,
        cache: Cache,
        clock: Clock,
        random: Random,
        journal: Journal | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.place = place
        self.journal = journal or small_journal()
        self._cache = cache
        metrics = metrics or Metrics()
        self._parts = [
            _RunningPart(
                part,
                place=place,
                nodes=nodes,
                client=client,
                cache=cache,
                clock=clock,
                random=random,
                journal=self.journal,
                metrics=metrics,
            )
            for part in parts
        ]

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for part in self._parts:
                tasks.create_task(part.run(), name=f"daemon-{part.part.name}")
            await asyncio.get_running_loop().create_future()

    def node_died(self) -> None:
        """A node that was found is not any more: what was begun on it is lost."""
        for part in self._parts:
            part.node_died()

    def node_returned(self, name: str) -> None:
        """A daemon starts on a node: it looks at everything there."""
        for part in self._parts:
            part.look_again(name)

    @property
    def waiting_for(self) -> Mapping[str, str]:
        """Kinds that could not be listed yet, and why."""
        return self._cache.waiting_for

    def is_synced(self, part: str) -> bool:
        """Whether a part knows all of its objects."""
        return all(one.is_synced for one in self._parts if one.part.name == part)

    async def flush_events(self) -> None:
        for part in self._parts:
            await part.recorder.flush()


class _RunningPart:
    def __init__(
        self,
        part: Part[Any],
        *,
        place: Place,
        nodes: Nodes,
        client: Client,
        cache: Cache,
        clock: Clock,
        random: Random,
        journal: Journal,
        metrics: Metrics,
    ) -> None:
        self.part = part
        self._cache = cache
        self._nodes = nodes
        client = client.called(f"{DAEMON}/{part.component}")
        scene = Scene(place=place, nodes=nodes, stores=cache, client=client, clock=clock)
        self.recorder = EventRecorder(client, component=part.component, clock=clock)
        self.jobs = Jobs(part, scene, clock=clock, wake=self._wake)
        base, longest = part.backoff
        self.controller = Controller(
            part.spec(place),
            cache=cache,
            applier=Applier(client, cache, clock=clock),
            recorder=_AtNode(self.recorder, self.part, cache, place),
            clock=clock,
            journal=journal,
            metrics=metrics,
            backoff=Backoff(base=base, maximum=longest),
            gates=place.settings.gates,
            seed=random.getrandbits(53),
            sync_timeout=None,
            grace=END_SECONDS,
            window=part.window,
            outside=self.jobs,
        )

    @property
    def is_synced(self) -> bool:
        return all(self._cache.store(resource).synced for resource in self.controller.resources)

    async def run(self) -> None:
        recording = asyncio.create_task(self.recorder.run(), name=f"{self.part.component}-events")
        try:
            await self.controller.run()
        finally:
            await self.jobs.stop(END_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self.recorder.flush()
            recording.cancel()
            await asyncio.wait({recording})

    def _wake(self, key: Key, reason: str) -> None:
        self.controller.queue.add(key, reason=reason)

    def _lives(self, key: Key) -> bool:
        name = self.part.node_of(self._cache, key)
        return not name or self._nodes.find(name) is not None

    def node_died(self) -> None:
        self.jobs.abandon(self._lives)

    def look_again(self, node: str) -> None:
        for source in self.controller.spec.all_sources:
            for obj in self._cache.store(source.resource).list():
                for key in source.keys(None, obj, self._cache):
                    if self.part.node_of(self._cache, key) == node:
                        self.controller.queue.add(key, reason="the node is back")


class _AtNode:
    """Events tell the node that they come from (DMN-9)."""

    def __init__(self, recorder: EventRecorder, part: Part[Any], cache: Cache, place: Place) -> None:
        self._recorder = recorder
        self._part = part
        self._cache = cache
        self._node = place.node

    def record(self, regarding: ObjectReference, kind: str, reason: str, message: str, /) -> None:
        host = self._node or self._part.node_of(self._cache, Key(regarding.namespace, regarding.name))
        self._recorder.record(regarding, kind, reason, message, host=host)
