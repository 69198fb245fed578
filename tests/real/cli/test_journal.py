"""The journal of a manager behind a real API server: by its address, through the proxy to its pod, and who may."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kruise.cli import journal_access
from kruise.machinery.journal import AUDIENCE
from tests.support.commandline import Kruise
from tests.support.kruisecluster import KruiseCluster
from tests.support.ports import free_port
from tests.support.walkthroughs import DOCUMENTS

PORT = free_port()


@pytest.fixture(scope="module")
def cluster() -> Iterator[KruiseCluster]:
    """Without nodes: decisions are made about pods that nobody runs, too."""
    with KruiseCluster(nodes=0, flags=(f"--journal-addr=:{PORT}",)) as cluster:
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
    monkeypatch.setenv(journal_access.ENVIRONMENT, f"https://127.0.0.1:{PORT}")
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

    assert "the role kruise-journal-reader in namespace kruise-system" in kruise.refused("journal", "--as=eve")
    bind(cluster, "kruise-system", "eve", "--role=kruise-journal-reader", "--user=eve")
    assert len(kruise.ok("journal", "--as=eve", "--limit=1")) == 2


@pytest.mark.smoke
def test_own_rights_decide_what_a_caller_sees(cluster: KruiseCluster) -> None:
    """Real tokens of real accounts, over HTTPS."""
    cluster.plane.kubectl("create", "role", "sets", "--verb=get", "--resource=clonesets.apps.kruise.io")
    cluster.plane.kubectl("create", "role", "pods", "--verb=get,list", "--resource=pods")
    tokens = {name: account(cluster, name) for name in ("nobody", "elsewhere", "viewer", "lead", "admin")}
    bind(cluster, "default", "viewer", "--role=sets", "--serviceaccount=default:viewer")
    bind(cluster, "default", "lead", "--role=sets", "--serviceaccount=default:lead")
    bind(cluster, "default", "lead-pods", "--role=pods", "--serviceaccount=default:lead")
    bind(cluster, "kube-public", "elsewhere", "--clusterrole=cluster-admin", "--serviceaccount=default:elsewhere")
    cluster.plane.kubectl(
        "create", "clusterrolebinding", "admin", "--clusterrole=cluster-admin", "--serviceaccount=default:admin"
    )
    dump = "/journal/cloneset-controller/default/shop"
    for path in ("/journal", "/journal?namespace=default", "/waiting", dump):
        for token in ("", "guessed"):
            code, text = ask(path, token)
            assert (code, "shop" in text) == (401, False)
        for name in ("nobody", "elsewhere"):
            code, text = ask(path, tokens[name])
            assert code == 403
            assert re.search(r"may not get .*clonesets\.apps\.kruise\.io", text)
    assert ask(dump, token_of(cluster, "default", "admin", for_the_journal=False))[0] == 401
    assert "tell-nobody" in ask(dump, tokens["admin"])[1]
    assert "tell-nobody" in ask(dump, tokens["lead"])[1]
    code, text = ask(dump, tokens["viewer"])
    assert (code, json.loads(text)["name"], "tell-nobody" in text) == (200, "shop", False)
    assert {entry["key"]["name"] for entry in json.loads(ask("/journal", tokens["viewer"])[1])} == {"shop"}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{cluster.metrics_url}/journal")


@pytest.mark.smoke
def test_the_account_of_the_journal_reads_all_of_it_and_nothing_else(cluster: KruiseCluster) -> None:
    """Who may have its tokens may have them for the API server, too."""
    dump = "/journal/cloneset-controller/default/shop"
    own, for_api = (
        token_of(cluster, "kruise-system", "kruise-journal", for_the_journal=mine) for mine in (True, False)
    )
    assert "tell-nobody" in ask(dump, own)[1]
    assert ask(dump, for_api)[0] == 401
    for path in (
        "/api/v1/pods",
        "/api/v1/namespaces/default/pods",
        "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets/shop",
        "/api/v1/namespaces/kruise-system/secrets",
    ):
        for token, code in ((own, 401), (for_api, 403)):
            request = urllib.request.Request(f"{cluster.plane.url}{path}", headers={"Authorization": f"Bearer {token}"})
            with pytest.raises(urllib.error.HTTPError, match=str(code)) as refused:
                urllib.request.urlopen(request, context=ssl._create_unverified_context())
            refused.value.close()


@pytest.mark.smoke
def test_the_way_that_the_document_shows(cluster: KruiseCluster, tmp_path: Path) -> None:
    """With a token that is good for the journal alone, shown to nobody but the manager."""
    account(cluster, "documented")
    cluster.plane.kubectl("create", "role", "documented", "--verb=get", "--resource=clonesets.apps.kruise.io")
    bind(cluster, "default", "documented", "--role=documented", "--serviceaccount=default:documented")
    [script] = [
        text for text in re.findall(r"```sh\n(.*?)```", (DOCUMENTS / "journal.md").read_text(), re.S) if "curl" in text
    ]
    for told, here in (
        ("MANAGER-POD-IP:8443", f"127.0.0.1:{PORT}"),
        ("kruise-webhook-service.kruise-system.svc", "localhost"),  # this manager is no pod, and has no Service
        ("NAMESPACE", "default"),
        ("ACCOUNT", "documented"),
    ):
        assert told in script
        script = script.replace(told, here)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "NO_PROXY": "*"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert {entry["key"]["name"] for entry in json.loads(done.stdout)} == {"shop"}


def test_rights_in_one_namespace_get_a_decision_made_anew(cluster: KruiseCluster) -> None:
    bind(cluster, "default", "jane", "--clusterrole=view", "--user=jane")
    cluster.plane.kubectl("create", "role", "all-sets", "--verb=get,list", "--resource=clonesets.apps.kruise.io")
    bind(cluster, "default", "jane-sets", "--role=all-sets", "--user=jane")
    kruise = Kruise(cluster.kubeconfig)
    done = kruise("why", "cloneset/shop", "--as=jane")
    assert "from a decision made anew from the live objects" in done.out
    assert "the role kruise-journal-reader" in done.out
    assert "the role kruise-journal-reader" in kruise.refused("journal", "cloneset/shop", "--as=jane")


def account(cluster: KruiseCluster, name: str) -> str:
    """A service account of namespace default, and a token of it for the journal."""
    cluster.plane.kubectl("create", "serviceaccount", name)
    return token_of(cluster, "default", name)


def token_of(cluster: KruiseCluster, namespace: str, name: str, *, for_the_journal: bool = True) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    spec = {"audiences": [AUDIENCE]} if for_the_journal else {}
    return str(cluster.plane.request("POST", path, {"spec": spec}).ok()["status"]["token"])


def bind(cluster: KruiseCluster, namespace: str, name: str, *what: str) -> None:
    cluster.plane.kubectl("-n", namespace, "create", "rolebinding", name, *what)


def ask(path: str, token: str) -> tuple[int, str]:
    """As a pod would that found the port."""
    request = urllib.request.Request(f"https://127.0.0.1:{PORT}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def pods_of(cluster: KruiseCluster) -> list[str]:
    listed = cluster.plane.request("GET", "/api/v1/namespaces/default/pods").ok()
    return [str(item["metadata"]["name"]) for item in listed["items"]]
