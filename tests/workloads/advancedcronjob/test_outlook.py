"""What `kruise plan` tells of an AdvancedCronJob: its next runs, and what they meet."""

from __future__ import annotations

import pytest

from kruise.faces.outlook import Outlook, Seen
from kruise.machinery import codec
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
