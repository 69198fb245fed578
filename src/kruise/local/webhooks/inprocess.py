"""Webhooks without sockets: reviews go straight to functions of this process, on whatever time the loop runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from kruise.admission import review
from kruise.admission.answering import Answerer
from kruise.admission.conversion import ConversionError, Converters
from kruise.admission.registry import Registry
from kruise.local.webhooks.calling import DEADLINE, Caller, CallError, Target, failed_to_call, refused

Handler = Callable[[bytes], Awaitable[bytes]]
"""A review in, its answer out."""


class Site(Protocol):
    """Several webhooks behind one address, told apart by their path."""

    def handler(self, path: str, timeout: float | None) -> Handler | None: ...


class InProcessCaller:
    """Finds the handler of a webhook by what its address begins with; the longest match wins.

    An address is the URL without its query (`https://127.0.0.1:9443/judge`, for a service
    `https://name.namespace.svc:443/judge`), or the path alone (`/judge`). A `Site` gets what follows its prefix.
    """

    def __init__(
        self, handlers: Mapping[str, Handler | Site] | None = None, *, otherwise: Caller | None = None
    ) -> None:
        """`otherwise` moves the reviews of webhooks that are not of this process."""
        self._handlers: dict[str, Handler | Site] = dict(handlers or {})
        self._otherwise = otherwise

    def mount(self, prefix: str, handler: Handler | Site) -> None:
        self._handlers[prefix] = handler

    def unmount(self, prefix: str) -> None:
        self._handlers.pop(prefix, None)

    async def post(self, target: Target, body: bytes, timeout: float | None) -> bytes:
        if self._otherwise is not None and not self._is_mounted(target):
            return await self._otherwise.post(target, body, timeout)
        handler = self._find(target, timeout)
        try:
            async with asyncio.timeout(timeout):
                return await handler(body)
        except TimeoutError as error:
            raise failed_to_call(target, timeout, DEADLINE) from error

    def _is_mounted(self, target: Target) -> bool:
        addresses = (target.url(), target.path)
        return any(_begins_with(address, prefix) for address in addresses for prefix in self._handlers)

    def _find(self, target: Target, timeout: float | None) -> Handler:
        is_there = False
        for address in (target.url(), target.path):
            for prefix in sorted(self._handlers, key=len, reverse=True):
                if not _begins_with(address, prefix):
                    continue
                is_there = True
                found = self._handlers[prefix]
                rest = address.removeprefix(prefix.rstrip("/")) or "/"
                handler = found if callable(found) else found.handler(rest, timeout)
                if handler is not None:
                    return handler
        if is_there:
            raise refused(404, b"")
        if target.service is not None:
            raise failed_to_call(target, timeout, f'service "{target.service.name}" not found')
        raise failed_to_call(
            target, timeout, f"dial tcp {target.base.partition('://')[2]}: connect: connection refused"
        )


def _begins_with(address: str, prefix: str) -> bool:
    stem = prefix.rstrip("/")
    return address.startswith(stem) and address[len(stem) :][:1] in ("", "/")


class AdmissionSite:
    """The webhooks of a manager: everything in a registry, and `/convert`. Handlers may be added at any time."""

    def __init__(self, registry: Registry, answerer: Answerer, converters: Converters | None = None) -> None:
        self._registry = registry
        self._answerer = answerer
        self._converters = converters or Converters()

    def handler(self, path: str, timeout: float | None) -> Handler | None:
        if path == "/convert":
            return self._convert
        known = self._registry.get(path)
        if known is None:
            return None

        async def answer(body: bytes) -> bytes:
            try:
                version, question = review.decode_admission(body)
            except review.ReviewError as error:
                raise CallError(f"failed to call webhook: {error}") from error
            return await self._answerer.answer(known, version, question, timeout)

        return answer

    async def _convert(self, body: bytes) -> bytes:
        try:
            version, request = review.decode_conversion(body)
        except review.ReviewError as error:
            raise CallError(f"failed to call webhook: {error}") from error
        try:
            converted = list(self._converters.convert_all(request.objects or (), request.desired_api_version))
        except ConversionError as error:
            return review.encode_conversion_failure(version, request.uid, str(error))
        return review.encode_conversion(version, request.uid, converted)
