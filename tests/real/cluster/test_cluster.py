"""The real control plane itself: quick, countable, restartable, and gone without a trace."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support import instances, kubebuild
from tests.support.instances import Instance
from tests.support.realcluster import ClusterError, ControlPlane, require_prerequisites

ROOT = Path(__file__).resolve().parents[3]
COMPONENTS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}


def eventually(check: Callable[[], Any], what: str, timeout: float = 20.0) -> Any:
    """Polls until `check` returns something true."""
    deadline = time.monotonic() + timeout
    while not (found := check()):
        assert time.monotonic() < deadline, f"not in {timeout} s: {what}"
        time.sleep(0.05)
    return found


def is_alive(pid: int) -> bool:
    """A zombie counts as dead: it is only waiting for its parent to take notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def can_connect(url: str) -> bool:
    host, _, port = url.removeprefix("https://").partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "nginx:alpine"}]}}


@pytest.fixture
def own_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of instances apart from the one of all other tests."""
    monkeypatch.setenv("PYKRUISE_CLUSTERS", str(tmp_path / "clusters"))
    return tmp_path / "clusters"


@pytest.mark.smoke
def test_all_components_run_and_report_the_pinned_version(control_plane: ControlPlane) -> None:
    assert control_plane.request("GET", "/version").ok()["gitVersion"] == kubebuild.kubernetes_version() == "v1.34.4"
    assert set(control_plane.pids()) == COMPONENTS


@pytest.mark.smoke
def test_a_fresh_namespace_takes_pods_at_once(control_plane: ControlPlane, namespace: str) -> None:
    """The default ServiceAccount is there: admission refuses pods without it."""
    created = control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod("first")).ok()
    assert created["spec"]["serviceAccountName"] == "default"
    assert "pod/first" in control_plane.kubectl("get", "pods", "-n", namespace, "-o", "name")


@pytest.mark.smoke
def test_controllers_and_scheduler_work(control_plane: ControlPlane, namespace: str) -> None:
    """A ReplicaSet gets its pods from the controller manager, and a played node gets them from the scheduler."""
    node = f"node-of-{namespace}"
    control_plane.request("POST", "/api/v1/nodes", {"metadata": {"name": node, "labels": {"test": namespace}}}).ok()
    try:
        control_plane.request(
            "PATCH",
            f"/api/v1/nodes/{node}/status",
            {"status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "100"}}},
        ).ok()
        spec = {**pod("")["spec"], "nodeSelector": {"test": namespace}, "tolerations": [{"operator": "Exists"}]}
        replicas = {
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
            },
        }
        control_plane.request("POST", f"/apis/apps/v1/namespaces/{namespace}/replicasets", replicas).ok()

        def bound() -> bool:
            pods = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/pods").ok()["items"]
            return [each["spec"].get("nodeName") for each in pods] == [node] * 3

        eventually(bound, "three pods bound to the node")
    finally:
        control_plane.request("DELETE", f"/api/v1/nodes/{node}").ok()


@pytest.mark.smoke
def test_audit_log_counts_requests_by_client(control_plane: ControlPlane, namespace: str) -> None:
    """Every request of a user is in the log as soon as it is answered, with verb, object and code."""
    writer = control_plane.ssl_context("writer")
    stranger = control_plane.ssl_context("stranger", groups=())
    mark = control_plane.audit_mark()
    pods = f"{control_plane.url}/api/v1/namespaces/{namespace}/pods"
    for number in range(20):
        assert send(writer, "POST", pods, pod(f"p-{number}")) == 201
    assert send(writer, "POST", pods, pod("p-0")) == 409
    assert send(writer, "GET", pods) == 200
    assert send(stranger, "GET", pods) == 403
    entries = control_plane.audit_entries(since=mark)
    by_writer = [entry for entry in entries if entry.user == "writer"]
    assert [(e.verb, e.resource, e.namespace) for e in by_writer[:20]] == [("create", "pods", namespace)] * 20
    assert [(e.name, e.code) for e in by_writer[:20]] == [(f"p-{number}", 201) for number in range(20)]
    assert [(e.verb, e.code, e.is_write) for e in by_writer[20:]] == [("create", 409, True), ("list", 200, False)]
    assert all(e.received <= e.completed and e.user_agent.startswith("Python-urllib") for e in by_writer)
    assert [(e.verb, e.code) for e in entries if e.user == "stranger"] == [("list", 403)]


def send(context: ssl.SSLContext, method: str, url: str, body: Any = None) -> int:
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, context=context, timeout=10) as response:
            response.read()
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            error.read()
            return error.code


def test_two_instances_side_by_side(fresh_control_plane: Callable[..., ControlPlane]) -> None:
    """Started at the same moment, they share neither ports nor data nor trust."""
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: fresh_control_plane(scheduler=False), range(2))
    # The threads that started them are gone; what they started must not go with them.
    assert set(first.pids()) == set(second.pids()) == COMPONENTS - {"kube-scheduler"}
    assert first.directory != second.directory
    first.create_namespace("only-in-first")
    assert first.request("GET", "/api/v1/namespaces/only-in-first").status == 200
    assert second.request("GET", "/api/v1/namespaces/only-in-first").status == 404
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        send(first.ssl_context(), "GET", f"{second.url}/version")
    first.stop()
    assert second.request("GET", "/readyz").status == 200


def test_api_server_restarts_on_the_same_port_with_the_same_data(
    fresh_control_plane: Callable[..., ControlPlane],
) -> None:
    """Killed or ended politely, it comes back where its clients look for it, and the audit log goes on."""
    cluster = fresh_control_plane(audit=True, scheduler=False)
    url, pid = cluster.url, cluster.pids()["kube-apiserver"]
    cluster.create_namespace("kept")
    uid = cluster.request("GET", "/api/v1/namespaces/kept").ok()["metadata"]["uid"]
    mark = cluster.audit_mark()
    cluster.kill_apiserver()
    assert not is_alive(pid)
    assert not can_connect(url)
    cluster.start_apiserver()
    cluster.restart_apiserver(grace=5.0)
    assert cluster.url == url
    assert cluster.request("GET", "/api/v1/namespaces/kept").ok()["metadata"]["uid"] == uid
    assert [e.code for e in cluster.audit_entries(mark) if e.user == "admin" and e.name == "kept"] == [200]
    # The controller manager lived through both and still does its work.
    cluster.create_namespace("later")


def test_stop_leaves_nothing_behind(own_instances: Path) -> None:
    """Processes, ports and files are gone."""
    with ControlPlane() as cluster:
        pids, url, directory = cluster.pids(), cluster.url, cluster.directory
        assert set(pids) == COMPONENTS
        assert directory.is_relative_to(own_instances)
    assert [pid for pid in pids.values() if is_alive(pid)] == []
    assert not can_connect(url)
    assert [path.name for path in own_instances.iterdir()] == [".lock"]
    cluster.stop()


def test_nothing_survives_a_killed_owner(own_instances: Path) -> None:
    """After SIGKILL of the tests the kernel ends the components, and the next start removes the files."""
    program = (
        "import json, time; from tests.support.realcluster import ControlPlane\n"
        "cluster = ControlPlane().start()\n"
        "print(json.dumps([str(cluster.directory), cluster.pids()]), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        try:
            directory, pids = json.loads(owner.stdout.readline())
            assert set(pids) == COMPONENTS
            assert all(is_alive(pid) for pid in pids.values())
        finally:
            owner.kill()
    eventually(lambda: not any(is_alive(pid) for pid in pids.values()), "components end with their owner", 5.0)
    assert Path(directory).exists()
    with ControlPlane(controller_manager=False, scheduler=False) as cluster:
        assert not Path(directory).exists()
        assert set(cluster.pids()) == {"etcd", "kube-apiserver"}


def test_next_start_ends_processes_that_outlived_their_owner(own_instances: Path) -> None:
    """Only processes that a pid file names and that mention the directory are ended; others with that pid are safe."""
    program = (
        "from tests.support.instances import Instance\n"
        "instance = Instance.create(name='left', ports=1, detached=True)\n"
        "print(instance.spawn('sleeper', ['/bin/sh', '-c', f'sleep 600; : {instance.directory}/x']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    sleeper = int(done.stdout)
    eventually(lambda: instances.list_instances()[0].running() == {"sleeper": sleeper}, "the sleeper is recorded")
    assert instances.remove_stale() == [], "a detached instance stays while its processes live"
    directory = own_instances / "left"
    with subprocess.Popen(["/bin/sleep", "600"]) as bystander:
        try:
            (directory / "pids" / "reused.pid").write_text(str(bystander.pid))
            record = json.loads((directory / "instance.json").read_text())
            (directory / "instance.json").write_text(json.dumps({**record, "detached": False}))
            new = Instance.create(name="new", ports=1, detached=False)
            assert not is_alive(sleeper)
            assert is_alive(bystander.pid)
            assert not directory.exists()
            new.remove()
        finally:
            bystander.kill()


@pytest.mark.smoke
def test_a_failed_start_shows_the_log_and_cleans_up(own_instances: Path) -> None:
    """The error has the component's own words."""
    with pytest.raises(ClusterError, match=r"(?s)kube-apiserver ended with code 1.*unknown flag: --no-such-flag"):
        ControlPlane(apiserver_args=["--no-such-flag"]).start()
    assert [path.name for path in own_instances.iterdir()] == [".lock"]


