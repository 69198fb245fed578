"""A transport that answers lists and watches from a script: for answers that no sane server gives."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response

Line = dict[str, Any] | bytes | Exception | float
"""An event, a raw line, an error to raise, or seconds to wait."""


def listing(*objects: dict[str, Any], version: int | str, token: str = "") -> Response:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMapList",
        "metadata": {"resourceVersion": str(version), "continue": token},
        "items": list(objects),
    }
    return Response(200, json.dumps(body).encode())


def status(code: int, reason: str = "") -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": f"{code} {reason}"}


def refusal(code: int, reason: str = "") -> Response:
    return Response(code, json.dumps(status(code, reason)).encode())


def thing(name: str, version: int, kind: str = "ConfigMap") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)},
    }


def event(type: str, name: str, version: int, kind: str = "ConfigMap") -> dict[str, Any]:
    return {"type": type, "object": thing(name, version, kind)}


class ScriptedTransport:
    """Lists and watches are used up in order. Where the script ends, requests wait for ever."""

    def __init__(self, lists: Iterable[Response | Exception] = (), watches: Iterable[Iterable[Line]] = ()) -> None:
        self.lists = deque(lists)
        self.watches = deque(watches)
        self.requests: list[Request] = []
        self.times: list[float] = []

    def of(self, verb: Verb) -> list[Request]:
        return [request for request in self.requests if request.verb is verb]

    def _note(self, request: Request) -> None:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())

    async def send(self, request: Request) -> Response:
        self._note(request)
        await asyncio.sleep(0)
        if not self.lists:
            await asyncio.sleep(1e9)
        answer = self.lists.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(request)

    @contextlib.asynccontextmanager
    async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
        self._note(request)
        await asyncio.sleep(0)
        lines: list[Line] = list(self.watches.popleft()) if self.watches else [1e9]
        if lines and isinstance(lines[0], Exception):
            raise lines[0]
        yield self._lines(lines)

    async def _lines(self, lines: list[Line]) -> AsyncIterator[bytes]:
        for line in lines:
            if isinstance(line, Exception):
                raise line
            if isinstance(line, (int, float)):
                await asyncio.sleep(line)
            else:
                yield line if isinstance(line, bytes) else json.dumps(line).encode()

    async def close(self) -> None:
        pass
