"""Places: who gets one, and that there are never more than there are (WS section 5)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.workloadspread import SubsetStatus, WorkloadSpread
from kruise.api.meta import Condition
from kruise.api.native.pod import Pod
from kruise.machinery.codec import evolve
from kruise.spread.workloadspread.classifying import Group, classified
from kruise.spread.workloadspread.counting import count
from kruise.spread.workloadspread.ledger import Asked, Place, booked, noted
from kruise.spread.workloadspread.versions import version_of, versioned_kinds
from tests.spread.workloadspread.objects import NOW, pod_of, spread_of, with_list
from tests.spread.workloadspread.stories import subset

IGNORED = "versionIgnored"


def ask(spread: WorkloadSpread, key: str, version: str = IGNORED, **more: object) -> Place:
    return booked(spread, Asked(key=key, version=version, now=NOW + timedelta(milliseconds=700), **more))  # type: ignore[arg-type]


def element(spread: WorkloadSpread, name: str, version: str = IGNORED) -> SubsetStatus:
    return next(item for item in spread.status.versioned_subset_statuses[version] if item.name == name)


def test_subsets_are_filled_in_order() -> None:  # WS-22, WS-28, WS-65
    spread, seen = spread_of(subset("a", size=2), subset("b", size=1), subset("c")), []
    for number in range(5):
        place = ask(spread, f"pod-{number}")
        spread = place.spread
        seen.append(place.subset)
    assert seen == ["a", "a", "b", "c", "c"]
    first = element(spread, "a")
    assert (first.missing_replicas, list(first.creating_pods)) == (0, ["pod-0", "pod-1"])
    assert first.creating_pods["pod-0"] == NOW  # whole seconds
    assert element(spread, "c").creating_pods == {}  # an unlimited one is not booked


def test_whoever_asks_again_gets_the_same_place() -> None:  # WS-22.3, WS-23
    first = ask(spread_of(subset("a", size=1), subset("b")), "pod-0")
    again = ask(first.spread, "pod-0")
    assert (again.subset, again.is_booked) == ("a", True)
    assert again.spread is first.spread


def test_without_room_there_is_no_place() -> None:  # WS-22.4, WS-60
    spread = ask(spread_of(subset("a", size=1)), "pod-0").spread
    place = ask(spread, "pod-1")
    assert (place.subset, place.spread is spread) == ("", True)


def test_versions_have_places_of_their_own() -> None:  # WS-6, WS-7
    spread = ask(spread_of(subset("a", size=1), subset("b")), "old-0", "v1").spread
    assert ask(spread, "old-1", "v1").subset == "b"
    assert ask(spread, "new-0", "v2").subset == "a"


def test_marked_subsets_are_left_out() -> None:  # WS-22.4, WS-50
    bad = Condition(type="Schedulable", status="False", reason="PodUnschedulable")
    elements = (SubsetStatus(name="a", missing_replicas=2, conditions=(bad,)), SubsetStatus(name="b"))
    assert ask(with_list(spread_of(subset("a", size=2), subset("b")), *elements), "pod-0").subset == "b"


def test_a_mark_outlives_the_list_of_a_version() -> None:
    """The only pod of a new version was stuck and is deleted: the next must not come back to the same nodes."""
    bad = Condition(type="Schedulable", status="False", reason="PodUnschedulable")
    spread = spread_of(subset("a", size=2), subset("b"))
    overall = (SubsetStatus(name="a", missing_replicas=2, conditions=(bad,)), SubsetStatus(name="b"))
    marked = evolve(spread, status=evolve(spread.status, subset_statuses=overall))
    assert ask(marked, "pod-0", "new").subset == "b"


@pytest.mark.parametrize(
    ("replicas", "free"),
    [(0, 0), (1, 1), (4, 2), (5, 3), (10, 5)],  # WS-29: rounded up
)
def test_percentages_are_of_the_replicas_of_this_moment(replicas: int, free: int) -> None:
    spread, got = spread_of(subset("a", size="50%"), subset("b")), 0
    for number in range(8):
        place = ask(spread, f"pod-{number}", replicas=replicas)
        spread, got = place.spread, got + (place.subset == "a")
    assert got == min(free, 8)


def test_a_pod_that_is_deleted_keeps_its_place_while_it_lives() -> None:  # WS-33
    full = with_list(spread_of(subset("a", size=2), subset("b")), SubsetStatus(name="a", replicas=2))
    spread = noted(full, Asked(key="old", version=IGNORED, now=NOW), "a")
    assert element(spread, "a").deleting_pods == {"old": NOW}
    assert noted(spread, Asked(key="old", version=IGNORED, now=NOW), "a") is spread
    doubtful = ask(spread, "new")
    assert (doubtful.subset, doubtful.doubtful) == ("", ("old",))
    assert ask(spread, "new", alive={"old"}).subset == "b"
    place = ask(spread, "new", gone={"old"})
    assert place.subset == "a"
    left = element(place.spread, "a")
    assert (left.replicas, list(left.creating_pods), left.deleting_pods) == (1, ["new"], {})
    assert ask(place.spread, "newer", gone={"old"}).subset == "b"


def test_who_follows_under_the_same_name_is_not_taken_for_the_one_before() -> None:  # WS-22.3, WS-47
    """The count may be late: it still sees the former pod, which does not bear the uid of the new one's entry."""
    full = with_list(spread_of(subset("a", size=1), subset("b")), SubsetStatus(name="a", replicas=1))
    going = noted(full, Asked(key="p", version=IGNORED, now=NOW), "a")
    place = ask(going, "p", uid="second")
    assert (place.subset, place.uid) == ("a", "second")
    entered = element(place.spread, "a")
    assert (entered.replicas, list(entered.creating_pods), entered.deleting_pods) == (0, ["p/second"], {})
    again = ask(place.spread, "p", uid="third")  # the answer was lost
    assert (again.subset, again.uid, again.spread is place.spread) == ("a", "second", True)
    counted = counted_with(place.spread, pod_of("p", "a"))
    assert (counted.replicas, list(counted.creating_pods), counted.missing_replicas) == (1, ["p/second"], 0)
    counted = counted_with(place.spread, pod_of("p", "a", uid="second"))
    assert (counted.replicas, list(counted.creating_pods), counted.missing_replicas) == (1, [], 0)


