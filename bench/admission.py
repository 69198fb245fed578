"""Reviews of pods over TLS at a steady rate, answered by a server that has one core.

The load is open: reviews are due at random moments that do not wait for answers, and each is timed from the moment when
it was due, so a stall of the server is felt by every review that came meanwhile. Connections are kept alive, and the
one that was used last is taken first, as an API server does.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import itertools
import os
import random
import ssl
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import processes
from bench.pods import stored_pod
from bench.report import Report, Row
from kruise.admission.chain import PATH
from kruise.machinery.codec import decode, encode

RATE = 500
CONNECTIONS = 32


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, question: bytes) -> bytes:
        self._writer.write(question)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the admission server answered {head!r}")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0])
        return await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


def review(number: int) -> bytes:
    """A whole HTTP request about a new pod, as an API server sends it."""
    pod = stored_pod(number, "")
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": pod["metadata"]["uid"],
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": pod["metadata"]["name"],
        "namespace": pod["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": {"username": "kruise-manager", "groups": ["system:authenticated"]},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    body = encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
    head = f"POST {PATH}?timeout=10s HTTP/1.1\r\nHost: {processes.HOST}\r\nAccept: application/json\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def check(answer: bytes) -> None:
    """The pod was really changed, by a patch and not by a copy."""
    response = decode(answer, dict[str, Any])["response"]
    patch = base64.b64decode(response.get("patch", ""))
    if not response["allowed"] or b"KruisePodReady" not in patch or len(patch) > 200:
        raise RuntimeError(f"not the expected answer: {answer!r}")


async def steady(idle: list[Connection], reviews: Sequence[bytes], seconds: float) -> list[float]:
    """Seconds from when each review was due to its whole answer."""
    draw = random.Random(0)
    offsets = sorted(draw.uniform(0, seconds) for _ in range(int(RATE * seconds)))
    freed = asyncio.Condition()
    latencies: list[float] = []

    async def ask(question: bytes, due: float) -> None:
        async with freed:
            await freed.wait_for(lambda: idle)
            connection = idle.pop()
        answer = await connection.ask(question)
        latencies.append(time.perf_counter() - due)
        check(answer)
        async with freed:
            idle.append(connection)
            freed.notify()

    began = time.perf_counter() + 0.1
    async with asyncio.TaskGroup() as tasks:
        for question, offset in zip(itertools.cycle(reviews), offsets, strict=False):
            due = began + offset
            # Timers of event loops are late by up to a millisecond, which would count as the server's.
            while time.perf_counter() < due:  # noqa: ASYNC110
                await asyncio.sleep(0)
            tasks.create_task(ask(question, due))
    return latencies


async def at_most(connections: Sequence[Connection], reviews: Sequence[bytes], seconds: float) -> float:
    """Reviews per second with every connection always busy."""
    ends = time.perf_counter() + seconds
    answered = 0

    async def lane(connection: Connection) -> None:
        nonlocal answered
        for question in itertools.cycle(reviews):
            await connection.ask(question)
            if time.perf_counter() > ends:
                return
            answered += 1

    async with asyncio.TaskGroup() as tasks:
        for connection in connections:
            tasks.create_task(lane(connection))
    return answered / seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    latencies: list[float]
    cpu_share: float
    """Of the server's core, at the steady rate."""
    waited_share: float
    """Of the time: how long others had the server's core when it could have run. Noise of the machine."""
    most: float


async def load(pid: int, port: int, ca: Path, seconds: float) -> Found:
    context = ssl.create_default_context(cafile=ca)
    connections = [
        Connection(*await asyncio.open_connection(processes.HOST, port, ssl=context)) for _ in range(CONNECTIONS)
    ]
    reviews = [review(number) for number in range(1000)]
    processes.settle_heap()
    try:
        await steady(list(connections), reviews, min(seconds, 2.0))  # to warm up
        began, cpu, waited = time.perf_counter(), processes.cpu_seconds(pid), processes.waiting_seconds(pid)
        latencies = await steady(list(connections), reviews, seconds)
        took = time.perf_counter() - began
        cpu, waited = processes.cpu_seconds(pid) - cpu, processes.waiting_seconds(pid) - waited
        return Found(latencies, cpu / took, waited / took, await at_most(connections, reviews, seconds / 3))
    finally:
        for connection in connections:
            connection.close()


def measure(scale: float) -> Report:
    seconds = max(2.0, 15 * scale)
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        processes.write_certificate(directory)
        with processes.child("reviewing", directory, cores[0]) as (server, ready):
            os.sched_setaffinity(0, cores[1:] or cores)
            try:
                ca = directory / "ca-cert.pem"
                found = processes.run(load(server.pid, ready["port"], ca, seconds))
            finally:
                os.sched_setaffinity(0, cores)
    hundredths = statistics.quantiles(found.latencies, n=100)
    rows = (
        Row(what="latency, half of all", value=hundredths[49] * 1e3, unit="ms"),
        Row(what="latency, 99 of 100", value=hundredths[98] * 1e3, unit="ms", below=5),
        Row(what="latency, the longest", value=max(found.latencies) * 1e3, unit="ms"),
        Row(what="answered", value=len(found.latencies) / seconds, unit="reviews/s"),
        Row(what="server's share of its core", value=found.cpu_share * 100, unit="%"),
        Row(what="others had that core while it could run", value=found.waited_share * 100, unit="% of the time"),
        Row(what=f"highest rate, {CONNECTIONS} at a time", value=found.most, unit="reviews/s"),
    )
    setting = (
        f"pods of 8 KB, changed by a patch, {RATE} reviews/s for {seconds:.0f} s over TLS; the server has one core"
    )
    return Report(name="admission", setting=setting, rows=rows)