def test_command_line_starts_and_stops_a_detached_cluster(own_instances: Path) -> None:
    """`up` returns and leaves a cluster that works; `down` removes it; both can be said twice."""

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "tests.support.realcluster", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout

    try:
        assert "is up after" in run("up", "--name", "mine")
        assert "runs already" in run("up", "--name", "mine")
        kubeconfig = own_instances / "mine" / "admin.kubeconfig"
        kubectl = [str(kubebuild.cache_directory() / "kubectl"), f"--kubeconfig={kubeconfig}", "get", "namespaces"]
        assert "kube-system" in subprocess.run(kubectl, capture_output=True, text=True, check=True).stdout
        status = run("status")
        assert "mine: stays until `down`" in status
        pids = [int(each.rpartition(" ")[2]) for each in status.splitlines()[-1].split(", ")]
        assert len(pids) == len(COMPONENTS)
    finally:
        assert run("down", "--name", "mine") == "cluster mine is gone\n"
    assert not any(is_alive(pid) for pid in pids)
    assert run("down", "--name", "mine") == "no cluster mine runs\n"
    assert run("status") == "no clusters\n"


def test_owned_components_ignore_the_terminal(control_plane: ControlPlane) -> None:
    """Ctrl-C reaches the tests, not the components: each has a session of its own."""
    assert all(os.getsid(pid) == pid for pid in control_plane.pids().values())


def test_requirements_are_named_in_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing and how to get it, all at once."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(kubebuild.MissingPrerequisiteError) as caught:
        require_prerequisites()
    text = str(caught.value)
    assert "etcd not found on PATH: `apt-get install etcd-server`" in text
    assert "kube-apiserver, kube-controller-manager, kube-scheduler, kubectl v1.34.4 not built yet" in text
    assert "python -m tests.support.realcluster build" in text
