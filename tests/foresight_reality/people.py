"""Those who act around a rollout, as a forecast takes it for granted: hooks are answered, and a restart heals.

Both hear of pods by a watch of their own, and answer after a moment, as a controller of somebody else would.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from kruise.api.native.pod import PODS, Pod
from kruise.inplace import keys
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ConflictError, NotFoundError
from tests.foresight_reality.cases import CRASHES, NEVER_READY

_MOMENT = 0.2

Json = dict[str, Any]


class People:
    """`lifecycle` is that of the CloneSet. They answer as long as `answers` is set."""

    def __init__(self, client: Client, namespace: str, labels: str, lifecycle: Mapping[str, Any]) -> None:
        self.answers = True
        self._client = client
        self._namespace = namespace
        self._labels = labels
        self._lifecycle = lifecycle
        self._restarts: dict[str, int] = {}

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        listed = await self._client.list(PODS, self._namespace, labels=self._labels)
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._follow(tasks, listed.resource_version), name="people")
            for pod in listed.items:
                self._look(tasks, pod)
            try:
                yield
            finally:
                watch.cancel()

    async def _follow(self, tasks: asyncio.TaskGroup, version: str) -> None:
        async with self._client.watch(
            PODS, self._namespace, resource_version=version, labels=self._labels, bookmarks=False
        ) as events:
            async for event in events:
                if event.type != "DELETED":
                    self._look(tasks, event.object)

    def _look(self, tasks: asyncio.TaskGroup, pod: Pod) -> None:
        restarts = sum(status.restart_count for status in pod.status.container_statuses if status.name == "main")
        known = self._restarts.setdefault(pod.metadata.uid, restarts)
        if restarts > known and NEVER_READY in pod.metadata.annotations and CRASHES not in pod.metadata.annotations:
            self._restarts[pod.metadata.uid] = restarts
            tasks.create_task(self._patch(pod, {"metadata": {"annotations": {NEVER_READY: None}}}))
        if self.answers and (answer := self._answer(pod)):
            tasks.create_task(self._later(pod, answer))

    async def _later(self, pod: Pod, answer: Json) -> None:
        await asyncio.sleep(_MOMENT)
        await self._patch(pod, answer)

    async def _patch(self, pod: Pod, body: Json) -> None:
        """A pod that went or changed meanwhile comes back by the watch."""
        with contextlib.suppress(NotFoundError, ConflictError):
            await self._client.patch(PODS, pod.metadata.name, body, self._namespace)

    def _answer(self, pod: Pod) -> Json:
        """What the owner of a hook writes to a pod that waits for it; empty: nothing."""
        if pod.metadata.deletion_timestamp is not None:
            # Whoever puts finalizers on pods takes them off those that go.
            return _with_finalizers(pod, []) if pod.metadata.finalizers else {}
        match pod.metadata.labels.get(keys.STATE_LABEL):
            case "PreparingUpdate":
                return _without(pod, self._lifecycle.get("inPlaceUpdate") or {})
            case "Updated":
                return _with(pod, self._lifecycle.get("inPlaceUpdate") or {})
            case "PreparingDelete":
                return _without(pod, self._lifecycle.get("preDelete") or {})
            case "PreparingNormal":
                return _with(pod, self._lifecycle.get("preNormal") or {})
        return {}


def _without(pod: Pod, hook: Mapping[str, Any]) -> Json:
    labels = {
        key: None for key, value in (hook.get("labelsHandler") or {}).items() if pod.metadata.labels.get(key) == value
    }
    unwanted = set(hook.get("finalizersHandler") or ())
    if labels:
        return {"metadata": {"labels": labels}}
    if unwanted & set(pod.metadata.finalizers):
        return _with_finalizers(pod, [item for item in pod.metadata.finalizers if item not in unwanted])
    return {}


def _with(pod: Pod, hook: Mapping[str, Any]) -> Json:
    labels = {
        key: value for key, value in (hook.get("labelsHandler") or {}).items() if pod.metadata.labels.get(key) != value
    }
    missing = [item for item in hook.get("finalizersHandler") or () if item not in pod.metadata.finalizers]
    if labels:
        return {"metadata": {"labels": labels}}
    return _with_finalizers(pod, [*pod.metadata.finalizers, *missing]) if missing else {}


def _with_finalizers(pod: Pod, wanted: list[str]) -> Json:
    return {"metadata": {"finalizers": wanted, "resourceVersion": pod.metadata.resource_version}}
