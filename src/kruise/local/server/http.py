"""The HTTPS front of the API core: connections, logins, forms of answers, streams.

One request at a time per connection (HTTP/1.1), as many connections as clients open. Watches and followed logs hold
theirs until either side has enough; `stop` ends them in order.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
import secrets
from typing import Any, Final

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage

from kruise.api.resource import Resource
from kruise.local import openapi
from kruise.local.apicore import errors, warnings
from kruise.local.apicore.core import ApiCore, Call
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.metadata import timestamp
from kruise.local.apicore.serving import MAX_BODY, UnknownPathError, answer, open_watch, proxied
from kruise.local.apicore.watching import Watch
from kruise.local.server import discovery, negotiation, routing
from kruise.local.server.access import (
    NOBODY,
    REVIEWS,
    Access,
    ImpersonationError,
    ReviewKind,
    User,
    is_open,
    unauthorized,
)
from kruise.local.server.exchange import Exchange
from kruise.local.server.identity import Identity, server_context
from kruise.local.server.logs import LogOptions, LogSource, NoLogs, chosen_container
from kruise.local.server.negotiation import Form
from kruise.local.server.routing import Place
from kruise.local.server.tables import Shaper
from kruise.local.server.validation import check_fields
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.codec import DecodeError, decode, encode

log = logging.getLogger(__name__)

KEEP_ALIVE: Final = 120.0
"""Go's clients close idle connections after 90 s. Whoever closes first must not be us: a request may be on its way."""
_SHUTDOWN_SECONDS: Final = 2.0
_PATCH_TYPES: Final = frozenset(PatchType)
_WRITES: Final = frozenset({Verb.CREATE, Verb.UPDATE, Verb.PATCH})
_REVIEWS: Final = {(review.group, review.version, review.plural): review for review in REVIEWS}


