"""A container runtime behind a socket. One connection, dialled again when it breaks; each call has its own deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from grpclib.client import Channel
from grpclib.config import Configuration
from grpclib.const import Cardinality, Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from kruise.daemon.cri import messages
from kruise.daemon.cri.messages import IMAGE, RUNTIME
from kruise.daemon.runtime import Auth, CallError, Container, ContainerStatus, ExecResult, Image, SandboxConfig
from kruise.machinery.protobuf import WireError

T = TypeVar("T")

CALL_SECONDS = 5.0
DIAL_SECONDS = 30.0
PROBE_SECONDS = 10.0
STARTING = "server is not initialized yet"
"""What containerd answers from when it listens until it knows its containers again."""
_LARGEST = 16 * 1024 * 1024


class _Plain(CodecBase):
    """Messages are made and read by `messages`."""

    __content_subtype__ = "proto"

    def encode(self, message: Any, message_type: Any) -> bytes:
        data: bytes = message
        return data

    def decode(self, data: bytes, message_type: Any) -> Any:
        if len(data) > _LARGEST:
            raise WireError(f"an answer of {len(data)} bytes")
        return data


class CriRuntime:
    """Implements `kruise.daemon.runtime.Runtime`. Made by `connect`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = ""
        self._channel = Channel(path=path, codec=_Plain(), config=Configuration())

    async def connect(self) -> None:
        """Find out whether somebody answers who speaks CRI v1, and who that is (DMN-13). Raises CallError."""
        await self._call(IMAGE + "ImageFsInfo", b"", len, PROBE_SECONDS)
        await self.list_images()
        self.name = await self._call(RUNTIME + "Version", messages.version_request(), messages.runtime_name)

    def close(self) -> None:
        self._channel.close()

    async def list_containers(self, *, pod_uid: str = "", container_id: str = "") -> Sequence[Container]:
        request = messages.list_containers_request(pod_uid=pod_uid, container_id=container_id)
        return await self._call(RUNTIME + "ListContainers", request, messages.containers)

    async def container_status(self, container_id: str, *, verbose: bool = False) -> ContainerStatus:
        request = messages.container_status_request(container_id, verbose=verbose)
        return await self._call(RUNTIME + "ContainerStatus", request, messages.container_status)

    async def list_images(self) -> Sequence[Image]:
        return await self._call(IMAGE + "ListImages", b"", messages.images, PROBE_SECONDS)

    async def pull_image(self, reference: str, *, sandbox: SandboxConfig, auth: Auth | None = None) -> str:
        request = messages.pull_request(reference, sandbox, auth)
        return await self._call(IMAGE + "PullImage", request, messages.image_ref, None)

    async def stop_container(self, container_id: str, grace: int) -> None:
        request = messages.stop_request(container_id, grace)
        await self._call(RUNTIME + "StopContainer", request, len, CALL_SECONDS + grace)

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float = 0) -> ExecResult:
        # Runtimes take whole seconds, and 0 for no limit; the exact limit is kept here.
        request = messages.exec_request(container_id, command, max(1, round(seconds)) if seconds else 0)
        limit = CALL_SECONDS + seconds if seconds else None
        return await self._call(RUNTIME + "ExecSync", request, messages.exec_result, limit)

    async def _call(
        self, name: str, request: bytes, read: Callable[[bytes], T], seconds: float | None = CALL_SECONDS
    ) -> T:
        what = name.rpartition("/")[2]
        try:
            async with asyncio.timeout(seconds):
                stream: Any = self._channel.request(name, Cardinality.UNARY_UNARY, Any, Any)
                async with stream as call:
                    await call.send_message(request, end=True)
                    answer = await call.recv_message()
            if answer is None:
                raise CallError("Internal", f"{what}: no answer")
            return read(answer)
        except WireError as error:
            raise CallError("Internal", f"{what}: {self.path} answers with something else: {error}") from error
        except GRPCError as error:
            if error.message == STARTING:
                raise CallError("Unavailable", f"{what}: {self.path}: {STARTING}") from error
            raise CallError(_code(error.status), error.message or what, is_answer=True) from error
        except TimeoutError as error:
            raise CallError("DeadlineExceeded", f"{what}: no answer within {seconds:g} s") from error
        except (OSError, ProtocolError, StreamTerminatedError) as error:
            raise CallError("Unavailable", f"{what}: {self.path}: {str(error) or type(error).__name__}") from error


def _code(status: Status) -> str:
    """`NOT_FOUND` is called `NotFound` in texts of Go programs."""
    return "OK" if status is Status.OK else "".join(part.capitalize() for part in status.name.split("_"))
