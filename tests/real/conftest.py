"""Fixtures of the tests that need a real Kubernetes: `make test-real` and `make test-real-all` run them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.kruisecluster import KruiseCluster
from tests.support.nodescene import SLICES, Scene
from tests.support.realcluster import ControlPlane
from tests.support.realnodes import RealNodes
from tests.support.transcripts import Shell
from tests.support.walkthroughs import local_shell
from tests.support.watchlog import WatchLog


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The control plane that all tests share, with the audit log on. Tests keep to a namespace of their own."""
    with ControlPlane(audit=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(control_plane: ControlPlane) -> ControlPlane:
    """The same under its short name."""
    return control_plane


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace in which pods can be created at once. Its removal goes on in the background."""
    yield from _fresh_namespace(control_plane, request)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell for the commands of a document, with a local cluster of its own if they start one."""
    with local_shell(tmp_path) as shell:
        yield shell


@pytest.fixture(scope="session")
def real_nodes() -> Iterator[RealNodes]:
    """Three real nodes that all tests share, started by the first test that asks for them. Mark it with `nodes`."""
    with RealNodes(nodes=3, audit=True) as cluster:
        yield cluster


@pytest.fixture
def nodes_namespace(real_nodes: RealNodes, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace on the cluster with real nodes."""
    yield from _fresh_namespace(real_nodes, request)


@pytest.fixture(scope="module")
def kruise_on_nodes(real_nodes: RealNodes) -> Iterator[KruiseCluster]:
    """PyKruise on the cluster with real nodes, for as long as a module's tests run."""
    with KruiseCluster(real_nodes) as cluster:
        yield cluster


@pytest.fixture
def scene(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str) -> Iterator[Scene]:
    """A namespace there for a CloneSet `web`, with a log of its pods and endpoints."""
    pods = f"/api/v1/namespaces/{nodes_namespace}/pods"
    with WatchLog(real_nodes, pods, SLICES.format(nodes_namespace)) as log:
        scene = Scene(kruise_on_nodes, real_nodes, nodes_namespace, log)
        yield scene
        # Shown where the test failed.
        print(scene.kubectl("get", "clonesets,pods,pvc,controllerrevisions", "--output=wide", "--show-labels"))
        print(scene.kubectl("get", "events", "--sort-by=.metadata.resourceVersion"))
        print(kruise_on_nodes.manager_log.read_text()[-4000:])


@pytest.fixture
def fresh_control_plane() -> Iterator[Callable[..., ControlPlane]]:
    """Starts control planes of the test's own (arguments as for ControlPlane), to be killed and restarted at will."""
    started: list[ControlPlane] = []

    def start(**options: object) -> ControlPlane:
        cluster = ControlPlane(**options)  # type: ignore[arg-type]
        started.append(cluster)
        return cluster.start()

    yield start
    for cluster in started:
        cluster.stop()


def _fresh_namespace(cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:50].strip("-")
    name = f"{readable}-{uuid.uuid4().hex[:8]}"
    cluster.create_namespace(name)
    yield name
    cluster.delete_namespace(name)
