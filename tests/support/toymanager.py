"""A manager process that runs the toy kind of `tests/toy`, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kruise.cli.manager import run
from tests.toy.controller import FEATURE


def start(kubeconfig: Path, *flags: str, log: Path, **environment: str) -> subprocess.Popen[bytes]:
    """A manager in a process of its own; its log goes to a file."""
    arguments = [sys.executable, "-m", "tests.support.toymanager", f"--kubeconfig={kubeconfig}", *flags]
    with log.open("ab") as file:
        return subprocess.Popen(arguments, stdout=file, stderr=file, env={**os.environ, **environment})


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], [FEATURE]))
