"""A process that does nothing but ask a container runtime: what a gRPC library takes by itself.

Run as a file, `python bare.py grpclib|grpcio SOCKET`: it imports nothing of ours, asks for Version and ListContainers a
hundred times, and prints its memory and the milliseconds of a call. It ends with 3 where the library is not installed.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from pathlib import Path
from typing import Any

CALLS = ("/runtime.v1.RuntimeService/Version", "/runtime.v1.RuntimeService/ListContainers")
TIMES = 100


async def grpclib(socket: str) -> float:
    from grpclib.client import Channel
    from grpclib.const import Cardinality
    from grpclib.encoding.base import CodecBase

    class Plain(CodecBase):
        __content_subtype__ = "proto"

        def encode(self, message: Any, message_type: Any) -> bytes:
            return bytes(message)

        def decode(self, data: bytes, message_type: Any) -> Any:
            return data

    channel = Channel(path=socket, codec=Plain())
    began = time.monotonic()
    for _ in range(TIMES):
        for name in CALLS:
            stream: Any = channel.request(name, Cardinality.UNARY_UNARY, bytes, bytes)
            async with stream as call:
                await call.send_message(b"", end=True)
                await call.recv_message()
    took = time.monotonic() - began
    channel.close()
    return took


async def grpcio(socket: str) -> float:
    import grpc.aio

    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        calls = [channel.unary_unary(name) for name in CALLS]
        began = time.monotonic()
        for _ in range(TIMES):
            for call in calls:
                await call(b"")
        return time.monotonic() - began


def main(library: str, socket: str) -> int:
    try:
        took = asyncio.run({"grpclib": grpclib, "grpcio": grpcio}[library](socket))
    except ImportError:
        return 3
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    print(int(found[1]) / 1024, took / TIMES / len(CALLS) * 1000)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
