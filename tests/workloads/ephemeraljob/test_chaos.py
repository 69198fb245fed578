"""The manager killed again and again while a job is at work, or in a storm: nobody is served twice, no more pods than
parallelism allows, and the job ends."""

from __future__ import annotations

import pytest

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from kruise.api.native.pod import PODS
from tests.scenarios.ephemeral import EphemeralStage, ephemeral_names
from tests.support.storms import Witness, in_a_storm
from tests.support.world import Json, LocalWorld, run_local


@pytest.mark.parametrize("pause", [0.05, 0.31, 1.7])
def test_a_killed_manager_goes_on(pause: float) -> None:
    """EJ-39, EJ-53: what was begun is read off the pods, and a job that is being deleted is let go."""

    async def story(world: LocalWorld) -> None:
        stage = EphemeralStage(world, gates=world.options.gates)
        await stage.start(replicas=3)
        await stage.begin(parallelism=2)
        for _ in range(8):
            await world.sleep(pause)
            await world.kill_manager()
            pods = await stage.served()
            assert all(ephemeral_names(pod) == ["dbg"] for pod in pods)
            world.start_manager()
        await stage.counts(phase="Succeeded", succeeded=3)
        await world.kill_manager()
        await world.delete(EPHEMERAL_JOBS, "dbg")
        await world.sleep(5)
        world.start_manager()
        await stage.gone()
        assert len(await stage.served()) == 3

    run_local(story)


@pytest.mark.parametrize("seed", range(6))
def test_a_storm(seed: int) -> None:
    """EJ-36, EJ-39, EJ-43."""

    async def story(world: LocalWorld) -> None:
        stage = EphemeralStage(world, gates=world.options.gates)
        busy: dict[str, bool] = {}

        def hears(kind: str, pod: Json) -> None:
            assert ephemeral_names(pod) in ([], ["dbg"])
            ended = [one["state"].get("terminated") for one in pod["status"].get("ephemeralContainerStatuses", ())]
            busy[pod["metadata"]["uid"]] = ephemeral_names(pod) == ["dbg"] and not (ended and ended[0])
            assert sum(busy.values()) <= 1, "more at a time than parallelism allows"

        async with Witness(world, PODS, hears):
            await stage.start(replicas=3)
            await stage.begin(parallelism=1)
            await world.sleep(120)
            await stage.counts(phase="Succeeded", succeeded=3)

    assert in_a_storm(story, kinds=("ephemeraljob", "cloneset", "readiness"), seed=seed, rate=0.2) >= 3
