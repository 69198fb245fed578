"""`kruise up` from outside, without kubectl: start, second start, status, kubeconfig, ports, and the end."""

from __future__ import annotations

import json
import os
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
    environment = {**os.environ, "KRUISE_STATE": str(tmp_path / "state")}
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
    state = State(Path(home["KRUISE_STATE"]))
    assert up.stdout.splitlines()[1] == f"  export KUBECONFIG={state.kubeconfig}"
    assert state.kubeconfig.stat().st_mode & 0o077 == 0

    again = kruise(home, "up", "--port=0")
    assert again.returncode == 1
    assert "a local cluster is running already at https://127.0.0.1:" in again.stderr

    about = json.loads(kruise(home, "status", "-o", "json").stdout)
    assert about["running"]
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
    assert kruise(home, "down").stdout == "no local cluster is running\n"
    assert kruise(home, "kubeconfig").returncode == 1


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
    assert not state.stop()
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
