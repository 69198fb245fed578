"""The toy kind of `tests/toy` made installable, and a manager process that runs it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kruise.admission.inventory import CREATE_UPDATE, Entry
from kruise.cli.manager import run
from tests.toy.controller import FEATURE
from tests.toy.decide import TROUPES

DEFINITION: Mapping[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "troupes.toy.pykruise.dev"},
    "spec": {
        "group": TROUPES.group,
        "scope": "Namespaced",
        "names": {"kind": "Troupe", "listKind": "TroupeList", "plural": "troupes", "singular": "troupe"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def _entry(verb: str) -> Entry:
    return Entry(
        name=f"{verb}.troupe.toy.pykruise.dev",
        path=f"/{verb}-troupe",
        group=TROUPES.group,
        resource="troupes",
        versions=("v1",),
        operations=CREATE_UPDATE,
    )


TOY = dataclasses.replace(
    FEATURE,
    definitions=(DEFINITION,),
    mutating_entries=(_entry("mutate"),),
    validating_entries=(_entry("validate"),),
)


def start(kubeconfig: Path, *flags: str, log: Path, **environment: str) -> subprocess.Popen[bytes]:
    """A manager in a process of its own; its log goes to a file."""
    arguments = [sys.executable, "-m", "tests.support.toymanager", f"--kubeconfig={kubeconfig}", *flags]
    with log.open("ab") as file:
        return subprocess.Popen(arguments, stdout=file, stderr=file, env={**os.environ, **environment})


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], [TOY]))
