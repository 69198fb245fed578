"""SidecarSets on a real control plane with simulated nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.sidecars.sidecarset.stories import STORIES, Sidecars
from tests.support.kruisecluster import ALONE, KruiseCluster


@pytest.fixture(scope="module")
def kruise() -> Iterator[KruiseCluster]:
    with KruiseCluster(nodes=3, flags=ALONE) as cluster:
        yield cluster


@pytest.mark.parametrize("name", STORIES)
def test_story(kruise: KruiseCluster, name: str) -> None:
    namespace = name.replace("_", "-")[:50].rstrip("-")
    kruise.plane.create_namespace(namespace)

    async def kill() -> None:
        await asyncio.to_thread(kruise.kill_manager)
        await asyncio.to_thread(kruise.start_manager)

    async def run() -> None:
        async with kruise.world(namespace) as world:
            await STORIES[name](Sidecars(world, kill))

    asyncio.run(run())
