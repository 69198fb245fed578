"""When a pod counts as ready and as available (IPU-110 to IPU-112)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.inplace.availability import is_available, is_update_ready, latest_meaning, seconds_until_available
from tests.support.pods import NOW, make_pod

STATE = "lifecycle.apps.kruise.io/state"


def ready_for(seconds: float, **facts: object):  # type: ignore[no-untyped-def]
    """A pod whose Ready condition says that it turned ready some seconds before NOW."""
    return make_pod(ready_since=NOW - timedelta(seconds=seconds), **facts)  # type: ignore[arg-type]


def test_running_and_ready_is_enough_without_min_ready_seconds() -> None:
    # IPU-111: 0 = at once, whether the time of the condition is set or not.
    assert is_update_ready(make_pod(ready_since=NOW), 0, NOW)
    assert is_update_ready(make_pod(ready_since=None), 0, NOW)


@pytest.mark.parametrize("phase", ["", "Pending", "Unknown", "Succeeded", "Failed"])
def test_only_a_running_pod_is_ready(phase: str) -> None:
    # IPU-111
    assert not is_update_ready(make_pod(phase=phase), 0, NOW)


@pytest.mark.parametrize("ready", [None, False])
def test_a_pod_that_is_not_ready(ready: bool | None) -> None:
    # IPU-111
    assert not is_update_ready(make_pod(ready=ready), 0, NOW)


@pytest.mark.parametrize(("condition", "wanted"), [(None, True), (True, True), (False, False)])
def test_a_pod_in_the_middle_of_an_in_place_update_is_not_ready(condition: bool | None, wanted: bool) -> None:
    # IPU-111: InPlaceUpdateReady either absent or True; the kubelet may still say Ready.
    pod = make_pod(in_place_ready=condition)
    assert is_update_ready(pod, 0, NOW) is wanted
    assert is_available(pod, 0, NOW) is wanted


def test_min_ready_seconds_need_a_time_to_count_from() -> None:
    # IPU-111: lastTransitionTime must be set if minReady > 0.
    pod = make_pod(ready_since=None)
    assert not is_update_ready(pod, 10, NOW)
    assert seconds_until_available(pod, 10, NOW) is None


def test_a_whole_second_counts_as_its_end() -> None:
    """The API server cuts the fraction off; ten seconds after the cut time may be only nine after the real one."""
    assert not is_update_ready(ready_for(10), 10, NOW)
    assert is_update_ready(ready_for(11), 10, NOW)


def test_a_time_with_a_fraction_is_taken_as_it_is() -> None:
    since = NOW - timedelta(seconds=10, microseconds=1)
    assert latest_meaning(since) == since
    assert is_update_ready(make_pod(ready_since=since), 10, NOW)


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("", True),
        ("Normal", True),
        ("PreparingNormal", False),
        ("PreparingUpdate", False),
        ("Updating", False),
        ("Updated", False),
        ("PreparingDelete", False),
    ],
)
def test_states_that_serve(state: str, wanted: bool) -> None:
    # IPU-112; the state does not matter for update-ready.
    pod = make_pod(labels={STATE: state} if state else {})
    assert is_available(pod, 0, NOW) is wanted
    assert is_update_ready(pod, 0, NOW)


def test_labels_of_the_unavailable_prefix_change_nothing() -> None:
    # IPU-113
    assert is_available(make_pod(labels={"unavailable-pod.kruise.io/drain": "true"}), 0, NOW)


def test_seconds_until_available() -> None:
    # CS-69a: the look at the pod is due when it becomes available, not a full period later.
    assert seconds_until_available(ready_for(4), 10, NOW) == 7.0
    assert seconds_until_available(ready_for(11), 10, NOW) is None
    assert seconds_until_available(ready_for(4), 0, NOW) is None


@pytest.mark.parametrize(
    "facts",
    [
        {"ready": False},
        {"phase": "Pending"},
        {"in_place_ready": False},
        {"labels": {STATE: "PreparingNormal"}},
    ],
)
def test_no_time_is_told_where_more_than_time_is_missing(facts: dict[str, object]) -> None:
    assert seconds_until_available(ready_for(4, **facts), 10, NOW) is None


@settings(max_examples=100, deadline=None)
@given(
    cut=st.floats(min_value=0, max_value=0.999999),
    wait=st.integers(min_value=1, max_value=100_000),
    age=st.floats(min_value=-10, max_value=100_010),
)
def test_never_early_and_at_most_a_second_late(cut: float, wait: int, age: float) -> None:
    """Whatever the server cut off the time of the condition."""
    told = datetime(2030, 1, 1, tzinfo=NOW.tzinfo)
    really = told + timedelta(seconds=cut)
    now = really + timedelta(seconds=age)
    pod = make_pod(ready_since=told)
    available = is_available(pod, wait, now)
    if now < really + timedelta(seconds=wait):
        assert not available
    if now >= really + timedelta(seconds=wait + 1):
        assert available
    missing = seconds_until_available(pod, wait, now)
    assert (missing is None) is available
    if missing is not None:
        assert missing > 0
        assert is_available(pod, wait, now + timedelta(seconds=missing))
