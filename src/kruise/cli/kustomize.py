"""`-k DIR`: kubectl builds it, since it has kustomize in it."""

from __future__ import annotations

import shutil
import subprocess

from kruise.verbs.errors import UsageError


def built(directory: str) -> str:
    """What `kubectl kustomize` prints."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise UsageError(
            f"-k {directory}: there is no kubectl on the PATH to build it with;"
            f" elsewhere: kustomize build {directory} | kruise plan -f -"
        )
    done = subprocess.run([kubectl, "kustomize", directory], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"kubectl kustomize {directory}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout
