"""Builds Helm once from its Go module, as `hack/helm/go.mod` pins it, and keeps it in the cache.

`find` never builds: a test that needs Helm fails with a clear error where `make helm-build` has not been run.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.support import kubebuild
from tests.support.kubebuild import BuildError, MissingPrerequisiteError

MODULE = Path(__file__).resolve().parents[2] / "hack" / "helm"
COMMAND = "python -m tests.support.helmbuild"
_GO = "helm.sh/helm/v3"


def version() -> str:
    return _required(rf"require {re.escape(_GO)} (v\S+)", f"require {_GO} VERSION")


def _required(pattern: str, example: str) -> str:
    found = re.search(rf"^{pattern}$", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise BuildError(f"{MODULE / 'go.mod'} has no line `{example}`")
    return found[1]


def _build_flags() -> tuple[str, ...]:
    # Without these Helm takes itself for one of Kubernetes 1.20, for which `helm template` refuses the chart.
    minor = _required(r"\tk8s\.io/client-go v0\.(\d+)\.\d+ // indirect", "k8s.io/client-go v0.MINOR.PATCH // indirect")
    values = {f"{_GO}/internal/version.version": version()}
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        values |= {f"{_GO}/{package}.k8sVersionMajor": "1", f"{_GO}/{package}.k8sVersionMinor": minor}
    return ("-trimpath", "-ldflags", " ".join(["-s -w", *(f"-X {name}={value}" for name, value in values.items())]))


def find() -> Path:
    """The built program."""
    program = _directory() / "helm"
    if not os.access(program, os.X_OK):
        raise MissingPrerequisiteError(
            [f"Helm {version()} not built yet (looked in {program.parent}): run `{COMMAND}`"]
        )
    return program


def ensure() -> Path:
    """Builds it unless it is there."""
    directory = _directory()
    directory.mkdir(parents=True, exist_ok=True)
    with kubebuild.locked(directory):
        if not (directory / "helm").exists():
            _build(directory / "helm")
    return find()


def _directory() -> Path:
    digest = hashlib.sha256(" ".join(_build_flags()).encode())
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes())
    return kubebuild.cache_directory().parents[1] / "helm" / f"{version()}-{digest.hexdigest()[:16]}"


def _build(target: Path) -> None:
    partial = target.with_suffix(".partial")
    command = [str(kubebuild.find_go()), "build", *_build_flags(), "-o", str(partial), f"{_GO}/cmd/helm"]
    print(f"building Helm {version()}", file=sys.stderr, flush=True)
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=MODULE, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"go build of Helm failed with code {done.returncode}:\n{done.stderr[-3000:]}")
    partial.replace(target)
    print(f"built Helm {version()} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        print(ensure())
    except (BuildError, MissingPrerequisiteError) as error:
        sys.exit(str(error))
