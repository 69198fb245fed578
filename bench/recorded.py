"""A recorded API server: lists of pods in pages and a watch of their updates over TLS, as fast as the reader reads.

A process of its own: `python -m bench.recorded DIRECTORY PODS EVENTS` says its port. Everything is encoded before it
listens. Each watch sends so many MODIFIED events after the version it is asked from, one HTTP chunk per event as the
real server does, and then stays open in silence.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import ssl
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bench import processes
from bench.pods import stored_pod
from kruise.machinery.codec import encode

FIRST_VERSION = 1_000_000_000
"""Of the list. All versions have the same number of digits, so the length of a chunk is known beforehand."""
PAGE = 500
_MARK = "9999999999"
_BATCH = 32
_OPEN = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class Recording:
    def __init__(self, pods: int, events: int) -> None:
        bodies = [encode(stored_pod(number, _MARK)) for number in range(pods)]
        self.pages = [self._page(bodies[start : start + PAGE], start, pods) for start in range(0, pods, PAGE)]
        # An update of a pod in two parts, between which its version goes.
        self.halves = [self._chunk(body) for body in bodies]
        # Updates come from all over a cluster, not owner by owner.
        random.Random(0).shuffle(self.halves)
        self.events = events

    @staticmethod
    def _page(bodies: list[bytes], start: int, pods: int) -> bytes:
        more = f',"continue":"{start + PAGE}","remainingItemCount":{pods - start - PAGE}' if start + PAGE < pods else ""
        items = b",".join(
            body.replace(_MARK.encode(), b"%d" % (FIRST_VERSION - pods + start + index))
            for index, body in enumerate(bodies)
        )
        head = (
            f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{FIRST_VERSION}"{more}}},"items":['
        )
        body = gzip.compress(head.encode() + items + b"]}", 1)
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n" + (
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )

    @staticmethod
    def _chunk(body: bytes) -> tuple[bytes, bytes]:
        line = b'{"type":"MODIFIED","object":' + body + b"}\n"
        head, tail = line.split(_MARK.encode())
        return b"%x\r\n" % len(line) + head, tail + b"\r\n"

    def batches(self, version: int) -> list[bytes]:
        """All that a watch from `version` gets, in writes of a few hundred KB."""
        parts: list[bytes] = []
        made: list[bytes] = []
        for number in range(version + 1, version + self.events + 1):
            head, tail = self.halves[number % len(self.halves)]
            parts += (head, b"%d" % number, tail)
            if len(parts) == 3 * _BATCH:
                made.append(b"".join(parts))
                parts.clear()
        return [*made, b"".join(parts)]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that goes away ends its connection, not the server.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                query = parse_qs(urlsplit(head.split(b" ", 2)[1].decode()).query)
                if "watch" not in query:
                    writer.write(self.pages[int(query.get("continue", ["0"])[0]) // PAGE])
                    await writer.drain()
                    continue
                batches = self.batches(int(query["resourceVersion"][0]))
                writer.write(_OPEN.encode())
                for batch in batches:
                    writer.write(batch)
                    await writer.drain()
                await reader.read()
                return


async def serve(directory: Path, pods: int, events: int) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    recording = Recording(pods, events)
    server = await asyncio.start_server(recording.answer, processes.HOST, 0, ssl=context)
    processes.settle_heap()
    processes.say({"port": server.sockets[0].getsockname()[1]})
    await processes.until_input_ends()
    server.close()


if __name__ == "__main__":
    processes.run(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
