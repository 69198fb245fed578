"""Resources of StatefulSets that change in place on real nodes: the stories that all workloads share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.commandline import Kruise
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.resizing_stories import GATES, RESOURCES, STORIES, Resizing, Story

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("resizing")]


@pytest.fixture(scope="module")
def real_nodes(own_nodes: RealNodes) -> RealNodes:
    return own_nodes


@pytest.fixture(scope="module")
def kruise_on_nodes(own_nodes: RealNodes) -> Iterator[KruiseCluster]:
    with KruiseCluster(own_nodes, flags=(*ALONE, GATES)) as cluster:
        yield cluster


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_resources_change_in_place(story: Story, kruise_on_nodes: KruiseCluster, nodes_namespace: str) -> None:
    """IPU-33, IPU-41, IPU-55, IPU-61."""

    async def main() -> None:
        async with kruise_on_nodes.world(nodes_namespace) as world:
            await story(Resizing(world, RESOURCES["statefulset"], Kruise(kruise_on_nodes.kubeconfig)))

    asyncio.run(main())
