"""What is in this tree's image, and that it runs as nobody on a file system to which nothing can be written."""

from __future__ import annotations

import gzip
import io
import json
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.image import build
from hack.image.build import Built
from kruise import release

pytestmark = [pytest.mark.nodes, pytest.mark.together("image")]  # it takes root, and what is built for real nodes

_AS_NOBODY = """
import os, sys
root, command = sys.argv[1], sys.argv[2:]
os.chroot(root)
os.chdir("/")
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
os.execve(command[0], command, {"PATH": "/usr/local/bin:/usr/bin"})
"""
_IMPORT_ALL = """
import importlib, pkgutil, kruise
names = [each.name for each in pkgutil.walk_packages(kruise.__path__, "kruise.")]
for name in names:
    importlib.import_module(name)
import uvloop
print(len(names))
"""


@pytest.fixture(scope="module")
def built() -> Built:
    return build.find(build.own_architecture())


@pytest.fixture(scope="module")
def members(built: Built) -> dict[str, tarfile.TarInfo]:
    return {each.name: each for tar in _layers(built) for each in tar}


@pytest.fixture(scope="module")
def root(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All of it in a directory that is mounted read-only for whoever runs in it."""
    root = tmp_path_factory.mktemp("image")
    root.chmod(0o755)
    for tar in _layers(built):
        more: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
        tar.extractall(root, **more)
    return root


def _layers(built: Built) -> Iterator[tarfile.TarFile]:
    for layer in json.loads(built.image.manifest)["layers"]:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(built.image.blobs[layer["digest"]]))) as tar:
            yield tar


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    script = f'mount --bind {root} {root} && mount -o remount,bind,ro {root} && exec "$@"'
    inside = [sys.executable, "-c", _AS_NOBODY, str(root), *command]
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *inside], capture_output=True, text=True, check=False
    )


def test_there_is_no_shell_and_nothing_that_others_may_change(members: dict[str, tarfile.TarInfo]) -> None:
    programs = {
        name for name in members if name.startswith(("bin/", "sbin/", "usr/bin/", "usr/sbin/", "usr/local/bin/"))
    }
    assert programs == {"usr/bin/python3", "usr/bin/python3.11", "usr/local/bin/kruise", "usr/local/bin/kubectl-kruise"}
    assert {(each.uid, each.gid) for each in members.values()} == {(0, 0)}
    assert not [name for name, each in members.items() if each.mode & (stat.S_ISUID | stat.S_ISGID)]
    writable = {name for name, each in members.items() if each.mode & stat.S_IWOTH and not each.issym()}
    assert writable == {"tmp"}


def test_the_bill_names_all_that_is_there(built: Built, members: dict[str, tarfile.TarInfo]) -> None:
    named = {each["name"].lower().replace("-", "_") for each in built.bill["components"]}
    packages = {Path(name).name for name in members if name.startswith("var/lib/dpkg/status.d/")}
    distributions = {
        Path(name).parent.name.partition("-")[0] for name in members if name.endswith(".dist-info/METADATA")
    }
    assert {each.lower().replace("-", "_") for each in packages | distributions} - {"pykruise"} == named
    assert built.bill["metadata"]["component"]["hashes"][0]["content"] == built.image.digest.removeprefix("sha256:")


def test_it_is_nobodys_by_itself(built: Built) -> None:
    manifest = json.loads(built.image.manifest)
    running = json.loads(built.image.blobs[manifest["config"]["digest"]])["config"]
    # A number: of a name, nobody could tell beforehand that it is not root's.
    assert (running["User"], running["Entrypoint"]) == ("65534:65534", ["kruise"])
    assert len(manifest["layers"]) == 3
    assert built.image.size < 60_000_000


def test_everything_loads_as_nobody_on_a_read_only_file_system(root: Path) -> None:
    said = run(root, "/usr/local/bin/kruise", "--version")
    assert release() in said.stdout, said.stderr
    loaded = run(root, "/usr/bin/python3", "-c", _IMPORT_ALL)
    assert int(loaded.stdout) > 500, loaded.stderr
    refused = run(root, "/usr/bin/python3", "-c", "open('/tmp/x', 'w')")
    assert "Read-only file system" in refused.stderr
    missing = run(root, "/usr/bin/python3", "-c", "import subprocess; subprocess.run('true', shell=True)")
    assert "/bin/sh" in missing.stderr


def test_nothing_is_compiled_at_run_time(root: Path) -> None:
    """Each module has its compiled form, which names its place in the image."""
    program = "import kruise.cli.main, aiohttp, sys; m = sys.modules; print(*(each.__cached__ for each in m.values() \
if getattr(each, '__cached__', None)), sep='\\n')"
    found = run(root, "/usr/bin/python3", "-c", program).stdout.split()
    assert len(found) > 100
    assert [name for name in found if not (root / name.lstrip("/")).is_file()] == []
