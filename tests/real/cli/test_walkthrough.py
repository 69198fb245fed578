"""The commands of documents that are for real clusters, too, with real kubectl on real nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.transcripts import Shell, walk
from tests.support.walkthroughs import DOCUMENTS, LOCAL_ONLY, environment, lay_out_documents, write_ssh

pytestmark = pytest.mark.spread


@pytest.mark.nodes
@pytest.mark.long
@pytest.mark.together("default-namespace")
@pytest.mark.parametrize(
    ("document", "commands"),
    [
        ("cloneset-tutorial.md", 100),
        ("statefulset-tutorial.md", 45),
        ("daemonset-walkthrough.md", 35),
        ("jobs-walkthrough.md", 40),
        ("spread-walkthrough.md", 40),
        ("plan-and-reality.md", 12),
    ],
)
def test_documents_on_real_nodes(
    kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, tmp_path: Path, document: str, commands: int
) -> None:
    """In namespace `default`, where no other test is."""
    lay_out_documents(tmp_path)
    programs = tmp_path / "programs"
    write_ssh(programs, real_nodes)
    variables = environment(tmp_path, programs) | {"KUBECONFIG": str(kruise_on_nodes.kubeconfig)}
    shell = Shell(tmp_path, variables)
    try:
        assert walk(DOCUMENTS / document, shell, leave_out=[LOCAL_ONLY]) > commands
    finally:
        shell.close()
