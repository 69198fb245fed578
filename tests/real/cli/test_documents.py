"""Every document pasted at once, as fast as a terminal takes it, with real kubectl on the local cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.transcripts import Shell, steps, walk
from tests.support.walkthroughs import DOCUMENTS, REAL_ONLY, ROOT

README = ROOT / "README.md"
WALKS = [path for path in (README, *sorted(DOCUMENTS.glob("*.md"))) if steps(path)]
WITHOUT_A_CLUSTER = {README: "kruise up --detach --port 0"}
"""Where the cluster was started by other means than a command of the document."""
QUICK = {README, DOCUMENTS / "local-cluster.md"}
LONG = {
    DOCUMENTS / f"{name}.md"
    for name in ("cloneset-tutorial", "statefulset-tutorial", "jobs-walkthrough", "protection-walkthrough")
}

pytestmark = pytest.mark.spread


def marks(document: Path) -> list[pytest.MarkDecorator]:
    return [mark for mark, those in ((pytest.mark.smoke, QUICK), (pytest.mark.long, LONG)) if document in those]


@pytest.mark.parametrize("document", [pytest.param(path, id=path.name, marks=marks(path)) for path in WALKS])
def test_every_block_holds(document: Path, shell: Shell) -> None:
    if before := WITHOUT_A_CLUSTER.get(document):
        code, output = shell.run(before)
        assert code == 0, output
    assert walk(document, shell, leave_out=[REAL_ONLY]) > 0
