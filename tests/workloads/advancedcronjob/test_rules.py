"""Rules of the AdvancedCronJob, each shown in the model of a cluster."""

from __future__ import annotations

import functools
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS, SCHEDULED_AT
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS
from kruise.api.meta import Key
from kruise.api.native.apps import JOBS
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.offline import view_of
from kruise.machinery.plan import Outcome, Outcomes, PhaseOutcomes, Result
from kruise.machinery.times import format_time
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.workloads.advancedcronjob.controller import controllers
from kruise.workloads.advancedcronjob.decide import RUN, Memo, decide
from kruise.workloads.advancedcronjob.timing import zone_name
from tests.support.examples import story_settings
from tests.support.killed import Killed
from tests.support.modelled import START, UID
from tests.workloads.advancedcronjob.modelled import (
    BROADCAST,
    IMAGES,
    JOB,
    ModelledCron,
    code,
    document,
    moment,
    name_of,
)

# Runs


def test_the_type_is_told_before_any_run_and_the_first_is_at_the_next_minute() -> (
    None
):  # ACJ-12, ACJ-46, ACJ-57, ACJ-58, ACJ-90
    model = ModelledCron()
    plan = model.reconcile()
    assert (model.subject.status.type, model.subject.status.last_schedule_time, model.runs) == ("Job", None, [])
    assert [wake.after for wake in plan.wakes] == [60]  # ACJ-54, ACJ-65
    assert code(plan) == "scheduled"
    model.to(0.99)
    assert model.runs == []
    model.to(1)
    assert model.minutes == [1]
    assert model.active == [name_of(1)]  # told at once (ACJ-47, ACJ-66)
    assert model.subject.status.last_schedule_time == moment(1)


