"""Sidecars, start order and ends on real nodes with the node daemon: whole stories, and the manager killed during each;
and the walk through all of them, which needs that daemon, too."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.sidecars import kills
from tests.sidecars.kills import Scene
from tests.sidecars.terminator import stories as ending
from tests.support.nodedaemons import Daemons, daemons_on
from tests.support.realnodes import RealNodes
from tests.support.transcripts import Shell, walk
from tests.support.walkthroughs import DOCUMENTS, LOCAL_ONLY, environment, lay_out_documents

pytestmark = [pytest.mark.nodes, pytest.mark.together("own-nodes")]
Play = Callable[[Callable[[Scene], Awaitable[None]]], None]


@pytest.fixture(scope="module")
def daemons(own_nodes: RealNodes) -> Iterator[Daemons]:
    with daemons_on(own_nodes, "SidecarTerminator") as made:
        yield made


@pytest.fixture
def play(daemons: Daemons, own_nodes: RealNodes, request: pytest.FixtureRequest) -> Play:
    cluster = daemons.cluster
    namespace = re.sub(r"[^a-z]+", "-", request.node.name.partition("[")[2].lower())[:50].strip("-")

    def run(story: Callable[[Scene], Awaitable[None]]) -> None:
        own_nodes.create_namespace(namespace)

        async def kill() -> None:
            await asyncio.to_thread(cluster.kill_manager)

        async def start() -> None:
            await asyncio.to_thread(cluster.start_manager)

        async def main() -> None:
            async with cluster.world(namespace) as world:
                scene = Scene(world, kill, start)
                try:
                    await story(scene)
                finally:
                    await asyncio.to_thread(cluster.keep_manager)
                    await scene.sidecars.end()

        asyncio.run(main())
        own_nodes.delete_namespace(namespace)

    return run


@pytest.mark.parametrize("name", kills.STORIES)
def test_the_manager_is_killed(play: Play, name: str) -> None:
    play(kills.STORIES[name])


@pytest.mark.parametrize("name", ending.STORIES)
def test_a_job_ends(play: Play, name: str) -> None:
    """JST-9 to JST-24."""

    async def story(scene: Scene) -> None:
        await ending.STORIES[name](scene.world)

    play(story)


@pytest.mark.long
def test_the_walk_through(daemons: Daemons, tmp_path: Path) -> None:
    """SCS-W1 to SCS-W5, CLP-18: injection, upgrade, canary, hot upgrade, start order and batches, in `default`."""
    lay_out_documents(tmp_path)
    variables = environment(tmp_path) | {"KUBECONFIG": str(daemons.cluster.kubeconfig)}
    shell = Shell(tmp_path, variables)
    try:
        assert walk(DOCUMENTS / "sidecarset-walkthrough.md", shell, leave_out=[LOCAL_ONLY]) > 40
    finally:
        shell.close()
