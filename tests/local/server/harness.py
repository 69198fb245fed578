"""A local server on a free port of the loopback, and a client that sends requests as they are."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.local import fields
from kruise.local.apicore import ApiCore, Registry, custom_kind
from kruise.local.apicore.kinds import Column
from kruise.local.kinds import NATIVE_KINDS
from kruise.local.server import Identity, LocalServer, LogSource, make_identity
from kruise.local.server.identity import client_context
from kruise.machinery.clock import Clock, RealClock

WIDGETS = Resource("toys.kruise.io", "v1", "widgets", "Widget", True, PartialObject)
WIDGET_KIND = custom_kind(
    WIDGETS,
    short_names=("wd",),
    columns=(Column(name="Size", type="integer", cell=lambda obj, now: (obj.get("spec") or {}).get("size")),),
)
CMS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
WDS = "/apis/toys.kruise.io/v1/namespaces/default/widgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@functools.cache
def identity() -> Identity:
    """One for all tests: keys take time."""
    return make_identity(RealClock().now())


@dataclasses.dataclass(frozen=True)
class Answer:
    code: int
    headers: CIMultiDictProxy[str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


class Api:
    def __init__(self, server: LocalServer, session: aiohttp.ClientSession, stranger: aiohttp.ClientSession) -> None:
        self.server = server
        self.core = server.core
        self.session = session
        self.stranger = stranger

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        accept: str = "application/json",
        sent_as: str = "application/json",
        login: bool = True,
        **headers: str,
    ) -> Answer:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        known = {name.replace("_", "-"): value for name, value in headers.items()}
        known["Accept"] = accept
        if body is not None:
            known["Content-Type"] = sent_as
        session = self.session if login else self.stranger
        async with session.request(
            method, self.url(path), data=None if body is None else io.BytesIO(body), headers=known
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, accept: str = "application/json", **more: Any) -> Answer:
        return await self.send("GET", path, accept=accept, **more)

    async def post(self, path: str, body: Any, **more: Any) -> Answer:
        return await self.send("POST", path, body, **more)

    def url(self, path: str) -> URL:
        return URL(self.server.url + path, encoded=True)

    @contextlib.asynccontextmanager
    async def stream(self, path: str, accept: str = "application/json") -> AsyncIterator[aiohttp.ClientResponse]:
        async with self.session.get(self.url(path), headers={"Accept": accept}) as response:
            yield response


async def line_of(response: aiohttp.ClientResponse) -> Any:
    """The next line of a watch."""
    async with asyncio.timeout(5):
        line = await response.content.readline()
    return json.loads(line) if line else None


@contextlib.asynccontextmanager
async def serving(*, clock: Clock | None = None, logs: LogSource | None = None, **options: Any) -> AsyncIterator[Api]:
    core = ApiCore(Registry((*NATIVE_KINDS, WIDGET_KIND)), clock=clock or RealClock(), seed=1, **options)
    fields.install(core)
    server = LocalServer(core, certificates=identity(), logs=logs)
    await server.start()
    sessions = []
    try:
        for admin in (True, False):
            connector = aiohttp.TCPConnector(ssl=client_context(identity(), admin=admin))
            sessions.append(aiohttp.ClientSession(connector=connector, headers={"User-Agent": "test/1"}))
        yield Api(server, sessions[0], sessions[1])
    finally:
        for session in sessions:
            await session.close()
        await server.stop()


def cm(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def pod(name: str, *, node: str = "n", containers: tuple[str, ...] = ("main",), **spec: Any) -> dict[str, Any]:
    listed = [{"name": container, "image": "nginx:1"} for container in containers]
    spec = {"containers": listed, "nodeName": node, **spec} if node else {"containers": listed, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def widget(name: str) -> dict[str, Any]:
    return {"apiVersion": "toys.kruise.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 3}}
