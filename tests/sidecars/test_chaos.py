"""Whole stories of sidecars, start order and ends, with a manager that dies at every write in turn, and in a storm of
lost answers, cut watches and stale lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.sidecars import kills
from tests.sidecars.launch_priority import stories as launching
from tests.sidecars.sidecarset import stories as changing
from tests.sidecars.sidecarset.stories import Sidecars
from tests.sidecars.terminator import stories as ending
from tests.support.dying import play
from tests.support.storms import in_a_storm
from tests.support.world import LocalWorld, run_local

Story = Callable[[LocalWorld], Awaitable[None]]
LAUNCHING, CHANGING = ("launch-priority", "readiness"), ("sidecarset", "cloneset", "readiness")
ENDING = ("sidecar-terminator", "containerrecreaterequest", "readiness")
GATE = {"feature_gates": "SidecarTerminator=true"}


def _of_sets(story: changing.Story) -> Story:
    async def run(world: LocalWorld) -> None:
        await story(Sidecars(world))

    return run


STORIES: dict[str, tuple[Story, tuple[str, ...], dict[str, str]]] = {
    **{name: (story, LAUNCHING, {}) for name, story in launching.STORIES.items()},
    **{name: (story, ENDING, GATE) for name, story in ending.STORIES.items()},
    **{
        name: (_of_sets(story), CHANGING, {})
        for name, story in changing.STORIES.items()
        if story is not changing.the_manager_dies_on_the_way
    },
}
KILLED = (
    "by_priority",
    "in_order_of_the_list",
    "a_barrier_comes_back",
    "a_job_ends",
    "exit_codes_are_ignored",
    "on_failure_a_sidecar_that_fails_does_not_keep_the_job",
    "both_sorts",
)
"""Those of SidecarSets are killed at every write in the fast model: tests/sidecars/sidecarset/test_promises.py.
An event may be lost with the manager."""


@pytest.mark.parametrize("name", KILLED)
def test_a_manager_may_die_at_every_write(name: str) -> None:
    """CLP-13, CLP-14, JST-11, JST-13, JST-14, JST-21: whether the server had the write or not, the next manager goes on
    from there, and all that the story asks for is so in the end."""
    story, kinds, options = STORIES[name]
    writes = play(story, kinds=kinds, **options)
    assert writes >= 1
    for place in range(writes):
        for heard in (False, True):
            play(story, place, kinds=kinds, heard=heard, **options)


@pytest.mark.parametrize("name", [name for name in kills.STORIES if name != "pods_are_made_without_a_manager"])
def test_a_manager_may_die_in_the_middle(name: str) -> None:
    """What real nodes play, too. The local cluster asks no webhook of a manager that is gone."""

    async def story(world: LocalWorld) -> None:
        async def start() -> None:
            world.start_manager()

        await kills.STORIES[name](kills.Scene(world, world.kill_manager, start))

    run_local(story, nodes=3, feature_gates="SidecarTerminator=true")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", STORIES)
def test_a_storm(name: str, seed: int) -> None:
    """SCS-64, SCS-97, CLP-13, JST-14: nothing is lost and nothing done twice, whatever does not arrive."""
    story, kinds, options = STORIES[name]
    in_a_storm(story, kinds=kinds, seed=seed, rate=0.1, **options)


def test_the_storm_strikes() -> None:
    story, kinds, options = STORIES["a_workload_and_two_sets_at_once"]
    assert in_a_storm(story, kinds=kinds, seed=7, rate=0.1, **options) > 5
