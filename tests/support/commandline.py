"""The command line in this process or in a terminal, against a cluster that somebody else runs."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from kruise.api.resource import Resource
from kruise.cli.main import cli
from kruise.local.state import State
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load

T = TypeVar("T")

COMMAND = (sys.executable, "-m", "kruise.cli.main")

needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None and not os.environ.get("CI"), reason="tmux is not installed"
)
"""CI installs it, and would tell if it were missing."""


@dataclasses.dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Kruise:
    """`kruise` with a kubeconfig. Running in this process saves a third of a second each time."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> Done:
        variables = {"KUBECONFIG": str(self.kubeconfig), **(environment or {})}
        done = CliRunner().invoke(cli, list(arguments), input=stdin, env=variables, prog_name="kruise")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    def ok(self, *arguments: str, stdin: str = "") -> list[str]:
        """The lines that a command printed, which must succeed."""
        done = self(*arguments, stdin=stdin)
        assert done.code == 0, f"kruise {' '.join(arguments)}: {done.code}\n{done.out}\n{done.err}"
        return done.lines

    def refused(self, *arguments: str, code: int = 1) -> str:
        """What a command says that must fail."""
        done = self(*arguments)
        assert done.code == code, f"kruise {' '.join(arguments)}: {done.code}\n{done.out}\n{done.err}"
        return done.err.strip().splitlines()[-1].removeprefix("Error: ")

    def drawn(self, *arguments: str, **variables: str) -> str:
        """What a command that must succeed writes to a terminal of 120 columns, with everything that moves and colours.

        It runs in a process of its own, with these environment variables besides.
        """
        controller, terminal = pty.openpty()
        usual = {"KUBECONFIG": str(self.kubeconfig), "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, **usual, **variables},
        )
        os.close(terminal)
        written = b""
        try:
            while chunk := os.read(controller, 65536):
                written += chunk
        except OSError:
            pass  # how a terminal whose other side is closed ends
        finally:
            os.close(controller)
        text = written.decode()
        assert process.wait(30) == 0, text
        return text

    def screen(self, *arguments: str, columns: int = 100, lines: int = 40) -> list[str]:
        """What a person sees in tmux when a command that must succeed is over, or has waited (code 3)."""
        state = self.kubeconfig.parent / f"screen-{time.monotonic_ns()}"
        tmux = ["tmux", "-u", "-L", state.name, "-f", "/dev/null"]
        command = f"{shlex.join([*COMMAND, *arguments])}; echo $? > {state}; exec sleep 60"
        variables = {"KUBECONFIG": str(self.kubeconfig), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        environment = {**os.environ, **variables}
        size = ["-x", str(columns), "-y", str(lines)]
        subprocess.run([*tmux, "new-session", "-d", *size, command], env=environment, check=True, timeout=30)
        try:
            deadline = time.monotonic() + 60
            while not (state.exists() and state.read_text()) and time.monotonic() < deadline:
                time.sleep(0.05)
            shown = subprocess.run(
                [*tmux, "capture-pane", "-p"], env=environment, check=True, capture_output=True, text=True, timeout=30
            ).stdout
        finally:
            subprocess.run([*tmux, "kill-server"], env=environment, check=False, timeout=30)
        assert state.exists(), shown
        assert state.read_text() in ("0\n", "3\n"), shown
        return shown.rstrip().splitlines()

    # The cluster itself

    def talk(self, work: Callable[[Client], Awaitable[T]]) -> T:
        async def main() -> T:
            async with Client(HttpTransport(load(self.kubeconfig))) as client:
                return await work(client)

        return asyncio.run(main())

    def create(self, resource: Resource[Any], document: Mapping[str, Any]) -> None:
        self.talk(lambda client: client.create(resource, document, "default"))


def plain(drawn: str) -> str:
    """What was drawn, without moves and colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)


@contextmanager
def local_cluster(directory: Path, *flags: str) -> Iterator[Path]:
    """`kruise up` for the time of the block; gives its kubeconfig."""
    environment = {**os.environ, "KRUISE_STATE": str(directory)}
    up = [*COMMAND, "up", "--detach", "--port=0", "--no-merge", *flags]
    subprocess.run(up, env=environment, check=True, capture_output=True, timeout=60)
    try:
        yield State(directory).kubeconfig
    finally:
        subprocess.run([*COMMAND, "down"], env=environment, check=True, capture_output=True, timeout=60)
