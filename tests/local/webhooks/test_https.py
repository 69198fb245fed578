"""Calls over real TLS on loopback: trust, services, and the words for what goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from kruise.admission.certificates import issue
from kruise.local.webhooks.calling import CallError, Service, Target
from kruise.local.webhooks.https import HttpsCaller
from tests.support.ports import free_port

SERVICE = Service("sys", "hooks")


@dataclasses.dataclass
class Webhook:
    address: str
    bundle: bytes
    connections: int = 0

    def target(self, path: str, *, bundle: bytes | None = None) -> Target:
        return Target("https://hooks.sys.svc:443", path, self.bundle if bundle is None else bundle, SERVICE)


@contextlib.asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Webhook]:
    material = issue(SERVICE.host, datetime.now(UTC))
    (directory / "cert.pem").write_bytes(material.cert)
    (directory / "key.pem").write_bytes(material.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    seen: set[object] = set()
    webhook = Webhook("", material.ca_cert)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.add(request.transport)
        webhook.connections = len(seen)
        match request.path:
            case "/echo":
                told = f"{request.host} {request.path_qs} {request.content_type} ".encode()
                return web.Response(body=told + await request.read())
            case "/slow":
                await asyncio.sleep(30)
            case "/broken":
                return web.Response(status=500, text="out of order\n")
            case "/status":
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no review"}
                return web.json_response(status, status=400)
            case "/away":
                return web.Response(status=302, headers={"Location": "/echo"})
        return web.Response(status=404, text="404 page not found")

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    webhook.address = f"127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield webhook
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def calling(webhook: Webhook) -> AsyncIterator[HttpsCaller]:
    caller = HttpsCaller({"sys/hooks": webhook.address})
    try:
        yield caller
    finally:
        await caller.close()


async def test_a_service_is_called_by_its_name_at_its_address_over_one_connection(tmp_path: Path) -> None:
    async with serving(tmp_path) as webhook, calling(webhook) as caller:
        for _ in range(3):
            said = await caller.post(webhook.target("/echo"), b"{}", 10)
            assert said == b"hooks.sys.svc:443 /echo?timeout=10s application/json {}"
        assert webhook.connections == 1


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/nowhere", "the server could not find the requested resource"),
        ("/broken", 'an error on the server ("out of order") has prevented the request from succeeding'),
        ("/status", "no review"),
        ("/away", "the server responded with the status code 302 but did not return more information"),
    ],
)
async def test_http_errors_have_the_words_of_kubernetes(tmp_path: Path, path: str, why: str) -> None:
    async with serving(tmp_path) as webhook, calling(webhook) as caller:
        with pytest.raises(CallError) as failed:
            await caller.post(webhook.target(path), b"{}", 10)
    assert str(failed.value) == f"failed to call webhook: {why}"


async def test_who_does_not_answer_in_time_is_left(tmp_path: Path) -> None:
    async with serving(tmp_path) as webhook, calling(webhook) as caller:
        with pytest.raises(CallError) as failed:
            await caller.post(webhook.target("/slow"), b"{}", 0.2)
    url = "https://hooks.sys.svc:443/slow?timeout=1s"
    assert str(failed.value) == f'failed to call webhook: Post "{url}": context deadline exceeded'


async def test_another_ca_is_not_trusted(tmp_path: Path) -> None:
    other = issue("elsewhere", datetime.now(UTC)).ca_cert
    async with serving(tmp_path) as webhook, calling(webhook) as caller:
        for bundle in (other, b""):
            with pytest.raises(CallError, match="tls: failed to verify certificate: x509: ") as failed:
                await caller.post(webhook.target("/echo", bundle=bundle), b"{}", 10)
            assert "signed by unknown authority" in str(failed.value)


async def test_a_bundle_that_is_no_certificate_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as webhook, calling(webhook) as caller:
        with pytest.raises(CallError, match="could not get REST client: unable to load root certificates"):
            await caller.post(webhook.target("/echo", bundle=b"nonsense"), b"{}", 10)


async def test_nobody_listens() -> None:
    caller = HttpsCaller(lambda namespace, name, port: None)
    try:
        port = free_port()
        with pytest.raises(CallError) as failed:
            await caller.post(Target(f"https://127.0.0.1:{port}", "/x"), b"{}", 10)
        assert str(failed.value) == (
            f'failed to call webhook: Post "https://127.0.0.1:{port}/x?timeout=10s": '
            f"dial tcp 127.0.0.1:{port}: connect: connection refused"
        )
        with pytest.raises(CallError, match=r'Post "https://hooks.sys.svc:443/x": service "hooks" not found'):
            await caller.post(Target("https://hooks.sys.svc:443", "/x", b"", SERVICE), b"{}", None)
    finally:
        await caller.close()