@pytest.mark.parametrize(
    ("template", "resource"), [(JOB, JOBS), (BROADCAST, BROADCAST_JOBS), (IMAGES, IMAGE_LIST_PULL_JOBS)]
)
def test_what_a_run_is_made_of(template: Json, resource: Any) -> None:  # ACJ-10, ACJ-40, ACJ-70 to ACJ-75
    [field] = template
    marked = {
        field: {**template[field], "metadata": {"labels": {"a": "b"}, "annotations": {SCHEDULED_AT: "x", "c": "d"}}}
    }
    model = ModelledCron(document(template=marked))
    plan = model.to(1)
    [action] = plan.actions()
    assert (action.target.resource, action.target.name) == (resource, name_of(1))
    assert action.body["apiVersion"] == resource.api_version
    assert action.body["metadata"] == {
        "name": name_of(1),
        "namespace": "demo",
        "labels": {"a": "b"},
        "annotations": {SCHEDULED_AT: format_time(moment(1)), "c": "d"},
        "ownerReferences": [
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "AdvancedCronJob",
                "name": "cron",
                "uid": UID,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert action.body["spec"] == template[field]["spec"]
    [reference] = model.subject.status.active
    assert (reference.api_version, reference.kind, reference.namespace) == (resource.api_version, resource.kind, "demo")
    assert reference.uid
    assert reference.resource_version


def test_only_the_latest_missed_run_is_made_up_for() -> None:  # ACJ-53, ACJ-63, ACJ-82
    model = ModelledCron()
    model.to(50.5)
    assert model.minutes == [50]
    model.to(50.6)
    assert model.minutes == [50]


@pytest.mark.parametrize(("minutes", "made"), [(99.5, [99]), (101, [])])
def test_more_than_a_hundred_missed_runs_are_given_up(minutes: float, made: list[float]) -> None:  # ACJ-55
    model = ModelledCron()
    plan = model.to(minutes)
    assert model.minutes == made
    if not made:
        assert code(plan) == "missed-too-many"
        assert plan.wakes
        model.to(102)  # but the next one runs, and nobody has to do anything for it
        assert model.minutes == [102]


@pytest.mark.parametrize(
    ("change", "made"),
    [
        ({"startingDeadlineSeconds": 3600}, [200]),
        ({"schedule": "0 * * * *"}, [180]),
        ({"schedule": "*/2 * * * *"}, [200]),
    ],
)
def test_what_was_given_up_is_looked_at_anew_with_another_spec(change: Json, made: list[float]) -> None:
    """ACJ-55, ACJ-63."""
    model = ModelledCron()
    assert code(model.to(200.5)) == "missed-too-many"
    model.to(200.6)
    assert model.minutes == []
    model.edit_spec(lambda spec: spec.update(change))
    model.to(200.7)
    assert model.minutes == made


def test_a_clock_that_was_ahead_gives_up_nothing_that_is_still_to_come() -> None:  # ACJ-55, ACJ-69
    model = ModelledCron()
    assert code(model.to(300)) == "missed-too-many"
    model.to(5)
    assert model.minutes == [5]
    model.through(8)
    assert model.minutes == [5, 6, 7, 8]


@pytest.mark.parametrize("result", [Result.UNKNOWN, Result.FAILED, Result.SKIPPED])
def test_what_was_given_up_stays_so_until_a_run_is_made(result: Result) -> None:  # ACJ-55, ACJ-77
    """Else it would be given up a second time, and with it the run that was only tried."""
    model = ModelledCron()
    model.to(101)
    model.world.now = moment(102)
    seen = model.snapshot()
    plan = decide(seen)
    tried = PhaseOutcomes(RUN, tuple((Outcome(action=action, result=result),) for action in plan.actions()))
    model.loop.controllers[0].spec.conclude(seen, plan, Outcomes((tried,)))
    model.to(102.5)
    assert model.minutes == [102]


def test_since_when_runs_were_missed() -> None:  # ACJ-55
    model = ModelledCron()
    [held] = model.to(101).held
    assert "missed since 2030-01-01T12:00:00Z" in held.causes[0].message


def test_one_that_was_created_in_the_future_says_so() -> None:  # ACJ-69
    model = ModelledCron()
    [held] = model.to(-5).held
    assert held.causes[0].code == "clock-behind"
    assert held.causes[0].message.startswith("it was created at 2030-01-01T12:00:00Z, which is in the future")


def test_with_a_deadline_only_what_is_within_it_counts() -> None:  # ACJ-53, ACJ-55, ACJ-59
    model = ModelledCron(document(startingDeadlineSeconds=200))
    model.to(500.5)
    assert model.minutes == [500]
    late = ModelledCron(document("0 * * * *", startingDeadlineSeconds=60))
    late.to(62)
    assert late.minutes == []
    long = ModelledCron(document(startingDeadlineSeconds=86400))
    long.to(1000)
    assert long.minutes == [1000]


def test_a_deadline_of_0_starts_nothing() -> None:  # ACJ-68
    model = ModelledCron(document(startingDeadlineSeconds=0))
    assert code(model.to(1)) == "no-deadline-left"
    assert model.runs == []


def test_the_grid_of_a_period_does_not_depend_on_the_deadline() -> None:  # ACJ-24, ACJ-53
    model = ModelledCron(document("@every 2m", startingDeadlineSeconds=10))
    model.through(7)
    assert model.minutes == [2, 4, 6]


def test_a_clock_that_was_set_back_starts_nothing_twice() -> None:  # ACJ-69
    model = ModelledCron()
    model.to(30)
    model.world.now = START - timedelta(minutes=60)
    assert code(model.reconcile()) == "clock-behind"
    model.through(32)
    assert model.minutes == [30, 31, 32]


@pytest.mark.parametrize("schedule", ["*/1 * * * *", "@every 1m"])
@pytest.mark.parametrize(
    ("year", "expected"), [("0001-01-01T00:00:00Z", "missed-too-many"), ("9999-12-31T23:59:59Z", "clock-behind")]
)
def test_a_last_run_that_cannot_have_been_is_no_trouble(schedule: str, year: str, expected: str) -> None:  # ACJ-69
    """Whoever wrote it: the object says what it waits for, and the others go on."""
    model = ModelledCron(document(schedule, timeZone="America/New_York"))
    status = {"type": "Job", "lastScheduleTime": year}
    model.change(ADVANCED_CRON_JOBS, "cron", lambda found: found.update(status=status))
    assert code(model.reconcile()) == expected


def test_the_plan_tells_of_the_next_run_however_far_away() -> None:  # ACJ-54
    model = ModelledCron(document("0 0 1 1 *"))
    [wake] = model.reconcile().wakes
    assert wake.after == (datetime(2031, 1, 1, tzinfo=START.tzinfo) - START).total_seconds()


@pytest.mark.parametrize(("schedule", "expected"), [("nonsense", "bad-schedule"), ("0 0 30 2 *", "never-due")])
def test_a_schedule_that_runs_never(schedule: str, expected: str) -> None:  # ACJ-25, ACJ-56
    model = ModelledCron(document(schedule))
    plan = model.to(1)
    assert code(plan) == expected
    assert not plan.wakes
    assert model.subject.status.type == "Job"


def test_the_zone() -> None:  # ACJ-27, ACJ-94
    assert zone_name("Asia/Shanghai", "0 0 * * *", "UTC") == "Asia/Shanghai"
    assert zone_name(None, "0 0 * * *", "Europe/Berlin") == "Europe/Berlin"
    assert zone_name("Nowhere/X", "0 0 * * *", "UTC") == "UTC"
    assert zone_name("Asia/Shanghai", "TZ=UTC 0 0 * * *", "Europe/Berlin") == "Europe/Berlin"
    # 12:00 UTC is 20:00 in Shanghai.
    model = ModelledCron(document("1 20 * * *", timeZone="Asia/Shanghai"))
    model.through(2)
    assert model.minutes == [1]


def test_a_zone_that_is_not_known_is_ignored_but_not_in_silence() -> None:  # ACJ-27
    """Admission refuses it where it is not known; the manager may know less."""
    model = ModelledCron(document(timeZone="Moon/Tranquility"))
    plan = model.to(0.5)
    [held] = plan.held
    assert held.causes[0].code == "scheduled"
    assert held.causes[0].message.endswith("(Moon/Tranquility is no time zone that is known here)")
    assert not plan.memo_as(Memo).events
    [note] = model.to(1).memo_as(Memo).events
    assert note.reason == "UnknownTimeZone"
    assert model.minutes == [1]
    assert not ModelledCron(document(timeZone="Asia/Shanghai")).to(1).memo_as(Memo).events


# Several at a time


def test_allow() -> None:  # ACJ-62
    model = ModelledCron()
    model.through(3)
    assert model.active == [name_of(1), name_of(2), name_of(3)]


def test_forbid_waits_and_then_starts_the_latest() -> None:  # ACJ-60, ACJ-67, ACJ-80
    model = ModelledCron(document(concurrencyPolicy="Forbid"))
    model.to(1)
    assert code(model.to(3.5)) == "still-active"
    assert model.minutes == [1]
    model.end(name_of(1))
    model.to(3.6)
    assert model.minutes == [1, 3]
    assert model.active == [name_of(3)]


def test_replace_deletes_and_makes_in_one_pass() -> None:  # ACJ-61
    model = ModelledCron(document(concurrencyPolicy="Replace"))
    model.to(1)
    plan = model.to(2)
    assert [action.verb for action in plan.actions()] == [Verb.DELETE, Verb.CREATE]
    assert next(plan.actions()).propagation == "Background"
    assert model.minutes == [2]
    assert model.active == [name_of(2)]


# Pause, deletion


def test_paused_runs_nothing_and_one_run_follows() -> None:  # ACJ-52, ACJ-63, ACJ-64
    model = ModelledCron(document(paused=True))
    plan = model.to(7.5)
    assert (code(plan), plan.wakes, model.runs) == ("runs-paused", (), [])
    model.edit_spec(lambda spec: spec.update(paused=False))
    model.to(7.6)
    assert model.minutes == [7]


def test_one_that_is_deleted_makes_nothing() -> None:  # ACJ-49
    model = ModelledCron()
    gone = {"deletionTimestamp": format_time(START), "finalizers": ["a/b"]}
    model.change(ADVANCED_CRON_JOBS, "cron", lambda doc: doc["metadata"].update(gone))
    model.to(5)
    assert model.runs == []


# History


def test_history() -> None:  # ACJ-43, ACJ-45, ACJ-50, ACJ-51
    model = ModelledCron(document(successfulJobsHistoryLimit=2))
    for minute, condition in enumerate(("Complete", "Failed", "Failed", "Complete", "Complete"), start=1):
        model.to(minute)
        model.end(name_of(minute), condition)
    model.edit_spec(lambda spec: spec.update(paused=True))
    model.to(5.5)
    assert model.minutes == [3, 4, 5]
    assert model.active == []


def test_nothing_is_kept_and_nothing_runs_twice() -> None:  # ACJ-47, ACJ-50
    model = ModelledCron(document(successfulJobsHistoryLimit=0))
    model.to(1)
    model.end(name_of(1))
    model.to(1.1)
    assert model.runs == []
    model.to(1.2)
    model.to(1.3)
    assert model.runs == []
    assert model.subject.status.last_schedule_time == moment(1)
    model.to(2)
    assert model.minutes == [2]


def test_one_deleted_by_its_time_to_live_is_not_made_again() -> None:  # ACJ-47, ACJ-88
    model = ModelledCron(document(template=BROADCAST))
    model.to(1)
    model.remove(name_of(1))
    model.through(1.9)
    assert model.runs == []
    model.to(2)
    assert model.minutes == [2]


def test_a_story_of_image_lists() -> None:  # ACJ section 13, 6
    spec = {"successfulJobsHistoryLimit": 2, "startingDeadlineSeconds": 360, "concurrencyPolicy": "Replace"}
    model = ModelledCron(document("*/5 * * * *", template=IMAGES, **spec))
    for minute, condition in ((5, "Complete"), (10, "Failed"), (15, "Failed"), (20, "Complete"), (25, "Complete")):
        model.to(minute)
        model.end(name_of(minute), condition)
    model.to(30)
    model.to(35)
    assert model.minutes == [15, 20, 25, 35]
    assert model.active == [name_of(35)]


# Children


def test_whose_children() -> None:  # ACJ-41, ACJ-42, ACJ-44
    model = ModelledCron()
    by_hand = {
        "metadata": {
            "name": "by-hand",
            "namespace": "demo",
            "uid": "hand",
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
            "ownerReferences": [
                {"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "name": "cron", "uid": UID}
            ],
        }
    }
    older = {
        "metadata": {
            "name": "older",
            "namespace": "demo",
            "uid": "older",
            "annotations": {SCHEDULED_AT: "nonsense"},
            "ownerReferences": [
                {
                    "apiVersion": "apps.kruise.io/v1alpha1",
                    "kind": "AdvancedCronJob",
                    "name": "cron",
                    "uid": UID,
                    "controller": True,
                }
            ],
        }
    }
    model.world.add(JOBS, [codec.convert(one, JOBS.type) for one in (by_hand, older)])
    model.reconcile()
    assert model.active == ["older"]
    assert model.subject.status.last_schedule_time is None


def test_changes_of_runs_are_noticed() -> None:  # ACJ-79, ACJ-80
    model = ModelledCron()
    model.to(1)
    [source] = [one for one in model.loop.controllers[0].spec.sources if one.resource == JOBS]
    assert [*source.keys(None, model.runs[0], model.world)] == [Key("demo", "cron")]


def test_a_refused_run_is_told_of() -> None:  # ACJ-76, ACJ-77
    model = ModelledCron(document(name="c" * 60))
    model.world.now = moment(1)
    snapshot = model.snapshot()
    told = codec.evolve(snapshot, refusal="must be no more than 63 characters")
    plan = model.loop.controllers[0].spec.decide(told)
    assert code(plan) == "run-refused"
    assert "shorter" in plan.held[0].causes[0].remedy


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (document(name="c" * 60), "metadata.name: each run will be refused"),
        (document(template={"jobTemplate": {"spec": {"template": {"spec": {}}}}}), "restartPolicy: each run will be"),
        (document(template={"imageListPullJobTemplate": {"spec": {"parallelism": "5%"}}}), "each run will be refused"),
    ],
)
def test_runs_that_will_be_refused_are_told_before_the_first(given: Json, told: str) -> None:  # ACJ-33, ACJ-34, ACJ-76
    plan = ModelledCron(given).reconcile()
    assert code(plan) == "run-refused"
    assert told in plan.held[0].causes[0].message
    assert "the next run is due at" in plan.held[0].causes[0].message
    assert plan.wakes, "it is tried all the same"


@pytest.mark.parametrize(
    ("template", "remedy"),
    [
        (JOB, "a template of jobs cannot be changed, so create it anew"),
        (BROADCAST, "a template of jobs cannot be changed, so create it anew"),
        (IMAGES, "correct what the message names in spec.template.imageListPullJobTemplate"),
    ],
)
def test_what_helps_where_a_run_is_refused(template: Json, remedy: str) -> None:  # ACJ-37, ACJ-77
    model = ModelledCron(document(template=template))
    model.world.now = moment(1)
    plan = decide(codec.evolve(model.snapshot(), refusal="it may not be so"))
    assert plan.held[0].causes[0].remedy.endswith(remedy)


# Promises

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("time"), st.floats(0.1, 90)),
        st.tuples(st.just("back"), st.floats(0.1, 10)),
        st.tuples(st.just("end"), st.sampled_from(["Complete", "Failed"])),
        st.tuples(st.just("vanish"), st.none()),
        st.tuples(st.just("pause"), st.booleans()),
        st.tuples(st.just("policy"), st.sampled_from(["Allow", "Forbid", "Replace"])),
        st.tuples(st.just("schedule"), st.sampled_from(["*/1 * * * *", "*/7 * * * *", "@every 3m"])),
        st.tuples(st.just("death"), st.integers(0, 2)),
    ),
    max_size=25,
)


