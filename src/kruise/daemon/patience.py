"""Calls to a runtime that restarts: asked again until it answers, for a while (DMN-99)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kruise.daemon.runtime import CallError
from kruise.machinery.clock import Clock

T = TypeVar("T")

PATIENCE, FIRST_PAUSE, LONGEST_PAUSE = 60.0, 0.5, 5.0
"""Seconds: for how long nobody may answer, and between two calls."""


async def patiently(call: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """What the call answers. Only for calls that may be made twice. Raises its CallError when it is another than that
    nobody answers, or comes a minute after the first one."""
    until, pause = float("inf"), FIRST_PAUSE
    while True:
        try:
            return await call()
        except CallError as error:
            if not error.is_silence:
                raise
            now = clock.monotonic()
            until = min(until, now + PATIENCE)
            if now + pause > until:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
