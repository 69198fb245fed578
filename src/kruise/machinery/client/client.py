"""The Kubernetes API, typed: builds requests, hands them to a transport, decodes the answers.

Thin on purpose. Nothing is cached, nothing is queued; what is retried stands in `retry`.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import dataclasses
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kruise.api.core.go_json import go_escaped
from kruise.api.meta import Object
from kruise.api.resource import Resource
from kruise.machinery.client import answers
from kruise.machinery.client.answers import Deleted, ListPage, Scale, WatchEvent
from kruise.machinery.client.errors import BadAnswerError, ClientError, GoneError, TransportError, from_response
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.retry import RetryPolicy
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.clock import Clock, RealClock
from kruise.machinery.codec import encode

if TYPE_CHECKING:
    from kruise.machinery.client import discovery

__all__ = ["Client", "Deleted", "ListPage", "Scale", "WatchEvent"]

T = TypeVar("T", bound=Object)
Body = Any  # a mapping, a struct, a list of patch operations, or bytes that are JSON (for apply: YAML) already

# These answer with the resource's own kind; the others have a kind of their own.
_SAME_KIND = frozenset({"", "status", "ephemeralcontainers", "resize"})
_LIST_RESTARTS = 3


class _Named:
    """A transport whose requests bear a name. It is closed by whoever made it."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._name = name

    async def send(self, request: Request) -> Response:
        return await self._transport.send(dataclasses.replace(request, user_agent=self._name))

    def stream(self, request: Request) -> contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._transport.stream(dataclasses.replace(request, user_agent=self._name))

    async def close(self) -> None:
        """Others use the transport, too."""


