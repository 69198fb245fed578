"""The founding documents' walk through image pull and container restart, with real kubectl on three real nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodedaemons import daemons_on
from tests.support.realnodes import RealNodes
from tests.support.transcripts import Shell, walk
from tests.support.walkthroughs import DOCUMENTS, LOCAL_ONLY, environment, lay_out_documents, write_ssh

pytestmark = [pytest.mark.nodes, pytest.mark.together("own-nodes")]


def test_the_walk_on_real_nodes(own_nodes: RealNodes, tmp_path: Path) -> None:
    lay_out_documents(tmp_path)
    programs = tmp_path / "programs"
    write_ssh(programs, own_nodes)
    for node in own_nodes.nodes:
        # Those of other tests have a past, which events tell of. The manager makes new ones.
        own_nodes.request("DELETE", f"/apis/apps.kruise.io/v1beta1/nodeimages/{node}")
    with daemons_on(own_nodes, "ImagePullJobGate", "KruisePodReadinessGate", leads=True) as daemons:
        variables = environment(tmp_path, programs) | {"KUBECONFIG": str(daemons.cluster.kubeconfig)}
        shell = Shell(tmp_path, variables)
        try:
            assert walk(DOCUMENTS / "operations-walkthrough.md", shell, leave_out=[LOCAL_ONLY]) > 40
        finally:
            shell.close()