class LocalServer:
    """Serves a core on loopback until `stop`."""

    def __init__(
        self,
        core: ApiCore,
        *,
        certificates: Identity,
        host: str = "127.0.0.1",
        port: int = 0,
        logs: LogSource | None = None,
    ) -> None:
        """Port 0: any free one; `url` tells which, after `start`."""
        self.core = core
        self._identity = certificates
        self._host = host
        self._port = port
        self._logs: LogSource = NoLogs() if logs is None else logs
        self._access = Access(certificates.token, core.clock.now)
        self._runner: web.ServerRunner | None = None
        self._watches: set[Watch] = set()
        self._followers: set[asyncio.Task[Any]] = set()
        self._resources: dict[tuple[str, str, str], Resource[Any]] = {}
        self._audit_prefix = secrets.token_hex(4)
        self._audit_numbers = itertools.count(1)

    # Life

    async def start(self) -> None:
        """Raises `OSError` where the port is taken."""
        server = web.Server(
            self._handle,
            request_factory=_make_request,
            access_log=None,
            logger=log,
            keepalive_timeout=KEEP_ALIVE,
            # A client that goes away ends its watch, whether or not anything happens.
            handler_cancellation=True,
        )
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            context = server_context(self._identity)
            await web.TCPSite(runner, self._host, self._port, ssl_context=context, backlog=1024).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner

    async def stop(self) -> None:
        """End watches and followed logs, finish what is being answered, close."""
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        for watch in self._watches:
            watch.end()
        for follower in self._followers:
            follower.cancel()
        await runner.cleanup()

    @property
    def port(self) -> int:
        if self._runner is None:
            raise RuntimeError("the local API server is not started")
        port: int = self._runner.addresses[0][1]
        return port

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"https://{host}:{self.port}"

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    # Every request

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        exchange = Exchange(request, self._audit_id(request))
        with warnings.collect() as warned:
            exchange.warned = warned
            try:
                return await self._answer(exchange)
            except UnknownPathError:
                return exchange.text(404, b"404 page not found\n")
            except StatusError as error:
                return exchange.refusal(error)
            except ImpersonationError as error:
                return exchange.text(500, f'Internal Server Error: "{exchange.path}": {error}\n'.encode())
            except web.HTTPRequestEntityTooLarge:
                return exchange.refusal(errors.too_large(MAX_BODY))
            except Exception as error:
                log.exception("request failed", extra={"method": request.method, "path": exchange.path})
                text = f"Internal error occurred: {type(error).__name__}: {error}"
                return exchange.refusal(errors.failure(500, "InternalError", text))

    def _audit_id(self, request: web.BaseRequest) -> str:
        return request.headers.get("Audit-Id") or (
            f"{self._audit_prefix}-0000-4000-8000-{next(self._audit_numbers):012x}"
        )

    async def _answer(self, exchange: Exchange) -> web.StreamResponse:
        exchange.user = self._user(exchange)
        segments = routing.split(exchange.path)
        place = routing.place_of(segments)
        if place is None:
            return self._outside(exchange, segments)
        registry = self.core.registry
        kind = registry.find(place.group, place.version, place.plural)
        if kind is None:
            review = _REVIEWS.get((place.group, place.version, place.plural))
            if review is None or place.name:
                raise routing.nothing_at(registry, place.group)
            return await self._review(exchange, review)
        routing.check_scope(registry, kind, place, exchange.method)
        if kind.group_resource == "services" and place.subresource == "proxy":
            return await self._proxied(exchange, kind, place)
        if place.subresource and not kind.custom and place.subresource not in discovery.parts_of(kind):
            raise routing.nothing_at(registry, place.group)
        if place.rest:
            raise routing.nothing_at(registry, place.group)
        if kind.group_resource == "serviceaccounts" and place.subresource == "token":
            return await self._token(exchange, kind, place)
        verb = routing.verb_of(exchange.method, place, exchange.query, custom=kind.custom)
        if kind.group_resource == "pods" and (
            place.subresource == "log" or place.subresource in discovery.NOT_SUPPORTED
        ):
            return await self._pod_stream(exchange, kind, place, verb)
        if verb is Verb.DELETE_COLLECTION and verb not in discovery.verbs_of(kind):
            raise errors.method_not_allowed()
        if verb is Verb.WATCH:
            return await self._watch(exchange, kind, place)
        return await self._object(exchange, kind, place, verb)

    def _user(self, exchange: Exchange) -> User:
        transport = exchange.request.transport
        certificate = None if transport is None else transport.get_extra_info("peercert")
        user = self._access.user(exchange.request.headers, certificate)
        if user is not None:
            return user
        if is_open(exchange.path) and exchange.method == "GET":
            return NOBODY
        raise unauthorized()

    # Objects

    async def _object(self, exchange: Exchange, kind: KindDescription, place: Place, verb: Verb) -> web.StreamResponse:
        content_type = exchange.request.headers.get("Content-Type", "")
        if verb is Verb.PATCH and not kind.custom and content_type.partition(";")[0].strip() not in _PATCH_TYPES:
            raise errors.failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        form = negotiation.form_of_object(exchange.accept)
        shaper = self._shaper(exchange, kind, place, form)
        body = await exchange.body()
        if verb is not Verb.PATCH and body:
            body = negotiation.json_body(body, content_type, kind.kind, custom=kind.custom)
        if verb in _WRITES and not place.subresource:
            mode = exchange.parameter("fieldValidation") or ""
            check_fields(kind, place.version, verb, content_type, body, mode)
        asked = self._request(exchange, kind, place, verb, body, content_type)
        code, found = await answer(self.core, asked)
        if shaper is not None and isinstance(found, dict):
            found = shaper.answer(found)
        return await exchange.object(code, found, form)

    def _request(
        self, exchange: Exchange, kind: KindDescription, place: Place, verb: Verb, body: bytes = b"", sent_as: str = ""
    ) -> Request:
        key = (place.group, place.version, place.plural)
        resource = self._resources.get(key)
        if resource is None:
            resource = self._resources[key] = Resource(*key, kind.kind, kind.namespaced)
        return Request(
            verb,
            resource,
            place.namespace,
            place.name,
            place.subresource,
            exchange.query,
            body or None,
            sent_as,
            impersonate=exchange.user.name,
            user_agent=exchange.user_agent,
        )

    def _shaper(self, exchange: Exchange, kind: KindDescription, place: Place, form: Form) -> Shaper | None:
        if not form.shape:
            return None
        include = exchange.parameter("includeObject") or ""
        return Shaper(kind, place.version, place.subresource, form, include, self.core.clock.now())

    async def _proxied(self, exchange: Exchange, kind: KindDescription, place: Place) -> web.StreamResponse:
        verb = routing.verb_of(exchange.method, place, exchange.query)
        below = dataclasses.replace(place, subresource="/".join(("proxy", *place.rest)))
        found = await proxied(self.core, self._request(exchange, kind, below, verb))
        return exchange.written(found.status, found.body, found.headers.get("content-type", ""))

    # Streams

    async def _watch(self, exchange: Exchange, kind: KindDescription, place: Place) -> web.StreamResponse:
        form = negotiation.watch_form(exchange.accept)
        shaper = self._shaper(exchange, kind, place, form)
        watch = open_watch(self.core, self._request(exchange, kind, place, Verb.WATCH))
        self._watches.add(watch)
        try:
            if self._runner is None:
                watch.end()
            response = await exchange.stream(form.content_type)
            async for line in watch:
                if shaper is not None:
                    shaper.now = self.core.clock.now()
                    if form.shape == negotiation.PARTIAL_LIST:
                        break
                    line = encode(shaper.event(decode(line, dict)))
                await response.write(line + b"\n")
            await response.write_eof()
            return response
        except ConnectionResetError:
            return exchange.gone()
        finally:
            self._watches.discard(watch)
            watch.close()

    async def _pod_stream(
        self, exchange: Exchange, kind: KindDescription, place: Place, verb: Verb
    ) -> web.StreamResponse:
        if verb not in (Verb.GET, Verb.CREATE) or (verb is Verb.CREATE and place.subresource == "log"):
            raise errors.method_not_allowed()
        call = Call(kind=kind, version=place.version, namespace=place.namespace, name=place.name)
        pod = self.core.get(call)
        has_node = bool((pod.get("spec") or {}).get("nodeName"))
        if place.subresource != "log":
            if not has_node:
                raise errors.bad_request(f"pod {place.name} does not have a host assigned")
            text = f"{place.subresource} is not supported by the local cluster: its containers do not run for real"
            raise errors.failure(501, "NotImplemented", text, errors.details_of(place.name, "", "pods"))
        options = LogOptions.from_query(exchange.query, place.name)
        container = chosen_container(pod, options.container)
        if not has_node:
            return web.Response(status=204, headers=exchange.headers())
        arguments = options.arguments(self.core.clock.now())
        where = (place.namespace, place.name, container)
        if not options.follow:
            return exchange.text(200, await self._logs.read(*where, **arguments), "text/plain")
        return await self._follow(exchange, where, arguments)

    async def _follow(
        self, exchange: Exchange, where: tuple[str, str, str], arguments: dict[str, Any]
    ) -> web.StreamResponse:
        task = asyncio.current_task()
        if task is not None:
            self._followers.add(task)
        response: web.StreamResponse | None = None
        try:
            async for piece in self._logs.follow(*where, **arguments):
                if response is None:
                    response = await exchange.stream("text/plain")
                await response.write(piece)
            if response is None:
                response = await exchange.stream("text/plain")
            await response.write_eof()
            return response
        except ConnectionResetError:
            return exchange.gone()
        finally:
            if task is not None:
                self._followers.discard(task)

    # What is no object

    async def _review(self, exchange: Exchange, review: ReviewKind) -> web.StreamResponse:
        form = negotiation.plain_form(exchange.accept)
        body = await self._question(exchange, review.kind)
        found = self._access.review(review, body, exchange.user, timestamp(self.core.clock.now()))
        return await exchange.object(201, found, form)

    async def _token(self, exchange: Exchange, kind: KindDescription, place: Place) -> web.StreamResponse:
        form = negotiation.plain_form(exchange.accept)
        body = await self._question(exchange, "TokenRequest")
        account = self.core.get(Call(kind=kind, version=place.version, namespace=place.namespace, name=place.name))
        found = self._access.tokens.request(account, body, self.core.clock.now())
        return await exchange.object(201, found, form)

    async def _question(self, exchange: Exchange, kind: str) -> Json:
        """The body of what is only ever created, and answered at once."""
        if exchange.method != "POST":
            raise errors.method_not_allowed()
        sent = await exchange.body()
        content_type = exchange.request.headers.get("Content-Type", "")
        try:
            body: Json = decode(negotiation.json_body(sent, content_type, kind), dict)
        except DecodeError as error:
            raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from error
        return body

    def _outside(self, exchange: Exchange, segments: tuple[str, ...]) -> web.StreamResponse:
        top = segments[0] if segments else ""
        if top in ("healthz", "livez", "readyz") and len(segments) <= 2:
            verbose = len(segments) == 1 and exchange.parameter("verbose") is not None
            return exchange.text(200, discovery.health(top, verbose=verbose))
        if top == "openapi":
            return self._document(exchange)
        registry = self.core.registry
        documents = discovery.Discovery(registry, f"{self._host}:{self.port}")
        if segments in (("api",), ("apis",)):
            self._only_get(exchange)
            form = negotiation.form_of_discovery(exchange.accept)
            if form.shape:
                whole = documents.aggregated(core=top == "api")
                return exchange.tagged(200, negotiation.write(whole, form), form.content_type)
        found = _found_outside(documents, segments)
        if found is None:
            if top == "api" or (top == "apis" and len(segments) > 1):
                raise routing.nothing_at(registry, segments[1] if top == "apis" else "")
            return exchange.text(404, b"404 page not found\n")
        self._only_get(exchange)
        form = negotiation.plain_form(exchange.accept)
        pretty = exchange.pretty or top == "version"
        return exchange.written(200, negotiation.write(found, form, pretty=pretty), form.content_type)

    def _only_get(self, exchange: Exchange) -> None:
        if exchange.method != "GET":
            raise errors.method_not_allowed()

    def _document(self, exchange: Exchange) -> web.StreamResponse:
        self._only_get(exchange)
        found = openapi.serve(self.core.registry, exchange.path, exchange.accept)
        if found is None:
            return exchange.text(404, b"404 page not found\n")
        code, content_type, body, tag = found
        return exchange.tagged(code, body, content_type, tag)


def _found_outside(documents: discovery.Discovery, segments: tuple[str, ...]) -> Json | None:
    match segments:
        case ():
            return documents.paths()
        case ("version",):
            return discovery.version_document()
        case ("api",):
            return documents.versions()
        case ("apis",):
            return documents.group_list()
        case ("api", version):
            return documents.resources("", version)
        case ("apis", group):
            return documents.group(group)
        case ("apis", group, version):
            return documents.resources(group, version)
        case _:
            return None


def _make_request(
    message: RawRequestMessage, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)
