"""One request and the ways to answer it, with the headers that every answer has."""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from kruise.local.apicore import warnings
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.server import discovery, negotiation, routing
from kruise.local.server.access import NOBODY
from kruise.local.server.negotiation import Form
from kruise.machinery.client.requests import Query

GZIP_FROM: Final = 128 * 1024
# Compressed in pieces, so that a list of thousands does not hold up everyone else.
_GZIP_PIECE: Final = 256 * 1024


class Exchange:
    """What is known of a request, and its answers."""

    __slots__ = ("_audit_id", "method", "path", "query", "request", "user", "user_agent", "warned")

    def __init__(self, request: web.BaseRequest, audit_id: str) -> None:
        self.request = request
        self.method = request.method
        self.path, _, query = request.raw_path.partition("?")
        self.query: Query = routing.parse_query(query)
        self.user_agent = request.headers.get("User-Agent", "")
        self.user = NOBODY
        self.warned: list[str] = []
        self._audit_id = audit_id

    @property
    def accept(self) -> str:
        return self.request.headers.get("Accept", "")

    @property
    def pretty(self) -> bool:
        return negotiation.is_pretty(self.parameter("pretty"), self.user_agent)

    def parameter(self, name: str) -> str | None:
        return next((value for key, value in self.query if key == name), None)

    async def body(self) -> bytes:
        return await self.request.read() if self.request.body_exists else b""

    def headers(self, content_type: str = "") -> CIMultiDict[str]:
        headers = CIMultiDict(
            (("Audit-Id", self._audit_id), ("Cache-Control", "no-cache, private"), ("Server", "kruise"))
        )
        if content_type:
            headers["Content-Type"] = content_type
        for value in warnings.header_values(self.warned):
            headers.add("Warning", value)
        return headers

    def written(self, code: int, body: bytes, content_type: str) -> web.Response:
        return web.Response(status=code, body=body, headers=self.headers(content_type))

    def text(self, code: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> web.Response:
        response = self.written(code, body, content_type)
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    def tagged(self, code: int, body: bytes, content_type: str, tag: str = "") -> web.Response:
        """An answer that clients keep, and ask for again by its tag."""
        tag = tag or discovery.etag(body)
        known = self.request.headers.get("If-None-Match", "")
        response = (
            web.Response(status=304, headers=self.headers(content_type))
            if known == tag
            else self.written(code, body, content_type)
        )
        response.headers["ETag"] = tag
        response.headers["Vary"] = "Accept"
        response.headers["Cache-Control"] = "public"
        return response

    async def object(self, code: int, found: Json | bytes, form: Form) -> web.Response:
        body = found if isinstance(found, bytes) else negotiation.write(found, form, pretty=self.pretty)
        if len(body) < GZIP_FROM or self.method != "GET":
            return self.written(code, body, form.content_type)
        if "gzip" not in self.request.headers.get("Accept-Encoding", ""):
            return self.written(code, body, form.content_type)
        response = self.written(code, await _gzipped(body), form.content_type)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        return response

    def refusal(self, error: StatusError) -> web.Response:
        try:
            form = negotiation.plain_form(self.accept)
        except StatusError:
            form = negotiation.PLAIN
        body = negotiation.write(error.status, form, pretty=self.pretty)
        response = self.written(error.code, body, form.content_type)
        if error.retry_after is not None:
            response.headers["Retry-After"] = str(error.retry_after)
        return response

    async def stream(self, content_type: str) -> web.StreamResponse:
        response = web.StreamResponse(headers=self.headers(content_type))
        await response.prepare(self.request)
        return response

    def gone(self) -> web.Response:
        """For a client that is no longer there: nobody reads it."""
        return web.Response(status=499)


async def _gzipped(body: bytes) -> bytes:
    packer = zlib.compressobj(level=1, wbits=31)
    pieces = []
    for start in range(0, len(body), _GZIP_PIECE):
        pieces.append(packer.compress(body[start : start + _GZIP_PIECE]))
        await asyncio.sleep(0)
    pieces.append(packer.flush())
    return b"".join(pieces)
