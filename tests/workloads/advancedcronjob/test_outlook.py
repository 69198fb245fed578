"""What `kruise plan` tells of an AdvancedCronJob: its next runs, and what they meet."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from kruise.faces.outlook import Outlook, Seen
from kruise.machinery import codec
from kruise.machinery.times import format_time
from kruise.model.world import Json
from kruise.workloads.advancedcronjob.outlook import OUTLOOK
from tests.workloads.advancedcronjob.modelled import ModelledCron, document, name_of


def outlook(model: ModelledCron) -> Outlook:
    seen = Seen(now=model.now, objects={model.kind: model.runs})
    return OUTLOOK.outlook(codec.to_builtins(model.subject), seen)


def overlaps(model: ModelledCron) -> list[str]:
    return [row[-1] for row in outlook(model).rows]


def test_ten_runs_in_its_zone() -> None:
    found = outlook(ModelledCron(document("0 3 * * *", timeZone="Asia/Shanghai")))
    assert len(found.rows) == 10
    assert found.rows[0][:2] == ("2030-01-02 03:00:00", "2030-01-01T19:00:00Z")
    assert found.header[0] == "TIME (Asia/Shanghai)"


def test_runs_that_will_be_refused() -> None:  # ACJ-33
    broken = {"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}}
    found = outlook(ModelledCron(document(template=broken, timeZone="UTC")))
    [note] = [text for text in found.notes if "refused" in text]
    assert note.startswith("spec.template.jobTemplate.spec.template.spec.restartPolicy: each run will be refused")


@pytest.mark.parametrize(("policy", "word"), [("Allow", "beside"), ("Forbid", "waits for"), ("Replace", "replaces")])
def test_a_run_that_is_active_meets_the_first_one(policy: str, word: str) -> None:  # ACJ-60 to ACJ-62
    """Nobody knows how long it takes."""
    model = ModelledCron(document("*/5 * * * *", concurrencyPolicy=policy))
    model.to(5)
    first, *others = overlaps(model)
    assert first == f"{word} {name_of(5)}, unless that has ended by then"
    assert set(others) == {""}


def _ran(seconds: int) -> ModelledCron:
    """A run has taken so long, and the next one has just begun."""
    model = ModelledCron(document("*/5 * * * *", concurrencyPolicy="Forbid"))
    model.to(5)
    model.end(name_of(5))

    def times(doc: dict[str, object]) -> None:
        status = {"startTime": "2030-01-01T12:00:00Z", "completionTime": f"2030-01-01T12:{seconds // 60:02}:00Z"}
        doc["status"] = {**dict(doc["status"]), **status}  # type: ignore[call-overload]

    model.change(model.kind, name_of(5), times)
    model.to(10)
    return model


def test_an_active_run_that_will_be_over_in_time_meets_nobody() -> None:
    assert set(overlaps(_ran(120))) == {""}


def test_an_active_run_that_takes_as_long_as_before_meets_the_first_one() -> None:
    model = _ran(360)
    model.pass_time(120)
    waits = [f"waits about {seconds} seconds for the one before" for seconds in (60, 120)]
    assert overlaps(model)[:2] == waits


def test_an_active_run_that_takes_longer_than_any_before_may_meet_it() -> None:
    model = _ran(120)
    model.pass_time(240)
    first, *others = overlaps(model)
    assert first == f"waits for {name_of(10)}, unless that has ended by then"
    assert set(others) == {""}


@pytest.mark.parametrize(
    ("schedule", "spec", "first"),
    [
        ("TZ=Asia/Shanghai 0 3 * * *", {}, "2030-01-02 03:00:00"),
        ("0 3 * * *", {"timeZone": "Asia/Shanghai"}, "2030-01-02 03:00:00"),
        ("CRON_TZ=Asia/Shanghai @daily", {}, "2030-01-02 00:00:00"),
    ],
)
def test_the_zone_is_that_of_the_schedule_wherever_it_is_named(schedule: str, spec: Json, first: str) -> None:
    """ACJ-19, ACJ-27."""
    found = outlook(ModelledCron(document(schedule, **spec)))
    assert (found.header[0], found.rows[0][0]) == ("TIME (Asia/Shanghai)", first)
    assert ("Zone", "Asia/Shanghai") in found.facts
    assert found.notes == ()


@pytest.mark.parametrize(
    ("given", "note"),
    [
        (
            document("0 3 * * *"),
            "it names no time zone, so that of the manager counts: these are times of UTC, that of",
        ),
        (document("0 3 * * *", timeZone="Moon/Sea"), "Moon/Sea is no time zone that is known here, and is ignored"),
        (document("@every 1h", startingDeadlineSeconds=0), "startingDeadlineSeconds is 0: none of these runs ever"),
        (document("@every 1h", paused=True), "it is paused: none of these runs starts until it goes on"),
        (document("TZ=UTC 0 0 30 2 *"), "no day matches the schedule for years"),
    ],
)
def test_what_stands_in_the_way_is_noted(given: Json, note: str) -> None:  # ACJ-27, ACJ-52, ACJ-68
    assert outlook(ModelledCron(given)).notes[0].startswith(note)


def test_runs_before_the_last_one_do_not_come_again() -> None:  # ACJ-69
    model = ModelledCron(document("@every 1m"))
    model.to(30)
    model.to(5)
    found = outlook(model)
    assert found.rows[0][2] == name_of(31)
    assert found.notes == ("its last run, or its creation, is in the future: runs go on after that",)


class _Cluster:
    """Runs that take so many seconds, and are looked at whenever the plan says so."""

    def __init__(self, given: Json, *, seconds: int) -> None:
        self.model = ModelledCron(given)
        self.took = timedelta(seconds=seconds)
        self.began: dict[str, datetime] = {}
        """In the order in which they did."""

    def until_begun(self, number: int) -> None:
        """Until so many runs have begun in all."""
        model = self.model
        while True:
            wakes = [wake.after for wake in model.reconcile().wakes]
            for name in model.active:
                if name not in self.began:
                    self.began[name] = model.now
                    self._report(name, startTime=format_time(model.now))
            if len(self.began) >= number:
                return
            ends = {name: self.began[name] + self.took for name in model.active}
            model.world.now = min([model.now + timedelta(seconds=min(wakes)), *ends.values()])
            for name in (name for name, end in ends.items() if end <= model.now):
                done = [{"type": "Complete", "status": "True"}]
                self._report(name, conditions=done, completionTime=format_time(model.now))

    def _report(self, name: str, **status: Any) -> None:
        def edit(doc: Json) -> None:
            doc["status"] = {**doc.get("status", {}), **status}

        self.model.change(self.model.kind, name, edit)


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
@pytest.mark.parametrize("deadline", [None, 1, 2, 60])
@pytest.mark.parametrize("seconds", [1, 3, 4, 5, 11, 30])
def test_the_runs_that_are_told_are_those_that_come(policy: str, deadline: int | None, seconds: int) -> None:
    """ACJ-53, ACJ-60 to ACJ-62: under Forbid only the latest of those that wait."""
    spec: Json = {"startingDeadlineSeconds": deadline} if deadline else {}
    given = document("@every 3s", concurrencyPolicy=policy, **spec)
    if policy == "Replace":
        seconds = min(seconds, 3)  # a run that is replaced tells nobody how long it would have taken
    cluster = _Cluster(given, seconds=seconds)
    cluster.until_begun(2 + seconds // 3)
    told = [row[2] for row in outlook(cluster.model).rows]
    known = len(cluster.began)
    cluster.until_begun(known + len(told))
    assert told == list(cluster.began)[known:]


def test_runs_that_never_start_are_named_as_such() -> None:  # ACJ-60
    cluster = _Cluster(document("@every 3s", concurrencyPolicy="Forbid"), seconds=4)
    cluster.until_begun(2)
    late = "waits about 2 seconds for the one before"
    barely, never = "waits about 1 second for the one before", "what was due before it never starts"
    assert overlaps(cluster.model)[:5] == [late, never, barely, late, never]
