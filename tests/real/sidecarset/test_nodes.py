"""SidecarSets on real nodes: what containers do while their neighbours are changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.sidecars.sidecarset import stories
from tests.sidecars.sidecarset.stories import Sidecars
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
Play = Callable[[Callable[[Sidecars], Awaitable[None]]], None]


def playing(kruise: KruiseCluster, namespace: str) -> Play:
    def run(story: Callable[[Sidecars], Awaitable[None]]) -> None:
        async def main() -> None:
            async with kruise.world(namespace) as world:
                stage = Sidecars(world)
                try:
                    await story(stage)
                finally:
                    await stage.end()

        asyncio.run(main())

    return run


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str) -> Play:
    return playing(kruise_on_nodes, nodes_namespace)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(stories.sidecars_change_and_the_app_runs_on, marks=pytest.mark.smoke),
        stories.canaries_by_label_then_all,
        stories.a_bad_image_is_corrected,
        stories.a_workload_and_two_sets_at_once,
    ],
    ids=lambda story: str(story.__name__),
)
def test_story(play: Play, story: Callable[[Sidecars], Awaitable[None]]) -> None:
    play(story)
