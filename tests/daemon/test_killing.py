"""The stop itself, by a runtime that restarts, hangs, or knows the container no more (DMN-59, DMN-99)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kruise.api.apps.containerrecreaterequest import ExecAction, Hook
from kruise.daemon.killing import kill
from kruise.daemon.kills import Kill, Killed
from kruise.daemon.patience import PATIENCE
from kruise.daemon.runtime import CallError, ExecResult
from kruise.machinery.clock import RealClock, run_virtual

HOOK = Hook(exec=ExecAction(command=("drain",)))


class Runtime:
    """Answers stops with these errors, one after the other, then stops."""

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)
        self.stops: list[tuple[str, int]] = []
        self.hooks = 0

    async def stop_container(self, container_id: str, grace: int) -> None:
        self.stops.append((container_id, grace))
        if self.errors:
            raise CallError(self.errors.pop(0), "x")

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float = 0) -> ExecResult:
        self.hooks += 1
        return ExecResult()


def stopped(runtime: Runtime, **fields: Any) -> tuple[Killed, float]:
    """What came of it, and the seconds that it took."""

    async def main() -> tuple[Killed, float]:
        loop = asyncio.get_running_loop()
        clock = SimpleNamespace(monotonic=loop.time, now=RealClock().now)
        node = SimpleNamespace(runtimes={"containerd": runtime}, network=None)
        scene: Any = SimpleNamespace(node=lambda name: node, clock=clock)
        call = Kill(node="n", runtime="containerd", container_id="id", container="app", grace=9, **fields)
        return await kill(scene, call), loop.time()

    return run_virtual(main())


@pytest.mark.parametrize("silent", [1, 4])
def test_a_runtime_that_restarts_is_waited_for(silent: int) -> None:
    """DMN-99: the hook is run once, and the container stopped when somebody answers."""
    runtime = Runtime(*["Unavailable"] * silent)
    assert stopped(runtime, hook=HOOK)[0] == Killed()
    assert runtime.stops == [("id", 9)] * (silent + 1)
    assert runtime.hooks == 1


def test_one_that_does_not_come_back_is_the_result() -> None:
    """DMN-59: after a minute the request is told."""
    runtime = Runtime(*["Unavailable"] * 1000)
    with pytest.raises(CallError) as raised:
        stopped(runtime)
    assert raised.value.code == "Unavailable"
    assert PATIENCE / 5 <= len(runtime.stops) < 20


@pytest.mark.parametrize("code", ["Unknown", "DeadlineExceeded", "Internal"])
def test_what_the_runtime_refuses_is_not_asked_twice(code: str) -> None:
    """DMN-59."""
    runtime = Runtime(code)
    with pytest.raises(CallError):
        stopped(runtime)
    assert len(runtime.stops) == 1


def test_a_container_that_is_not_there_any_more_has_ended() -> None:
    assert stopped(Runtime("Unavailable", "NotFound"))[0] == Killed()