def _set(spec: Json, **fields: Any) -> None:
    spec.update(fields)


@story_settings(60)
@given(steps=STEPS)
def test_no_run_is_made_twice_and_none_is_lost(steps: list[tuple[str, Any]]) -> None:  # ACJ-47, ACJ-60, ACJ-61, ACJ-70
    model = ModelledCron(document(template=BROADCAST))
    made: list[str] = []

    def wrote(outcome: Outcome) -> None:
        if outcome.action.verb is Verb.CREATE:
            assert not model.subject.spec.paused
            assert outcome.action.target.name not in made, "no run is made twice"
            made.append(outcome.action.target.name)

    for kind, value in steps:
        if kind == "time":
            model.pass_time(value * 60)
        elif kind == "back":
            model.pass_time(-value * 60)
        elif kind == "end":
            for run in model.runs[:2]:
                model.end(run.metadata.name, value)
        elif kind == "vanish" and model.runs:
            model.remove(model.runs[-1].metadata.name)
        elif kind == "pause":
            model.edit_spec(functools.partial(_set, paused=value))
        elif kind == "policy":
            model.edit_spec(functools.partial(_set, concurrencyPolicy=value))
        elif kind == "schedule":
            model.edit_spec(functools.partial(_set, schedule=value))
        model.reconcile(wrote=wrote, die_at=value if kind == "death" else None)
    model.edit_spec(lambda spec: spec.update(paused=False, schedule="*/1 * * * *", concurrencyPolicy="Allow"))
    model.world.now = max(model.now, START, model.subject.status.last_schedule_time or START)
    model.reconcile(wrote=wrote)
    before = len(made)
    for _ in range(3):
        model.pass_time(60)
        model.reconcile(wrote=wrote)
    assert len(made) == before + 3, "none is lost"


