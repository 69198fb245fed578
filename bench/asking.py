"""Whoever asks about pods, in a process of its own: `python -m bench.asking HOST PORT CA RATE SECONDS`.

It says when it is ready, then asks, and says in the end how many seconds each review took. What else the benchmark does
would hold up its answers, and look like a slow server.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import ssl
import sys
import time
from typing import Any

from bench import processes
from bench.admission import CONNECTIONS, Connection, review
from kruise.machinery.codec import decode


async def ask(host: str, port: int, ca: str, rate: int, seconds: float) -> None:
    context = ssl.create_default_context(cadata=ca)
    idle = [Connection(*await asyncio.open_connection(host, port, ssl=context)) for _ in range(CONNECTIONS)]
    reviews = [review(number) for number in range(1000)]
    processes.settle_heap()
    processes.say({"ready": True})
    processes.say(await _latencies(idle, reviews, rate, seconds))
    for connection in idle:
        connection.close()


async def _latencies(idle: list[Connection], reviews: list[bytes], rate: int, seconds: float) -> list[float]:
    """Reviews are sent at random moments that wait for no answer, so a stall is felt by each."""
    draw = random.Random(0)
    began = time.perf_counter()
    latencies: list[float] = []
    freed = asyncio.Condition()

    async def one(question: bytes) -> None:
        sent = time.perf_counter()
        async with freed:
            await freed.wait_for(lambda: idle)
            connection = idle.pop()
        answer: dict[str, Any] = decode(await connection.ask(question), dict[str, Any])
        latencies.append(time.perf_counter() - sent)
        if not answer["response"]["allowed"]:
            raise RuntimeError(f"a pod was refused: {answer}")
        async with freed:
            idle.append(connection)
            freed.notify()

    offsets = sorted(draw.uniform(0, seconds) for _ in range(int(rate * seconds)))
    async with asyncio.TaskGroup() as tasks:
        for question, offset in zip(itertools.cycle(reviews), offsets, strict=False):
            await asyncio.sleep(began + offset - time.perf_counter())
            tasks.create_task(one(question))
    return latencies


if __name__ == "__main__":
    _, host, port, ca, rate, seconds = sys.argv
    processes.run(ask(host, int(port), ca, int(rate), float(seconds)))
