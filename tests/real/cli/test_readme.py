"""The first look that the README gives, with real kubectl on the local cluster."""

from __future__ import annotations

import pytest

from tests.support.transcripts import Shell, walk
from tests.support.walkthroughs import ROOT


@pytest.mark.smoke
def test_a_first_look(shell: Shell) -> None:
    code, output = shell.run("kruise up --detach --port 0")
    assert code == 0, output
    assert walk(ROOT / "README.md", shell) > 10
