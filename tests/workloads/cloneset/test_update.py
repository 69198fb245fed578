"""Which pods move in a pass, and what is said about the others: the cases in which nobody would move, or nobody would
know why."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.cloneset import CloneSet
from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Held, Plan
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.situation import Snapshot
from tests.support.clonesets import NEW, NOW, OLD, TEMPLATE, make_cloneset, make_pending, make_pod, make_revision

IN_PLACE = {"podUpdatePolicy": "InPlaceIfPossible"}
HOLD = "example.com/hold"
HOOKED: Mapping[str, Any] = {"inPlaceUpdate": {"labelsHandler": {HOLD: "true"}, "markPodNotReady": True}}


def _rollout(cloneset: CloneSet, pods: Iterable[Pod], **seen: Any) -> Plan:
    """From the old revision to the new one."""
    status = codec.evolve(cloneset.status, current_revision=OLD.metadata.name)
    update = make_revision(codec.decode(bytes(cloneset.spec.template), dict), 2)
    return decide(
        Snapshot(
            cloneset=codec.evolve(cloneset, status=status),
            now=NOW,
            pods=tuple(pods),
            revisions=(OLD, update),
            seed=1,
            **seen,
        )
    )


def _moved(plan: Plan) -> set[str]:
    return {chain[0].target.name for phase in plan.phases if phase.name == "update" for chain in phase.chains}


def _causes(plan: Plan, pod: str) -> list[str]:
    held: list[Held] = [item for item in plan.held if item.target.name == pod]
    return [cause.code for item in held for cause in item.causes]


def test_a_pod_that_is_down_is_healed_although_another_one_cannot_be_created() -> None:
    """Scaling waits for the pod that is down (CS-76), and the budget is used up by the one that is missing (CS-79):
    without an exception for it, both would wait for ever."""
    cloneset = make_cloneset(replicas=3, rolling={**IN_PLACE, "maxUnavailable": 1}, scale={"maxUnavailable": 1})
    plan = _rollout(cloneset, [make_pod("aaaaa", old=True, ready=False), make_pod("bbbbb", old=True)])
    assert not [action for action in plan.actions() if action.verb is Verb.CREATE]
    assert _moved(plan) == {"web-aaaaa"}


def test_only_one_pod_at_a_time_is_healed_beyond_the_budget() -> None:
    cloneset = make_cloneset(replicas=4, rolling={**IN_PLACE, "maxUnavailable": 1}, scale={"maxUnavailable": 1})
    down = [make_pod(name, old=True, ready=False) for name in ("aaaaa", "bbbbb")]
    assert len(_moved(_rollout(cloneset, [*down, make_pod("ccccc", old=True)]))) == 1
    underway = make_pod("aaaaa", state="Updating", ready=False)
    assert _moved(_rollout(cloneset, [underway, down[1], make_pod("ccccc", old=True)])) == set()


def test_available_pods_are_never_updated_beyond_the_budget() -> None:
    cloneset = make_cloneset(replicas=3, rolling={**IN_PLACE, "maxUnavailable": 1}, scale={"maxUnavailable": 0})
    assert _moved(_rollout(cloneset, [make_pod(name, old=True) for name in ("aaaaa", "bbbbb")])) == set()


def test_a_pod_that_is_about_to_be_deleted_is_not_updated_in_the_same_plan() -> None:
    cloneset = make_cloneset(replicas=1, rolling={**IN_PLACE, "maxUnavailable": 1})
    plan = _rollout(cloneset, [make_pod("aaaaa", old=True, ready=False), make_pod("bbbbb", old=True)])
    deleted = {action.target.name for action in plan.actions() if action.verb is Verb.DELETE}
    assert deleted == {"web-aaaaa"}
    assert deleted.isdisjoint(_moved(plan))


def test_a_prepared_pod_goes_back_when_its_update_is_not_wanted_any_more() -> None:
    """The partition was raised while the hook was gone through: the pod must not stay out of service for ever. Its
    owner has taken the label off, so it puts it on again first, as after an update."""
    cloneset = make_cloneset(replicas=2, rolling={**IN_PLACE, "partition": 2}, lifecycle=HOOKED)
    released = make_pod("aaaaa", old=True, state="PreparingUpdate")
    hooked = make_pod("bbbbb", old=True, state="PreparingUpdate", labels={HOLD: "true"})
    plan = _rollout(cloneset, [released, hooked])
    states = {
        action.target.name: action.body["metadata"]["labels"][keys.STATE_LABEL]
        for phase in plan.phases
        if phase.name == "update"
        for chain in phase.chains
        for action in chain
    }
    assert states == {"web-aaaaa": "Updated", "web-bbbbb": "Normal"}


def test_a_prepared_pod_whose_turn_it_still_is_goes_on() -> None:
    cloneset = make_cloneset(replicas=2, rolling={**IN_PLACE, "partition": 1, "maxUnavailable": 1}, lifecycle=HOOKED)
    plan = _rollout(cloneset, [make_pod("aaaaa", old=True, state="PreparingUpdate"), make_pod("bbbbb", old=True)])
    assert _moved(plan) == {"web-aaaaa"}
    assert plan.memo_as(Memo).moves == {"web-aaaaa": "in-place"}
    assert _causes(plan, "web-bbbbb") == ["partition"]


def test_a_surplus_pod_says_that_it_will_go() -> None:
    """One more pod than replicas: of the two old ones only one has to become new."""
    cloneset = make_cloneset(replicas=1, rolling={**IN_PLACE, "maxUnavailable": 0, "maxSurge": 1}, lifecycle=HOOKED)
    pods = [
        make_pod("aaaaa", old=True, state="PreparingUpdate", labels={HOLD: "true"}),
        make_pod("bbbbb", old=True, labels={HOLD: "true"}),
    ]
    plan = _rollout(cloneset, pods)
    assert _causes(plan, "web-aaaaa") == ["hook"]
    assert _causes(plan, "web-bbbbb") == ["surge"]


def test_every_pod_says_that_the_update_stopped() -> None:
    """A change that needs new pods, with InPlaceOnly (CS-103)."""
    template = copy.deepcopy(dict(TEMPLATE))
    template["spec"]["containers"][0]["command"] = ["sleep"]
    rolling = {"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 2}
    plan = _rollout(
        make_cloneset(replicas=2, template=template, rolling=rolling),
        [make_pod(name, old=True) for name in ("aaaaa", "bbbbb")],
    )
    assert plan.memo_as(Memo).update_error.startswith("find Pod web-")
    assert sorted(_causes(plan, "web-aaaaa") + _causes(plan, "web-bbbbb")) == ["in-place-only", "stopped"]


def test_a_marked_pod_says_that_missing_pods_come_first() -> None:
    """No pod is deleted in a pass that wants more of them, be it that it may not create any (CS-81)."""
    cloneset = make_cloneset(replicas=3, scale={"maxUnavailable": 1})
    pods = [make_pod("aaaaa", ready=False), make_pod("bbbbb", specified=True)]
    plan = decide(Snapshot(cloneset=cloneset, now=NOW, pods=tuple(pods), revisions=(NEW,), seed=1))
    assert not list(plan.actions())
    assert _causes(plan, "web-bbbbb") == ["scale-limit"]


# Pods that an earlier pass still writes to


def _old_pods(count: int) -> list[Pod]:
    return [make_pod(f"{number:05d}", old=True) for number in range(count)]


@given(
    replicas=st.integers(1, 12),
    limit=st.integers(1, 12),
    written=st.sets(st.integers(0, 11)),
    refreshed=st.sets(st.integers(0, 11)),
)
def test_pending_pods_count_as_moved_and_down_and_are_left_alone(
    replicas: int, limit: int, written: set[int], refreshed: set[int]
) -> None:
    cloneset = make_cloneset(replicas=replicas, rolling={**IN_PLACE, "maxUnavailable": limit})
    pods = _old_pods(replicas)
    marks = {f"web-{number:05d}": "" for number in refreshed}
    marks |= {f"web-{number:05d}": NEW.metadata.name for number in written if number < min(limit, replicas)}
    plan = _rollout(cloneset, pods, pending=make_pending(marks))
    moving = {name for name, mark in marks.items() if mark}
    assert {action.target.name for action in plan.actions()}.isdisjoint(marks)
    assert len(moving) + len(_moved(plan)) <= min(limit, replicas)
    assert len(_moved(plan)) == min(min(limit, replicas) - len(moving), replicas - len(marks.keys() & _names(pods)))
    for name in moving:
        assert _causes(plan, name) == ["updating"]


def _names(pods: Iterable[Pod]) -> set[str]:
    return {pod.metadata.name for pod in pods}


def test_a_pod_on_its_way_to_a_revision_that_is_not_wanted_any_more_is_no_new_pod() -> None:
    """The template changed again while the write was under way: the pod is down, and its turn comes when it ended."""
    cloneset = make_cloneset(replicas=3, rolling={**IN_PLACE, "maxUnavailable": 1})
    plan = _rollout(cloneset, _old_pods(3), pending=make_pending({"web-00000": "web-5d8f7c9b6c"}))
    assert _moved(plan) == set()
    assert _causes(plan, "web-00001") == ["max-unavailable"]


def test_scaling_waits_for_pending_pods_and_nobody_else_moves_meanwhile() -> None:
    cloneset = make_cloneset(replicas=2, rolling={**IN_PLACE, "maxUnavailable": 2})
    plan = _rollout(cloneset, _old_pods(4), pending=make_pending({"web-00003": NEW.metadata.name}))
    assert list(plan.actions()) == []
    assert _causes(plan, "web-00001") == ["next"]
    assert list(_rollout(cloneset, _old_pods(4)).actions())


def test_scaling_does_not_wait_for_a_refresh_of_other_pods() -> None:
    cloneset = make_cloneset(replicas=5, rolling={**IN_PLACE, "maxUnavailable": 2})
    plan = _rollout(cloneset, _old_pods(4), pending=make_pending({"web-00003": ""}))
    assert Verb.CREATE in {action.verb for action in plan.actions()}


def test_a_pass_moves_no_more_pods_than_the_server_takes_at_once() -> None:
    cloneset = make_cloneset(replicas=9, rolling={**IN_PLACE, "maxUnavailable": "100%"})
    moving = {"web-00000": NEW.metadata.name}
    plan = _rollout(cloneset, _old_pods(9), pending=make_pending(moving, capacity=4))
    assert len(_moved(plan)) == 3
    assert _causes(plan, "web-00008") == ["next"]


def test_pods_that_have_arrived_come_before_those_that_still_serve() -> None:
    """Where the server is slow, a pod waits for its turn while it serves, and not while it is out of service."""
    cloneset = make_cloneset(replicas=3, rolling={**IN_PLACE, "maxUnavailable": 2})
    arrived = make_pod("aaaaa", state="Updating")
    plan = _rollout(cloneset, [arrived, *(make_pod(name, old=True) for name in ("bbbbb", "ccccc"))])
    urgency = {phase.name: phase.urgency for phase in plan.phases}
    assert urgency["refresh"] < urgency["update"]


def test_a_pass_refreshes_no_more_pods_than_the_server_takes_at_once() -> None:
    cloneset = make_cloneset(replicas=6, rolling=IN_PLACE)
    pods = [make_pod(f"{number:05d}", state="PreparingNormal") for number in range(6)]
    plan = _rollout(cloneset, pods, pending=make_pending({}, capacity=4))
    assert len(list(plan.actions())) == 4
    assert _causes(plan, "web-00005") == ["next"]


def test_the_status_counts_pods_as_they_show_themselves() -> None:
    """A pending write may still fail."""
    cloneset = make_cloneset(replicas=3, rolling={**IN_PLACE, "maxUnavailable": 1})
    plan = _rollout(cloneset, _old_pods(3), pending=make_pending({"web-00000": NEW.metadata.name}))
    figures = plan.memo_as(Memo).figures
    assert (figures.updated, figures.ready, figures.available) == (0, 3, 3)
