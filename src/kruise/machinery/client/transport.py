"""The seam below the client: something that moves a request and brings back an answer."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from kruise.machinery.client.requests import Request

NO_HEADERS: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    headers: Mapping[str, str] = dataclasses.field(default_factory=lambda: NO_HEADERS)
    """Header names in lower case."""


class Transport(Protocol):
    """Everything above this runs unchanged over HTTP, straight into the local cluster, or through injected faults."""

    async def send(self, request: Request) -> Response:
        """Move one request. An HTTP status is an answer, whatever its number; raises `TransportError` without one."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch: lines as they come, without the line end.

        Raises `ApiError` where the server refuses to open it, `TransportError` where the connection tears. The
        iterator ends when the server closes the watch in order. A line cut off by the end of the connection is not
        yielded.
        """

    async def close(self) -> None: ...
