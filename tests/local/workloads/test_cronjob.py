"""CronJobs of Kubernetes on the local cluster, on virtual time."""

from __future__ import annotations

from typing import Any

from kruise.local.workloads.objects import CRON_JOBS, JOBS
from tests.support.world import Json, LocalWorld, run_local

START = 1893456000
"""Of the local cluster's virtual time."""


def cron_job(command: str = "true", **spec: Any) -> Json:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}
    pods = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {
            "schedule": "*/1 * * * *",
            "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"template": pods}},
            **spec,
        },
    }


async def begin(world: LocalWorld, **options: Any) -> None:
    await world.client.create(CRON_JOBS, cron_job(**options), "default")


async def minutes(world: LocalWorld) -> list[int]:
    names = [str(job["metadata"]["name"]) for job in await world.list(JOBS)]
    return [int(name.rpartition("-")[2]) - START // 60 for name in names]


async def reasons(world: LocalWorld) -> set[str]:
    return {event["reason"] for event in await world.events("tick")}


def test_a_job_each_minute_and_three_are_kept() -> None:
    async def story(world: LocalWorld) -> None:
        await begin(world)
        await world.sleep(5 * 60 + 20)
        assert await minutes(world) == [3, 4, 5]
        [*_, job] = await world.list(JOBS)
        assert job["metadata"]["labels"]["a"] == "b"
        moment = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert moment == "2030-01-01T00:05:00Z"
        assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        status = (await world.get(CRON_JOBS, "tick"))["status"]
        assert (status["lastScheduleTime"], "active" in status) == ("2030-01-01T00:05:00Z", False)
        assert status["lastSuccessfulTime"] >= status["lastScheduleTime"]
        assert {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} <= await reasons(world)

    run_local(story, nodes=1, start=False)


def test_forbid_replace_and_suspend() -> None:
    async def story(world: LocalWorld) -> None:
        await begin(world, command="sleep 1000", concurrencyPolicy="Forbid")
        await world.sleep(130)
        assert await minutes(world) == [1]
        assert "JobAlreadyActive" in await reasons(world)
        await world.patch(CRON_JOBS, "tick", {"spec": {"concurrencyPolicy": "Replace"}})
        await world.sleep(1)
        assert await minutes(world) == [2]
        await world.patch(CRON_JOBS, "tick", {"spec": {"suspend": True}})
        await world.sleep(300)
        assert await minutes(world) == [2]

    run_local(story, nodes=1, start=False)


def test_a_zone_and_a_deadline() -> None:
    async def story(world: LocalWorld) -> None:
        # Midnight UTC is 8 o'clock in Shanghai.
        await begin(world, schedule="2 8 * * *", timeZone="Asia/Shanghai", startingDeadlineSeconds=10)
        await world.sleep(180)
        assert await minutes(world) == [2]
        [job] = await world.list(JOBS)
        moment = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert moment == "2030-01-01T08:02:00+08:00"

    run_local(story, nodes=1, start=False)


def test_a_deadline_of_ages_is_none() -> None:
    async def story(world: LocalWorld) -> None:
        await begin(world, startingDeadlineSeconds=2**62)
        await world.sleep(130)
        assert await minutes(world) == [1, 2]

    run_local(story, nodes=1, start=False)
