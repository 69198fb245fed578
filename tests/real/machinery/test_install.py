"""Installing, upgrading and removing on a real API server, and the manager with no more rights than it is given."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.meta import PartialObject
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.resource import Resource
from kruise.feature import Feature
from kruise.kinds import features
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.clock import RealClock
from kruise.manager.installation.installer import InstallationError, Installed, Installer
from kruise.manager.installation.manifests import manifests
from kruise.manager.installation.removal import Remover
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.manifests import cloneset_manifest
from tests.support.ports import free_port
from tests.support.realcluster import ControlPlane
from tests.support.waiting import eventually
from tests.toy.api import DEFINITION, TROUPES
from tests.toy.controller import FEATURE as TOY

pytestmark = pytest.mark.long

RBAC = "/apis/rbac.authorization.k8s.io/v1"
OWN_NAMESPACES = ("kruise-system", "kruise-daemon-config")


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    client = Client(HttpTransport(load(control_plane.kubeconfig)))
    yield client
    await client.close()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def installer(client: Client, said: list[str]) -> Installer:
    return Installer(client, clock=RealClock(), report=said.append)


@pytest.fixture
def remover(client: Client, said: list[str]) -> Remover:
    return Remover(client, clock=RealClock(), report=said.append)


def _kruise(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kruise.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def _start_manager(log: Path, *flags: str, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kruise.cli.main", "manager", *flags]
    with log.open("wb") as file:
        return subprocess.Popen(command, stderr=file, env={**os.environ, **environment})


@pytest.mark.smoke
async def test_the_command_installs_repeats_and_removes(fresh_control_plane: Callable[..., ControlPlane]) -> None:
    cluster = fresh_control_plane(scheduler=False)
    first = _kruise("install", f"--kubeconfig={cluster.kubeconfig}")
    assert first.returncode == 0, first.stderr
    count = len(manifests(features()))
    assert first.stdout.splitlines()[-1].startswith(f"installed: {count} created, 0 configured, 0 unchanged")
    # Nothing is intercepted before a manager serves: the namespace's default account can still make pods.
    pod = {"metadata": {"name": "free"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert cluster.request("POST", "/api/v1/namespaces/default/pods", pod).status == 201

    again = _kruise("install", KUBECONFIG=str(cluster.kubeconfig))
    assert again.stdout.splitlines()[-1].startswith(f"installed: 0 created, 0 configured, {count} unchanged")

    # A manager outside the cluster has put its own address into the conversion: that stays.
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clonesets.apps.kruise.io"
    live = cluster.request("GET", definition).ok()
    live["spec"]["conversion"]["webhook"]["clientConfig"] = {"url": "https://127.0.0.1:9443/convert"}
    cluster.request("PUT", definition, live).ok()
    after = _kruise("install", KUBECONFIG=str(cluster.kubeconfig))
    assert after.returncode == 0, after.stderr
    kept = cluster.request("GET", definition).ok()["spec"]["conversion"]["webhook"]["clientConfig"]
    assert kept == {"url": "https://127.0.0.1:9443/convert"}

    gone = _kruise("uninstall", f"--kubeconfig={cluster.kubeconfig}")
    assert gone.returncode == 0, gone.stderr
    assert gone.stdout.splitlines()[-1] == f"uninstalled: {count} objects deleted"
    assert cluster.request("GET", f"{RBAC}/clusterroles/kruise-manager-role").status == 404

    # The namespaces are still going: whoever installs at once waits for them.
    back = _kruise("install", f"--kubeconfig={cluster.kubeconfig}")
    assert back.returncode == 0, back.stderr
    assert back.stdout.splitlines()[-1].startswith(f"installed: {count} created, 0 configured, 0 unchanged")
    gone = _kruise("uninstall", f"--kubeconfig={cluster.kubeconfig}")
    assert gone.returncode == 0, gone.stderr

    async def namespaces_gone() -> None:
        assert [cluster.request("GET", f"/api/v1/namespaces/{name}").status for name in OWN_NAMESPACES] == [404, 404]

    await eventually(namespaces_gone, within=60)
    nothing = _kruise("uninstall", f"--kubeconfig={cluster.kubeconfig}")
    assert nothing.stdout == "nothing to remove\n"


def test_without_a_cluster_the_error_is_clear(tmp_path: Path) -> None:
    done = _kruise("install", KUBECONFIG=str(tmp_path / "none"), HOME=str(tmp_path), KUBERNETES_SERVICE_HOST="")
    assert done.returncode == 1
    assert "no cluster is configured" in done.stderr
    assert "Traceback" not in done.stderr


def _two_versions(storage: str) -> Feature:
    """The toy kind with a second version, as a later release would ship it."""
    definition: Any = copy.deepcopy(DEFINITION)
    first = next(version for version in definition["spec"]["versions"] if version["name"] == "v1")
    del definition["spec"]["conversion"]
    versions = [{**first, "name": name, "storage": name == storage} for name in ("v1", "v2")]
    definition["spec"]["versions"] = versions
    return dataclasses.replace(TOY, definitions=(definition,))


async def test_an_upgrade_rewrites_what_older_versions_stored(
    installer: Installer, remover: Remover, client: Client, namespace: str, said: list[str]
) -> None:
    definitions = _two_versions("v1").definitions
    await installer.install(definitions)
    for number in range(7):
        body = {"apiVersion": TROUPES.api_version, "kind": "Troupe", "metadata": {"name": f"t{number}"}}
        await client.create(TROUPES, body, namespace)

    done = await installer.install(_two_versions("v2").definitions)
    assert done == Installed(configured=1, rewritten=7)
    definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "troupes.toy.pykruise.dev")
    assert definition.status.stored_versions == ("v2",)
    assert said[-1] == "troupes.toy.pykruise.dev: 7 objects rewritten in v2, stored versions no longer list v1"
    newer = Resource(TROUPES.group, "v2", "troupes", "Troupe", True, PartialObject)
    assert len((await client.list(newer, namespace)).items) == 7

    assert await installer.install(_two_versions("v2").definitions) == Installed(unchanged=1)
    with pytest.raises(InstallationError, match=r"7 troupes\.toy\.pykruise\.dev.*--with-resources"):
        await remover.uninstall(definitions)
    assert await remover.uninstall(definitions, with_resources=True) == 1


@pytest.fixture
def managed() -> Iterator[KruiseCluster]:
    with KruiseCluster(nodes=2, flags=ALONE) as started:
        yield started


async def test_everything_goes_after_the_manager_was_killed(managed: KruiseCluster) -> None:
    """Its webhooks are still registered, its conversion too: deletes are refused, and v1alpha1 cannot be read."""
    path, kubeconfig = "/apis/apps.kruise.io/{}/namespaces/default/clonesets/web", str(managed.kubeconfig)
    async with managed.world("default") as world:
        await world.create(cloneset_manifest("web"))

        async def running() -> None:
            assert [pod["status"].get("phase") for pod in await world.pods()] == ["Running"] * 3

        await world.until(running)
        managed.kill_manager()
        assert managed.plane.request("DELETE", path.format("v1beta1")).status == 500
        assert managed.plane.request("GET", path.format("v1alpha1")).status == 500
        refused = _kruise("uninstall", KUBECONFIG=kubeconfig)
        assert (refused.returncode, "1 clonesets.apps.kruise.io" in refused.stderr) == (1, True), refused.stderr
        opened = _kruise("uninstall", "--webhooks-only", KUBECONFIG=kubeconfig)
        assert opened.returncode == 0, opened.stderr

        async def accepted() -> None:
            try:
                await world.client.patch(CLONE_SETS, "web", {"spec": {"replicas": 4}}, "default")
            except ClientError as error:
                raise AssertionError("the API server has not heard of it yet") from error

        await world.until(accepted)
        asked = _kruise("why", "cloneset/web", KUBECONFIG=kubeconfig)
        assert (asked.returncode, "no manager has ever led in this cluster" in asked.stdout) == (3, True), asked.stdout
        done = _kruise("uninstall", "--with-resources", KUBECONFIG=kubeconfig)
        assert done.returncode == 0, done.stderr
        assert await world.pods() == []
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clonesets.apps.kruise.io"
    assert managed.plane.request("GET", definition).status == 404


@pytest.mark.smoke
async def test_the_manager_needs_no_more_than_its_role(
    fresh_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    """Leads, keeps certificates and registrations, answers health and metrics, and ends in order on SIGTERM."""
    cluster = fresh_control_plane(scheduler=False)
    assert _kruise("install", f"--kubeconfig={cluster.kubeconfig}").returncode == 0
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}
    for path, kind, role in (
        (f"{RBAC}/clusterrolebindings", "ClusterRole", "kruise-manager-role"),
        (f"{RBAC}/namespaces/kruise-system/rolebindings", "Role", "kruise-leader-election-role"),
    ):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        cluster.request("POST", path, {"metadata": {"name": "limited"}, "roleRef": reference, "subjects": [user]}).ok()
    health, metrics, journal = free_port(), free_port(), free_port()
    log = tmp_path / "manager.log"
    manager = _start_manager(
        log,
        f"--kubeconfig={cluster.kubeconfig_for('limited', groups=())}",
        f"--health-probe-addr=127.0.0.1:{health}",
        f"--metrics-addr=127.0.0.1:{metrics}",
        f"--journal-addr=127.0.0.1:{journal}",
        f"--protection-log-path={tmp_path}",
        "--expectation-timeout=1m",
        WEBHOOK_PORT=str(free_port()),
        WEBHOOK_CERT_DIR=str(tmp_path / "certs"),
    )
    try:

        def ask(port: int, path: str, scheme: str = "http", token: str = "") -> tuple[int, str]:
            request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}{path}")
            request.add_header("Authorization", f"Bearer {token}")
            try:
                with urllib.request.urlopen(request, timeout=5, context=ssl._create_unverified_context()) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()
            except OSError:
                return 0, ""

        async def ready() -> None:
            code, text = await asyncio.to_thread(ask, health, "/readyz")
            assert (code, text.splitlines()[:1]) == (200, ["[+]webhook-ready ok"]), text

        await eventually(ready, within=90)
        assert ask(health, "/healthz") == (200, "ok")

        async def leads() -> None:
            assert "kruise_manager_is_leader 1.0" in (await asyncio.to_thread(ask, metrics, "/metrics"))[1]

        await eventually(leads, within=90)
        assert ask(metrics, "/journal")[0] == 404
        accounts = "/api/v1/namespaces/kruise-system/serviceaccounts"
        for name, spec, code in (
            ("kruise-journal", {"audiences": ["kruise-journal"]}, 200),
            ("kruise-journal", {}, 401),
            ("kruise-journal", {"audiences": ["somebody-else"]}, 401),
            ("default", {"audiences": ["kruise-journal"]}, 403),
            ("default", {}, 401),
        ):
            token = cluster.request("POST", f"{accounts}/{name}/token", {"spec": spec}).ok()["status"]["token"]
            assert ask(journal, "/journal", "https", token)[0] == code
        secret = cluster.request("GET", "/api/v1/namespaces/kruise-system/secrets/kruise-webhook-certs").ok()
        assert {"ca-cert.pem", "ca-key.pem", "cert.pem", "key.pem", "tls.crt", "tls.key"} <= set(secret["data"])
    finally:
        manager.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(manager.wait, 20)
    text = log.read_text()
    assert code == 0, text
    assert "forbidden" not in text.lower()
    assert "--expectation-timeout has no effect" in text
    lease = cluster.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kruise-system/leases/kruise-manager").ok()
    assert lease["spec"]["holderIdentity"] == ""
