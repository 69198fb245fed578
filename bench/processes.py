"""Processes of a benchmark: each side on its own, set up as the manager is."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from kruise.admission.certificates import issue
from kruise.cli.manager import _fast_loop
from kruise.manager.process import _COLLECT_EVERY

T = TypeVar("T")
HOST = "127.0.0.1"


def run(main: Coroutine[Any, Any, T]) -> T:
    """On the loop that the manager would use."""
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        return runner.run(main)


def loop_name() -> str:
    return "uvloop" if _fast_loop() is not None else "asyncio"


def settle_heap() -> None:
    """As the manager does once it is set up: what is alive now is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_EVERY)


def write_certificate(directory: Path) -> None:
    """A certificate for loopback: `ca-cert.pem`, `tls.crt` and `tls.key`."""
    for name, data in issue(HOST, datetime.now(UTC)).to_files().items():
        (directory / name).write_bytes(data)


@contextlib.contextmanager
def child(module: str, *arguments: object) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """A module of this package as a process; with what it said when it was ready. It ends with its input."""
    command = [sys.executable, "-m", f"bench.{module}", *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"bench.{module} ended before it was ready; its error is above")
            yield process, json.loads(line)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def say(value: object) -> None:
    """To the process that started this one."""
    print(json.dumps(value), flush=True)


async def until_input_ends() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _drain, ended.set)
    await ended.wait()


def _drain(on_end: Callable[[], None]) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        on_end()


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waiting_seconds(pid: int) -> float:
    """How long a process could have run but others had its core, so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
