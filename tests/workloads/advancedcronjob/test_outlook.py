"""What `kruise plan` tells of an AdvancedCronJob: its next runs, and what they meet."""

from __future__ import annotations

import pytest

from kruise.faces.outlook import Outlook, Seen
from kruise.machinery import codec
from kruise.model.world import Json
from kruise.workloads.advancedcronjob.outlook import OUTLOOK
from tests.workloads.advancedcronjob.modelled import ModelledCron, document, name_of


def outlook(model: ModelledCron) -> Outlook:
    seen = Seen(now=model.now, objects={model.kind: model.runs})
    return OUTLOOK.tell(codec.to_builtins(model.subject), seen)


def overlaps(model: ModelledCron) -> list[str]:
    return [row[-1] for row in outlook(model).rows]


def test_ten_runs_in_its_zone() -> None:
    found = outlook(ModelledCron(document("0 3 * * *", timeZone="Asia/Shanghai")))
    assert len(found.rows) == 10
    assert found.rows[0][:2] == ("2030-01-02 03:00:00", "2030-01-01T19:00:00Z")
    assert found.header[0] == "TIME (Asia/Shanghai)"


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
    assert overlaps(model)[:2] == ["waits about 60 seconds for the one before"] * 2


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
