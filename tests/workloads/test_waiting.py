"""Condition Waiting: what it tells, what it keeps quiet about, and that it costs no writes of its own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.cloneset import CloneSetStatus
from kruise.api.native.pod import PODS, Pod
from kruise.faces.kstatus import RECONCILING, STALLED
from kruise.machinery import codec
from kruise.machinery.plan import Held, Outcomes, Plan, Target
from kruise.workloads.cloneset.causes import CAUSES
from kruise.workloads.cloneset.conclude import conclude
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.situation import Snapshot
from kruise.workloads.shared import waiting
from kruise.workloads.shared.causes import SHARED
from tests.support.clonesets import NOW, make_cloneset, make_pending, make_pod, make_situation

KNOWN = {meaning.code: meaning for meaning in (*SHARED, *CAUSES)}
LONG_AGO, JUST_NOW = "2030-01-01T11:50:00Z", "2030-01-01T11:59:40Z"


def held(name: str, code: str, *, blockers: Iterable[str] = (), message: str = "it waits") -> Held:
    details = {"unavailable": list(blockers)} if blockers else {}
    cause = KNOWN[code].cause(message, details=details, remedy="do something")
    return Held(target=Target(PODS, "demo", name), causes=(cause,))


def down(name: str, since: str = LONG_AGO, **more: Any) -> Pod:
    return make_pod(name.removeprefix("web-"), ready=False, ready_since=since, **more)


def summed(items: list[Held], *pods: Pod) -> waiting.Waiting:
    return waiting.summarized(items, {pod.metadata.name: pod for pod in pods}, NOW)


@pytest.mark.parametrize("code", ["partition", "paused", "on-delete", "grace", "next", "surge", "stopped", "to-delete"])
def test_what_was_asked_for_or_goes_on_by_itself_is_no_news(code: str) -> None:
    assert summed([held("web-a", code)], down("web-a")) == waiting.NOTHING_WAITS


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("in-place-only", "InPlaceOnly"),
        ("broken-annotation", "BrokenAnnotation"),
        ("failure-budget", "FailureBudget"),
    ],
)
def test_what_only_a_person_can_resolve_is_told_at_once(code: str, reason: str) -> None:
    found = summed([held("web-a", code)]).summary
    assert found is not None
    assert (found.reason, found.message) == (reason, "web-a: it waits (do something)")


@pytest.mark.parametrize("code", ["hook", "updating", "unscheduled"])
def test_a_step_of_a_rollout_is_told_when_it_takes_a_minute(code: str) -> None:
    assert summed([held("web-a", code)], down("web-a", JUST_NOW)) == waiting.Waiting(wake_after=41)
    found = summed([held("web-a", code)], down("web-a"))
    assert found.summary is not None
    assert found.summary.reason == code.capitalize()


@pytest.mark.parametrize("code", ["max-unavailable", "deletion-budget", "scale-limit"])
def test_waiting_for_others_is_told_when_all_of_them_are_stuck(code: str) -> None:
    items = [held("web-c", code, blockers=["web-a", "web-b"])]
    assert summed(items, down("web-a"), down("web-b", JUST_NOW)) == waiting.Waiting(wake_after=41)
    assert summed(items, down("web-a")).summary is None  # the other one is available by now
    assert summed(items, down("web-a"), down("web-b")).summary is not None
    assert summed([held("web-c", code)]) == waiting.NOTHING_WAITS


def test_the_last_change_of_the_lifecycle_counts() -> None:
    pod = down("web-a")
    pod.metadata.annotations["lifecycle.apps.kruise.io/timestamp"] = JUST_NOW
    assert waiting.seconds_until_stuck(pod, NOW) == 41
    pod.metadata.annotations["lifecycle.apps.kruise.io/timestamp"] = "nonsense"
    assert waiting.seconds_until_stuck(pod, NOW) < 0


def test_the_most_frequent_cause_comes_first() -> None:
    items = [held("web-z", "in-place-only")]
    items += [held(f"web-{name}", "max-unavailable", blockers=["web-z"], message="too many") for name in "abcde"]
    found = summed(items, down("web-z")).summary
    assert found is not None
    assert found.reason == "MaxUnavailable"
    first = "web-a, web-b, web-c and 2 more: too many (do something)"
    assert found.message == f"{first}; web-z: it waits (do something)"


@given(st.lists(st.tuples(st.sampled_from(["hook", "max-unavailable", "partition", "in-place-only"]), st.text())))
def test_messages_are_bounded(causes: list[tuple[str, str]]) -> None:
    items = [
        held(f"web-{number}", code, blockers=["web-0"], message=text * 9) for number, (code, text) in enumerate(causes)
    ]
    found = summed(items, *(down(f"web-{number}") for number in range(len(causes)))).summary
    assert (found is None) == all(code == "partition" for code, _ in causes)
    assert found is None or len(found.message) <= waiting.LONGEST_MESSAGE


# In the status of a CloneSet


def stuck_snapshot(**status: Any) -> Snapshot:
    """One pod was moved and is not ready, the other waits for it."""
    cloneset = make_cloneset(replicas=2, rolling={"maxUnavailable": 1}, status=status)
    pods = [make_pod("a", ready=False, ready_since=JUST_NOW), make_pod("b", old=True)]
    return make_situation(cloneset, pods, rollout=True).snapshot


def concluded(snapshot: Snapshot) -> tuple[Plan, dict[str, Any] | None]:
    plan = decide(snapshot)
    assert not list(plan.actions())
    status = conclude(snapshot, plan, Outcomes()).status
    return plan, status.body[0]["value"] if status is not None else None


def of_waiting(status: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Its conditions without those that tell of any rollout that is not over."""
    assert status is not None
    return [item for item in status.get("conditions", ()) if item["type"] not in (RECONCILING, STALLED)]


