"""The manager's plain HTTP endpoints: health and readiness, metrics, and the decision journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from kruise.api.meta import Key
from kruise.machinery.codec import encode
from kruise.machinery.journal import Journal

Check = Callable[[], Awaitable[str]]
"""Returns what is missing, or an empty text when all is well."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CHECK_SECONDS = 5.0


class Endpoints:
    """Serves on the given addresses until closed. An empty address switches an endpoint off."""

    def __init__(self) -> None:
        self._runners: list[web.AppRunner] = []

    async def serve(self, app: web.Application, address: str) -> int:
        """Begin to listen; returns the port (of use where port 0 asked for a free one)."""
        host, _, port = address.rpartition(":")
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, host.strip("[]") or None, int(port), reuse_address=True)
        try:
            await site.start()
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
        bound: int = runner.addresses[0][1]
        return bound

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()


def health_app(readiness: Sequence[tuple[str, Check]], details: Callable[[], Sequence[str]]) -> web.Application:
    """`/healthz` answers while the process serves; `/readyz` names what is missing, and further details."""

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        lines, ready = [], True
        for name, check in readiness:
            try:
                async with asyncio.timeout(_CHECK_SECONDS):
                    missing = await check()
            except TimeoutError:
                missing = f"no answer within {_CHECK_SECONDS:g} s"
            ready = ready and not missing
            lines.append(f"[-]{name} {missing}" if missing else f"[+]{name} ok")
        lines += [f"[ ]{line}" for line in details()]
        return web.Response(text="\n".join(lines) + "\n", status=200 if ready else 503)

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    return app


def metrics_app(
    registry: CollectorRegistry, journal: Journal, waiting: Callable[[], Sequence[Mapping[str, Any]]]
) -> web.Application:
    """`/metrics`, `/journal` with the last decisions of every controller, `/waiting` with what they wait for."""

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE})

    async def entries(request: web.Request) -> web.Response:
        query = request.query
        limit = query.get("limit", "50")
        if not limit.isdigit():
            return web.Response(text=f"limit={limit}: not a number\n", status=400)
        key = _key(query["key"]) if query.get("key") else None
        found = journal.entries(controller=query.get("controller") or None, key=key, limit=int(limit))
        return web.Response(body=encode(found), content_type="application/json")

    async def dump(request: web.Request) -> web.Response:
        try:
            found = journal.dump(request.match_info["controller"], _key(request.match_info["key"]))
        except LookupError as error:
            return web.Response(text=f"{error}\n", status=404)
        return web.Response(body=found, content_type="application/json")

    async def waits(request: web.Request) -> web.Response:
        return web.Response(body=encode(waiting()), content_type="application/json")

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/waiting", waits)
    app.router.add_get("/journal", entries)
    app.router.add_get("/journal/{controller}/{key:.+}", dump)
    return app


def _key(text: str) -> Key:
    namespace, _, name = text.rpartition("/")
    return Key(namespace, name)
