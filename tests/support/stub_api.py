"""A small HTTP(S) server that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import trustme
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclasses.dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Any
    body: bytes
    client_subject: str
    """Common name in the client's certificate, if it showed one."""
    connection: int


@dataclasses.dataclass
class StubApi:
    url: str
    asked: list[Asked] = dataclasses.field(default_factory=list)


@contextlib.asynccontextmanager
async def stub_api(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[StubApi]:
    """Serve `handler` on a free port of this machine."""
    api = StubApi("")

    async def handle(request: web.Request) -> web.StreamResponse:
        api.asked.append(
            Asked(
                request.method,
                request.raw_path.partition("?")[0],
                dict(request.query),
                request.headers,
                await request.read(),
                _subject(request),
                id(request.transport),
            )
        )
        return await handler(request)

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    api.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield api
    finally:
        await runner.cleanup()


def _subject(request: web.Request) -> str:
    certificate = request.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return names[0] if names else ""


def answers(*bodies: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Handler:
    """Answer with each body in turn, then with the last one for ever. Bytes go out as they are."""
    left = list(bodies)

    async def handle(request: web.Request) -> web.StreamResponse:
        body = left.pop(0) if len(left) > 1 else left[0]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        content_type = "text/html" if data.startswith(b"<") else "application/json"
        return web.Response(status=status, body=data, headers=headers, content_type=content_type)

    return handle


@contextlib.asynccontextmanager
async def raw_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server below HTTP: for connections that misbehave."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


def server_context(
    authority: trustme.CA, *names: str, client_authority: trustme.CA | None = None, require: bool = False
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
    if client_authority is not None:
        client_authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED if require else ssl.CERT_OPTIONAL
    return context


def pem_of(authority: trustme.CA) -> bytes:
    return authority.cert_pem.bytes()