def test_a_year_of_nights_with_a_change_of_the_clocks() -> None:  # ACJ-26, ACJ-65
    """Virtual time, one look for each run and one every ten minutes at most."""
    model = ModelledCron(document("30 2 1 * *", timeZone="America/New_York", successfulJobsHistoryLimit=0))
    model.through(60 * 24 * 92)
    assert len(model.runs) == 3


def wall_clock(zone: str, hour: int, minute: int, years: int) -> list[datetime]:
    """The moments at which the clocks of a zone show this time, found by looking at them every five minutes."""
    moments = (START + timedelta(minutes=5 * step) for step in range(1, years * 366 * 24 * 12))
    place = ZoneInfo(zone)
    shown = ((one, one.astimezone(place)) for one in moments)
    return [one for one, local in shown if (local.hour, local.minute) == (hour, minute)]


@pytest.mark.parametrize(
    ("zone", "hour", "minute", "unlike"),
    [
        ("America/New_York", 2, 30, "spring"),  # is skipped
        ("America/New_York", 1, 30, "autumn"),  # comes twice
        ("America/Havana", 0, 0, ""),  # no midnight in spring, and two in autumn
        ("Australia/Lord_Howe", 1, 45, "autumn"),  # half an hour
        ("Asia/Shanghai", 2, 30, ""),
    ],
)
def test_years_of_nights_with_changes_of_the_clocks(zone: str, hour: int, minute: int, unlike: str) -> None:
    """ACJ-26, ACJ-65: each time that the clock shows is one run, told by a manager that may be late."""
    years = 3
    expected = wall_clock(zone, hour, minute, years)
    given = document(f"{minute} {hour} * * *", timeZone=zone, concurrencyPolicy="Replace", template=BROADCAST)
    model, made = ModelledCron(given), []

    def wrote(outcome: Outcome) -> None:
        if outcome.action.verb is Verb.CREATE:
            made.append(outcome.action.target.name)

    for number, shown in enumerate(expected):
        model.world.now = shown - timedelta(seconds=1)
        [wake] = model.reconcile(wrote=wrote).wakes
        assert wake.after == 1
        model.world.now = shown + timedelta(seconds=number % 40)
        model.reconcile(wrote=wrote)
    assert made == [f"cron-{int(shown.timestamp())}" for shown in expected]
    days = years * 366
    assert {"spring": len(expected) < days, "autumn": len(expected) > days, "": len(expected) == days}[unlike]


