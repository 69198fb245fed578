"""Resources that change in place, for each workload that does it, on the local cluster."""

from __future__ import annotations

import pytest

from tests.support.resizing_stories import RESOURCES, Resizing, Story, each_policy, refused_and_put_off
from tests.support.world import LocalWorld, run_local


@pytest.mark.parametrize("story", [each_policy, refused_and_put_off], ids=lambda story: story.__name__)
@pytest.mark.parametrize("kind", RESOURCES)
def test_resources_change_in_place(kind: str, story: Story) -> None:
    """IPU-33, IPU-41, IPU-55, IPU-61."""

    async def main(world: LocalWorld) -> None:
        await story(Resizing(world, RESOURCES[kind]))

    run_local(main, nodes=3, feature_gates="InPlaceWorkloadVerticalScaling=true")
