"""Waiting for a real cluster to get somewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(check: Callable[[], Awaitable[T]], *, within: float = 30.0, every: float = 0.1) -> T:
    """Ask again until no AssertionError comes; the last one is raised when the time is over."""
    deadline = time.monotonic() + within
    while True:
        try:
            return await check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(every)
