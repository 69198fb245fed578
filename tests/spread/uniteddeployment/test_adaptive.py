"""Adaptive scheduling: pods that find no node in a subset go to another one."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.uniteddeployment import SubsetStatus
from kruise.machinery.codec import decode, evolve
from kruise.machinery.plan import Plan
from kruise.spread.uniteddeployment import adaptive, keys
from kruise.spread.uniteddeployment.decide import decide
from kruise.spread.uniteddeployment.memo import Memo
from kruise.spread.uniteddeployment.situation import Snapshot
from tests.spread.uniteddeployment.objects import (
    NOW,
    causes_of,
    child,
    look,
    pods,
    revision_of,
    stamp,
    status_after,
    united,
)

POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}

TWO: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}]


def adaptively(
    waits: float, *, mark: dict[str, Any] | None = None, ready: int = 0, **more: Any
) -> tuple[Plan, dict[str, Any]]:
    """A subset with two pods, of which those that are not ready have waited for a node for so many seconds."""
    topology = {"scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 10, **more}}}
    status = {"subsetStatuses": [{"name": "a", "conditions": [mark]}, {"name": "b"}]} if mark else {}
    subject = united([{"name": "a", "minReplicas": 0}, {"name": "b"}], replicas=2, topology=topology, status=status)
    one, other = child(subject, "a", 2, ready=ready), child(subject, "b", 0)
    members = [*pods(one, ready), *pods(one, 2 - ready, age=waits, waits=True)]
    snapshot, plan = look(subject, [one, other], members)
    return plan, status_after(snapshot, plan)


def changed_sizes(plan: Plan) -> dict[str, int]:
    return {
        action.target.name[4]: action.body["spec"]["replicas"]
        for action in plan.actions()
        if isinstance(action.body, dict) and "replicas" in action.body.get("spec", {})
    }


def test_a_pod_has_its_time() -> None:
    """UD-62, UD-66: never early, although times are whole seconds; then it is looked at again in time."""
    plan, status = adaptively(10)
    assert changed_sizes(plan) == {}
    assert [wake.after for wake in plan.wakes] == [1.0]
    plan, status = adaptively(11)
    assert changed_sizes(plan) == {"a": 0, "b": 2}
    told = status["subsetStatuses"][0]["conditions"][0]
    assert (told["status"], told["reason"], told["message"]) == ("False", "reschedule", "timeout pending pods found")
    plan, status = adaptively(60, ready=1)
    assert changed_sizes(plan) == {"a": 1, "b": 1}


def test_a_mark_lasts_its_time() -> None:
    """UD-61, UD-12, UD-6."""
    mark = {"type": "Schedulable", "status": "False", "reason": "reschedule", "message": "m"}
    plan, status = adaptively(60, mark={**mark, "lastTransitionTime": stamp(100)}, ready=2)
    assert status["subsetStatuses"][0]["conditions"][0]["lastTransitionTime"] == stamp(100)
    assert [wake.after for wake in plan.wakes] == [201.0]
    plan, status = adaptively(60, mark={**mark, "lastTransitionTime": stamp(301)}, ready=2)
    told = status["subsetStatuses"][0]["conditions"][0]
    assert (told["status"], told["reason"]) == ("True", "recover")
    assert told["message"] == "unschedulable subset recovered after 300.000000 seconds"
    plan, status = adaptively(60, mark={**mark, "lastTransitionTime": stamp(301)})
    told = status["subsetStatuses"][0]["conditions"][0]
    assert (told["status"], told["lastTransitionTime"]) == ("False", stamp(0))


def test_a_new_subset_beside_reserved_pods_is_marked() -> None:
    """UD-13, UD-14: of one that is removed nothing is told."""
    adaptive_spec = {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}
    topology = {"scheduleStrategy": adaptive_spec}
    status = {"subsetStatuses": [{"name": "a"}, {"name": "gone", "replicas": 3}], "currentRevision": "x"}
    subject = united(TWO, topology=topology, status=status)
    snapshot, plan = look(subject, [child(subject, "a", 6)])
    found = {one["name"]: one for one in status_after(snapshot, plan)["subsetStatuses"]}
    assert set(found) == {"a", "b"}
    told = found["b"]["conditions"][0]
    assert (told["reason"], told["message"]) == ("created", "newly-created subsets in reservation strategy")


def test_a_subset_that_recovers_and_grows_stays_marked() -> None:
    """UD-71, UD-73."""
    topology = {"scheduleStrategy": {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}}
    mark = {"type": "Schedulable", "status": "False", "reason": "reschedule", "lastTransitionTime": stamp(50)}
    status = {"subsetStatuses": [{"name": "a", "conditions": [mark]}, {"name": "b"}]}
    subject = united(TWO, replicas=4, topology=topology, status=status)
    one, other = child(subject, "a", 2), child(subject, "b", 4)
    members = [*pods(one, 2, labels={keys.RESERVED: "false"}), *pods(other, 4, labels={keys.RESERVED: "false"})]
    snapshot, plan = look(subject, [one, other], members)
    assert changed_sizes(plan) == {"a": 4, "b": 2}
    told = status_after(snapshot, plan)["subsetStatuses"][0]["conditions"][0]
    assert (told["status"], told["message"]) == ("False", "subset just recovered scaled up")
    stuck = pods(one, 2, age=90, waits=True, labels={keys.RESERVED: "true"})
    one = evolve(one, status=evolve(one.status, ready_replicas=0))
    _, plan = look(evolve(subject, spec=evolve(subject.spec, replicas=5)), [one, other], [*stuck, *members[2:]])
    assert changed_sizes(plan) == {"b": 5}


def mixed(*, stuck_are_new: bool, age: float = 600) -> Plan:
    """About a subset of four, two of them stuck, in the middle of an update that allows one to be down."""
    topology = {"scheduleStrategy": {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}}
    mark = {"type": "Schedulable", "status": "False", "reason": "reschedule", "lastTransitionTime": stamp(50)}
    updating = {"type": "UnitedDeploymentUpdated", "status": "False", "lastTransitionTime": stamp(500)}
    old = united(TWO, replicas=4, topology=topology)
    inner = decode(old.spec.template, dict[str, Any])
    inner["cloneSetTemplate"]["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    inner["cloneSetTemplate"]["spec"]["updateStrategy"] = {"rollingUpdate": {"maxUnavailable": 1}}
    status = {
        "currentRevision": revision_of(old).metadata.name,
        "subsetStatuses": [{"name": "a", "conditions": [mark]}, {"name": "b"}],
        "conditions": [updating],
    }
    new = united(TWO, replicas=4, topology=topology, template=inner, status=status)
    one, other = child(new if stuck_are_new else old, "a", 4, ready=2), child(new, "b", 2)
    worn = {keys.REVISION: revision_of(old).metadata.name}
    members = (
        *pods(one, 2, labels={keys.RESERVED: "false", **worn}),
        *pods(one, 2, waits=True, age=age, labels={keys.RESERVED: "true"}),
        *pods(other, 2, labels={keys.RESERVED: "false"}),
    )
    history = (revision_of(old), revision_of(new))
    return decide(Snapshot(united=new, clone_sets=(one, other), pods=members, revisions=history, now=NOW))


def limits_of(plan: Plan) -> list[int]:
    """The maxUnavailable that the child of subset a gets; empty: it stays."""
    return [
        action.body["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
        for action in plan.actions()
        if action.target.resource == CLONE_SETS and "-a-" in action.target.name
    ]


def test_stuck_pods_stand_in_no_update_s_way() -> None:
    """UD-73: beside those that are stuck, as many as the template allows; each counts once."""
    for stuck_are_new in (False, True):
        assert limits_of(mixed(stuck_are_new=stuck_are_new)) == [3]


def test_a_pod_that_was_just_made_is_no_room_for_the_next() -> None:
    """UD-73: else one pod after the other would go before any came back. The plan looks again when its time is up."""
    plan = mixed(stuck_are_new=True, age=10)
    assert limits_of(plan) == []  # the template's own
    assert min(wake.after for wake in plan.wakes) == 21


def test_lists_are_written_only_over_what_was_seen() -> None:
    """Others may have put something into them since; a change without lists leaves them alone anyway."""
    old = united([{"name": "a"}], replicas=2)
    inner = decode(old.spec.template, dict[str, Any])
    inner["cloneSetTemplate"]["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    new = united([{"name": "a"}], replicas=2, template=inner)
    one = child(old, "a", 2, metadata={"resourceVersion": "41"})
    for subject, version in ((new, "41"), (united([{"name": "a"}], replicas=3), "")):
        _, plan = look(subject, [one], pods(one, 2))
        patches = [action for action in plan.actions() if action.target.resource == CLONE_SETS]
        assert [action.resource_version for action in patches] == [version]


def test_who_serves_is_not_stuck() -> None:
    """UD-69: an update that takes long makes no pod count as stuck that is ready."""
    topology = {"scheduleStrategy": {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}}
    old = united([{"name": "a"}], replicas=2, topology=topology)
    one = child(old, "a", 2)
    inner = decode(old.spec.template, dict[str, Any])
    inner["cloneSetTemplate"]["spec"]["minReadySeconds"] = 1
    before = {"type": "UnitedDeploymentUpdated", "status": "False", "lastTransitionTime": stamp(500)}
    status = {"currentRevision": revision_of(old).metadata.name, "conditions": [before]}
    new = united([{"name": "a"}], replicas=2, topology=topology, template=inner, status=status)
    snapshot, plan = look(new, [one], pods(one, 2))
    assert plan.memo_as(Memo).reserved == 0
    snapshot = evolve(
        snapshot, pods=tuple(pods(one, 2, waits=True, age=100)), revisions=(revision_of(old), revision_of(new))
    )
    assert decide(snapshot).memo_as(Memo).reserved == 2


def test_marks_keep_their_place() -> None:
    """UD-12."""
    status = SubsetStatus(name="a")
    once = adaptive.marked(status, False, "reschedule", "one", NOW)
    assert adaptive.marked(once, False, "reschedule", "two", NOW) is once
    assert adaptive.marked(once, True, "reschedule", "two", NOW).conditions[0].message == "two"


@pytest.mark.parametrize(("kind", "is_advised"), [("Fixed", True), ("Adaptive", False)])
def test_nobody_is_told_to_be_adaptive_who_is(kind: str, is_advised: bool) -> None:
    subject = united([{"name": "a"}], replicas=1, topology={"scheduleStrategy": {"type": kind}})
    one = child(subject, "a", 1, ready=0)
    _, plan = look(subject, [one], pods(one, 1, waits=True))
    assert ("Adaptive" in dict(causes_of(plan))["subset-unschedulable"]) is is_advised
