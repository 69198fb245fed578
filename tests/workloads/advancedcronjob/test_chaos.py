"""AdvancedCronJobs while nothing works reliably: no run is made twice, and none is lost."""

from __future__ import annotations

from collections import Counter

import pytest

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from tests.support.storms import Witness, in_a_storm
from tests.support.world import Json, LocalWorld
from tests.workloads.advancedcronjob.test_local import cron, on_each_node

KINDS = ("advancedcronjob", "broadcastjob", "readiness")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", ["Allow", "Replace"])
def test_a_storm(policy: str, seed: int) -> None:  # ACJ-47, ACJ-61, ACJ-62, ACJ-70, ACJ-77, ACJ-85
    async def story(world: LocalWorld) -> None:
        made: Counter[int] = Counter()

        def hears(kind: str, run: Json) -> None:
            if kind == "ADDED":
                made[int(run["metadata"]["name"].rpartition("-")[2]) // 60] += 1

        async with Witness(world, BROADCAST_JOBS, hears):
            begin = int(world.clock.now().timestamp()) // 60
            await world.create(cron("tick", on_each_node("sleep 90"), concurrencyPolicy=policy))
            await world.sleep(10 * 60 + 30)
            expected = range(begin + 1, begin + 11)
            assert sorted(made) == list(expected), "none is lost"
            assert set(made.values()) == {1}, "none is made twice"
        found = await world.get(ADVANCED_CRON_JOBS, "tick")
        if policy == "Replace":
            assert len(found["status"]["active"]) == 1

    assert in_a_storm(story, kinds=KINDS, seed=seed, nodes=1, rate=0.15) >= 10
