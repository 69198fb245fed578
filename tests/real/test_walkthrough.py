"""The commands of the documents, with real kubectl, on the local cluster as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import kubebuild
from tests.support.transcripts import matches, steps

DOCUMENTS = Path(__file__).parents[2] / "docs"


class Shell:
    """One bash that stays, so that variables live on from command to command."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f'{command}\necho "[exit $?]"\n')
        stdin.flush()
        lines: list[str] = []
        while not (line := stdout.readline()).startswith("[exit "):
            assert line, "the shell ended"
            lines.append(line)
        return int(line.removeprefix("[exit ").rstrip("]\n")), "".join(lines)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    tools = f"{Path(sys.executable).parent}{os.pathsep}{kubebuild.cache_directory()}"
    environment = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "KRUISE_STATE": str(tmp_path / "state"),
        "HOME": str(tmp_path),
    }
    found = Shell(tmp_path, environment)
    yield found
    found.run("kruise down")
    found.close()


@pytest.mark.smoke
def test_the_walk_of_the_local_cluster(shell: Shell) -> None:
    walk = steps(DOCUMENTS / "local-cluster.md")
    assert len(walk) > 20
    for step in walk:
        code, output = shell.run(step.command)
        assert code == 0, f"$ {step.command}\n{output}"
        if step.expected:
            assert matches(step.expected, output), f"$ {step.command}\n{output}"
