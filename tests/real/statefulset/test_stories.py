"""StatefulSets on a real control plane with simulated nodes: order, identity and adoption by the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.world import World
from tests.workloads.statefulset.stories import STORIES, in_place_and_back

Story = Callable[[World], Awaitable[None]]


@pytest.fixture(scope="module")
def kruise() -> Iterator[KruiseCluster]:
    with KruiseCluster(nodes=3, flags=ALONE) as cluster:
        yield cluster


@pytest.mark.parametrize(
    "story",
    [pytest.param(story, marks=pytest.mark.smoke if story is in_place_and_back else ()) for story in STORIES],
    ids=lambda story: str(story.__name__),
)
def test_story(kruise: KruiseCluster, story: Story) -> None:
    namespace = story.__name__.replace("_", "-")
    kruise.plane.create_namespace(namespace)

    async def run() -> None:
        async with kruise.world(namespace) as world:
            await story(world)

    asyncio.run(run())
