"""The walk-throughs of the founding documents with the installed system: this tree's image, by the chart, on three real
nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.incluster import InCluster
from tests.support.transcripts import Shell, walk
from tests.support.walkthroughs import DOCUMENTS, LOCAL_ONLY, environment, lay_out_documents, write_ssh

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("installation")]

DEFAULT = "ImagePullJobGate=true"
"""Of the chart."""
READINESS = f"{DEFAULT},KruisePodReadinessGate=true"
PROTECTION = ",".join(
    f"{gate}=true"
    for gate in (
        "ResourceDistributionGate",
        "ResourcesDeletionProtection",
        "DeletionProtectionForCRDCascadingGate",
        "PodUnavailableBudgetUpdateGate",
    )
)
OF_OTHERS = "deployments,statefulsets,daemonsets,jobs,pods,persistentvolumeclaims,poddisruptionbudgets"
"""What documents make that is not of our kinds."""


@pytest.fixture(scope="module")
def by_the_chart(installable: InCluster) -> Iterator[InCluster]:
    """Installed with the gates that a walk needs (`choose_gates`); those with the same ones have the same manager."""
    # Of what tests before these had there: documents look for events by their reasons alone.
    installable.nodes.kubectl("delete", "events", "--all", "--namespace=default")
    yield installable
    installable.uninstall()


@pytest.mark.parametrize(
    ("gates", "document", "commands"),
    [
        pytest.param(gates, f"{name}.md", commands, id=name)
        for gates, name, commands in (
            # The first one: its NodeImages have no past, which events would tell of.
            (READINESS, "operations-walkthrough", 40),
            (DEFAULT, "cloneset-tutorial", 100),
            (DEFAULT, "statefulset-tutorial", 45),
            (DEFAULT, "daemonset-walkthrough", 35),
            (DEFAULT, "jobs-walkthrough", 40),
            (DEFAULT, "sidecarset-walkthrough", 40),
            (DEFAULT, "spread-walkthrough", 40),
            (PROTECTION, "protection-walkthrough", 55),
        )
    ],
)
def test_the_walk(by_the_chart: InCluster, tmp_path: Path, gates: str, document: str, commands: int) -> None:
    """In namespace `default`."""
    by_the_chart.choose_gates(gates)
    # Pods of the walk before may still end: documents show all that are there.
    by_the_chart.wait(lambda: not pods_in_default(by_the_chart), "no pod is left", within=90)
    lay_out_documents(tmp_path)
    programs = tmp_path / "programs"
    write_ssh(programs, by_the_chart.nodes)
    variables = environment(tmp_path, programs) | {"KUBECONFIG": str(by_the_chart.nodes.kubeconfig)}
    with leaving_nothing(by_the_chart), contextlib.closing(Shell(tmp_path, variables)) as shell:
        assert walk(DOCUMENTS / document, shell, leave_out=[LOCAL_ONLY]) > commands


@contextlib.contextmanager
def leaving_nothing(kruise: InCluster) -> Iterator[None]:
    """What a walk leaves that breaks off would stop all others: it goes, and with the installation what
    guards it."""
    try:
        yield
    except BaseException:
        kruise.uninstall()
        kruise.nodes.kubectl("delete", OF_OTHERS, "--all", "--namespace=default", "--wait=false")
        kruise.nodes.kubectl("uncordon", *kruise.nodes.nodes)
        raise


def pods_in_default(kruise: InCluster) -> list[str]:
    found = kruise.nodes.request("GET", "/api/v1/namespaces/default/pods").ok()["items"]
    return [pod["metadata"]["name"] for pod in found]
