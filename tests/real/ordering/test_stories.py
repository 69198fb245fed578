"""Start order and end of containers on a real control plane with simulated nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.sidecars.launch_priority import stories as launching
from tests.sidecars.terminator import stories as ending
from tests.support.kruisecluster import ALONE, KruiseCluster

STORIES = {**launching.STORIES, **ending.STORIES}
SMOKE = ("by_priority", "a_job_ends")


@pytest.fixture(scope="module")
def kruise() -> Iterator[KruiseCluster]:
    with KruiseCluster(nodes=3, flags=(*ALONE, "--feature-gates=SidecarTerminator=true")) as cluster:
        yield cluster


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.smoke if name in SMOKE else ()) for name in STORIES]
)
def test_story(kruise: KruiseCluster, name: str) -> None:
    namespace = name.replace("_", "-")[:60].rstrip("-")
    kruise.plane.create_namespace(namespace)

    async def run() -> None:
        async with kruise.world(namespace) as world:
            await STORIES[name](world)

    asyncio.run(run())
