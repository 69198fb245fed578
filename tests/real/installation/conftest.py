"""One cluster for all that installs and upgrades the system in it: nobody else may have another manager there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.availability import DEMO
from tests.support.incluster import InCluster
from tests.support.realnodes import RealNodes


@pytest.fixture(scope="session")
def installable() -> Iterator[InCluster]:
    """Nothing is installed there when a test begins."""
    with RealNodes(nodes=3, audit=True) as nodes:
        yield InCluster(nodes)


@pytest.fixture(scope="module")
def by_the_command(installable: InCluster) -> Iterator[InCluster]:
    # The host's calls to services pass the first node: managers stay on the other two, one of which may then go.
    installable.nodes.kubectl("cordon", "node-1")
    try:
        installable.install(installable.push("first"))
        yield installable
    finally:
        # Also what did not get to its end.
        installable.nodes.kubectl("uncordon", "node-1")
        installable.uninstall()


@pytest.fixture
def running(by_the_command: InCluster) -> Iterator[InCluster]:
    """As it was installed, whatever a test before this one has left, and a namespace to work in."""
    by_the_command.install(by_the_command.image)
    nodes = by_the_command.nodes
    nodes.create_namespace("demo")
    yield by_the_command
    # A test that failed may have left nobody who lets objects of ours go.
    by_the_command.install(by_the_command.image)
    nodes.request("DELETE", DEMO)
    by_the_command.wait(lambda: nodes.request("GET", DEMO).status == 404, "the namespace is gone", within=240)
