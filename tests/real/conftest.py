"""Fixtures of the tests that need a real Kubernetes: `make test-real` and `make test-real-all` run them.

Most of their time is waiting, so many workers run them side by side. A worker has a control plane of its own, which
leaves what is cluster-wide to the one test that it runs. Real nodes cost more: all workers share one cluster with them
and one manager on it, and tests keep to namespaces of their own. A test that kills or restarts something there, or
wants a manager of its own, asks for `own_nodes`.

The tests of a module run in one worker, one after the other. Those marked with `spread` run wherever there is time, and
those marked with `together("name")` in one worker, whatever their modules are.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.kruisecluster import KruiseCluster
from tests.support.nodescene import SLICES, Scene
from tests.support.realcluster import ControlPlane
from tests.support.realnodes import RealNodes
from tests.support.sharing import Keeper, Shared
from tests.support.transcripts import Shell
from tests.support.walkthroughs import local_shell
from tests.support.watchlog import WatchLog

_KEEPER = pytest.StashKey[Keeper]()
_ADDRESS = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", None)
    if given is not None:
        config.stash[_ADDRESS] = given["keeper"]
        return
    keeper = config.stash[_KEEPER] = Keeper()
    config.stash[_ADDRESS] = keeper.address


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker is about to start."""
    node.workerinput["keeper"] = node.config.stash[_ADDRESS]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _KEEPER in config.stash:
        config.stash[_KEEPER].close()


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Scheduling:
    # What comes first and what last is decided below.
    config.option.loadscopereorder = False
    return _Scheduling(config, log)


class _Scheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return self.config.stash[_KEEPER].groups.get(nodeid, nodeid)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest first and the smallest pieces last, so that all workers end at about the same time."""
    items.sort(key=lambda item: (not _has(item, "long"), _has(item, "spread")))
    groups: dict[str, str] = {}
    for item in items:
        if (group := _group(item)) is not None:
            groups[item.nodeid] = group
    Shared(config.stash[_ADDRESS]).send_groups(groups)


def _group(item: pytest.Item) -> str | None:
    """What stays in one worker: a module's tests, unless they say otherwise."""
    if (mark := item.get_closest_marker("together")) is not None:
        return str(mark.args[0])
    return None if _has(item, "spread") else str(item.path)


def _has(item: pytest.Item, mark: str) -> bool:
    return item.get_closest_marker(mark) is not None


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Shared:
    """What all workers have in common."""
    return Shared(request.config.stash[_ADDRESS])


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The control plane of this worker's tests, with the audit log on. Tests keep to a namespace of their own."""
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
def real_nodes(shared: Shared) -> RealNodes:
    """Three real nodes that all tests share, started by the first test that asks for them. Mark it with `nodes`."""
    return shared.real_nodes()


@pytest.fixture
def nodes_namespace(real_nodes: RealNodes, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace on the cluster with real nodes."""
    yield from _fresh_namespace(real_nodes, request)


@pytest.fixture(scope="session")
def kruise_on_nodes(shared: Shared) -> KruiseCluster:
    """PyKruise with default settings on the shared nodes."""
    return shared.kruise_on_nodes()


@pytest.fixture(scope="session")
def own_nodes() -> Iterator[RealNodes]:
    """Three more, to be killed and restarted at will. All tests that ask for them are of group `own-nodes`."""
    with RealNodes(nodes=3, audit=True) as cluster:
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
