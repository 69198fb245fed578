"""The walk through protection and distribution, with real kubectl on real nodes. Its gates are off by default, so it
has a manager of its own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.transcripts import Shell, walk
from tests.support.walkthroughs import DOCUMENTS, LOCAL_ONLY, environment, lay_out_documents

GATES = (
    "ResourceDistributionGate",
    "ResourcesDeletionProtection",
    "DeletionProtectionForCRDCascadingGate",
    "PodUnavailableBudgetUpdateGate",
)


def _wait_until_empty(nodes: RealNodes) -> None:
    """The plan of a drain tells of everything on a node: what tests before this one had there has to be gone."""
    deadline = time.monotonic() + 90
    while names := [
        pod["metadata"]["name"]
        for pod in nodes.request("GET", "/api/v1/pods").ok()["items"]
        if pod["metadata"]["namespace"] != "kube-system"
    ]:
        assert time.monotonic() < deadline, names
        time.sleep(0.5)


@pytest.mark.nodes
@pytest.mark.long
@pytest.mark.together("own-nodes")
def test_the_walk_through(own_nodes: RealNodes, tmp_path: Path) -> None:
    """RD-21, RD-60, RD-61, DP-40 to DP-43, PUB-100, PUB-104, PUB-110."""
    lay_out_documents(tmp_path)
    _wait_until_empty(own_nodes)
    # It leads, as in a cluster: what commands say of a manager goes by the lease.
    flags = (f"--feature-gates={','.join(f'{gate}=true' for gate in GATES)}",)
    with KruiseCluster(own_nodes, flags=flags) as cluster:
        shell = Shell(tmp_path, environment(tmp_path) | {"KUBECONFIG": str(cluster.kubeconfig)})
        try:
            assert walk(DOCUMENTS / "protection-walkthrough.md", shell, leave_out=[LOCAL_ONLY]) > 55
        finally:
            shell.close()
