"""An AdvancedCronJob in the fast model of a cluster."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS, AdvancedCronJob
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS
from kruise.api.meta import Key
from kruise.api.native.apps import JOBS
from kruise.machinery.plan import Plan
from kruise.machinery.times import format_time
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.workloads.advancedcronjob.controller import controllers
from tests.support.modelled import START, Modelled

PODS: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1"}]}}
JOB: Json = {"jobTemplate": {"spec": {"template": PODS}}}
BROADCAST: Json = {"broadcastJobTemplate": {"spec": {"template": PODS}}}
IMAGES: Json = {"imageListPullJobTemplate": {"spec": {"images": ["nginx:1"], "completionPolicy": {"type": "Always"}}}}


def document(schedule: str = "*/1 * * * *", *, template: Json = JOB, name: str = "cron", **spec: Any) -> Json:
    """An AdvancedCronJob `cron` in `demo`, as admission leaves it, made at the beginning of time."""
    defaults = {
        "concurrencyPolicy": "Allow",
        "paused": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
    return {
        "apiVersion": ADVANCED_CRON_JOBS.api_version,
        "kind": ADVANCED_CRON_JOBS.kind,
        "metadata": {"name": name, "namespace": "demo", "creationTimestamp": format_time(START)},
        "spec": {"schedule": schedule, "template": template, **defaults, **spec},
    }


class ModelledCron(Modelled[AdvancedCronJob]):
    def __init__(self, given: Json | None = None) -> None:
        [spec] = controllers(Options())
        super().__init__(spec, given or document(), served=(IMAGE_LIST_PULL_JOBS,))
        self.kind = next(
            resource
            for resource, field in (
                (JOBS, "jobTemplate"),
                (BROADCAST_JOBS, "broadcastJobTemplate"),
                (IMAGE_LIST_PULL_JOBS, "imageListPullJobTemplate"),
            )
            if field in (given or document())["spec"]["template"]
        )

    @property
    def runs(self) -> list[Any]:
        return sorted(self.world.store(self.kind).list(), key=lambda run: run.metadata.name)

    @property
    def minutes(self) -> list[float]:
        """The moments that the runs are of, in minutes since the beginning."""
        names = [int(run.metadata.name.rpartition("-")[2]) for run in self.runs]
        return [(name - START.timestamp()) / 60 for name in names]

    @property
    def active(self) -> list[str]:
        return [one.name for one in self.subject.status.active]

    def to(self, minutes: float) -> Plan:
        """Let time pass, and look."""
        self.world.now = START + timedelta(minutes=minutes)
        return self.reconcile()

    def through(self, minutes: float) -> None:
        """Let time pass, and look whenever the plan said so."""
        until = START + timedelta(minutes=minutes)
        while True:
            plan = self.reconcile()
            wakes = [wake.after for wake in plan.wakes]
            following = self.now + timedelta(seconds=min(wakes)) if wakes else until
            if following >= until or not wakes:
                break
            self.world.now = following
        self.world.now = until
        self.reconcile()

    def end(self, name: str, condition: str = "Complete") -> None:
        status: Json = {"conditions": [{"type": condition, "status": "True"}], "startTime": format_time(self.now)}
        if self.kind is IMAGE_LIST_PULL_JOBS:
            good = condition == "Complete"
            times = {"completionTime": format_time(self.now), "startTime": format_time(self.now)}
            status = {**times, "desired": 1, "succeeded": 1 if good else 0}
        assert self.world.edit(self.kind, Key("demo", name), lambda doc: doc.update(status=status)) is not None

    def remove(self, name: str) -> None:
        found = self.world.store(self.kind).get("demo", name)
        assert found is not None
        self.world.remove(self.kind, found)


def moment(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def name_of(minutes: float) -> str:
    return f"cron-{int(moment(minutes).timestamp())}"


def code(plan: Plan) -> str:
    [held] = plan.held
    return held.causes[0].code