def test_a_pod_that_goes_before_it_was_counted_is_noted_too() -> None:  # WS-33, WS-47
    """Else its creation, heard of late, would be taken for that of the next of its name."""
    first = ask(spread_of(subset("a", size=1), subset("b")), "p", uid="first")
    assert (list(element(first.spread, "a").creating_pods), first.uid) == (["p"], "")
    going = noted(first.spread, Asked(key="p", version=IGNORED, now=NOW), "a")
    unseen = counted_with(going)
    assert (list(unseen.creating_pods), list(unseen.deleting_pods), unseen.missing_replicas) == (["p"], ["p"], 0)
    assert ask(going, "other").doubtful == ("p",)
    assert ask(going, "other", gone={"p"}).subset == "a"
    second = ask(going, "p", uid="second")
    entered = element(second.spread, "a")
    assert (entered.replicas, list(entered.creating_pods), entered.deleting_pods) == (0, ["p/second"], {})
    third = ask(noted(second.spread, Asked(key="p", version=IGNORED, now=NOW), "a"), "p", uid="third")
    assert list(element(third.spread, "a").creating_pods) == ["p/third"]
    assert ask(third.spread, "other").subset == "b"


def counted_with(spread: WorkloadSpread, *pods: Pod) -> SubsetStatus:
    """The first subset of the ledger as a pass counts it that sees these pods."""
    groups = classified(spread, pods, replicas=None, nodes={}, versioned=frozenset()) or {IGNORED: Group()}
    found = count(spread, groups, replicas=None, now=NOW, is_terminating=lambda pod: False)
    return found.status.versioned_subset_statuses[IGNORED][0]


def test_a_subset_without_nodes_takes_no_pod_for_its_name() -> None:  # WS-22.4, WS-52
    bad = Condition(type="Schedulable", status="False", reason="PodUnschedulable")
    stuck = SubsetStatus(name="a", replicas=1, deleting_pods={"p": NOW}, conditions=(bad,))
    assert ask(with_list(spread_of(subset("a", size=1), subset("b")), stuck), "p", uid="second").subset == "b"


def test_a_surplus_pod_that_goes_makes_no_room() -> None:
    over = with_list(spread_of(subset("a", size=1), subset("b")), SubsetStatus(name="a", replicas=2))
    spread = noted(over, Asked(key="old", version=IGNORED, now=NOW), "a")
    assert ask(spread, "new", gone={"old"}).subset == "b"


@pytest.mark.parametrize("name", ["gone", "c"])
def test_what_needs_no_note(name: str) -> None:  # WS-33
    spread = with_list(spread_of(subset("a", size=1), subset("c")), SubsetStatus(name="a", replicas=1))
    assert noted(spread, Asked(key="old", version=IGNORED, now=NOW), name) is spread


STATEFUL = ("apps/v1", "StatefulSet")


