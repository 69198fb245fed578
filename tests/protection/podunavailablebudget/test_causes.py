"""Every cause of budgets is reached, and the remedy fits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.machinery.causes import Cause
from kruise.machinery.plan import EventType, Outcomes, Target, patch
from kruise.machinery.times import format_time
from kruise.protection.podunavailablebudget import causes, keys
from kruise.protection.podunavailablebudget.conclude import conclude
from kruise.protection.podunavailablebudget.decide import Snapshot, decide
from kruise.protection.podunavailablebudget.face import standing
from kruise.protection.podunavailablebudget.members import Members
from kruise.protection.podunavailablebudget.permits import Permits
from tests.protection.podunavailablebudget.objects import GATES, NOW, budget, pod

TARGET = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxUnavailable": 1}
THREE = tuple(pod(name) for name in ("web-a", "web-b", "web-c"))


def held(asked: Any, members: Members) -> list[Cause]:
    plan = decide(Snapshot(budget=asked, members=members, now=NOW, gates=dict(GATES)))
    return [cause for one in plan.held for cause in one.causes]


@pytest.mark.parametrize(
    ("asked", "members", "expected"),
    [
        (budget(), Members(pods=THREE, total=3), []),
        (budget(spec=TARGET), Members(is_target_missing=True), [causes.TARGET_MISSING]),
        (budget(), Members(), [causes.NO_PODS]),
        (budget(spec=TARGET), Members(total=3), [causes.NO_PODS]),
        (budget(spec=TARGET), Members(), [causes.SCALED_TO_ZERO]),
        (budget(), Members(pods=THREE, total=-1, uncounted=("Game web",)), [causes.UNKNOWN_COUNT]),
        (budget(), Members(pods=THREE, total=0), [causes.UNKNOWN_COUNT]),
        (budget(), Members(pods=THREE, total=2, uncounted=("Game web",)), [causes.UNKNOWN_COUNT]),
        (budget(spec={"minAvailable": 1}), Members(pods=THREE, total=2, uncounted=("Game web",)), []),
        (
            budget(),
            Members(pods=(*THREE[:2], pod("web-c", is_ready=False)), total=3),
            [causes.POD_UNAVAILABLE, causes.USED_UP],
        ),
        (budget(), Members(pods=THREE[:2], total=3), [causes.USED_UP]),
        (budget(spec={"maxUnavailable": 0}), Members(pods=THREE, total=3), [causes.NEVER_FREE]),
        (budget(spec={"minAvailable": "100%"}), Members(pods=THREE, total=3), [causes.NEVER_FREE]),
        (budget(spec={"maxUnavailable": 0}, namespace="kube-system"), Members(pods=THREE, total=3), [causes.UNASKED]),
    ],
)
def test_what_is_told_of_a_budget(asked: Any, members: Members, expected: list[Any]) -> None:
    found = held(asked, members)
    assert [cause.meaning for cause in found] == expected
    assert all(cause.remedy for cause in found)


def test_a_budget_whose_pods_belong_to_another_does_not_claim_to_refuse() -> None:  # PUB-51
    taken = tuple(pod(name, annotations={keys.RELATED: "first"}) for name in ("web-a", "web-b"))
    strict = budget(spec={"selector": {"matchLabels": {"app": "web"}}, "minAvailable": "100%"})
    [cause] = held(strict, Members(pods=taken, total=2))
    assert cause.meaning == causes.OTHER_BUDGET
    assert cause.message.startswith("2 of its 2 pods belong to budget first")
    some = held(strict, Members(pods=(*taken, pod("web-c")), total=3))
    assert [one.meaning for one in some] == [causes.OTHER_BUDGET, causes.NEVER_FREE]


@pytest.mark.parametrize(
    ("namespace", "named", "said"),
    [
        ("demo", "first", "3 of its 3 pods belong to another budget, which alone is asked"),
        ("kube-system", "pub", "nobody is asked about pods in kube-system"),
    ],
)
def test_a_budget_that_nobody_asks_says_so_once(namespace: str, named: str, said: str) -> None:  # PUB-51
    pods = tuple(pod(name, annotations={keys.RELATED: named}) for name in ("web-a", "web-b", "web-c"))
    for seen, expected in ((0, [("NotGuarded", said)]), (1, [])):
        asked = budget(namespace=namespace, observedGeneration=seen)
        snapshot = Snapshot(budget=asked, members=Members(pods=pods, total=3), now=NOW, gates=dict(GATES))
        found = conclude(snapshot, decide(snapshot), Outcomes()).events
        assert [(event.reason, event.message) for event in found] == expected


def test_one_operation_is_and_several_are_refused() -> None:
    for operations, words in (
        (["DELETE"], ": DELETE is refused"),
        (["DELETE", "EVICT"], ": DELETE, EVICT are refused"),
    ):
        spec = {"maxUnavailable": 0, "protectOperations": operations}
        [cause] = held(budget(spec=spec), Members(pods=THREE, total=3))
        assert words in cause.message


def test_min_available_is_called_by_its_name() -> None:
    [cause] = held(budget(spec={"minAvailable": 3}), Members(pods=THREE, total=3))
    assert cause.message.startswith("minAvailable 3 wants 3 available pods, and 3 are")


def test_a_repair_is_told_with_the_label_that_ends_it() -> None:
    marked = pod("web-c", labels={"unavailable-pod.kruise.io/disk": "1"})
    first, _ = held(budget(), Members(pods=(*THREE[:2], marked), total=3))
    assert first.message == "pod web-c does not count as available: marked by label unavailable-pod.kruise.io/disk"
    assert first.remedy.endswith("kubectl label pod web-c unavailable-pod.kruise.io/disk-")


def test_what_a_workload_is_told() -> None:
    """IPU-160, PUB-100: it takes what there is in one write, and the others wait for the budget."""
    permits = Permits([budget(allowed=2)], gates=GATES, now=NOW)
    said = [permits.may_update(one) for one in THREE]
    assert said[:2] == [None, None]
    assert said[2] is not None
    assert said[2].meaning is causes.BUDGET
    [[action]] = permits.phase.chains
    assert action.target.resource == POD_UNAVAILABLE_BUDGETS
    assert action.resource_version == "7"
    status = action.body[0]["value"]
    assert (status["unavailableAllowed"], sorted(status["unavailablePods"])) == (0, ["web-a", "web-b"])


def test_an_update_is_good_for_one_version_and_as_long_as_the_record() -> None:
    """PUB-52, PUB-100: a workload that stood still must not use what was given to others since."""
    first, second, _ = THREE
    write = patch(Target.of(PODS, first), {}, uid=first.metadata.uid, reason="")
    permits = Permits([budget(allowed=1)], gates=GATES, now=NOW)
    assert permits.good_until is None
    assert permits.may_update(first) is None
    assert permits.good_until == NOW + timedelta(seconds=9)
    guarded, after = permits.guarded(first, (write, write))
    assert (guarded.resource_version, after.resource_version) == (first.metadata.resource_version, "")
    unguarded = pod("web-a", annotations={keys.RELATED: ""})
    assert permits.guarded(unguarded, (write,)) == (write,)
    recorded = budget(allowed=0, unavailablePods={"web-b": format_time(NOW - timedelta(seconds=4))})
    permits = Permits([recorded], gates=GATES, now=NOW)
    assert permits.may_update(second) is None
    assert permits.good_until == NOW + timedelta(seconds=5)


def test_deletions_are_only_looked_at() -> None:
    """The webhook takes the unit: nothing is written here."""
    permits = Permits([budget(allowed=1)], gates=GATES, now=NOW)
    assert permits.may_delete(THREE[0]) is None
    assert permits.may_delete(THREE[1]) is not None
    assert permits.phase.chains == ()


def test_a_budget_that_never_opens_is_somebodys_business() -> None:
    closed = budget(allowed=0, current=3, desired=3, total=3)
    said = Permits([closed], gates=GATES, now=NOW).may_update(THREE[0])
    assert said is not None
    assert said.meaning is causes.CLOSED_BUDGET


def test_without_the_gate_nobody_is_asked() -> None:
    """PUB section 16."""
    permits = Permits([budget(allowed=0)], gates={keys.DELETE_GATE: True}, now=NOW)
    assert permits.may_update(THREE[0]) is None
    assert permits.may_delete(THREE[0]) is not None


def test_how_a_budget_stands_in_words() -> None:
    document = {
        "spec": {"minAvailable": "50%"},
        "status": {"unavailableAllowed": 1, "currentAvailable": 3, "desiredAvailable": 2, "totalReplicas": 3},
    }
    assert standing(document) == (
        "3 of 3 pods available, 2 must be (minAvailable 50%); 1 more may be made unavailable now"
    )
    assert standing({"spec": {}}) == "its pods have not been counted yet"


def test_what_a_gate_leaves_unguarded_is_told() -> None:
    """Not among what is refused, by `why`, and once as an event."""
    gates = {keys.DELETE_GATE: True, keys.UPDATE_GATE: False}
    closed = budget(spec={"maxUnavailable": 0}, total=0, observedGeneration=0)
    snapshot = Snapshot(budget=closed, members=Members(pods=THREE, total=3), now=NOW, gates=gates)
    plan = decide(snapshot)
    unguarded, never = [cause for one in plan.held for cause in one.causes]
    assert unguarded.meaning == causes.UNGUARDED
    assert unguarded.message.startswith("RESIZE and UPDATE of its pods are not guarded: PodUnavailableBudgetUpdateGate")
    assert ": DELETE, EVICT are refused" in never.message
    [event] = conclude(snapshot, plan, Outcomes()).events
    assert (event.reason, event.type) == ("NotGuarded", EventType.WARNING)
    seen = budget(spec={"maxUnavailable": 0})
    again = Snapshot(budget=seen, members=Members(pods=THREE, total=3), now=NOW, gates=gates)
    assert conclude(again, decide(again), Outcomes()).events == ()
