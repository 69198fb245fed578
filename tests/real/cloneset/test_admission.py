"""CloneSet admission on a real API server: the recorded requests, answered by a manager in its own process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.world import World
from tests.workloads.cloneset import admission_scenarios

Scenario = Callable[[World], Awaitable[None]]


@pytest.fixture(scope="module")
def kruise() -> Iterator[KruiseCluster]:
    """Without nodes: that pods exist is enough."""
    with KruiseCluster(nodes=0, flags=(*ALONE, "--feature-gates=ResourcesDeletionProtection=true")) as cluster:
        yield cluster


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(admission_scenarios.recorded_verdicts, marks=pytest.mark.smoke),
        admission_scenarios.recorded_defaults,
        admission_scenarios.subresources,
        admission_scenarios.both_versions,
        admission_scenarios.protected,
    ],
    ids=lambda scenario: str(scenario.__name__),
)
def test_admission(kruise: KruiseCluster, scenario: Scenario) -> None:
    namespace = scenario.__name__.replace("_", "-")
    kruise.plane.create_namespace(namespace)

    async def run() -> None:
        async with kruise.world(namespace) as world:
            await scenario(world)

    asyncio.run(run())
