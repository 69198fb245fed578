"""Start order on real nodes: real kubelets wait for keys, containers start one after the other."""

from __future__ import annotations

import asyncio

import pytest

from tests.sidecars.launch_priority.stories import by_priority, in_order_of_the_list, one_that_ends_holds_up_nobody
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.spread]


@pytest.mark.parametrize(
    "story",
    [pytest.param(by_priority, marks=pytest.mark.smoke), in_order_of_the_list, one_that_ends_holds_up_nobody],
    ids=lambda story: str(story.__name__),
)
def test_story(
    kruise_on_nodes: KruiseCluster,
    real_nodes: RealNodes,
    nodes_namespace: str,
    story: object,
) -> None:
    async def run() -> None:
        async with kruise_on_nodes.world(nodes_namespace) as world:
            await story(world)  # type: ignore[operator]

    asyncio.run(run())
