"""The HTTPS server: paths of the registry, `/convert` and `/healthz`.

It never crashes on an input: what is no review gets a Status with code 400, and the next request is served. It is up
before any cache is filled; `/convert` and `/healthz` wait for nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage

from kruise.admission import review
from kruise.admission.answering import Answerer
from kruise.admission.conversion import ConversionError, Converters
from kruise.admission.registry import Handler, Registry
from kruise.admission.review import ReviewError
from kruise.admission.tls import ServingCertificate
from kruise.machinery.times import parse_go_duration

log = logging.getLogger(__name__)

REVIEW_LIMIT = 16 * 1024 * 1024
"""A review holds the object twice, and a request to the API server may have 3 MB."""
CONVERSION_LIMIT = 256 * 1024 * 1024
"""The API server converts whole lists in one call."""
KEEP_ALIVE = 120.0
"""API servers close idle connections after 90 s. Whoever closes first must not be us: a request may be on its way."""
BODY_TIMEOUT = 30.0
_CONVERSIONS_AT_A_TIME = 50

Observe = Callable[[str, int, float], None]
"""`observe(path, HTTP code, seconds)`, for metrics."""


class AdmissionServer:
    """Serves until `stop`. The certificate may be loaded before or after `start`, and again at any time."""

    def __init__(
        self,
        registry: Registry,
        answerer: Answerer,
        converters: Converters,
        *,
        certificate: ServingCertificate | None = None,
        observe: Observe | None = None,
    ) -> None:
        self._registry = registry
        self._answerer = answerer
        self._converters = converters
        self._observe = observe
        self.certificate = certificate or ServingCertificate()
        self._runner: web.ServerRunner | None = None
        self._is_leaving = False

    async def start(self, host: str = "0.0.0.0", port: int = 9876, *, shutdown_timeout: float = 10.0) -> None:
        server = web.Server(
            self._handle, request_factory=_make_request, access_log=None, logger=log, keepalive_timeout=KEEP_ALIVE
        )
        runner = web.ServerRunner(server, shutdown_timeout=shutdown_timeout)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=self.certificate.context, backlog=1024).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner

    @property
    def port(self) -> int:
        if self._runner is None:
            raise RuntimeError("the admission server is not started")
        port: int = self._runner.addresses[0][1]
        return port

    def leave(self) -> None:
        """Go on answering, new connections too, but let no caller keep one: the next call then finds somebody else."""
        self._is_leaving = True

    async def stop(self) -> None:
        """Take no new connections, finish what is being answered (within the shutdown timeout), then close."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await self._respond(request)
        if self._is_leaving:
            response.force_close()
        return response

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        if path == "/healthz":
            return web.Response()
        began = self._answerer.clock.monotonic()
        handler = self._registry.get(path)
        known = handler is not None or path == "/convert"
        try:
            code, body = await self._answer(request, path, handler, query) if known else _not_found(path)
        except Exception as error:
            log.exception("admission request failed", extra={"path": path})
            code, body = 500, review.http_error(500, "InternalError", f"{type(error).__name__}: {error}")
        if self._observe is not None and known:
            self._observe(path, code, self._answerer.clock.monotonic() - began)
        return web.Response(status=code, body=body, content_type="application/json")

    async def _answer(
        self, request: web.BaseRequest, path: str, handler: Handler | None, query: str
    ) -> tuple[int, bytes]:
        if request.method != "POST":
            return 405, review.http_error(405, "MethodNotAllowed", f"{path} takes POST, not {request.method}")
        if request.content_type != "application/json":
            return _bad_request(f"{path} takes application/json, not {request.content_type!r}")
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                data = await request.read()
        except TimeoutError:
            return 408, review.http_error(408, "Timeout", f"the body did not arrive within {BODY_TIMEOUT:.0f} s")
        except web.HTTPRequestEntityTooLarge:
            limit = request.client_max_size
            return 413, review.http_error(413, "RequestEntityTooLarge", f"{path} takes at most {limit} bytes")
        except web.PayloadAccessError as error:
            return _bad_request(f"the body broke off: {error}")
        try:
            if handler is None:
                return 200, await self._convert(data)
            version, question = review.decode_admission(data)
        except ReviewError as error:
            return _bad_request(str(error))
        return 200, await self._answerer.answer(handler, version, question, _timeout(query))

    async def _convert(self, data: bytes) -> bytes:
        version, request = review.decode_conversion(data)
        converted = []
        try:
            for item in self._converters.convert_all(request.objects or (), request.desired_api_version):
                converted.append(item)
                if len(converted) % _CONVERSIONS_AT_A_TIME == 0:
                    # A list of thousands must not hold up the reviews of others.
                    await asyncio.sleep(0)
        except ConversionError as error:
            log.warning("conversion failed", extra={"error": str(error)})
            return review.encode_conversion_failure(version, request.uid, str(error))
        return review.encode_conversion(version, request.uid, converted)


def _make_request(
    message: RawRequestMessage, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]
) -> web.BaseRequest:
    limit = CONVERSION_LIMIT if message.path.startswith("/convert") else REVIEW_LIMIT
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limit)


def _bad_request(text: str) -> tuple[int, bytes]:
    return 400, review.http_error(400, "BadRequest", text)


def _not_found(path: str) -> tuple[int, bytes]:
    return 404, review.http_error(404, "NotFound", f"no webhook is active at {path}")


def _timeout(query: str) -> float | None:
    """The time that the API server gives us, as it says it in the query (`timeout=10s`)."""
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name == "timeout":
            try:
                return parse_go_duration(value)
            except ValueError:
                return None
    return None
