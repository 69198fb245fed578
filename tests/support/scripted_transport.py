"""A transport that answers from a script: for clients without any server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from kruise.machinery.codec import encode

Step = Response | Exception


def answer(body: Any, status: int = 200, **headers: str) -> Response:
    data = body if isinstance(body, bytes) else encode(body)
    return Response(status, data, {name.replace("_", "-"): value for name, value in headers.items()})


def failure(code: int, reason: str = "", message: str = "", **headers: str) -> Response:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return answer(status, code, **headers)


class ScriptedTransport:
    """Plays its steps in order; the last one is played for ever. Watches play `lines`, then `ending`."""

    def __init__(self, *steps: Step, lines: Sequence[bytes] = (), ending: Exception | None = None) -> None:
        self.steps = list(steps)
        self.lines = list(lines)
        self.ending = ending
        self.requests: list[Request] = []
        self.closed = False
        self.open_streams = 0

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        return step

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
        self.requests.append(request)
        self.open_streams += 1
        try:
            async with contextlib.aclosing(self._play()) as lines:
                yield lines
        finally:
            self.open_streams -= 1

    async def _play(self) -> AsyncGenerator[bytes, None]:
        for line in self.lines:
            yield line
        if self.ending is not None:
            raise self.ending

    async def close(self) -> None:
        self.closed = True
