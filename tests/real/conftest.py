"""Fixtures of the tests that need a real Kubernetes: `make test-real` and `make test-real-all` run them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.support.realcluster import ControlPlane


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
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:50].strip("-")
    name = f"{readable}-{uuid.uuid4().hex[:8]}"
    control_plane.create_namespace(name)
    yield name
    control_plane.delete_namespace(name)


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
