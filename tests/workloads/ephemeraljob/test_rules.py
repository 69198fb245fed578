"""Decisions about EphemeralJobs, rule by rule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.ephemeraljob import FINALIZER, JOB_ENV
from kruise.api.meta import Key
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.delays import Delay
from kruise.machinery.offline import view_of
from kruise.machinery.plan import Outcome, Outcomes, PhaseOutcomes, Result, StatusEffect
from kruise.manager.options import Options
from kruise.workloads.ephemeraljob.conclude import conclude, events
from kruise.workloads.ephemeraljob.controller import controllers, pod_keys
from kruise.workloads.ephemeraljob.decide import INJECT, decide
from kruise.workloads.ephemeraljob.situation import Refusal
from tests.workloads.ephemeraljob.model import (
    BADLY,
    CONTAINER,
    CREATING,
    NO_COMMAND,
    NOW,
    PULLING,
    RUNNING,
    UID,
    WELL,
    conditions,
    held,
    injected,
    job,
    plan_of,
    pod,
    snapshot,
    status_of,
    written,
)

STARTED = "2026-01-02T03:04:00Z"


# Who gets the containers


def test_the_oldest_first_then_by_name() -> None:
    """EJ-18, EJ-22."""
    pods = (pod(3), pod(1, age=5), pod(2))
    assert injected(plan_of(job(parallelism=9), *pods)) == ["web-1", "web-2", "web-3"]
    assert injected(plan_of(job(parallelism=9, replicas=2), *pods)) == ["web-1", "web-2"]


@pytest.mark.parametrize(("given", "expected"), [(None, 1), (0, 0), (1, 1), (2, 2), (9, 3), (-1, 0)])
def test_parallelism(given: int | None, expected: int) -> None:
    """EJ-3, EJ-36: 1 if absent, and nothing is written for it."""
    spec = {} if given is None else {"parallelism": given}
    assert len(injected(plan_of(job(**spec), pod(1), pod(2), pod(3)))) == expected


@pytest.mark.parametrize("state", [None, CREATING, RUNNING])
def test_whoever_has_not_ended_takes_a_place(state: Any) -> None:
    """EJ-37, but never more than parallelism, reported or not."""
    assert injected(plan_of(job(), pod(1, state), pod(2))) == []
    assert injected(plan_of(job(parallelism=2), pod(1, state), pod(2), pod(3))) == ["web-2"]


@pytest.mark.parametrize("state", [WELL, BADLY, NO_COMMAND])
def test_whoever_has_ended_gives_the_place_free(state: Any) -> None:
    """EJ-38, EJ-39: a failed pod holds nobody up, and is not served again."""
    assert injected(plan_of(job(), pod(1, state), pod(2))) == ["web-2"]


def test_whoever_may_never_end_keeps_nobody_waiting() -> None:
    """EJ-37: one pod that is stuck would else starve the job."""
    assert injected(plan_of(job(), pod(1, PULLING), pod(2))) == ["web-2"]
    since = {"uid-1": NOW - timedelta(seconds=50)}
    early = plan_of(job(status={"startTime": STARTED}), pod(1, None), pod(2), unreported=since)
    assert injected(early) == []
    assert [wake.after for wake in early.wakes] == [10]
    late = plan_of(job(), pod(1, None), pod(2), now=NOW + timedelta(seconds=10), unreported=since)
    assert injected(late) == ["web-2"]
    assert "others do not wait for it" in next(one.causes[0].message for one in late.held if one.target.name == "web-1")
    reported = pod(1, RUNNING)
    assert injected(plan_of(job(), reported, pod(2), now=NOW + timedelta(seconds=10), unreported=since)) == []


def test_the_controller_counts_how_long_nobody_reports() -> None:
    [spec] = controllers(Options())
    objects = {spec.subject: (job(),), PODS: (pod(1, None), pod(2))}
    for after in (0, 30):
        view = view_of(spec, objects, now=NOW + timedelta(seconds=after), gates={})
        looked = spec.snapshot(view, Key("demo", "dbg"))
        assert looked is not None
        assert looked.unreported == {"uid-1": NOW}
    earlier = NOW - timedelta(hours=1)
    looked = spec.snapshot(view_of(spec, objects, now=earlier, gates={}), Key("demo", "dbg"))
    assert looked is not None
    assert looked.unreported == {"uid-1": earlier}, "a clock that was set back"
    assert spec.pace is not None
    assert spec.pace(snapshot(job(), *(pod(number) for number in range(500)))) > spec.pace(snapshot(job(), pod(1)))


def test_pods_that_are_left_out() -> None:
    """EJ-19, EJ-20."""
    gone = pod(1, metadata={"deletionTimestamp": STARTED})
    ended, failed = pod(2, status={"phase": "Succeeded"}), pod(3, status={"phase": "Failed"})
    other = pod(4, RUNNING, owner="somebody-else")
    assert status_of(job(), gone, ended, failed, other).match == 0
    assert held(plan_of(job(), other)) == {"web-4": "container-name-taken", "dbg": "no-target-pods"}


def test_a_pod_without_a_node_keeps_nobody_waiting_and_is_served_when_it_has_one() -> None:
    """EJ-19, EJ-37: it counts, but what it would run begins nobody knows when, beside as many others."""
    pending = pod(1, age=9, spec={"nodeName": ""}, status={"phase": "Pending"})
    assert injected(plan_of(job(), pending, pod(2))) == ["web-2"]
    assert status_of(job(), pending, pod(2)).match == 2
    alone = plan_of(job(), pending)
    assert injected(alone) == []
    assert held(alone) == {"web-1": "pod-without-node"}
    assert injected(plan_of(job(), pod(1, age=9))) == ["web-1"]


def test_the_same_name_in_another_job_is_a_clash_but_another_name_is_none() -> None:
    """EJ-21, EJ-67."""
    assert injected(plan_of(job(), pod(1, RUNNING, owner="other", name="tool"))) == ["web-1"]
    assert injected(plan_of(job(), pod(1, RUNNING, owner="other"))) == []


def test_a_changed_template_does_not_serve_a_pod_again() -> None:
    """EJ-39, EJ-48."""
    changed = job(containers=[{**CONTAINER, "name": "another"}])
    assert injected(plan_of(changed, pod(1, WELL))) == []
    assert status_of(changed, pod(1, WELL)).succeeded == 1


def test_what_is_injected() -> None:
    """EJ-40, EJ-41: the template's containers, each with the job's uid at the end of its variables."""
    second = {"name": "more", "image": "alpine"}
    plan = plan_of(job(containers=[CONTAINER, second]), pod(1))
    [action] = plan.actions()
    assert (action.subresource, action.uid) == ("ephemeralcontainers", "uid-1")
    mark = {"name": JOB_ENV, "value": UID}
    assert action.body == {
        "spec": {
            "ephemeralContainers": [
                {**CONTAINER, "env": [{"name": "A", "value": "b"}, mark]},
                {**second, "env": [mark]},
            ]
        }
    }


def test_a_refused_pod_is_tried_later_and_others_go_first() -> None:
    """EJ-43, EJ-44."""
    refusals = {"uid-1": Refusal(message="no", delay=Delay(seconds=10, since=NOW))}
    plan = plan_of(job(), pod(1), pod(2), refusals=refusals)
    assert injected(plan) == ["web-2"]
    assert held(plan) == {"web-1": "injection-refused"}
    assert [wake.after for wake in plan.wakes] == [10]
    later = NOW + timedelta(seconds=11)
    assert injected(plan_of(job(), pod(1), pod(2), refusals=refusals, now=later)) == ["web-2"], "it never had its turn"
    assert injected(plan_of(job(), pod(1), refusals=refusals, now=later)) == ["web-1"]


# States


@pytest.mark.parametrize(
    ("states", "counter"),
    [
        ((RUNNING,), "running"),
        ((WELL,), "succeeded"),
        ((BADLY,), "failed"),
        ((NO_COMMAND,), "failed"),
        ((PULLING,), "waiting"),
        ((CREATING,), "waiting"),
        ((None,), ""),
        (({"terminated": {"exitCode": 0}},), ""),
        (({},), ""),
        ((WELL, WELL), "succeeded"),
        ((WELL, None), ""),
        ((WELL, RUNNING), "running"),
        ((WELL, CREATING), "waiting"),
        ((CREATING, RUNNING), "running"),
        ((BADLY, RUNNING), "failed"),
    ],
)
def test_the_state_of_a_pod(states: tuple[Any, ...], counter: str) -> None:
    """EJ-7, EJ-24 to EJ-27."""
    status = status_of(job(), pod(1, *states))
    found = {name: getattr(status, name) for name in ("running", "succeeded", "waiting", "failed")}
    assert found == {name: int(name == counter) for name in found}


@pytest.mark.parametrize(
    ("states", "spec", "phase", "ends", "condition"),
    [
        ([], {}, "Waiting", False, "MatchedEmpty"),
        ([WELL, WELL], {}, "Succeeded", True, "JobSucceeded"),
        ([WELL, RUNNING], {}, "Running", False, ""),
        ([BADLY, RUNNING], {}, "Running", False, "JobFailed"),
        ([BADLY, BADLY], {}, "Failed", True, "JobFailed"),
        ([PULLING, CREATING], {}, "Waiting", False, ""),
        ([WELL, BADLY], {}, "Unknown", False, "JobFailed"),
        ([None], {}, "Unknown", False, ""),
        ([WELL, WELL], {"replicas": 1}, "Succeeded", True, "JobSucceeded"),
        ([WELL], {"replicas": 2}, "Unknown", False, ""),
        ([WELL], {"replicas": 0}, "Waiting", False, "MatchedEmpty"),
        ([RUNNING], {"paused": True}, "Paused", False, ""),
        ([WELL], {"paused": True}, "Paused", True, "JobSucceeded"),
    ],
)
def test_the_phase(states: list[Any], spec: Any, phase: str, ends: bool, condition: str) -> None:
    """EJ-28 to EJ-31."""
    pods = [pod(number, state) for number, state in enumerate(states)]
    status = status_of(job(**spec), *pods)
    assert (status.phase, status.completion_time is not None) == (phase, ends)
    assert set(conditions(status)) == {"Initialized", *([condition] if condition else [])}


def test_a_failure_is_told_as_create_failed() -> None:
    """EJ-10."""
    [failed] = [one for one in status_of(job(), pod(1, BADLY)).conditions if one.type == "JobFailed"]
    assert (failed.status, failed.reason) == ("True", "CreateFailed")
    assert failed.message == "EphemeralJob demo/dbg failed to create ephemeral container"


def test_the_deadline_is_never_early_and_injects_nothing() -> None:
    """EJ-30, EJ-45. Times on objects are cut to whole seconds."""
    late = job(activeDeadlineSeconds=5, status={"startTime": STARTED}, parallelism=5)
    assert status_of(late, pod(1, RUNNING)).phase == "Running"
    [wake] = plan_of(late, pod(1, RUNNING)).wakes
    assert wake.after == 1.0
    plan = plan_of(late, pod(1, RUNNING), pod(2), now=NOW + timedelta(seconds=1))
    status = status_of(late, pod(1, RUNNING), pod(2), now=NOW + timedelta(seconds=1))
    assert (status.phase, conditions(status)["JobFailed"]) == ("Failed", "DeadlineExceeded")
    assert injected(plan) == []
    paused = job(activeDeadlineSeconds=1, status={"startTime": STARTED}, paused=True)
    assert status_of(paused, pod(1, RUNNING)).phase == "Paused"


def test_conditions_stay_and_keep_their_times() -> None:
    """EJ-8, EJ-9: applied again, nothing is written."""
    first = written(job(), pod(1, BADLY), pod(2, RUNNING))
    again = job(status=first)
    assert written(again, pod(1, BADLY), pod(2, RUNNING), now=NOW + timedelta(minutes=1)) is None
    grown = written(again, pod(1, BADLY), pod(2, BADLY), now=NOW + timedelta(minutes=1))
    assert [one["type"] for one in grown["conditions"]] == ["Initialized", "JobFailed"]


def test_the_status_as_it_is_written() -> None:
    """EJ-6."""
    assert written(job(), pod(1)) == {
        "phase": "Unknown",
        "match": 1,
        "running": 0,
        "succeeded": 0,
        "waiting": 0,
        "failed": 0,
        "startTime": "2026-01-02T03:04:05Z",
        "conditions": [
            {
                "type": "Initialized",
                "status": "True",
                "reason": "Initialized",
                "lastProbeTime": "2026-01-02T03:04:05Z",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ],
    }


@pytest.mark.parametrize("containers", [[], {"name": "dbg"}, [7], "dbg", None])
def test_no_containers_is_an_error_and_nothing_else(containers: Any) -> None:
    """EJ-34: what got past admission breaks nothing."""
    plan = plan_of(job(containers=containers), pod(1))
    status = status_of(job(containers=containers), pod(1))
    assert (status.phase, status.completion_time) == ("Error", None)
    assert conditions(status)["JobError"] == "Error"
    assert (injected(plan), held(plan)) == ([], {"dbg": "no-template-containers"})


# After the end


def test_a_job_that_has_ended_is_not_looked_at_again() -> None:
    """EJ-33: neither pods nor spec matter any more."""
    over = {"phase": "Succeeded", "match": 1, "succeeded": 1, "startTime": STARTED, "completionTime": STARTED}
    assert written(job(status=over, parallelism=5), pod(2)) is None
    assert injected(plan_of(job(status=over, parallelism=5), pod(2))) == []


def test_containers_that_run_on_beyond_the_deadline_are_told_truly() -> None:
    """EJ-32, and `running` does not stay for ever."""
    over = {"phase": "Failed", "match": 2, "running": 2, "startTime": STARTED, "completionTime": STARTED}
    found = written(job(status=over), pod(1, RUNNING), pod(2, WELL))
    assert (found["phase"], found["running"], found["succeeded"]) == ("Failed", 1, 1)
    assert found["completionTime"] == STARTED
    found = written(job(status={**found}), pod(2, BADLY))
    assert (found["running"], found["succeeded"], found["failed"]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("ttl", "seconds", "is_deleted"), [(0, 0, True), (5, 5.9, False), (5, 6, True), (None, 1800, False)]
)
def test_removal(ttl: int | None, seconds: float, is_deleted: bool) -> None:
    """EJ-3, EJ-35: 0 is at once, absent is half an hour, and never early."""
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    over = job(status={"phase": "Succeeded", "completionTime": "2026-01-02T03:04:05Z"}, **spec)
    plan = plan_of(over, now=NOW + timedelta(seconds=seconds))
    assert [action.verb.value for action in plan.actions()] == (["delete"] if is_deleted else [])
    assert bool(plan.wakes) is not is_deleted


def test_the_plan_tells_when_it_is_over_and_when_it_goes() -> None:
    """EJ-35."""
    assert [wake.after for wake in plan_of(job(activeDeadlineSeconds=7200), pod(1, RUNNING)).wakes] == [7201]
    over = job(status={"phase": "Succeeded", "completionTime": "2026-01-02T03:04:05Z"})
    assert [wake.after for wake in plan_of(over).wakes] == [1801]


def test_a_deadline_of_centuries_is_no_trouble() -> None:
    assert status_of(job(activeDeadlineSeconds=2**60), pod(1)).phase == "Unknown"


# Finalizer


def test_the_finalizer_comes_and_goes_beside_those_of_others() -> None:
    """EJ-49 to EJ-51, EJ-53."""
    plan = plan_of(job(metadata={"finalizers": ["other"]}), pod(1))
    first, second = plan.actions()
    assert first.body == {"metadata": {"finalizers": ["other", FINALIZER]}}
    assert first.resource_version == "7"
    assert second.target.name == "web-1"
    going = job(metadata={"deletionTimestamp": STARTED, "finalizers": ["other", FINALIZER]}, containers={"odd": 1})
    [action] = plan_of(going, pod(1, RUNNING)).actions()
    assert action.body == {"metadata": {"finalizers": ["other"]}}
    gone = job(metadata={"deletionTimestamp": STARTED, "finalizers": ["other"]})
    assert list(plan_of(gone).actions()) == []


# What is told


def test_a_refusal_is_an_event_and_is_tried_again() -> None:
    """EJ-44: and the status is written all the same."""
    seen = snapshot(job(), pod(1))
    plan = decide(seen)
    [action] = plan.actions()
    failed = (Outcome(action=action, result=Result.FAILED, error="forbidden"),)
    conclusion = conclude(seen, plan, Outcomes((PhaseOutcomes(INJECT, (failed,)),)))
    assert conclusion.status is not None
    assert conclusion.wakes
    [event] = events(plan, INJECT, failed)
    assert (event.type.value, event.reason) == ("Warning", "CreateFailed")
    assert event.message == "failed to create ephemeral container in pod demo/web-1: forbidden"


def test_the_write_that_ends_the_job_is_followed_by_a_look() -> None:
    """EJ-55: so that the TTL is kept. Counters alone wake nobody."""
    seen = snapshot(job(), pod(1, WELL))
    plan = decide(seen)
    assert conclude(seen, plan, Outcomes()).effect is StatusEffect.REQUEUES
    seen = snapshot(job(status={"startTime": STARTED}), pod(1, RUNNING))
    assert conclude(seen, decide(seen), Outcomes()).effect is StatusEffect.INFORMS


# What is looked at


def found(subject: Any, *pods: Pod) -> list[str]:
    [spec] = controllers(Options())
    view = view_of(spec, {spec.subject: (subject,), PODS: pods}, now=NOW, gates={})
    seen = spec.snapshot(view, ("demo", "dbg"))  # type: ignore[arg-type]
    return [one.metadata.name for one in seen.pods] if seen is not None else []


def test_which_pods_the_selector_means() -> None:
    """EJ-17, EJ-58: an empty one means all of the namespace, none means none."""
    other, elsewhere = pod(2, metadata={"labels": {}}), pod(3, metadata={"namespace": "else"})
    assert found(job(), pod(1), other, elsewhere) == ["web-1"]
    assert found(job(selector={}), pod(1), other, elsewhere) == ["web-1", "web-2"]
    assert found(job(selector=None), pod(1)) == []
    assert found(job(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}), pod(1)) == []


def test_ten_jobs_at_a_time_whatever_flags_say() -> None:  # EJ-59
    for options in (Options(), Options(workers={"ephemeraljob": 1})):
        [spec] = controllers(options)
        assert spec.workers == 10


def test_which_changes_of_pods_matter() -> None:
    """EJ-56, EJ-57."""
    [spec] = controllers(Options())
    view = view_of(spec, {spec.subject: (job(),), PODS: ()}, now=NOW, gates={})
    stores: Any = view

    def keys(old: Pod | None, new: Pod | None) -> list[str]:
        return [key.name for key in pod_keys(old, new, stores)]

    before = pod(1, RUNNING)
    assert keys(None, before) == keys(before, None) == ["dbg"]
    assert keys(before, pod(1, WELL)) == ["dbg"]
    assert keys(before, pod(1, RUNNING, status={"phase": "Failed"})) == ["dbg"]
    assert keys(before, pod(1, RUNNING, metadata={"labels": {}})) == ["dbg"]
    assert keys(before, pod(1, RUNNING, metadata={"annotations": {"a": "b"}})) == []
    assert keys(pod(1, metadata={"labels": {}}), pod(1, RUNNING, metadata={"labels": {}})) == []


def test_what_pods_refused_is_forgotten_with_the_job() -> None:
    [spec] = controllers(Options())
    key, there = Key("demo", "dbg"), view_of_objects(spec, job())
    first = spec.snapshot(there, key)
    assert first is not None
    plan = spec.decide(first)
    [action] = [action for action in plan.actions() if action.uid == "uid-1"]
    failed = (Outcome(action=action, result=Result.FAILED, error="forbidden"),)
    spec.concluded(first, plan, Outcomes((PhaseOutcomes(INJECT, (failed,)),)))
    again = spec.snapshot(there, key)
    assert again is not None
    assert again.refusals.keys() == {"uid-1"}
    assert spec.snapshot(view_of_objects(spec), key) is None
    another = spec.snapshot(there, key)
    assert another is not None
    assert not another.refusals


def view_of_objects(spec: Any, *jobs: Any) -> Any:
    return view_of(spec, {spec.subject: jobs, PODS: (pod(1), pod(2))}, now=NOW, gates={})


# Over random states

STATES = st.sampled_from([(), (None,), (CREATING,), (PULLING,), (RUNNING,), (WELL,), (BADLY,)])


@settings(max_examples=60, deadline=None)
@given(st.lists(STATES, max_size=8), st.integers(0, 6), st.none() | st.integers(0, 9))
def test_never_more_than_allowed_and_nobody_twice(states: list[Any], parallelism: int, replicas: int | None) -> None:
    """EJ-22, EJ-36, EJ-39; whoever is not done and not served now is held by a cause."""
    pods = [pod(number, *state) for number, state in enumerate(states)]
    spec = {} if replicas is None else {"replicas": replicas}
    plan = plan_of(job(parallelism=parallelism, **spec), *pods)
    chosen = injected(plan)
    taken = pods if replicas is None else pods[:replicas]
    under_way = sum(state in ((None,), (CREATING,), (RUNNING,)) for state in states[: len(taken)])
    assert len(chosen) <= max(0, parallelism - under_way)
    assert not any(one.spec.ephemeral_containers for one in pods if one.metadata.name in chosen)
    status = status_of(job(parallelism=parallelism, **spec), *pods)
    assert status.running + status.succeeded + status.waiting + status.failed <= status.match <= len(taken)
    if status.completion_time is None:
        waiting = {one.metadata.name for one, state in zip(taken, states, strict=False) if state != (WELL,)}
        assert waiting <= {*chosen, *held(plan)}
