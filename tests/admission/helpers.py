"""What the admission tests share: reviews as bytes, a cluster in process, a server on loopback."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from kruise.admission.answering import Answerer
from kruise.admission.certfiles import CertificateDirectory
from kruise.admission.certificates import Material, issue
from kruise.admission.conversion import Converters
from kruise.admission.registry import Handler, Registry
from kruise.admission.review import AdmissionRequest, decode_admission
from kruise.admission.server import AdmissionServer, Observe
from kruise.local.apicore.core import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock, RealClock

V1 = "admission.k8s.io/v1"


def review_body(
    obj: Any = None,
    *,
    old: Any = None,
    operation: str = "CREATE",
    version: str = V1,
    uid: str = "u-1",
    kind: str = "ConfigMap",
    group: str = "",
    resource: str = "configmaps",
    subresource: str = "",
    namespace: str = "shop",
    name: str = "basket",
    dry_run: bool = False,
) -> bytes:
    """A review as the API server writes it."""
    request: dict[str, Any] = {
        "uid": uid,
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "requestKind": {"group": group, "version": "v1", "kind": kind},
        "requestResource": {"group": group, "version": "v1", "resource": resource},
        "name": name,
        "namespace": namespace,
        "operation": operation,
        "userInfo": {"username": "alice", "groups": ["system:authenticated"], "extra": {"scopes": ["a"]}},
        "object": obj,
        "oldObject": old,
        "dryRun": dry_run,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    if subresource:
        request["subResource"] = subresource
    return json.dumps({"kind": "AdmissionReview", "apiVersion": version, "request": request}).encode()


def request_of(obj: Any = None, **more: Any) -> AdmissionRequest:
    return decode_admission(review_body(obj, **more))[1]


def response_of(body: bytes) -> dict[str, Any]:
    response: dict[str, Any] = json.loads(body)["response"]
    return response


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
    return operations


def config_map(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "basket", "namespace": "shop"}, **more}


def local_core(clock: Clock) -> ApiCore:
    return ApiCore(native_registry(), clock=clock, seed=1, bookmark_interval=None)


def local_client(core: ApiCore, clock: Clock) -> Client:
    return Client(InProcessTransport(core), clock=clock)


class LocalServer:
    """A server on a loopback port with a certificate for 127.0.0.1."""

    def __init__(self, server: AdmissionServer, material: Material, directory: Path) -> None:
        self.server = server
        self.material = material
        self.directory = CertificateDirectory(directory)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server.port}"

    def use(self, material: Material) -> None:
        self.directory.write(material.to_files())
        self.material = material
        resolved = self.directory.resolved
        self.server.certificate.load(resolved / "tls.crt", resolved / "tls.key")

    def session(self, *, bundle: bytes | None = None, keep_alive: bool = True) -> aiohttp.ClientSession:
        trusted = (bundle or self.material.bundle).decode()
        context = ssl.create_default_context(cadata=trusted)
        connector = aiohttp.TCPConnector(ssl=context, force_close=not keep_alive)
        return aiohttp.ClientSession(connector=connector)


async def post(session: aiohttp.ClientSession, url: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    sent = {"Content-Type": "application/json", **headers}
    async with session.post(url, data=io.BytesIO(body), headers=sent) as answer:
        return answer.status, await answer.read()


@contextlib.asynccontextmanager
async def serving(
    tmp_path: Path,
    *handlers: Handler,
    converters: Converters | None = None,
    answerer: Answerer | None = None,
    observe: Observe | None = None,
) -> AsyncIterator[LocalServer]:
    registry = Registry(*handlers)
    server = AdmissionServer(registry, answerer or Answerer(RealClock()), converters or Converters(), observe=observe)
    await server.start("127.0.0.1", 0, shutdown_timeout=2.0)
    try:
        local = LocalServer(server, issue("127.0.0.1", RealClock().now()), tmp_path / "certs")
        local.use(local.material)
        yield local
    finally:
        await server.stop()
