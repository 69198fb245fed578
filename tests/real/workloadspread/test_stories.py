"""WorkloadSpreads on a real control plane with simulated nodes: the real admission, scheduler and controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.spread.workloadspread.stories import SMOKE, STORIES
from tests.support.kruisecluster import ALONE, KruiseCluster


@pytest.fixture(scope="module")
def kruise() -> Iterator[KruiseCluster]:
    with KruiseCluster(nodes=6, flags=ALONE) as cluster:
        yield cluster


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.smoke if name in SMOKE else ()) for name in STORIES]
)
def test_story(kruise: KruiseCluster, name: str) -> None:
    namespace = name.replace("_", "-")
    kruise.plane.create_namespace(namespace)

    async def run() -> None:
        async with kruise.world(namespace) as world:
            await STORIES[name](world)

    asyncio.run(run())