def play(policy: str, dies_at: int | None) -> tuple[ModelledCron, Killed, list[str]]:
    """Six minutes, a look every twenty seconds. Runs end after a minute and a half."""
    model, made = ModelledCron(document(concurrencyPolicy=policy, successfulJobsHistoryLimit=1)), list[str]()

    def wrote(outcome: Outcome) -> None:
        if outcome.action.verb is Verb.CREATE:
            made.append(outcome.action.target.name)
            active = [run for run in model.runs if not run.status.conditions]
            assert len(active) <= (3 if policy == "Allow" else 1)

    killed = Killed(model, dies_at, wrote=wrote)
    for _ in range(18):
        killed.run(1)
        model.pass_time(19)
        for run in model.runs:
            if (model.now - run.metadata.creation_timestamp).total_seconds() >= 90 and not run.status.conditions:
                model.end(run.metadata.name)
    killed.run(3)  # what the last pass left is done
    return model, killed, made


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_a_manager_may_die_at_every_write(policy: str) -> None:  # ACJ-47, ACJ-50, ACJ-60 to ACJ-62, ACJ-70, ACJ-85
    expected, undisturbed, runs = play(policy, None)
    assert undisturbed.writes > 6
    for place in range(undisturbed.writes):
        model, killed, made = play(policy, place)
        assert killed.died
        assert len(set(made)) == len(made), f"killed at write {place}"
        if policy == "Forbid":  # a run that begins later ends later, and so begins the next
            assert len(made) >= len(runs) - 1, f"killed at write {place}"
        else:
            assert (made, model.minutes, model.active) == (runs, expected.minutes, expected.active), f"write {place}"


