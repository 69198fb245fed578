"""The manager's plain HTTP endpoints: health and readiness, metrics, and the decision journal."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from kruise.api.meta import Key
from kruise.machinery.codec import encode
from kruise.machinery.journal import NOT_KEPT, Journal

Check = Callable[[], Awaitable[str]]
"""Returns what is missing, or an empty text when all is well."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
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


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    content_type: str = "application/json"


class Reports:
    """What a manager tells about its work, whoever carries the question: its own port, or a local API server.

    `/metrics`, `/journal` with the last decisions of every controller, `/journal/CONTROLLER/NAMESPACE/NAME` with the
    latest snapshot of an object (`?causes=once`: shorter, for programs), and `/waiting` with what the controllers wait
    for.
    """

    def __init__(
        self, registry: CollectorRegistry, journal: Journal, waiting: Callable[[], Sequence[Mapping[str, Any]]]
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._waiting = waiting

    def answer(self, path: str, query: Mapping[str, str]) -> Reply:
        match path.strip("/").split("/"):
            case ["metrics"]:
                return Reply(200, generate_latest(self._registry), CONTENT_TYPE)
            case ["waiting"]:
                return Reply(200, encode(self._waiting()))
            case ["journal"]:
                return self._entries(query)
            case ["journal", controller, *namespace, name]:
                return self._dump(controller, Key("/".join(namespace), name), causes_once=query.get("causes") == "once")
            case _:
                return Reply(404, b"404: Not Found\n", _TEXT)

    def _entries(self, query: Mapping[str, str]) -> Reply:
        limit = query.get("limit", "50")
        if not limit.isdecimal():
            return Reply(400, f"limit={limit}: not a number\n".encode(), _TEXT)
        key = _key(query["key"]) if query.get("key") else None
        found = self._journal.entries(controller=query.get("controller") or None, key=key, limit=int(limit))
        return Reply(200, encode(found))

    def _dump(self, controller: str, key: Key, *, causes_once: bool) -> Reply:
        try:
            return Reply(200, self._journal.dump(controller, key, causes_once=causes_once))
        except LookupError as error:
            # In the form of the API server, which may stand in between, but with a reason that is only ours.
            status = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": NOT_KEPT}
            return Reply(404, encode({**status, "message": str(error)}))


def metrics_app(reports: Reports) -> web.Application:
    """The reports, over HTTP."""

    async def answer(request: web.Request) -> web.Response:
        reply = reports.answer(request.path, request.query)
        return web.Response(status=reply.status, body=reply.body, headers={"Content-Type": reply.content_type})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    return app


def _key(text: str) -> Key:
    namespace, _, name = text.rpartition("/")
    return Key(namespace, name)
