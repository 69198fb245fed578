"""Builds the Kubernetes binaries of the real test clusters once, and keeps them in a cache outside the checkout.

`hack/kubernetes/go.mod` pins the version. A binary is used again while the stamp beside it matches the digest of
that module and of the build flags; otherwise `ensure_binaries` builds it again. `find_binaries` never builds: tests
use it, so that a missing binary is a clear error and not a silent wait of minutes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MODULE_DIRECTORY = Path(__file__).resolve().parents[2] / "hack" / "kubernetes"
CONTROL_PLANE_BINARIES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE_BINARIES = ("kubelet", "kube-proxy")
BUILD_COMMAND = "python -m tests.support.realcluster build"

_PROGRESS_SECONDS = 15.0
# Older Go cannot fetch the toolchain that go.mod asks for by itself.
_OLDEST_GO = (1, 21)


class MissingPrerequisiteError(RuntimeError):
    """Something that a real cluster needs is not on this machine; the text says what, and how to get it."""

    def __init__(self, missing: Iterable[str]) -> None:
        self.missing = tuple(missing)
        super().__init__(
            "a real Kubernetes cannot start on this machine:\n" + "\n".join(f"- {m}" for m in self.missing)
        )


class BuildError(RuntimeError):
    """`go build` failed; the text has the end of its output."""


def kubernetes_version() -> str:
    """The version that hack/kubernetes/go.mod pins, for example `v1.34.4`."""
    found = re.search(r"^require k8s\.io/kubernetes (v\S+)$", _go_mod(), re.MULTILINE)
    if found is None:
        raise BuildError(f"{MODULE_DIRECTORY / 'go.mod'} has no line `require k8s.io/kubernetes VERSION`")
    return found[1]


def cache_directory() -> Path:
    """Where the binaries of the pinned version live."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pykruise" / "kubernetes" / kubernetes_version()


def linker_flags() -> str:
    # Without gitVersion the server reports v0.0.0 and clients complain.
    return f"-s -w -X k8s.io/component-base/version.gitVersion={kubernetes_version()}"


def build_digest() -> str:
    """Names the inputs of a build; comments in go.mod are not among them."""
    module = "\n".join(line for raw in _go_mod().splitlines() if (line := raw.partition("//")[0].strip()))
    digest = hashlib.sha256()
    for part in (module, (MODULE_DIRECTORY / "go.sum").read_text(), linker_flags(), "CGO_ENABLED=0 -trimpath"):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def is_current(name: str) -> bool:
    """Whether the cache has this binary, built from the module as it is now."""
    binary = cache_directory() / name
    try:
        return os.access(binary, os.X_OK) and _stamp(name).read_text() == build_digest()
    except FileNotFoundError:
        return False


def find_binaries(names: Iterable[str]) -> dict[str, Path]:
    """Paths of cached binaries. Raises MissingPrerequisiteError where one is missing or out of date."""
    names = tuple(names)
    if missing := [name for name in names if not is_current(name)]:
        nodes = " --nodes" if set(missing) & set(NODE_BINARIES) else ""
        raise MissingPrerequisiteError(
            [
                f"{', '.join(missing)} {kubernetes_version()} not built yet (looked in {cache_directory()}): "
                f"run `{BUILD_COMMAND}{nodes}` (5 to 8 minutes on 2 cores, once)"
            ]
        )
    return {name: cache_directory() / name for name in names}


def find_etcd() -> Path:
    if found := shutil.which("etcd", path=_path_with("/usr/sbin", "/usr/local/bin")):
        return Path(found)
    raise MissingPrerequisiteError(["etcd not found on PATH: `apt-get install etcd-server`"])


def find_go() -> Path:
    """The go command; it must be new enough to fetch the toolchain that go.mod names."""
    wanted = re.search(r"^go (\d+\.\d+)", _go_mod(), re.MULTILINE)
    remedy = f"install Go {wanted[1] if wanted else ''} or newer from https://go.dev/dl/ and put its bin folder on PATH"
    found = shutil.which("go", path=_path_with("/usr/local/go/bin", "/usr/lib/go/bin"))
    if found is None:
        raise MissingPrerequisiteError([f"go not found on PATH, and the Kubernetes binaries must be built: {remedy}"])
    said = subprocess.run([found, "version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"go(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < _OLDEST_GO:
        raise MissingPrerequisiteError([f"{found} is too old ({said.strip() or 'no version reported'}): {remedy}"])
    return Path(found)


def ensure_binaries(names: Iterable[str] = CONTROL_PLANE_BINARIES) -> dict[str, Path]:
    """Builds what the cache lacks, with progress on stderr, and returns the paths. Safe to call from two processes."""
    names = tuple(names)
    if any(not is_current(name) for name in names):
        go = find_go()
        with locked(cache_directory()):
            # Another builder may have finished while we waited for the lock.
            missing = [name for name in names if not is_current(name)]
            for number, name in enumerate(missing, start=1):
                _build(go, name, f"{name} {kubernetes_version()} ({number} of {len(missing)})")
    return find_binaries(names)


def _build(go: Path, name: str, title: str) -> None:
    directory = cache_directory()
    partial = directory / f"{name}.partial"
    log_path = directory / f"{name}.build.log"
    # An old stamp beside a new binary would be a lie if we die between the two renames.
    _stamp(name).unlink(missing_ok=True)
    command = [str(go), "build", "-v", "-trimpath", "-ldflags", linker_flags(), "-o", str(partial)]
    command.append(f"k8s.io/kubernetes/cmd/{name}")
    environment: Mapping[str, str] = {**os.environ, "CGO_ENABLED": "0"}
    began = time.monotonic()
    _say(f"building {title}")
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=MODULE_DIRECTORY, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            while process.poll() is None:
                try:
                    process.wait(_PROGRESS_SECONDS)
                except subprocess.TimeoutExpired:
                    lines = log_path.read_bytes().count(b"\n")
                    _say(f"building {title}: {time.monotonic() - began:.0f} s, {lines} modules and packages done")
        except BaseException:
            process.kill()
            process.wait()
            partial.unlink(missing_ok=True)
            raise
    if process.returncode != 0:
        partial.unlink(missing_ok=True)
        tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-30:])
        raise BuildError(f"go build of {name} failed with code {process.returncode}; the end of {log_path}:\n{tail}")
    partial.replace(directory / name)
    stamp_partial = directory / f"{name}.stamp.partial"
    stamp_partial.write_text(build_digest())
    stamp_partial.replace(_stamp(name))
    log_path.unlink()
    _say(f"built {title} in {time.monotonic() - began:.0f} s")


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"another process builds into {directory}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _stamp(name: str) -> Path:
    return cache_directory() / f"{name}.stamp"


def _go_mod() -> str:
    return (MODULE_DIRECTORY / "go.mod").read_text()


def _path_with(*more: str) -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *more])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
