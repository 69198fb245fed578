"""A container runtime that answers CRI v1 over a socket, and has as many containers as it is told of."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server

from kruise.daemon.cri import client, messages, wire
from kruise.daemon.runtime import CONTAINER_HASH, CONTAINER_NAME, POD_UID, RESTART_COUNT

_RUNNING = 1
PULL_SECONDS = 0.5


class FakeRuntime:
    """`pods` has the names of containers by the uid of their pod. One that is stopped is back at once, with another
    id."""

    def __init__(self) -> None:
        self.pods: dict[str, list[str]] = {}
        self.attempts: dict[tuple[str, str], int] = {}
        self.started: dict[tuple[str, str], int] = {}
        self.images: set[str] = set()
        self.answer = b"ok"
        """Of every command."""
        self.calls = 0

    def container_id(self, uid: str, name: str) -> str:
        return f"{uid}.{name}.{self.attempts.get((uid, name), 0)}"

    def __mapping__(self) -> dict[str, Handler]:
        answers = {
            messages.RUNTIME + "Version": self._version,
            messages.RUNTIME + "ListContainers": self._list,
            messages.RUNTIME + "ContainerStatus": self._status,
            messages.RUNTIME + "StopContainer": self._stop,
            messages.RUNTIME + "ExecSync": self._exec,
            messages.IMAGE + "ImageFsInfo": self._nothing,
            messages.IMAGE + "ListImages": self._images,
            messages.IMAGE + "PullImage": self._pull,
        }
        return {name: Handler(self._stream(one), Cardinality.UNARY_UNARY, Any, Any) for name, one in answers.items()}

    def _stream(self, answer: Any) -> Any:
        async def handle(stream: Any) -> None:
            self.calls += 1
            await stream.send_message(await answer(wire.fields(await stream.recv_message())))

        return handle

    async def _nothing(self, request: wire.Fields) -> bytes:
        return b""

    async def _version(self, request: wire.Fields) -> bytes:
        return wire.text(1, "0.1.0") + wire.text(2, "containerd")

    async def _images(self, request: wire.Fields) -> bytes:
        return b"".join(
            wire.message(1, wire.text(1, f"sha256:{name}"), wire.texts(2, [name])) for name in sorted(self.images)
        )

    async def _pull(self, request: wire.Fields) -> bytes:
        await asyncio.sleep(PULL_SECONDS)
        name = wire.get_text(wire.get_message(request, 1), 1)
        self.images.add(name)
        return wire.text(1, name)

    async def _list(self, request: wire.Fields) -> bytes:
        wanted = wire.get_message(request, 1)
        uid = wire.get_mapping(wanted, 4).get(POD_UID, "") or wire.get_text(wanted, 1).partition(".")[0]
        parts = [
            wire.message(
                1,
                wire.text(1, self.container_id(uid, name)),
                wire.message(3, wire.text(1, name)),
                wire.number(6, _RUNNING),
                wire.number(7, 1),
                *self._marks(uid, name, 8),
            )
            for name in self.pods.get(uid, ())
        ]
        return b"".join(parts)

    async def _status(self, request: wire.Fields) -> bytes:
        identity = wire.get_text(request, 1)
        uid, name, _ = identity.split(".")
        if self.container_id(uid, name) != identity:
            raise GRPCError(Status.NOT_FOUND, f"container {identity}")
        return wire.message(
            1,
            wire.text(1, identity),
            wire.message(2, wire.text(1, name)),
            wire.number(3, _RUNNING),
            wire.number(4, 1),
            wire.number(5, self.started.get((uid, name), 1)),
            *self._marks(uid, name, 12),
        ) + wire.mapping(2, {"info": '{"runtimeSpec":{"process":{"env":["VERSION=1"]}}}'})

    def _marks(self, uid: str, name: str, field: int) -> tuple[bytes, bytes]:
        labels = wire.mapping(field, {POD_UID: uid, CONTAINER_NAME: name})
        attempts = str(self.attempts.get((uid, name), 0))
        return labels, wire.mapping(field + 1, {CONTAINER_HASH: "8e45cbd0", RESTART_COUNT: attempts})

    async def _stop(self, request: wire.Fields) -> bytes:
        uid, name, _ = wire.get_text(request, 1).split(".")
        self.attempts[uid, name] = self.attempts.get((uid, name), 0) + 1
        self.started[uid, name] = time.time_ns()
        return b""

    async def _exec(self, request: wire.Fields) -> bytes:
        return wire.data(1, self.answer)


@contextlib.asynccontextmanager
async def serving(fake: FakeRuntime, path: Path) -> AsyncIterator[None]:
    server = Server([fake], codec=client._Plain())
    await server.start(path=str(path))
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()