def test_ordinals_decide() -> None:  # WS-21
    spread = spread_of(subset("a", size=2), subset("b", size=2), subset("c"), target=STATEFUL)
    for ordinal, wanted in ((4, "c"), (2, "b"), (0, "a"), (3, "b"), (1, "a")):
        place = ask(spread, f"web-{ordinal}")
        spread = place.spread
        assert place.subset == wanted
    bounded = spread_of(subset("a", size=1), target=STATEFUL)
    assert ask(bounded, "web-1").subset == ""  # the place is that of ordinal 0
    assert ask(bounded, "web-0").subset == "a"


def test_limits_hold_for_ordinals_too() -> None:
    """Recorded: a subset with limit 1 ended with two pods."""
    elements = (SubsetStatus(name="a", replicas=1), SubsetStatus(name="b", replicas=1), SubsetStatus(name="c"))
    spread = with_list(spread_of(subset("a", size=1), subset("b", size=1), subset("c"), target=STATEFUL), *elements)
    assert ask(spread, "web-1").subset == "c"
    again = noted(spread, Asked(key="web-0", version=IGNORED, now=NOW), "a")
    assert ask(again, "web-0").subset == "a"  # who follows under the same name has its place


def test_subsets_that_the_ledger_does_not_know_yet() -> None:  # WS-49
    spread = with_list(spread_of(subset("new", size=1), subset("a", size=1)), SubsetStatus(name="a", replicas=1))
    assert ask(spread, "pod-0").subset == "new"


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.booleans()), max_size=30), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_never_more_than_the_limit(steps: list[tuple[int, bool, bool]], limit: int) -> None:
    """Pods ask, some of them twice; some are deleted, and are seen to go or not; the controller counts now and then."""
    spread = spread_of(subset("a", size=limit), subset("b"))
    alive: set[str] = set()
    gone: set[str] = set()
    for step, (number, deletes, counts) in enumerate(steps):
        name = f"pod-{step}-{number}"
        if deletes and alive:
            victim = sorted(alive)[number % len(alive)]
            spread = noted(spread, Asked(key=victim, version=IGNORED, now=NOW), "a")
            if number % 2:
                alive.discard(victim)
                gone.add(victim)
        place = ask(spread, name)
        if place.doubtful:
            place = ask(spread, name, gone=gone & {*place.doubtful}, alive=alive & {*place.doubtful})
        spread = place.spread
        assert not place.doubtful
        if place.subset == "a":
            alive.add(name)
        assert len(alive) <= limit
        if counts and spread.status.versioned_subset_statuses:
            old = element(spread, "a")
            seen = SubsetStatus(
                name="a",
                replicas=len(alive),
                deleting_pods={key: time for key, time in old.deleting_pods.items() if key in alive},
            )
            spread = with_list(spread, seen, evolve(element(spread, "b"), replicas=0))


@pytest.mark.parametrize(
    ("labels", "owner", "wanted"),
    [
        ({"pod-template-hash": "abc"}, "ReplicaSet", "abc"),
        ({"controller-revision-hash": "web-xyz"}, "ReplicaSet", "xyz"),
        ({}, "ReplicaSet", IGNORED),
        ({"pod-template-hash": "abc"}, "CloneSet", IGNORED),
    ],
)
def test_versions_of_pods(labels: dict[str, str], owner: str, wanted: str) -> None:  # WS-6
    assert version_of(labels, (owner,), versioned_kinds("Deployment")) == wanted
    assert version_of(labels, (owner,), versioned_kinds("")) == IGNORED


def test_only_a_few_are_looked_at_the_oldest_first() -> None:
    """Each look is a read while the creation waits."""
    deleting = {f"pod-{number}": NOW - timedelta(seconds=number) for number in range(9)}
    element = SubsetStatus(name="a", replicas=9, deleting_pods=deleting)
    spread = with_list(spread_of(subset("a", size=9), subset("b")), element)
    doubtful = ask(spread, "new").doubtful
    assert doubtful == ("pod-8", "pod-7", "pod-6", "pod-5")
    assert ask(spread, "new", alive=doubtful).subset == "b"
    assert ask(spread, "new", alive=doubtful[1:], gone=doubtful[:1]).subset == "a"


def test_a_name_that_is_used_again_is_booked() -> None:
    full = SubsetStatus(name="a", replicas=1, deleting_pods={"old": NOW})
    place = ask(with_list(spread_of(subset("a", size=1), subset("b")), full), "old")
    left = element(place.spread, "a")
    assert (place.subset, place.is_booked) == ("a", True)
    assert (left.replicas, list(left.creating_pods), left.deleting_pods) == (0, ["old"], {})
    assert ask(place.spread, "new").subset == "b"
