"""The journal of a manager behind a real API server: by its address, and through the proxy to its pod."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kruise.cli import journal_access
from tests.support.commandline import Kruise
from tests.support.kruisecluster import KruiseCluster
from tests.support.ports import free_port
from tests.support.transcripts import Shell, walk
from tests.support.walkthroughs import DOCUMENTS

PORT = free_port()


@pytest.fixture(scope="module")
def cluster() -> Iterator[KruiseCluster]:
    """Without nodes: decisions are made about pods that nobody runs, too."""
    with KruiseCluster(nodes=0, flags=(f"--metrics-addr=:{PORT}",)) as cluster:
        manifest = yaml.safe_load((DOCUMENTS / "manifests" / "journal.yaml").read_text())
        path = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets"
        cluster.plane.request("POST", path, manifest).ok()
        deadline = time.monotonic() + 60
        while len(pods_of(cluster)) < manifest["spec"]["replicas"]:
            assert time.monotonic() < deadline, "the manager does not create the pods"
            time.sleep(0.1)
        yield cluster


def own_address() -> str:
    """An address of this machine that a proxy may go to: API servers refuse the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
        return "" if address.startswith("127.") else address


@pytest.mark.smoke
def test_by_its_address(cluster: KruiseCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kruise = Kruise(cluster.kubeconfig)
    assert "it runs outside the cluster. Give its address with --manager-url" in kruise.refused("journal")
    monkeypatch.setenv(journal_access.ENVIRONMENT, f"http://127.0.0.1:{PORT}")
    _, *rows = kruise.ok("journal", "cloneset/shop")
    assert any("create pods" in row for row in rows)
    dump = tmp_path / "shop.json"
    assert kruise("journal", "cloneset/shop", "--dump", str(dump)).code == 0
    assert kruise.ok("replay", str(dump))[-1].startswith("equal: the same plan")
    assert "not found" in kruise.refused("journal", "cloneset/nobody")


@pytest.mark.smoke
def test_through_the_api_server(cluster: KruiseCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease names the manager by its host: here a pod of that name stands for this very machine."""
    host, address = socket.gethostname(), own_address()
    if not address or not re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", host):
        pytest.skip("this machine has no address that an API server would go to, or a name that no pod can have")
    monkeypatch.setattr(journal_access, "PORT", PORT)
    pods = "/api/v1/namespaces/kruise-system/pods"
    pod = {"metadata": {"name": host}, "spec": {"containers": [{"name": "manager", "image": "kruise"}]}}
    cluster.plane.request("POST", pods, pod).ok()
    status = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
    cluster.plane.request("PATCH", f"{pods}/{host}/status", status).ok()
    kruise = Kruise(cluster.kubeconfig)
    entries = json.loads("\n".join(kruise.ok("journal", "cloneset/shop", "-o", "json")))
    assert entries[-1]["plan"]["counts"]["create pods"] == 6
    done = kruise("journal", "cloneset/shop", "--dump", "-")
    assert json.loads(done.out)["controller"] == "cloneset-controller"
    assert "keeps no snapshot of it" in kruise.refused("journal", f"pod/{pods_of(cluster)[0]}", "--dump", "-")

    assert "the right to get leases and pods/proxy in namespace kruise-system" in kruise.refused("journal", "--as=eve")
    cluster.plane.kubectl(
        "-n", "kruise-system", "create", "role", "kruise-journal", "--verb=get",
        "--resource=leases.coordination.k8s.io,pods/proxy",
    )  # fmt: skip
    cluster.plane.kubectl("-n", "kruise-system", "create", "rolebinding", "eve", "--role=kruise-journal", "--user=eve")
    assert len(kruise.ok("journal", "--as=eve", "--limit=1")) == 2


def pods_of(cluster: KruiseCluster) -> list[str]:
    listed = cluster.plane.request("GET", "/api/v1/namespaces/default/pods").ok()
    return [str(item["metadata"]["name"]) for item in listed["items"]]


def test_the_document(shell: Shell) -> None:
    """The commands of docs/journal.md, on `kruise up`."""
    assert walk(DOCUMENTS / "journal.md", shell) > 10
