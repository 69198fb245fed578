"""One cluster for all that installs and upgrades the system in it: nobody else may have another manager there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.incluster import InCluster
from tests.support.realnodes import RealNodes


@pytest.fixture(scope="session")
def installable() -> Iterator[InCluster]:
    """Nothing is installed there when a test begins."""
    with RealNodes(nodes=3, audit=True) as nodes:
        yield InCluster(nodes)