def test_events() -> None:  # ACJ-86
    model = ModelledCron(document(concurrencyPolicy="Replace"))
    model.to(1)
    model.world.now = moment(2)
    spec = model.loop.controllers[0].spec
    done = model.loop.run(model.loop.controllers[0], model.key)
    assert done is not None
    told = [
        note
        for phase in done.outcomes.phases
        for chain in phase.chains
        for note in spec.events_of(done.plan, phase.name, chain)
    ]
    assert [(note.reason, note.message) for note in told] == [
        ("SuccessfulDelete", f"Deleted job {name_of(1)}"),
        ("SuccessfulCreate", f"Created job {name_of(2)}"),
    ]


def test_writes() -> None:  # ACJ-48
    """Two for a run: itself, and the status. None while nothing happens."""
    model = ModelledCron()
    model.reconcile()
    before = model.writes
    model.to(1)
    assert model.writes == before + 2
    for second in range(5):
        model.to(1 + second / 10)
    assert model.writes == before + 2


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_no_run_before_the_runs_that_there_are_have_been_read(policy: str) -> None:  # ACJ-60, ACJ-61
    model = ModelledCron(document(template=IMAGES, concurrencyPolicy=policy))
    model.to(1)
    assert model.active == [name_of(1)]
    model.world.now = moment(2)
    seen = model.snapshot()
    assert bool(list(decide(seen).actions())) == (policy != "Forbid")
    blind = codec.evolve(seen, children=(), sees_runs=False)
    plan = decide(blind)
    assert (code(plan), list(plan.actions())) == ("runs-unseen", [])
    assert plan.memo is None  # so the status still tells of the run


def test_the_runs_of_a_kind_that_is_not_served_are_not_seen() -> None:
    [spec] = controllers(Options())
    model = ModelledCron(document(template=IMAGES))
    others: dict[Any, Any] = {spec.subject: (model.subject,), JOBS: (), BROADCAST_JOBS: ()}
    for objects, expected in ((others, False), ({**others, IMAGE_LIST_PULL_JOBS: ()}, True)):
        found = spec.snapshot(view_of(spec, objects, now=START, gates={}), model.key)
        assert found is not None
        assert found.sees_runs is expected
