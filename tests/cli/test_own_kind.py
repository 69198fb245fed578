"""A kind from outside the tree: a distribution on the path, its controller and webhooks, and every command about it."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kruise.machinery.client.errors import InvalidError
from tests.support.commandline import COMMAND, Kruise, local_cluster
from tests.support.distributions import install_toy, write_distribution
from tests.toy.api import TROUPES

GOLDEN = Path(__file__).parents[1] / "golden" / "paused.json.gz"


class Outside:
    """`kruise` in processes of its own, on whose path the package is."""

    def __init__(self, kubeconfig: Path, **environment: str) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), **environment}

    def __call__(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run([*COMMAND, *arguments], env=self._environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, f"kruise {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path of every process that is started."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")])))
    return folder


@pytest.fixture
def kubeconfig(site: Path, tmp_path: Path) -> Iterator[Path]:
    install_toy(site)
    with local_cluster(tmp_path / "state", "--nodes=2") as kubeconfig:
        yield kubeconfig


def test_a_kind_of_somebody_else_has_everything(kubeconfig: Path, tmp_path: Path) -> None:
    kruise, cluster = Outside(kubeconfig), Kruise(kubeconfig)
    band = {
        "apiVersion": "toy.pykruise.dev/v1alpha1",
        "kind": "Troupe",
        "metadata": {"name": "band"},
        "spec": {"members": 2, "image": "nginx:1.25"},
    }
    file = tmp_path / "band.json"
    file.write_text(json.dumps(band))
    assert "2 created" in kruise("plan", "-f", str(file))
    # Webhooks: one refuses, one defaults; and the conversion.
    unnamed = {**band, "apiVersion": TROUPES.api_version, "spec": {}}
    with pytest.raises(InvalidError, match="name an image"):
        cluster.create(TROUPES, unnamed)
    cluster.create(dataclasses.replace(TROUPES, version="v1alpha1"), band)
    assert cluster.talk(lambda client: client.get(TROUPES, "band", "default")).spec.replicas == 2
    # The controller, status and verbs.
    assert "all 2 pods have the new image" in kruise("rollout", "status", "troupe/band", "--timeout=60s")
    assert "scaled" in kruise("scale", "tr/band", "--replicas=3")
    kruise("rollout", "status", "troupe/band", "--timeout=60s")
    assert "Strategy:   all pods at once, in place" in kruise("describe", "rollout", "troupe/band")
    # Plan and why.
    assert "3 updated in place" in kruise("plan", "troupe/band", "--set", "spec.image=nginx:1.26")
    kruise("rollout", "pause", "troupe/band")
    cluster.talk(lambda client: client.patch(TROUPES, "band", {"spec": {"image": "nginx:1.26"}}, "default"))
    assert "the Troupe is paused [paused]" in kruise("why", "troupe/band", "--anew")
    kruise("rollout", "resume", "troupe/band")
    kruise("rollout", "status", "troupe/band", "--timeout=60s")
    # Journal and replay.
    assert "3 patch pods" in kruise("journal", "troupe/band")
    kruise("journal", "troupe/band", "--dump", str(tmp_path / "dump.json"))
    assert "equal: the same plan" in kruise("replay", str(tmp_path / "dump.json"))


def test_a_broken_package_is_told_of_and_stops_nothing(site: Path) -> None:
    write_distribution(site, "broken-kind", {"Ghost.example.com": "no_such_package"})
    kruise = Outside(site / "none")
    told = 'Warning: kind "Ghost.example.com" of the package broken-kind is left out: ModuleNotFoundError'
    assert told in kruise("install", "--print")
    assert told in kruise("-s", "http://127.0.0.1:1", "rollout", "status", "ghost/x", code=2)
    assert "Warning" not in kruise("--help")
    dump = site / "dump.json"
    dump.write_bytes(gzip.decompress(GOLDEN.read_bytes()).replace(b"cloneset-controller", b"ghost-controller"))
    assert told in kruise("replay", str(dump), code=2)


@pytest.mark.parametrize("line", ["Troupe.toy.pykruise.dev troupe", "Troupe.toy.pykruise.dev = leaves"])
def test_a_package_that_cannot_be_read_or_ends_the_process_is_told_of(site: Path, line: str) -> None:
    write_distribution(site, "broken-kind", {})
    (site / "broken_kind-1.0.dist-info" / "entry_points.txt").write_text(f"[kruise.kinds]\n{line}\n")
    (site / "leaves").mkdir()
    (site / "leaves" / "__init__.py").write_text("raise SystemExit('bye')\n")
    told = Outside(site / "none")("install", "--print")
    assert "broken-kind is left out: " in told


def test_a_cluster_tells_of_kinds_that_are_left_out_when_it_comes_up(site: Path, tmp_path: Path) -> None:
    install_toy(site)
    with (site / "troupe" / "controller.py").open("a") as file:
        file.write("raise ValueError('not today')\n")
    kruise = Outside(tmp_path / "state" / "kubeconfig", KRUISE_STATE=str(tmp_path / "state"))
    try:
        up = kruise("up", "--detach", "--port=0", "--nodes=1", "--no-merge")
        assert 'Warning: kind "Troupe.toy.pykruise.dev" of the package troupe-kind is left out: ' in up
        planned = kruise("plan", "troupe/band", "--replicas=2", code=1)
        assert "a Troupe cannot be planned: the code of its controller is not here" in planned
    finally:
        kruise("down")
