"""Applying what is there changes nothing: on a real API server, and with real kubectl on both."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kruise.kinds import features
from tests.support import kubebuild
from tests.support.applied_twice import GATES, applied_twice, cases, lost, served, write_manifests
from tests.support.commandline import local_cluster
from tests.support.kruisecluster import ALONE, KruiseCluster


@pytest.fixture(scope="module")
def kruise() -> Iterator[KruiseCluster]:
    with KruiseCluster(nodes=0, flags=(*ALONE, f"--feature-gates={GATES}")) as cluster:
        yield cluster


def test_every_manifest_in_every_version_by_every_way(kruise: KruiseCluster) -> None:
    kruise.plane.create_namespace("twice")

    async def run() -> int:
        async with kruise.world("twice") as world:
            return await applied_twice(world, features())

    assert asyncio.run(run()) == len(cases(features()))


@pytest.mark.smoke
def test_kubectl_finds_nothing_to_do_on_a_real_cluster(kruise: KruiseCluster, tmp_path: Path) -> None:
    kruise.plane.create_namespace("kubectl")
    _apply_twice(kruise.kubeconfig, tmp_path, "--namespace=kubectl")


def test_kubectl_finds_nothing_to_do_on_the_local_cluster(tmp_path: Path) -> None:
    """Without nodes, too: on some, jobs with a time to live would come to their end and go."""
    with local_cluster(tmp_path / "state", "--nodes=0") as kubeconfig:
        _apply_twice(kubeconfig, tmp_path)


def _apply_twice(kubeconfig: Path, folder: Path, *flags: str) -> None:
    file = folder / "manifests.yaml"
    count = write_manifests(features(), file)

    def kubectl(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(kubebuild.cache_directory() / "kubectl"), f"--kubeconfig={kubeconfig}", *flags, *words]
        return subprocess.run([*command, "-f", str(file)], capture_output=True, text=True, timeout=300)

    specs = {case.name: case.manifest["spec"] for case in cases(features())}
    several = {kind for (_, kind), versions in served(features()).items() if len(versions) > 1}

    def generations() -> dict[str, int]:
        """What is stored says what the manifests say; the rest shows in the generation."""
        objects = json.loads(kubectl("get", "-o", "json").stdout)["items"]
        assert len(objects) == count
        missing = [
            f"{obj['apiVersion']} {name}: {what}"
            for obj in objects
            for name in (obj["metadata"]["name"],)
            for what in lost(specs[name], obj["spec"])
        ]
        assert not missing, "\n".join(missing)
        return {obj["metadata"]["name"]: obj["metadata"]["generation"] for obj in objects}

    def without_status() -> list[str]:
        """The manager writes a status in a version that may not be the user's: fields get owners in both."""
        objects = json.loads(kubectl("get", "-o", "json").stdout)["items"]
        return [obj["metadata"]["name"] for obj in objects if obj["kind"] in several and not obj.get("status")]

    done = kubectl("apply")
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 60
    while waiting := without_status():
        assert time.monotonic() < deadline, f"without a status: {waiting}"
    before = generations()
    for ways in ([], ["--server-side", "--force-conflicts"]):
        for _ in range(2):
            # It may say "configured": it sends lists of custom resources whole, and the server finds nothing changed.
            again = kubectl("apply", *ways)
            assert (again.returncode, generations()) == (0, before), again.stderr
        # Between its two reads the manager may write a status, as long as pods are coming up.
        deadline = time.monotonic() + 60
        while (different := kubectl("diff", *ways)).returncode:
            assert time.monotonic() < deadline, different.stdout + different.stderr
