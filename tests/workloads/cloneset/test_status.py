"""Counters, revisions and conditions of the status, and when it is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.cloneset import CloneSet, CloneSetStatus
from kruise.api.apps.shared import FailureBudgetStatus
from kruise.api.meta import Condition
from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.plan import StatusEffect
from kruise.workloads.cloneset.status import Figures, effect_of, figures, status_of, wire_form
from kruise.workloads.shared.statuses import must_write
from tests.workloads.cloneset.status_cases import (
    START,
    at,
    cloneset,
    pod,
    revision_of,
    situation,
    template,
    update_revision,
)

FAILED = {"type": "FailedScale", "status": "True", "message": "no", "lastTransitionTime": "2026-01-01T11:00:00Z"}


def written(subject: CloneSet, *pods: Pod, now: Any = START, revisions: Any = (), **failures: Any) -> dict[str, Any]:
    counted = figures(situation(subject, pods, now=now, revisions=revisions))
    return wire_form(status_of(subject, counted, now=now, **failures))


def test_first_status_as_recorded() -> None:
    """Required counters and collisionCount are there with 0, other zeros are not; but `kubectl get` shows no blank."""
    subject = cloneset(replicas=5)
    name = update_revision(subject)
    assert written(subject) == {
        "availableReplicas": 0,
        "collisionCount": 0,
        "currentRevision": name,
        "expectedUpdatedReplicas": 5,
        "labelSelector": "app=web",
        "observedGeneration": 1,
        "readyReplicas": 0,
        "replicas": 0,
        "updateRevision": name,
        "updatedAvailableReplicas": 0,
        "updatedReadyReplicas": 0,
        "updatedReplicas": 0,
    }


def test_final_status_as_recorded() -> None:
    subject = cloneset(replicas=5)
    name = update_revision(subject)
    assert written(subject, *(pod(f"web-{number}", name) for number in range(5))) == {
        "availableReplicas": 5,
        "collisionCount": 0,
        "currentRevision": name,
        "expectedUpdatedReplicas": 5,
        "labelSelector": "app=web",
        "observedGeneration": 1,
        "readyReplicas": 5,
        "replicas": 5,
        "updateRevision": name,
        "updatedAvailableReplicas": 5,
        "updatedReadyReplicas": 5,
        "updatedReplicas": 5,
    }


def counters(status: dict[str, Any]) -> tuple[int, ...]:
    names = ("replicas", "readyReplicas", "availableReplicas")
    updated = ("updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas")
    return tuple(status.get(name, 0) for name in (*names, *updated))


def test_counters_tell_old_and_new_ready_and_available_apart() -> None:
    """CS section 3: ready whatever the lifecycle state, available only in state Normal or none."""
    subject = cloneset(replicas=6)
    new = update_revision(subject)
    pods = [
        pod("web-a", new),
        pod("web-b", new.rpartition("-")[2]),  # the hash alone means the same revision (IPU-20)
        pod("web-c", new, ready_since=None),
        pod("web-d", "web-old"),
        pod("web-e", "web-old", state="PreparingNormal"),
        pod("web-f", "web-old", state="PreparingDelete", labels={"apps.kruise.io/specified-delete": "true"}),
    ]
    assert counters(written(subject, *pods)) == (6, 5, 3, 3, 2, 2)


def test_finished_and_terminating_pods_do_not_count() -> None:  # IPU-110
    subject = cloneset(replicas=1)
    new = update_revision(subject)
    pods = [pod("web-a", new, phase="Failed"), pod("web-b", new, phase="Succeeded"), pod("web-c", new, deleted=True)]
    assert counters(written(subject, *pods)) == (0,) * 6


def test_released_pods_do_not_count() -> None:  # CS-67
    subject = cloneset(replicas=1)
    assert counters(written(subject, pod("web-a", update_revision(subject), labels={"app": "other"}))) == (0,) * 6


def test_pods_within_min_ready_seconds_are_ready_not_available() -> None:  # IPU-111, IPU-112
    subject = cloneset(replicas=1, minReadySeconds=10)
    only = pod("web-a", update_revision(subject))
    assert counters(written(subject, only, now=at(10))) == (1, 1, 0, 1, 1, 0)
    assert counters(written(subject, only, now=at(11))) == (1, 1, 1, 1, 1, 1)


@pytest.mark.parametrize(
    ("rolling", "expected"),
    [({}, 4), ({"partition": 3}, 1), ({"partition": "99%"}, 1), ({"partition": 9}, None), ({"paused": True}, 4)],
)
def test_expected_updated_replicas(rolling: dict[str, Any], expected: int | None) -> None:
    """CS-70, edge case 2; absent when 0."""
    assert written(cloneset(replicas=4, rolling=rolling)).get("expectedUpdatedReplicas") == expected


def test_expected_updated_replicas_without_rolling_update() -> None:
    subject = cloneset(replicas=4, updateStrategy={"type": "OnDelete"})
    assert written(subject)["expectedUpdatedReplicas"] == 4


def test_label_selector_is_sorted_by_key() -> None:
    expressions = [{"key": "b", "operator": "In", "values": ["y", "x"]}, {"key": "a", "operator": "Exists"}]
    subject = cloneset(selector={"matchLabels": {"c": "d"}, "matchExpressions": expressions})
    assert written(subject)["labelSelector"] == "a,b in (x,y),c=d"


class TestCurrentRevision:
    """The last revision that all pods had; readiness does not matter."""

    old = cloneset(replicas=2)
    old_revision = revision_of(old)
    old_name = old_revision.metadata.name
    new = cloneset(replicas=2, template=template("nginx:1.26"), status={"currentRevision": old_name}, generation=2)

    def current(self, *pods: Pod) -> str:
        revision: str = written(self.new, *pods, revisions=[self.old_revision])["currentRevision"]
        return revision

    @property
    def new_name(self) -> str:
        return situation(self.new, revisions=[self.old_revision]).update.metadata.name

    def test_stays_while_a_pod_is_old(self) -> None:
        assert self.current(pod("web-a", self.old_name), pod("web-b", self.new_name)) == self.old_name

    def test_stays_while_a_pod_is_missing(self) -> None:
        assert self.current(pod("web-b", self.new_name)) == self.old_name

    def test_stays_while_there_is_a_surplus(self) -> None:
        assert self.current(*(pod(f"web-{number}", self.new_name) for number in range(3))) == self.old_name

    def test_follows_when_all_are_updated_ready_or_not(self) -> None:
        pods = [pod("web-a", self.new_name), pod("web-b", self.new_name, ready_since=None)]
        assert self.current(*pods) == self.new_name


def test_progress_deadline_recording() -> None:
    """The recorded course of progressDeadlineSeconds 5 with two pods, status by status.

    Chosen difference (CS-117): at 13.8 the original says ProgressDeadlineExceeded at once, because the CloneSet was
    stable for longer than the deadline; here the clock starts with the rollout.
    """
    first, second, third = "web-rev-1", "web-rev-2", "web-rev-3"
    all_there = {"existing": 2, "updated": 2, "updated_available": 2}
    half = {"existing": 2, "updated": 1, "update": second}
    course: list[tuple[float, dict[str, Any], str, str, str]] = [
        # seconds, what the pass counted, current revision, Progressing's reason and status
        (1.3, {}, first, "CloneSetUpdated", "True"),
        (1.8, {"existing": 2, "updated": 2}, first, "CloneSetUpdated", "True"),
        (5.4, all_there, first, "CloneSetAvailable", "True"),
        (13.0, {**all_there, "expected": 1}, first, "CloneSetAvailable", "True"),
        (13.8, {"existing": 2, "update": second, "expected": 1}, first, "CloneSetUpdated", "True"),
        (15.9, {**half, "updated_available": 1, "expected": 1}, first, "ProgressPartitionAvailable", "True"),
        (18.4, {**half, "paused": True}, first, "CloneSetPaused", "True"),
        (21.3, half, first, "CloneSetUpdated", "True"),
        (26.8, half, first, "CloneSetUpdated", "True"),  # never early
        (27.0, half, first, "ProgressDeadlineExceeded", "False"),
        (31.4, {"existing": 2, "update": third}, first, "ProgressDeadlineExceeded", "False"),
        (35.8, {**all_there, "updated_available": 0, "update": third}, third, "ProgressDeadlineExceeded", "False"),
        (35.9, {**all_there, "update": third}, third, "CloneSetAvailable", "True"),
    ]
    status: dict[str, Any] = {}
    condition: dict[str, str] = {}
    for seconds, seen, current, reason, state in course:
        subject = cloneset(replicas=2, progressDeadlineSeconds=5, status=status)
        counted = Figures(
            wanted=2,
            existing=seen.get("existing", 0),
            ready=0,
            available=0,
            updated=seen.get("updated", 0),
            updated_ready=0,
            updated_available=seen.get("updated_available", 0),
            expected_updated=seen.get("expected", 2),
            update_revision=seen.get("update", first),
            current_revision=current,
            is_paused=seen.get("paused", False),
            collision_count=0,
            label_selector="app=web",
        )
        status = wire_form(status_of(subject, counted, now=at(seconds)))
        (condition,) = status["conditions"]
        assert (condition["reason"], condition["status"]) == (reason, state), seconds
    assert condition == {
        "type": "Progressing",
        "status": "True",
        "reason": "CloneSetAvailable",
        "message": "CloneSet is available",
        "lastTransitionTime": "2026-01-01T12:00:35Z",
        "lastUpdateTime": "2026-01-01T12:00:35Z",
    }


def test_condition_is_removed_with_the_deadline() -> None:  # CS-115
    condition = {"type": "Progressing", "status": "True", "reason": "CloneSetUpdated"}
    assert "conditions" not in written(cloneset(status={"conditions": [condition]}))


def test_failure_as_recorded() -> None:  # CS-25
    """Status True, the error as text, no reason."""
    text = "find Pod web-a update strategy is InPlaceOnly but can not update in-place"
    assert written(cloneset(), failed_update=text, now=at(3.9))["conditions"] == [
        {"type": "FailedUpdate", "status": "True", "message": text, "lastTransitionTime": "2026-01-01T12:00:03Z"}
    ]


def test_failure_that_lasts_keeps_its_time_and_tells_the_newest_text() -> None:
    conditions = written(cloneset(status={"conditions": [FAILED]}), failed_scale="still no")["conditions"]
    assert conditions == [{**FAILED, "message": "still no"}]


def test_failure_goes_when_the_phase_succeeds() -> None:  # CS-27
    other = {**FAILED, "type": "FailedUpdate"}
    conditions = written(cloneset(status={"conditions": [FAILED, other]}), failed_update=None)["conditions"]
    assert conditions == [other]  # not known of the update: stays


def test_long_failures_are_cut() -> None:
    (condition,) = written(cloneset(), failed_scale="x" * 5000)["conditions"]
    assert len(condition["message"]) == 1024
    assert condition["message"].endswith("x...")


def test_conditions_of_others_stay() -> None:
    other = {"type": "example.com/Approved", "status": "True", "reason": "ByHand", "message": "fine"}
    subject = cloneset(status={"conditions": [other, FAILED]}, progressDeadlineSeconds=5)
    kinds = [condition["type"] for condition in written(subject)["conditions"]]
    assert kinds == ["example.com/Approved", "Progressing"]
    assert written(subject)["conditions"][0] == other


SETTLED = CloneSetStatus(
    observed_generation=3,
    replicas=4,
    ready_replicas=3,
    available_replicas=2,
    updated_replicas=2,
    updated_ready_replicas=1,
    updated_available_replicas=1,
    expected_updated_replicas=3,
    update_revision="web-b",
    current_revision="web-a",
    collision_count=0,
    label_selector="app=web",
    conditions=(
        Condition(type="Progressing", status="True", reason="CloneSetUpdated", last_update_time=START),
        Condition(type="FailedScale", status="True", message="quota"),
    ),
)


class TestMustWrite:
    """CS-28."""

    def test_nothing_changed(self) -> None:
        assert not must_write(SETTLED, codec.evolve(SETTLED))

    @pytest.mark.parametrize(
        "change",
        [
            {"observed_generation": 4},
            {"replicas": 5},
            {"ready_replicas": 4},
            {"available_replicas": 3},
            {"updated_replicas": 3},
            {"updated_ready_replicas": 2},
            {"updated_available_replicas": 0},
            {"expected_updated_replicas": 4},
            {"update_revision": "web-c"},
            {"current_revision": "web-b"},
            {"collision_count": 1},
            {"label_selector": "app=other"},
            {"conditions": ()},
            {"conditions": SETTLED.conditions[:1]},
            {"conditions": (codec.evolve(SETTLED.conditions[0], reason="CloneSetAvailable"), SETTLED.conditions[1])},
            {"conditions": (codec.evolve(SETTLED.conditions[0], status="False"), SETTLED.conditions[1])},
        ],
    )
    def test_what_is_worth_a_write(self, change: dict[str, Any]) -> None:
        assert must_write(SETTLED, codec.evolve(SETTLED, **change))

    def test_another_text_of_a_failure_alone_is_not(self) -> None:
        """The text names another pod at each try; a write would wake the controller and undo its back-off."""
        told = codec.evolve(SETTLED.conditions[1], message="quota, another pod")
        assert not must_write(SETTLED, codec.evolve(SETTLED, conditions=(SETTLED.conditions[0], told)))

    def test_a_new_object_gets_its_status(self) -> None:
        assert must_write(CloneSetStatus(), codec.evolve(CloneSetStatus(), collision_count=0))


texts = st.one_of(st.none(), st.just(""), st.text(min_size=1, max_size=20))


@given(
    replicas=st.integers(0, 4),
    ages=st.lists(st.tuples(st.booleans(), st.integers(0, 12) | st.none(), st.booleans()), max_size=4),
    deadline=st.integers(1, 20) | st.none(),
    now=st.integers(12, 30),
    failed_scale=texts,
    failed_update=texts,
)
def test_a_written_status_is_not_written_again(
    replicas: int,
    ages: list[tuple[bool, int | None, bool]],
    deadline: int | None,
    now: int,
    failed_scale: str | None,
    failed_update: str | None,
) -> None:
    """What the server stored and gives back needs no second write, and the counters are consistent."""
    extra: dict[str, Any] = {"minReadySeconds": 5} | (
        {"progressDeadlineSeconds": deadline} if deadline is not None else {}
    )
    subject = cloneset(replicas=replicas, **extra)
    new = update_revision(subject)
    pods = [
        pod(
            f"web-{number}",
            new if is_new else "web-old",
            ready_since=None if since is None else at(since),
            state="Normal" if normal else "Updating",
        )
        for number, (is_new, since, normal) in enumerate(ages)
    ]
    document = written(subject, *pods, now=at(now), failed_scale=failed_scale, failed_update=failed_update)
    total, ready, available, updated, updated_ready, updated_available = counters(document)
    assert total == len(pods) >= ready >= available
    assert updated >= updated_ready >= updated_available
    again = cloneset(replicas=replicas, status=document, **extra)
    counted = figures(situation(again, pods, now=at(now)))
    status = status_of(again, counted, now=at(now), failed_scale=failed_scale, failed_update=failed_update)
    assert not must_write(again.status, status)
    assert wire_form(status) == document


def test_what_cannot_be_worked_out_again_is_remembered() -> None:
    """That pods had failed, and where they go back to, is not to be seen any more when they are on their way back."""
    before = CloneSetStatus(current_revision="web-1")
    stopped = codec.evolve(before, failure_budget=FailureBudgetStatus(revision="web-2", failed=1))
    more = codec.evolve(before, failure_budget=FailureBudgetStatus(revision="web-2", failed=2))
    for old, new in ((before, stopped), (stopped, more), (more, before)):
        assert effect_of(old, new) is StatusEffect.BLOCKS
        assert must_write(old, new)
    assert wire_form(more)["failureBudget"] == {"revision": "web-2", "failed": 2}
    assert effect_of(before, codec.evolve(before, current_revision="web-2")) is StatusEffect.BLOCKS
    waiting = Condition(type="Waiting", status="True", reason="Hook", message="1 pod waits")
    assert effect_of(before, codec.evolve(before, ready_replicas=3, conditions=(waiting,))) is StatusEffect.REQUEUES
    assert effect_of(before, codec.evolve(before, ready_replicas=3)) is StatusEffect.INFORMS