def later(snapshot: Snapshot, seconds: float, status: dict[str, Any] | None = None) -> Snapshot:
    cloneset = snapshot.cloneset
    if status is not None:
        cloneset = codec.evolve(cloneset, status=codec.convert(status, CloneSetStatus))
    return codec.evolve(snapshot, now=snapshot.now + timedelta(seconds=seconds), cloneset=cloneset)


def test_a_condition_comes_when_a_pod_is_stuck_and_goes_with_it() -> None:
    first = stuck_snapshot()
    plan, status = concluded(first)
    assert of_waiting(status) == []
    [wake] = plan.wakes
    assert wake.after == pytest.approx(41)
    second = later(first, wake.after, status)
    _, status = concluded(second)
    [condition] = of_waiting(status)
    assert (condition["type"], condition["status"], condition["reason"]) == ("Waiting", "True", "MaxUnavailable")
    assert "web-b: maxUnavailable 1 allows 1 unavailable pod; used up by web-a" in condition["message"]
    # From now on nothing is written, and nobody has to look again.
    plan, again = concluded(later(second, 60, status))
    assert (plan.wakes, again) == ((), None)
    repaired = make_situation(second.cloneset, [make_pod("a"), make_pod("b")], rollout=True).snapshot
    _, status = concluded(later(repaired, 60, status))
    assert status is not None
    assert "conditions" not in status


def test_a_pod_that_is_just_being_moved_is_not_stuck() -> None:
    """It counts as down while its write is under way, and has been ready for long."""
    cloneset = make_cloneset(replicas=2, rolling={"maxUnavailable": 1})
    snapshot = make_situation(cloneset, [make_pod("a", old=True), make_pod("b", old=True)], rollout=True).snapshot
    revision = decide(snapshot).memo_as(Memo).target_revision
    plan = decide(codec.evolve(snapshot, pending=make_pending({"web-a": revision})))
    assert {item.target.name: item.causes[0].code for item in plan.held}["web-b"] == "max-unavailable"
    assert plan.memo_as(Memo).waiting == waiting.NOTHING_WAITS


def test_the_status_of_a_cloneset_that_goes_keeps_it() -> None:
    known = {"conditions": [{"type": "Waiting", "status": "True", "reason": "Hook"}], "observedGeneration": 1}
    snapshot = make_situation(make_cloneset(deleting=True, status=known)).snapshot
    assert decide(snapshot).memo_as(Memo).waiting is None
    status = conclude(snapshot, decide(snapshot), Outcomes()).status
    assert status is not None
    assert [item["type"] for item in of_waiting(status.body[0]["value"])] == ["Waiting"]
