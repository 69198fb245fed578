"""`kruise up` from outside, without kubectl: start, second start, status, kubeconfig, ports, and the end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kruise.api.native.nodes import NODES
from kruise.api.native.storage import STORAGE_CLASSES
from kruise.cli.up import kubectl_trouble
from kruise.local.state import Running, State, StateError, directory, process_start
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    """With a kubeconfig of its own, which is not there yet."""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    environment |= {"KRUISE_STATE": str(tmp_path / "state"), "HOME": str(tmp_path)}
    yield environment
    subprocess.run([sys.executable, "-m", "kruise.cli.main", "down"], env=environment, capture_output=True, check=False)


def kruise(home: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kruise.cli.main", *arguments]
    return subprocess.run(command, env=home, capture_output=True, text=True, check=False, timeout=60)


async def test_up_status_kubeconfig_and_down(home: dict[str, str]) -> None:
    nothing = kruise(home, "status")
    assert (nothing.returncode, nothing.stdout) == (1, "no local cluster is running: kruise up starts one\n")

    up = kruise(home, "up", "--detach", "--port=0", "--nodes=2", "--zones=x,y")
    assert up.returncode == 0, up.stderr
    state, config = State(Path(home["KRUISE_STATE"])), Path(home["HOME"]) / ".kube" / "config"
    assert up.stdout.splitlines()[1:3] == [f'  context "kruise" is the current one in {config}', "  kubectl get nodes"]
    assert state.kubeconfig.stat().st_mode & 0o077 == 0
    assert config.stat().st_mode & 0o077 == 0

    again = kruise(home, "up", "--port=0")
    assert again.returncode == 1
    assert "a local cluster is running already at https://127.0.0.1:" in again.stderr

    about = json.loads(kruise(home, "status", "-o", "json").stdout)
    assert about["running"]
    assert (about["context"], about["mergedInto"]) == ("kruise", str(config))
    assert load(config).server == about["url"]
    assert kruise(home, "kubeconfig", "--path").stdout.strip() == about["kubeconfig"]
    assert "certificate-authority-data" in kruise(home, "kubeconfig").stdout

    client = Client(HttpTransport(load(state.kubeconfig)))
    nodes = (await client.list(NODES)).items
    storage_classes = (await client.list(STORAGE_CLASSES)).items
    await client.close()
    assert [node.metadata.labels["topology.kubernetes.io/zone"] for node in nodes] == ["x", "y"]
    assert [each.metadata.name for each in storage_classes] == ["standard"]
    assert storage_classes[0].metadata.annotations == {"storageclass.kubernetes.io/is-default-class": "true"}

    assert kruise(home, "down").stdout == "local Kubernetes is down\n"
    assert process_start(about["pid"]) == ""
    assert "127.0.0.1" not in config.read_text()
    assert kruise(home, "down").stdout == "no local cluster is running\n"
    assert kruise(home, "kubeconfig").returncode == 1


def test_a_cluster_that_was_killed_is_named_and_forgotten(home: dict[str, str], tmp_path: Path) -> None:
    """Its context stays behind, in a file that is not the usual one, and says what to do."""
    config = tmp_path / "mine"
    config.write_text("contexts: [{name: other, context: {cluster: other}}]\ncurrent-context: other\n")
    assert kruise(home | {"KUBECONFIG": str(config)}, "up", "--detach", "--port=0", "--nodes=0").returncode == 0
    about = json.loads(kruise(home, "status", "-o", "json").stdout)
    os.kill(about["pid"], signal.SIGKILL)
    for kubeconfig in (config, about["kubeconfig"]):
        for command in (("rollout", "status", "cloneset/web"), ("uninstall",)):
            refused = kruise(home | {"KUBECONFIG": str(kubeconfig)}, *command)
            assert refused.returncode == 1
            assert refused.stderr.endswith(
                f"{about['url']}: connection refused. The local cluster there does not run any more: "
                "kruise up starts one\n"
            )
    elsewhere = kruise(
        home | {"KUBECONFIG": str(config)}, "rollout", "status", "cloneset/web", "--server", about["url"]
    )
    assert "Connection refused" in elsewhere.stderr
    assert "kruise up" not in elsewhere.stderr, "whose address it is was not said"

    assert kruise(home, "down").stdout == "no local cluster is running\n"
    assert "kruise" not in config.read_text()
    assert "name: other" in config.read_text()


def test_a_cluster_apart_is_found_where_nothing_else_is_configured(home: dict[str, str], tmp_path: Path) -> None:
    up = kruise(home, "up", "--detach", "--port=0", "--nodes=0", "--no-merge")
    state = State(Path(home["KRUISE_STATE"]))
    assert up.stdout.splitlines()[1] == f"  export KUBECONFIG={state.kubeconfig}"
    assert not (tmp_path / ".kube").exists()
    running = state.running()
    assert running is not None

    asked = ("rollout", "status", "cloneset/web")
    note = f"note: no other cluster is configured: this is the local one at {running.url}\n"
    not_there = 'Error: clonesets.apps.kruise.io "web" not found in namespace "default"\n'
    assert kruise(home, *asked).stderr == note + not_there
    assert kruise(home | {"KUBECONFIG": str(state.kubeconfig)}, *asked).stderr == not_there
    with_address = kruise(home, *asked, "--server", running.url)
    assert "note" not in with_address.stderr, "the keys of the local cluster are for its own address"
    assert with_address.returncode == 1
    chosen = tmp_path / "chosen"
    chosen.write_text(json.dumps({"current-context": "gone"}))
    assert 'there is no context "gone"' in kruise(home | {"KUBECONFIG": str(chosen)}, *asked).stderr

    assert kruise(home, "down").stdout == "local Kubernetes is down\n"
    assert kruise(home, *asked).stderr == (
        f"Error: no cluster is configured: {tmp_path / '.kube' / 'config'} does not exist and this is no pod. "
        "Set KUBECONFIG or name a file; kruise up starts a local cluster.\n"
    )


def test_two_clusters_do_not_get_in_each_others_way(home: dict[str, str], tmp_path: Path) -> None:
    other = home | {"KRUISE_STATE": str(tmp_path / "other")}
    config = tmp_path / ".kube" / "config"
    try:
        for environment in (home, other):
            assert kruise(environment, "up", "--detach", "--port=0", "--nodes=0", "--bare").returncode == 0
        urls = [State(Path(environment["KRUISE_STATE"])).running() for environment in (home, other)]
        assert [load(config, context=name).server for name in ("kruise", "kruise-2")] == [
            running.url for running in urls if running is not None
        ]
        kruise(home, "down")
        assert load(config).context == "kruise-2"
    finally:
        kruise(other, "down")
    assert "127.0.0.1" not in config.read_text()


def test_of_two_that_start_at_once_the_second_leaves_the_first_alone(home: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kruise.cli.main", "up", "--detach", "--port=0", "--nodes=0", "--bare"]
    both = [subprocess.Popen(command, env=home, stdout=-1, stderr=-1, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in both]
    assert sorted(process.returncode for process in both) == [0, 1], answers
    [(up, _)] = [answer for process, answer in zip(both, answers, strict=True) if process.returncode == 0]
    [(_, refused)] = [answer for process, answer in zip(both, answers, strict=True) if process.returncode == 1]
    assert re.match(r"Error: a local cluster is (starting|running already)", refused)

    about = json.loads(kruise(home, "status", "-o", "json").stdout)
    assert up.startswith(f"local Kubernetes is up at {about['url']} (pid {about['pid']})\n")
    assert load(tmp_path / ".kube" / "config").server == about["url"]
    assert kruise(home, "down").stdout == "local Kubernetes is down\n"


def test_one_that_is_starting_is_not_disturbed(home: dict[str, str]) -> None:
    starting = "Error: a local cluster is starting or ending right now: kruise status tells when it is up\n"
    with State(Path(home["KRUISE_STATE"])).held():
        for command in (["up", "--port=0"], ["up", "--detach", "--port=0"], ["down"]):
            refused = kruise(home, *command)
            assert (refused.returncode, refused.stderr) == (1, starting)
    assert kruise(home, "down").stdout == "no local cluster is running\n"


def test_a_kubeconfig_that_cannot_be_changed_is_left_alone(home: dict[str, str], tmp_path: Path) -> None:
    """The cluster comes up all the same, and it is said how to reach it."""
    config = tmp_path / ".kube" / "config"
    config.parent.mkdir()
    config.write_text("- no kubeconfig\n")
    up = kruise(home, "up", "--detach", "--port=0", "--nodes=0", "--bare")
    assert up.stderr == f"Warning: {config} is no kubeconfig. The context of this cluster was not added to it\n"
    assert up.stdout.splitlines()[1].startswith("  export KUBECONFIG=")
    down = kruise(home, "down")
    assert (down.returncode, down.stdout) == (0, "local Kubernetes is down\n")
    assert config.read_text() == "- no kubeconfig\n"


def test_interrupt_ends_it_cleanly(home: dict[str, str]) -> None:
    command = [sys.executable, "-m", "kruise.cli.main", "up", "--port=0", "--nodes=1"]
    process = subprocess.Popen(command, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("local Kubernetes is up at https://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    said, complaint = process.communicate(timeout=20)
    assert process.returncode == 0, complaint
    assert said.endswith("local Kubernetes is down\n")
    assert complaint == ""
    assert State(Path(home["KRUISE_STATE"])).running() is None
    assert "127.0.0.1" not in (Path(home["HOME"]) / ".kube" / "config").read_text()


def test_a_taken_port_is_named(home: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for arguments in (["up", f"--port={port}"], ["up", "--detach", f"--port={port}"]):
            done = kruise(home, *arguments)
            assert done.returncode == 1
            assert done.stderr == (
                f"Error: port {port} is taken by another program: choose another with --port, "
                "or --port 0 for any free one\n"
            )


def test_a_state_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = kruise({**os.environ, "KRUISE_STATE": str(tmp_path / "file" / "below")}, "up")
    assert done.returncode == 1
    assert "cannot be made: Not a directory. Set KRUISE_STATE to another place." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State(tmp_path)
    running = Running(pid=os.getpid(), url="https://x", started="now", process_start=process_start(os.getpid()))
    state.write(running, "first")

    def full(fd: int, *args: object, **options: object) -> None:
        os.close(fd)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(StateError, match=r"kubeconfig cannot be written: No space left on device"):
        state.write(running, "second")
    assert state.kubeconfig.read_text() == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster.json", "kubeconfig"]


def test_traces_of_a_dead_cluster_are_no_cluster(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.write(Running(pid=os.getpid(), url="https://x", started="now", process_start="1"), "config")
    assert state.running() is None
    assert state.recorded() is not None
    assert not state.stop()
    state.clear()
    assert not state.kubeconfig.exists()


def test_where_the_traces_are() -> None:
    assert directory({"KRUISE_STATE": "/a"}) == Path("/a")
    assert directory({"XDG_STATE_HOME": "/b"}) == Path("/b/kruise")


def test_a_kubectl_that_is_there_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take its time, or be something else of that name."""
    tool = tmp_path / "kubectl"
    tool.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert kubectl_trouble() == ""
    assert not (tmp_path / "was-run").exists()


def test_a_missing_kubectl_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no kubectl on the PATH" in kubectl_trouble()
