"""PersistentPodStates on three real nodes: pods come back to the node that they were on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.scenarios.podstate import PodStateStage, made_for_annotations, pods_come_back_to_their_nodes
from tests.scenarios.stage import Pace
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
PACE = Pace(seconds=3, calm=3.0, within=180.0, every=0.3, slack=10.0)


@pytest.mark.parametrize(
    "story",
    [pytest.param(pods_come_back_to_their_nodes, marks=pytest.mark.smoke), made_for_annotations],
)
def test_on_real_nodes(
    story: Callable[[PodStateStage], Awaitable[None]],
    kruise_on_nodes: KruiseCluster,
    real_nodes: RealNodes,
    nodes_namespace: str,
) -> None:
    """PPS-20, PPS-30, PPS-35."""

    async def main() -> None:
        async with kruise_on_nodes.world(nodes_namespace) as world:
            await story(PodStateStage(world, gates={}, pace=PACE))

    asyncio.run(main())
