"""Every story on the local cluster and virtual time."""

from __future__ import annotations

import pytest

from tests.sidecars.sidecarset.stories import STORIES, Sidecars
from tests.support.world import LocalWorld, run_local


@pytest.mark.parametrize("name", list(STORIES))
def test_story(name: str) -> None:
    async def scenario(world: LocalWorld) -> None:
        async def kill() -> None:
            await world.kill_manager()
            await world.sleep(3)
            world.start_manager()

        await STORIES[name](Sidecars(world, kill))

    run_local(scenario)
