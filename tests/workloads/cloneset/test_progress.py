"""The condition Progressing."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.meta import Condition
from kruise.workloads.cloneset.progress import (
    AVAILABLE,
    EXCEEDED,
    NO_DEADLINE,
    PARTITION_AVAILABLE,
    PAUSED,
    PROGRESSING,
    UPDATED,
    ProgressFigures,
    deadline_of,
    progressing,
)
from kruise.workloads.shared.conditions import with_condition
from tests.workloads.cloneset.status_cases import START, at

DONE = ProgressFigures(
    wanted=4,
    existing=4,
    updated=4,
    updated_available=4,
    expected_updated=4,
    current_revision="web-b",
    update_revision="web-b",
    is_paused=False,
)
UNDER_WAY = dataclasses.replace(DONE, updated=2, updated_available=1, current_revision="web-a")
STOPPED = dataclasses.replace(UNDER_WAY, is_paused=True)
HALF = dataclasses.replace(UNDER_WAY, updated_available=2, expected_updated=2)


def said(reason: str, *, status: str = "True", since: float = 0, transition: float = 0) -> Condition:
    return Condition(
        type=PROGRESSING, status=status, reason=reason, last_update_time=at(since), last_transition_time=at(transition)
    )


def now_said(
    previous: Condition | None, rollout: ProgressFigures, *, deadline: int = 5, seconds: float = 0
) -> Condition:
    condition = progressing(previous, rollout, deadline_seconds=deadline, now=at(seconds))
    assert condition is not None
    return condition


@pytest.mark.parametrize("deadline", [None, NO_DEADLINE])
def test_without_a_deadline_there_is_no_condition(deadline: int | None) -> None:  # CS-115
    assert progressing(said(UPDATED), UNDER_WAY, deadline_seconds=deadline, now=START) is None


@pytest.mark.parametrize(
    ("rollout", "status", "reason", "message"),
    [
        (DONE, "True", AVAILABLE, "CloneSet is available"),
        (dataclasses.replace(DONE, is_paused=True), "True", AVAILABLE, "CloneSet is available"),
        (STOPPED, "True", PAUSED, "CloneSet is paused"),
        (dataclasses.replace(HALF, is_paused=True), "True", PAUSED, "CloneSet is paused"),
        (HALF, "True", PARTITION_AVAILABLE, "CloneSet has been paused due to partition ready"),
        (UNDER_WAY, "True", UPDATED, "CloneSet is progressing"),
        (dataclasses.replace(HALF, updated_available=1), "True", UPDATED, "CloneSet is progressing"),
        (dataclasses.replace(DONE, updated_available=3), "True", UPDATED, "CloneSet is progressing"),
        (dataclasses.replace(DONE, existing=5), "True", UPDATED, "CloneSet is progressing"),
        (dataclasses.replace(DONE, current_revision="web-a"), "True", UPDATED, "CloneSet is progressing"),
    ],
)
def test_rows(rollout: ProgressFigures, status: str, reason: str, message: str) -> None:  # CS-116
    condition = now_said(None, rollout)
    assert (condition.status, condition.reason, condition.message) == (status, reason, message)
    assert condition.last_update_time == condition.last_transition_time == START


def test_nothing_wanted_and_nothing_there_is_available() -> None:  # edge case 1
    empty = ProgressFigures(
        wanted=0,
        existing=0,
        updated=0,
        updated_available=0,
        expected_updated=0,
        current_revision="web-a",
        update_revision="web-a",
        is_paused=False,
    )
    assert now_said(None, empty).reason == AVAILABLE


def test_a_rollout_that_takes_longer_than_the_deadline_is_flagged() -> None:  # CS-116, CS-117
    condition = now_said(said(UPDATED, since=10, transition=3), UNDER_WAY, seconds=16)
    assert (condition.status, condition.reason) == ("False", EXCEEDED)
    assert condition.message == "CloneSet revision web-b has timed out progressing"
    assert condition.last_update_time == condition.last_transition_time == at(16)


def test_progress_of_single_pods_does_not_move_the_deadline() -> None:  # CS-117
    first = now_said(None, UNDER_WAY, seconds=10)
    later = now_said(first, dataclasses.replace(UNDER_WAY, updated_available=2), seconds=14)
    assert later is first
    assert now_said(later, UNDER_WAY, seconds=16).reason == EXCEEDED


@pytest.mark.parametrize("rollout", [UNDER_WAY, dataclasses.replace(UNDER_WAY, update_revision="web-c", wanted=9)])
def test_exceeded_is_sticky(rollout: ProgressFigures) -> None:  # CS-117
    exceeded = said(EXCEEDED, status="False")
    assert now_said(exceeded, rollout, seconds=1000) is exceeded


@pytest.mark.parametrize(("rollout", "reason"), [(DONE, AVAILABLE), (STOPPED, PAUSED), (HALF, PARTITION_AVAILABLE)])
def test_the_first_three_rows_end_exceeded(rollout: ProgressFigures, reason: str) -> None:  # CS-117
    condition = now_said(said(EXCEEDED, status="False"), rollout, seconds=50)
    assert (condition.status, condition.reason) == ("True", reason)
    assert condition.last_transition_time == at(50)


@pytest.mark.parametrize("reason", [AVAILABLE, PAUSED, PARTITION_AVAILABLE])
def test_the_clock_starts_with_the_rollout(reason: str) -> None:  # CS-117: a long stable time is no delay
    condition = now_said(said(reason, since=0, transition=0), UNDER_WAY, seconds=1000)
    assert condition.reason == UPDATED
    assert condition.last_update_time == at(1000)
    assert condition.last_transition_time == START  # CS-26: True before and after


def test_a_drop_in_availability_turns_available_into_updated() -> None:  # CS-119
    assert now_said(said(AVAILABLE), dataclasses.replace(DONE, updated_available=3), seconds=99).reason == UPDATED


def test_equal_status_and_reason_change_nothing() -> None:  # CS-26
    previous = Condition(type="X", status="True", reason="R", message="old", last_update_time=START)
    wanted = Condition(type="X", status="True", reason="R", message="new")
    assert with_condition(previous, wanted, at(9)) is previous


def test_equal_status_keeps_the_transition() -> None:  # CS-26
    previous = Condition(type="X", status="True", reason="R", last_update_time=START, last_transition_time=START)
    changed = with_condition(previous, Condition(type="X", status="True", reason="S", message="m"), at(9.7))
    assert changed == Condition(
        type="X", status="True", reason="S", message="m", last_update_time=at(9), last_transition_time=START
    )


def test_another_status_is_a_transition() -> None:  # CS-26
    previous = Condition(type="X", status="False", reason="R", last_update_time=START, last_transition_time=START)
    changed = with_condition(previous, Condition(type="X", status="True", reason="R"), at(9))
    assert changed.last_transition_time == changed.last_update_time == at(9)


@pytest.mark.parametrize(
    ("condition", "deadline"),
    [(None, 5), (said(AVAILABLE), 5), (said(UPDATED), None), (Condition(type=PROGRESSING, reason=UPDATED), 5)],
)
def test_no_clock_is_running(condition: Condition | None, deadline: int | None) -> None:  # CS-118
    assert deadline_of(condition, deadline) is None


def test_a_condition_without_update_time_counts_from_its_transition() -> None:
    old = Condition(type=PROGRESSING, status="True", reason=UPDATED, last_transition_time=START)
    assert deadline_of(old, 5) == at(6)


@given(start=st.floats(0, 100), deadline=st.integers(0, 100), wait=st.floats(0, 300))
def test_never_early_and_at_most_a_second_late(start: float, deadline: int, wait: float) -> None:  # CS-117
    began = at(start)
    first = progressing(None, UNDER_WAY, deadline_seconds=deadline, now=began)
    assert first is not None
    later = progressing(first, UNDER_WAY, deadline_seconds=deadline, now=began + timedelta(seconds=wait))
    assert later is not None
    if wait < deadline:
        assert later.reason == UPDATED
    if wait > deadline + 1:
        assert later.reason == EXCEEDED


counts = st.integers(0, 4)
rollouts: st.SearchStrategy[ProgressFigures] = st.builds(
    ProgressFigures,
    wanted=counts,
    existing=counts,
    updated=counts,
    updated_available=counts,
    expected_updated=counts,
    current_revision=st.sampled_from(["web-a", "web-b"]),
    update_revision=st.sampled_from(["web-a", "web-b"]),
    is_paused=st.booleans(),
)
reasons = st.sampled_from([AVAILABLE, PAUSED, PARTITION_AVAILABLE, EXCEEDED, UPDATED])


@given(rollout=rollouts, reason=reasons, seconds=st.integers(0, 20))
def test_a_second_look_at_the_same_time_changes_nothing(rollout: ProgressFigures, reason: str, seconds: int) -> None:
    previous = said(reason, status="False" if reason == EXCEEDED else "True")
    once = now_said(previous, rollout, seconds=seconds)
    arguments: dict[str, Any] = {"deadline": 5, "seconds": seconds}
    assert now_said(once, rollout, **arguments) == once
    assert (once.status == "False") == (once.reason == EXCEEDED)
