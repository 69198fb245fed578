"""The first look that the README gives, with real kubectl on the local cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.test_walkthrough import environment
from tests.support.transcripts import Shell, walk

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    found = Shell(tmp_path, environment(tmp_path))
    yield found
    found.run("kruise down")
    found.close()


@pytest.mark.smoke
def test_a_first_look(shell: Shell) -> None:
    code, output = shell.run("kruise up --detach --port 0 && export KUBECONFIG=$(kruise kubeconfig --path)")
    assert code == 0, output
    assert walk(ROOT / "README.md", shell) > 10
