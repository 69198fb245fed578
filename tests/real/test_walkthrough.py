"""The commands of the documents, with real kubectl, on the local cluster as a user starts it and on real nodes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import kubebuild
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.transcripts import Shell, walk

DOCUMENTS = Path(__file__).parents[2] / "docs"
LOCAL, REAL = "(local cluster only)", "(real nodes only)"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where commands run: like the checkout, a place with the documents and their manifests."""
    (tmp_path / "docs").symlink_to(DOCUMENTS)
    return tmp_path


def environment(directory: Path, *programs: Path) -> dict[str, str]:
    tools = [*programs, Path(sys.executable).parent, kubebuild.cache_directory()]
    path = os.pathsep.join([*map(str, tools), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "KRUISE_STATE": str(directory / "state"), "HOME": str(directory)}


@pytest.fixture
def shell(directory: Path) -> Iterator[Shell]:
    found = Shell(directory, environment(directory))
    yield found
    found.run("kruise down")
    found.close()


@pytest.mark.smoke
def test_the_walk_of_the_local_cluster(shell: Shell) -> None:
    assert walk(DOCUMENTS / "local-cluster.md", shell) > 20


def test_the_tutorial_on_the_local_cluster(shell: Shell) -> None:
    assert walk(DOCUMENTS / "cloneset-tutorial.md", shell, leave_out=[REAL]) > 100


def test_the_failure_budget_on_the_local_cluster(shell: Shell) -> None:
    assert walk(DOCUMENTS / "failure-budget.md", shell) > 15


def test_a_plan_and_its_rollout_on_the_local_cluster(shell: Shell) -> None:
    assert walk(DOCUMENTS / "plan-and-reality.md", shell) > 12


@pytest.mark.nodes
@pytest.mark.parametrize(("document", "commands"), [("cloneset-tutorial.md", 100), ("plan-and-reality.md", 12)])
def test_documents_on_real_nodes(real_nodes: RealNodes, directory: Path, document: str, commands: int) -> None:
    with KruiseCluster(real_nodes) as cluster:
        programs = directory / "programs"
        write_ssh(programs, real_nodes)
        variables = environment(directory, programs) | {"KUBECONFIG": str(cluster.kubeconfig)}
        shell = Shell(directory, variables)
        try:
            assert walk(DOCUMENTS / document, shell, leave_out=[LOCAL]) > commands
        finally:
            shell.close()


def write_ssh(directory: Path, cluster: RealNodes) -> None:
    """Nodes are namespaces of this machine: `ssh NODE COMMAND` enters them instead."""
    cases = (f'{node}) shift; exec {shlex.join(cluster.node_command(node))} sh -c "$*" ;;' for node in cluster.nodes)
    directory.mkdir()
    program = directory / "ssh"
    program.write_text('#!/bin/sh\ncase "$1" in\n' + "\n".join(cases) + "\nesac\n")
    program.chmod(0o755)
