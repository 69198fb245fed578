"""Where the commands of documents run: a place like the checkout, our own command and the real kubectl, a state of its
own, and a shell in it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support import kubebuild
from tests.support.realnodes import RealNodes
from tests.support.transcripts import Shell

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "docs"
LOCAL_ONLY, REAL_ONLY = "(local cluster only)", "(real nodes only)"
"""How the headings of sections end that are for one kind of cluster."""


def search_path(*programs: Path) -> str:
    """A PATH on which our command and the real kubectl come first; before them, what is in the folders `programs`."""
    tools = [*programs, Path(sys.executable).parent, kubebuild.cache_directory()]
    return os.pathsep.join([*map(str, tools), os.environ["PATH"]])


def environment(directory: Path, *programs: Path) -> dict[str, str]:
    """With a home of its own, so that `kruise up` finds no kubeconfig but its own."""
    own = {"PATH": search_path(*programs), "KRUISE_STATE": str(directory / "state"), "HOME": str(directory)}
    return {name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | own


def lay_out_documents(directory: Path) -> None:
    """As in the checkout: documents name their manifests by `docs/manifests`, and the toy kind by `tests/toy`."""
    (directory / "docs").symlink_to(DOCUMENTS)
    (directory / "tests").symlink_to(ROOT / "tests")


def write_ssh(directory: Path, cluster: RealNodes) -> None:
    """Nodes are namespaces of this machine: `ssh NODE COMMAND` enters them instead."""
    cases = (f'{node}) shift; exec {shlex.join(cluster.node_command(node))} sh -c "$*" ;;' for node in cluster.nodes)
    directory.mkdir()
    program = directory / "ssh"
    program.write_text('#!/bin/sh\ncase "$1" in\n' + "\n".join(cases) + "\nesac\n")
    program.chmod(0o755)


@contextlib.contextmanager
def local_shell(directory: Path) -> Iterator[Shell]:
    """A shell for documents that begin with `kruise up`. The cluster ends with it."""
    lay_out_documents(directory)
    try:
        with contextlib.closing(Shell(directory, environment(directory))) as shell:
            yield shell
    finally:
        # In a shell of its own: the other one may have commands left that it has not come to.
        with contextlib.closing(Shell(directory, environment(directory))) as shell:
            shell.run("kruise down")
