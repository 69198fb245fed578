"""Applying what is there changes nothing: on a real API server, and with real kubectl on both."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kruise.kinds import features
from tests.support import kubebuild
from tests.support.applied_twice import applied_twice, write_manifests
from tests.support.commandline import local_cluster
from tests.support.kruisecluster import ALONE, KruiseCluster


@pytest.fixture(scope="module")
def kruise() -> Iterator[KruiseCluster]:
    with KruiseCluster(nodes=0, flags=ALONE) as cluster:
        yield cluster


def test_every_manifest_in_every_version_by_every_way(kruise: KruiseCluster) -> None:
    kruise.plane.create_namespace("twice")

    async def run() -> int:
        async with kruise.world("twice") as world:
            return await applied_twice(world, features())

    assert asyncio.run(run()) > 40


@pytest.mark.smoke
def test_kubectl_finds_nothing_to_do_on_a_real_cluster(kruise: KruiseCluster, tmp_path: Path) -> None:
    kruise.plane.create_namespace("kubectl")
    _apply_twice(kruise.kubeconfig, tmp_path, "--namespace=kubectl")


def test_kubectl_finds_nothing_to_do_on_the_local_cluster(tmp_path: Path) -> None:
    with local_cluster(tmp_path / "state") as kubeconfig:
        _apply_twice(kubeconfig, tmp_path)


def _apply_twice(kubeconfig: Path, folder: Path, *flags: str) -> None:
    file = folder / "manifests.yaml"
    count = write_manifests(features(), file)

    def kubectl(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(kubebuild.cache_directory() / "kubectl"), f"--kubeconfig={kubeconfig}", *flags, *words]
        return subprocess.run([*command, "-f", str(file)], capture_output=True, text=True, timeout=300)

    def generations() -> str:
        return kubectl("get", "-o", "custom-columns=NAME:.metadata.name,GENERATION:.metadata.generation").stdout

    for ways in ([], ["--server-side", "--force-conflicts"]):
        done = kubectl("apply", *ways)
        assert done.returncode == 0, done.stderr
        before = generations()
        assert len(before.splitlines()) == count + 1
        # It may say "configured": it sends lists of custom resources whole, and the server finds nothing changed.
        again = kubectl("apply", *ways)
        assert (again.returncode, generations()) == (0, before), again.stderr
        different = kubectl("diff", *ways)
        assert (different.returncode, different.stdout) == (0, ""), different.stdout + different.stderr