class Client:
    """One per cluster and identity; any number of calls at once."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock | None = None,
        field_manager: str = "",
        retry: RetryPolicy | None = None,
        seed: int = 0,
    ) -> None:
        self.transport = transport
        self.field_manager = field_manager
        self._clock = clock or RealClock()
        self._retry = retry or RetryPolicy()
        self._rng = random.Random(seed)

    def called(self, name: str) -> Client:
        """The same client under another name, which its requests bear as user agent."""
        return Client(
            _Named(self.transport, name),
            clock=self._clock,
            field_manager=self.field_manager,
            retry=self._retry,
            seed=self._rng.getrandbits(32),
        )

    async def get(
        self,
        resource: Resource[T],
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> T:
        _check(resource, namespace, name)
        query = (("resourceVersion", resource_version),) if resource_version else ()
        request = Request(Verb.GET, resource, namespace, name, subresource, query, timeout=timeout)
        return await self._object(resource, request)

    async def list_page(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> ListPage[T]:
        """One page. Without `resource_version` the list is up to date; with one it may be as old as that."""
        if resource_version == "0":
            raise ValueError(
                f"list of {resource}: resourceVersion=0 may show the past, even older than what was seen. Leave it out."
            )
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            limit=str(limit) if limit else "",
            resourceVersion=resource_version or "",
        )
        if continue_token:
            query += (("continue", continue_token),)
        request = Request(Verb.LIST, resource, namespace, query=query, timeout=timeout)
        answer = await self.send(request)
        return answers.read_page(resource, answer.body, request)

    async def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        page_size: int = 500,
        timeout: float | None = None,
    ) -> ListPage[T]:
        """The whole list as of one version. `timeout` is for each page.

        Where it takes so long that the server forgets the version (410), it begins again, and in the end asks for
        everything at once, which cannot expire.
        """
        for limit in [page_size] * _LIST_RESTARTS + [0]:
            items: builtins.list[T] = []
            token = ""
            try:
                while True:
                    page = await self.list_page(
                        resource,
                        namespace,
                        labels=labels,
                        fields=fields,
                        limit=limit,
                        continue_token=token,
                        timeout=timeout,
                    )
                    items.extend(page.items)
                    token = page.continue_token
                    if not token:
                        return ListPage(tuple(items), page.resource_version)
            except GoneError:
                if not token:
                    raise
        raise BadAnswerError(f"list of {resource}: the server cut a list that was asked for as a whole")

    @contextlib.asynccontextmanager
    async def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        timeout_seconds: int | None = None,
        bookmarks: bool = True,
    ) -> AsyncGenerator[AsyncIterator[WatchEvent[T]], None]:
        """Events after `resource_version`. Nothing is retried: where to go on is for the watcher to say.

        The iterator ends when the server ends the watch in order. It raises the typed error of an ERROR event
        (`GoneError` for a version that is too old), `TransportError` when the connection tears, and `BadAnswerError`
        for what is no event of this kind.
        """
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            resourceVersion=resource_version,
            timeoutSeconds=str(timeout_seconds) if timeout_seconds is not None else "",
            allowWatchBookmarks="true" if bookmarks else "",
        )
        request = Request(Verb.WATCH, resource, namespace, query=(("watch", "true"), *query))
        async with self.transport.stream(request) as lines:
            events = _events(resource, lines)
            try:
                yield events
            finally:
                await events.aclose()

    async def create(
        self,
        resource: Resource[T],
        body: Body,
        namespace: str = "",
        *,
        subresource: str = "",
        name: str = "",
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> T:
        """Create an object, or with `name` and `subresource` post to a subresource."""
        if subresource in ("eviction", "binding"):
            raise ValueError(f"a post to {subresource} answers with no object: use evict() or bind()")
        _check(resource, namespace, name, named=bool(subresource))
        query = self._write_query(dry_run=dry_run)
        # An API server keeps free parts of an object, such as the data of a ControllerRevision, as the text that came.
        # Whenever it patches the object it writes them anew, and refuses the patch where that is another text.
        sent = go_escaped(_encoded(body))
        request = Request(Verb.CREATE, resource, namespace, name, subresource, query, sent, timeout=timeout)
        return await self._object(resource, request)

    async def update(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        namespace: str = "",
        *,
        subresource: str = "",
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> T:
        """Replace a whole object: only for bodies that were read whole, never for slim structs."""
        _check(resource, namespace, name)
        query = self._write_query(dry_run=dry_run)
        request = Request(Verb.UPDATE, resource, namespace, name, subresource, query, _encoded(body), timeout=timeout)
        return await self._object(resource, request)

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        namespace: str = "",
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> T:
        _check(resource, namespace, name)
        if patch_type is PatchType.APPLY and not (field_manager or self.field_manager):
            raise ValueError(f"server-side apply of {resource} {name} needs a field manager")
        query = self._write_query(dry_run=dry_run, field_manager=field_manager)
        if force:
            query += (("force", "true"),)
        request = Request(
            Verb.PATCH, resource, namespace, name, subresource, query, _encoded(body), patch_type.value, timeout=timeout
        )
        return await self._object(resource, request)

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
        propagation: str = "",
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Deleted[T]:
        _check(resource, namespace, name)
        options = _delete_options(
            uid=uid,
            resource_version=resource_version,
            grace_period_seconds=grace_period_seconds,
            propagation=propagation,
            dry_run=dry_run,
        )
        request = Request(
            Verb.DELETE,
            resource,
            namespace,
            name,
            query=_query(dryRun="All" if dry_run else ""),
            body=encode(options) if options else None,
            timeout=timeout,
        )
        answer = await self.send(request)
        return answers.read_deleted(resource, answer.body, request)

    async def delete_collection(
        self,
        resource: Resource[Any],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        _check(resource, namespace, "", named=False)
        options = _delete_options(grace_period_seconds=grace_period_seconds, propagation=propagation)
        query = _query(labelSelector=labels, fieldSelector=fields)
        body = encode(options) if options else None
        await self.send(Request(Verb.DELETE_COLLECTION, resource, namespace, query=query, body=body))

    async def evict(
        self,
        resource: Resource[Any],
        name: str,
        namespace: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Delete a pod if the disruption budgets allow it; `TooManyRequestsError` if they do not."""
        _check(resource, namespace, name)
        body: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        options = _delete_options(uid=uid, grace_period_seconds=grace_period_seconds, dry_run=dry_run)
        if options:
            body["deleteOptions"] = options
        await self._post(resource, name, namespace, "eviction", body, dry_run=dry_run, timeout=timeout)

    async def bind(
        self,
        resource: Resource[Any],
        name: str,
        namespace: str,
        *,
        node: str,
        uid: str = "",
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Put a pod on a node, as a scheduler does."""
        _check(resource, namespace, name)
        metadata = {"name": name, "namespace": namespace} | ({"uid": uid} if uid else {})
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self._post(resource, name, namespace, "binding", body, dry_run=dry_run, timeout=timeout)

    async def get_scale(
        self, resource: Resource[Any], name: str, namespace: str = "", *, timeout: float | None = None
    ) -> Scale:
        _check(resource, namespace, name)
        request = Request(Verb.GET, resource, namespace, name, "scale", timeout=timeout)
        return answers.read_as(Scale, (await self.send(request)).body, request)

    async def set_scale(
        self, resource: Resource[Any], name: str, replicas: int, namespace: str = "", *, timeout: float | None = None
    ) -> Scale:
        """Change only the number of replicas, whatever else is in the object."""
        _check(resource, namespace, name)
        request = Request(
            Verb.PATCH,
            resource,
            namespace,
            name,
            "scale",
            self._write_query(dry_run=False),
            encode({"spec": {"replicas": replicas}}),
            PatchType.MERGE.value,
            timeout=timeout,
        )
        return answers.read_as(Scale, (await self.send(request)).body, request)

    async def server_version(self) -> discovery.ServerVersion:
        from kruise.machinery.client import discovery  # most programs never ask

        return await discovery.server_version(self.send)

    async def discover(self) -> discovery.Discovery:
        from kruise.machinery.client import discovery

        return await discovery.discover(self.send)

    async def send(self, request: Request) -> Response:
        """Move one request, again where that is safe. Raises the typed error of an answer of 400 or more."""
        started = self._clock.monotonic() if request.timeout is not None else 0.0
        error: ClientError
        try:
            answer = await self.transport.send(request)
            if answer.status < 300:
                return answer
            error = _error(request, answer)
        except TransportError as torn:
            error = torn
        attempt = 1
        try:
            while True:
                delay = self._retry.delay(request, error, attempt, self._rng)
                if delay is None:
                    raise error
                if request.timeout is not None:
                    # The caller's patience covers all attempts together.
                    left = request.timeout - (self._clock.monotonic() - started) - delay
                    if left <= 0:
                        raise error
                    again = dataclasses.replace(request, timeout=left)
                else:
                    again = request
                await asyncio.sleep(delay)
                attempt += 1
                try:
                    answer = await self.transport.send(again)
                    if answer.status < 300:
                        return answer
                    error = _error(request, answer)
                except TransportError as torn:
                    error = torn
        finally:
            del error  # it knows this frame, which must not know it: nobody else would end that cycle soon

    async def close(self) -> None:
        await self.transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _object(self, resource: Resource[T], request: Request) -> T:
        answer = await self.send(request)
        return answers.read_object(resource, answer.body, request, any_kind=request.subresource not in _SAME_KIND)

    async def _post(
        self,
        resource: Resource[Any],
        name: str,
        namespace: str,
        subresource: str,
        body: Mapping[str, Any],
        *,
        dry_run: bool,
        timeout: float | None,
    ) -> None:
        query = self._write_query(dry_run=dry_run)
        await self.send(
            Request(Verb.CREATE, resource, namespace, name, subresource, query, encode(body), timeout=timeout)
        )

    def _write_query(self, *, dry_run: bool, field_manager: str = "") -> tuple[tuple[str, str], ...]:
        manager = field_manager or self.field_manager
        query: tuple[tuple[str, str], ...] = (("fieldManager", manager),) if manager else ()
        return (*query, ("dryRun", "All")) if dry_run else query


async def _events(resource: Resource[T], lines: AsyncIterator[bytes]) -> AsyncGenerator[WatchEvent[T], None]:
    read = answers.event_reader(resource)
    async for line in lines:
        yield read(line)


def _error(request: Request, answer: Response) -> ClientError:
    if answer.status < 400:
        where = answer.headers.get("location", "")
        return BadAnswerError(
            f"{request}: the server answered {answer.status}{f' to {where}' if where else ''}, "
            "which no API server does. Check the server's address."
        )
    return from_response(answer.status, answer.body, answer.headers)


def _encoded(body: Body) -> bytes:
    return body if isinstance(body, bytes) else encode(body)


def _query(**parameters: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in parameters.items() if value)


def _check(resource: Resource[Any], namespace: str, name: str, *, named: bool = True) -> None:
    """A name that is missing or holds a slash would make another request than the one that was meant: a delete of
    everything, for example."""
    if named and not name:
        raise ValueError(f"{resource}: the name is missing")
    if resource.namespaced and not namespace:
        raise ValueError(f"{resource} {name}: the namespace is missing")
    for segment in (namespace, name):
        if "/" in segment or "%" in segment or segment in (".", ".."):
            raise ValueError(f"{resource}: {segment!r} is no name of an object")


def _delete_options(
    *,
    uid: str = "",
    resource_version: str = "",
    grace_period_seconds: int | None = None,
    propagation: str = "",
    dry_run: bool = False,
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if uid or resource_version:
        guards = {"uid": uid, "resourceVersion": resource_version}
        options["preconditions"] = {name: value for name, value in guards.items() if value}
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    if propagation:
        options["propagationPolicy"] = propagation
    if dry_run:
        options["dryRun"] = ["All"]
    return {"apiVersion": "v1", "kind": "DeleteOptions"} | options if options else {}
