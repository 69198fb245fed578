"""BroadcastJobs in a storm: no node gets two pods, no more run than may, and the numbers are right."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.native.pod import PODS
from tests.support.storms import Witness, in_a_storm
from tests.support.world import Json, LocalWorld
from tests.workloads.broadcastjob.test_local import counts, job

KINDS = ("broadcastjob", "readiness")
LIMIT = 2


class Promises:
    def __init__(self) -> None:
        self.pods: dict[str, Json] = {}

    def hears(self, kind: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self.pods.pop(uid, None)
            return
        self.pods[uid] = pod
        nodes = [_place(one) for one in self.pods.values()]
        assert len(set(nodes)) == len(nodes), f"two pods on a node: {nodes}"
        active = [one for one in self.pods.values() if one.get("status", {}).get("phase") in ("Pending", "Running")]
        leaving = [one for one in active if "deletionTimestamp" in one["metadata"]]
        assert len(active) - len(leaving) <= LIMIT, "more at a time than parallelism allows"


def _place(pod: Json) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("command", "spec", "phase"),
    [
        ("sleep 2", {}, "completed"),
        ("sleep 2; exit 1", {}, "failed"),
        ("sleep 600", {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 20}}, "failed"),
    ],
    ids=["completes", "fails fast", "is late"],
)
def test_a_storm(command: str, spec: Json, phase: str, seed: int) -> None:  # BJ-36, BJ-59, BJ-61, BJ-66, BJ-72
    async def story(world: LocalWorld) -> None:
        promises = Promises()
        async with Witness(world, PODS, promises.hears):
            await world.create(job("task", command, version="v1beta1", parallelism=LIMIT, **spec))

            async def over() -> Json:
                found = await world.get(BROADCAST_JOBS, "task")
                assert found.get("status", {}).get("phase") == phase
                return found

            await world.until(over, within=600)
            await world.sleep(120)  # a deletion may have been refused at first
            assert not any(_runs(pod) for pod in await world.pods())
        found = await world.get(BROADCAST_JOBS, "task")
        await world.sleep(60)
        desired, active, succeeded, failed = counts(found)
        assert (desired, active) == (5, 0)
        assert (succeeded, failed) == (5, 0) if phase == "completed" else failed in (1, 2)
        assert counts(await world.get(BROADCAST_JOBS, "task")) == counts(found), "it stays as it ended"

    assert in_a_storm(story, kinds=KINDS, seed=seed, nodes=5, rate=0.2) >= 3


def _runs(pod: Any) -> bool:
    return pod["status"]["phase"] in ("Pending", "Running")
