"""A core, a transport and short words for requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from kruise.api.meta import PartialObject
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore, KindDescription, MemoryStorage, custom_kind
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.clock import Clock, ManualClock

__all__ = ["CONFIG_MAPS", "PODS", "WIDGETS", "Api", "cm", "finish", "pod", "widget"]

T = TypeVar("T")
WIDGETS = Resource("toys.kruise.io", "v1", "widgets", "Widget", True, PartialObject)


class Api:
    """Requests in a few words; each answers with the code and the decoded body."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        kinds: tuple[KindDescription, ...] = (),
        storage: MemoryStorage | None = None,
        namespace: str = "default",
        **options: Any,
    ) -> None:
        self.clock = clock or ManualClock()
        registry = native_registry((custom_kind(WIDGETS), *kinds))
        storage = MemoryStorage() if storage is None else storage
        self.core = ApiCore(registry, clock=self.clock, storage=storage, **{"seed": 1, **options})
        self.transport = InProcessTransport(self.core)
        self.namespace = namespace

    async def send(self, verb: Verb, resource: Resource[Any], name: str = "", body: Any = None, **more: Any) -> Any:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        namespace = more.pop("namespace", self.namespace)
        answer = await self.transport.send(Request(verb, resource, namespace, name, body=body, **more))
        return answer.status, json.loads(answer.body) if answer.body.startswith(b"{") else answer.body

    async def get(self, resource: Resource[Any], name: str, **more: Any) -> Any:
        return await self.send(Verb.GET, resource, name, **more)

    async def list(self, resource: Resource[Any], *query: tuple[str, str], **more: Any) -> Any:
        return await self.send(Verb.LIST, resource, query=query, **more)

    async def create(self, resource: Resource[Any], body: Any, **more: Any) -> Any:
        return await self.send(Verb.CREATE, resource, more.pop("name", ""), body, **more)

    async def update(self, resource: Resource[Any], name: str, body: Any, **more: Any) -> Any:
        return await self.send(Verb.UPDATE, resource, name, body, **more)

    async def patch(self, resource: Resource[Any], name: str, body: Any, **more: Any) -> Any:
        more.setdefault("content_type", PatchType.MERGE)
        return await self.send(Verb.PATCH, resource, name, body, **more)

    async def delete(self, resource: Resource[Any], name: str, body: Any = None, **more: Any) -> Any:
        return await self.send(Verb.DELETE, resource, name, body, **more)

    @asynccontextmanager
    async def watch(
        self, resource: Resource[Any], *query: tuple[str, str], namespace: str | None = None
    ) -> AsyncIterator[AsyncIterator[tuple[str, Any]]]:
        request = Request(Verb.WATCH, resource, self.namespace if namespace is None else namespace, query=query)

        async def events(lines: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, Any]]:
            async for line in lines:
                event = json.loads(line)
                yield event["type"], event["object"]

        async with self.transport.stream(request) as lines:
            yield events(lines)

    async def events_since(self, resource: Resource[Any], version: str, *query: tuple[str, str]) -> list[Any]:
        """What a watch from `version` has to say right away."""
        found = []
        short = (("resourceVersion", version), ("timeoutSeconds", "0"), *query)
        async with self.watch(resource, *short) as events:
            async for event in events:
                found.append(event)
        return found


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    coroutine.close()
    raise AssertionError("the coroutine waits for something")


def cm(name: str, data: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


def widget(name: str, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": spec or {"size": 1}}


def pod(name: str, *, node: str = "n1", grace: int = 30, **metadata: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "nginx:1"}],
        "terminationGracePeriodSeconds": grace,
    }
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def deployment(name: str, *, replicas: int) -> dict[str, Any]:
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
