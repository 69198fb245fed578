"""AdvancedCronJobs: runs that are due, wait, replace each other, are kept and go."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS, SCHEDULED_AT
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS
from kruise.api.native.apps import JOBS
from kruise.api.resource import Resource
from kruise.api.versions import KEPT
from tests.scenarios.stage import ALPHA, BETA, Scenario, Stage, scenario
from tests.support.world import Json

SCENARIOS: dict[str, Scenario] = {}
LONG = "sleep 100000"
IMAGES = {"imageListPullJobTemplate": {"spec": {"images": ["nginx:1.25"], "completionPolicy": {"type": "Always"}}}}


class ScheduleStage(Stage):
    """An AdvancedCronJob `often`, which runs every few seconds."""

    resource: Resource[Any] = ADVANCED_CRON_JOBS

    @property
    def period(self) -> int:
        return self.pace.seconds

    def task(self, command: str) -> Json:
        container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
        return {"spec": spec}

    def of_jobs(self, command: str = "sleep 1", **spec: Any) -> Json:
        return {"jobTemplate": {"spec": {"template": self.task(command), **spec}}}

    def on_each_node(self, command: str = "sleep 1", **spec: Any) -> Json:
        return {"broadcastJobTemplate": {"spec": {"template": self.task(command), **spec}}}

    def cron(self, template: Json | None = None, *, name: str = "often", version: str = BETA, **spec: Any) -> Json:
        schedule = {"schedule": f"@every {self.period}s", "template": template or self.of_jobs()}
        return {
            "apiVersion": f"{ADVANCED_CRON_JOBS.group}/{version}",
            "kind": ADVANCED_CRON_JOBS.kind,
            "metadata": {"name": name},
            "spec": {**schedule, **spec},
        }

    async def begin(self, template: Json | None = None, **options: Any) -> Json:
        return await self.world.create(self.cron(template, **options))

    async def status(self, name: str = "often") -> Json:
        return await super().status(name)

    async def runs(self, kind: Resource[Any] = JOBS) -> list[Json]:
        """The newest last."""
        found = [run for run in await self.world.list(kind) if "deletionTimestamp" not in run["metadata"]]
        return sorted(found, key=moment_of)

    async def so_many_runs(self, number: int, kind: Resource[Any] = JOBS) -> list[Json]:
        async def are_there() -> list[Json]:
            found = await self.runs(kind)
            assert len(found) >= number, f"{len(found)} runs"
            return found

        found: list[Json] = await self.until(are_there)
        return found

    async def names_seen(self, seconds: float, kind: Resource[Any] = JOBS) -> tuple[set[str], int]:
        """The runs of a while, and how many were active at the same time, as the status tells."""
        names: set[str] = set()
        most = 0
        ends = self.world.clock.monotonic() + seconds
        while self.world.clock.monotonic() < ends:
            names.update(run["metadata"]["name"] for run in await self.runs(kind))
            most = max(most, len((await self.status()).get("active", ())))
            await self.world.sleep(self.pace.every)
        return names, most


def moment_of(run: Json) -> int:
    return int(run["metadata"]["name"].rpartition("-")[2])


def is_over(run: Json) -> bool:
    return any(one["type"] in ("Complete", "Failed") for one in run.get("status", {}).get("conditions", ()))


schedules = functools.partial(scenario, into=SCENARIOS, stage=ScheduleStage)


@schedules("ACJ-12", "ACJ-46", "ACJ-66", "ACJ-70", "ACJ-72", "ACJ-73", "ACJ-86", "ACJ-90", smoke=True)
async def runs_follow_each_other(stage: ScheduleStage) -> None:
    """A Job each time, named after its moment, owned, noted in the status; every one a period after the other."""
    made = await stage.begin()
    runs = await stage.so_many_runs(3)
    moments = [moment_of(run) for run in runs]
    assert all((later - first) % stage.period == 0 for first, later in itertools.pairwise(moments))
    for run in runs:
        [owner] = run["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("AdvancedCronJob", "often", made["metadata"]["uid"])
        assert owner["controller"] is True
        assert run["metadata"]["annotations"][SCHEDULED_AT].endswith("Z")

    async def is_noted() -> None:
        # A run is there before the status tells of it.
        status = await stage.status()
        assert status["type"] == "Job"
        assert status["lastScheduleTime"] >= runs[-1]["metadata"]["annotations"][SCHEDULED_AT]

    await stage.until(is_noted)
    await stage.has_event("SuccessfulCreate", f"Created job {runs[0]['metadata']['name']}", name="often")


@schedules("ACJ-40", "ACJ-74", "ACJ-75", "ACJ-87", "ACJ-88")
async def on_every_node_by_the_clock(stage: ScheduleStage) -> None:
    """A BroadcastJob each time, with the labels of its template; its time to live counts, history or not."""
    template = stage.on_each_node(completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 1})
    template["broadcastJobTemplate"]["metadata"] = {"labels": {"team": "a"}}
    await stage.begin(template)
    [first, *_] = await stage.so_many_runs(1, BROADCAST_JOBS)
    assert first["metadata"]["labels"] == {"team": "a"}
    assert first["apiVersion"] == BROADCAST_JOBS.api_version
    await stage.is_gone(BROADCAST_JOBS, first["metadata"]["name"])
    assert (await stage.status())["type"] == "BroadcastJob"
    [later, *_] = await stage.so_many_runs(1, BROADCAST_JOBS)
    assert moment_of(later) > moment_of(first), "none is made again that has gone"


@schedules("ACJ-60", "ACJ-67", "ACJ-80")
async def a_run_waits_for_the_one_before(stage: ScheduleStage) -> None:
    """Forbid: never two at a time, and the next one starts as soon as the one before has ended."""
    period = stage.period
    await stage.begin(stage.of_jobs(f"sleep {period + period // 2}"), concurrencyPolicy="Forbid")
    await stage.so_many_runs(1)
    names, most = await stage.names_seen(8 * period)
    assert most == 1
    assert len(names) >= 3


@schedules("ACJ-61")
async def a_run_replaces_the_one_before(stage: ScheduleStage) -> None:
    """Replace: the one that is active goes when the next is due."""
    await stage.begin(stage.of_jobs(LONG), concurrencyPolicy="Replace")
    [first, *_] = await stage.so_many_runs(1)
    await stage.is_gone(JOBS, first["metadata"]["name"])
    await stage.has_event("SuccessfulDelete", f"Deleted job {first['metadata']['name']}", name="often")
    [newer] = (await stage.so_many_runs(1))[-1:]
    assert moment_of(newer) > moment_of(first)
    _, most = await stage.names_seen(2 * stage.period)
    assert most == 1


@schedules("ACJ-46", "ACJ-62")
async def runs_beside_each_other(stage: ScheduleStage) -> None:
    """Allow: all of them are active, and named in the status."""
    await stage.begin(stage.of_jobs(LONG))

    async def three_are_active() -> None:
        active = (await stage.status()).get("active", ())
        assert len(active) >= 3
        assert {(one["apiVersion"], one["kind"]) for one in active} == {("batch/v1", "Job")}

    await stage.until(three_are_active)


@schedules("ACJ-8", "ACJ-37", "ACJ-52", "ACJ-63", "ACJ-64")
async def paused_and_resumed(stage: ScheduleStage) -> None:
    """No run while it is paused; when it goes on, one that was missed is made up for at once."""
    await stage.begin(paused=True)
    await stage.world.sleep(2.5 * stage.period)
    assert await stage.runs() == []
    await stage.change({"paused": False}, "often")
    await stage.so_many_runs(1)
    await stage.change({"paused": True}, "often", version=ALPHA)
    await stage.world.sleep(stage.period)
    before = {run["metadata"]["name"] for run in await stage.runs()}
    await stage.world.sleep(2.5 * stage.period)
    assert {run["metadata"]["name"] for run in await stage.runs()} <= before


@schedules("ACJ-43", "ACJ-50")
async def old_runs_go(stage: ScheduleStage) -> None:
    """Of those that have ended, as many are kept as the limits say; failed ones for themselves."""
    await stage.begin(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    fails = stage.of_jobs("exit 1", backoffLimit=0)
    await stage.begin(fails, name="fails", successfulJobsHistoryLimit=0, failedJobsHistoryLimit=2)
    gone: set[str] = set()

    async def some_are_gone() -> None:
        names = {run["metadata"]["name"] for run in await stage.runs()}
        gone.update(names)
        left = {job: len([one for one in gone - names if one.startswith(job)]) for job in ("often", "fails")}
        assert min(left.values()) >= 2, left

    await stage.until(some_are_gone)
    for name, limit in (("often", 1), ("fails", 2)):
        await stage.change({"paused": True}, name)

        async def only_these_are_left(name: str = name, limit: int = limit) -> None:
            found = [run for run in await stage.runs() if run["metadata"]["name"].startswith(name)]
            assert [is_over(run) for run in found] == [True] * limit

        await stage.until(only_these_are_left)


@schedules("ACJ-49", "ACJ-78")
async def its_runs_go_with_it(stage: ScheduleStage) -> None:
    """Deleting it deletes what it made."""
    await stage.begin(stage.of_jobs(LONG))
    await stage.so_many_runs(1)
    await stage.world.delete(ADVANCED_CRON_JOBS, "often", propagation="Background")

    async def none_is_left() -> None:
        assert await stage.world.list(JOBS) == []

    await stage.until(none_is_left)
    await stage.world.sleep(2 * stage.period)
    assert await stage.world.list(JOBS) == []


@schedules("ACJ-7", "ACJ-19", "ACJ-20", "ACJ-31", "ACJ-32", "ACJ-36", "ACJ-37")
async def what_is_refused(stage: ScheduleStage) -> None:
    """Schedules and zones that cannot be read, two templates or none, another image in the template of a Job."""
    for schedule, word in (("60 * * * *", "above maximum"), ("* * * *", "5 fields"), ("@reboot", "descriptor")):
        await stage.is_refused(stage.begin(schedule=schedule), "spec.schedule", word)
    await stage.is_refused(stage.begin(timeZone="broken"), "spec.timeZone")
    await stage.is_refused(stage.begin({**stage.of_jobs(), **stage.on_each_node()}), "template")
    await stage.begin(paused=True)
    await stage.is_refused(stage.change({"schedule": "61 * * * *"}, "often"), "above maximum (59)")
    other = {"template": {"jobTemplate": {"spec": {"backoffLimit": 3}}}}
    await stage.is_refused(stage.change(other, "often"), "forbidden")
    await stage.change({"schedule": "0 10 * * ?", "timeZone": "Asia/Shanghai", "startingDeadlineSeconds": 60}, "often")


@schedules("ACJ-2", "ACJ-3", "ACJ-4", "ACJ-13")
async def both_versions(stage: ScheduleStage) -> None:
    """What is made through v1alpha1 is read through v1beta1, and a list of images survives the older version."""
    await stage.begin(stage.on_each_node(), version=ALPHA, name="older", schedule="@yearly")
    shown = (await stage.subject("older"))["spec"]
    assert shown["template"]["broadcastJobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert (shown["concurrencyPolicy"], shown["paused"]) == ("Allow", False)
    await stage.begin(IMAGES, name="images", schedule="@yearly")
    await stage.change({"schedule": "@monthly"}, "images", version=ALPHA)
    found = await stage.subject("images")
    assert found["spec"]["schedule"] == "@monthly"
    assert found["spec"]["concurrencyPolicy"] == "Replace"
    assert found["spec"]["template"]["imageListPullJobTemplate"]["spec"]["images"] == ["nginx:1.25"]
    assert KEPT not in found["metadata"].get("annotations", {})


@schedules("ACJ-40", "ACJ-61", "ACJ-89", gates={"ImagePullJobGate": True})
async def images_by_the_clock(stage: ScheduleStage) -> None:
    """An ImageListPullJob each time; a newer one replaces one that has not ended."""
    await stage.begin(IMAGES)
    [first, *_] = await stage.so_many_runs(1, IMAGE_LIST_PULL_JOBS)
    assert first["spec"]["images"] == ["nginx:1.25"]
    assert (await stage.status())["type"] == "ImageListPullJob"

    async def a_newer_one() -> None:
        assert any(moment_of(run) > moment_of(first) for run in await stage.runs(IMAGE_LIST_PULL_JOBS))

    await stage.until(a_newer_one)


@schedules("ACJ-77", "ACJ-86")
async def a_run_that_is_refused_is_told(stage: ScheduleStage) -> None:
    """What the API server does not take is an event, and stops nothing else."""
    await stage.begin(stage.of_jobs(backoffLimit=-1))
    await stage.has_event("FailedCreate", "Error creating job: ", name="often", type="Warning")
    assert await stage.runs() == []
    await stage.begin(name="other")
    await stage.so_many_runs(1)
