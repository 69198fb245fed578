"""The order of an update (IPU-120 to IPU-123)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.shared import (
    UpdatePriorityOrderTerm,
    UpdatePriorityStrategy,
    UpdatePriorityWeightTerm,
    UpdateScatterTerm,
)
from kruise.api.meta import LabelSelector, LabelSelectorRequirement
from kruise.api.native.pod import Pod
from kruise.inplace.order import by_importance, by_priority, scattered, trailing_number, update_order
from tests.support.pods import NOW, make_pod

X = UpdateScatterTerm(key="grp", value="x")
STATE = "lifecycle.apps.kruise.io/state"


def names(pods: Sequence[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


# The default order


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"node": "", "phase": "Running"}, {"phase": "Pending"}, id="unassigned before assigned"),
        pytest.param({"phase": "Pending"}, {"phase": "Unknown"}, id="Pending before Unknown"),
        pytest.param({"phase": "Unknown", "ready": True}, {"ready": False}, id="Unknown before Running"),
        pytest.param({"phase": ""}, {"phase": "Unknown"}, id="no phase yet counts as Pending"),
        pytest.param({"ready": False, "created": ago(99)}, {"created": ago(1)}, id="not ready before ready"),
        pytest.param({"ready": None}, {}, id="without Ready condition before ready"),
        pytest.param({"ready_since": ago(5)}, {"ready_since": ago(50)}, id="later Ready time first"),
        pytest.param({"ready_since": None}, {"ready_since": ago(1)}, id="unset Ready time first"),
        pytest.param({"restarts": (0, 7)}, {"restarts": (4, 4)}, id="the highest restart count of a container counts"),
        pytest.param({"restarts": (1,)}, {"restarts": ()}, id="restarts before none"),
        pytest.param({"created": ago(5)}, {"created": ago(50)}, id="newer first"),
        pytest.param({"created": None}, {"created": ago(5)}, id="unset creation first"),
        pytest.param(
            {"ready": False, "ready_since": ago(50), "created": ago(5)},
            {"ready": False, "ready_since": ago(5), "created": ago(50)},
            id="the time of a Ready condition that is False says nothing",
        ),
    ],
)
def test_default_order(first: Mapping[str, object], second: Mapping[str, object]) -> None:
    # IPU-120. The names say the opposite, so they decide nothing here.
    early, late = make_pod("z", **first), make_pod("a", **second)  # type: ignore[arg-type]
    assert names(by_importance([late, early])) == ["z", "a"]
    assert names(by_importance([early, late])) == ["z", "a"]


def test_equal_pods_go_by_name() -> None:
    assert names(by_importance([make_pod(name) for name in "cab"])) == ["a", "b", "c"]


def test_recorded_default_order() -> None:
    """Recorded of the original: one pod unready, the others ready one after the other."""
    pods = [make_pod(f"pod-{i}", ready_since=ago(60 - i)) for i in (1, 2, 3)] + [make_pod("pod-4", ready=False)]
    ordered = update_order(pods, pods, priority=None, scatter=())
    assert names(ordered) == ["pod-4", "pod-3", "pod-2", "pod-1"]


# Priorities


def weight(value: int, **labels: str) -> UpdatePriorityWeightTerm:
    return UpdatePriorityWeightTerm(weight=value, match_selector=LabelSelector(match_labels=labels))


def test_recorded_priorities_by_weight() -> None:
    """IPU-121: sums of the matching weights, larger first (recorded of the original)."""
    strategy = UpdatePriorityStrategy(
        weight_priority=(weight(50, tier="gold"), weight(30, tier="silver"), weight(25, zone="a"))
    )
    labels = {
        "pod-1": {"tier": "silver"},
        "pod-2": {"tier": "gold"},
        "pod-3": {"tier": "silver", "zone": "a"},
        "pod-4": {"zone": "a"},
        "pod-5": {"tier": "gold"},
        "pod-6": {},
    }
    pods = [make_pod(name, labels=of, ready_since=ago(100 - i)) for i, (name, of) in enumerate(labels.items())]
    ordered = update_order(pods, pods, priority=strategy, scatter=())
    assert names(ordered) == ["pod-3", "pod-5", "pod-2", "pod-1", "pod-4", "pod-6"]


def test_a_weight_with_expressions() -> None:
    expression = LabelSelectorRequirement(key="tier", operator="NotIn", values=("gold",))
    term = UpdatePriorityWeightTerm(weight=1, match_selector=LabelSelector(match_expressions=(expression,)))
    pods = [make_pod("a", labels={"tier": "gold"}), make_pod("b")]
    assert names(by_priority(pods, UpdatePriorityStrategy(weight_priority=(term,)))) == ["b", "a"]


def test_a_term_that_nobody_can_read_favours_nobody() -> None:
    broken = LabelSelectorRequirement(key="tier", operator="Near", values=("gold",))
    terms = (
        UpdatePriorityWeightTerm(weight=90, match_selector=LabelSelector(match_expressions=(broken,))),
        weight(1, tier="silver"),
    )
    pods = [make_pod("a", labels={"tier": "gold"}), make_pod("b", labels={"tier": "silver"})]
    assert names(by_priority(pods, UpdatePriorityStrategy(weight_priority=terms))) == ["b", "a"]


@pytest.mark.parametrize(
    ("value", "number"), [("sts-10", 10), ("10", 10), ("007", 7), ("a", 0), ("", 0), ("5b", 0), ("1-2", 2), ("x٣", 0)]
)
def test_the_number_that_a_label_ends_in(value: str, number: int) -> None:
    # IPU-121
    assert trailing_number(value) == number


def by_keys(*keys: str) -> UpdatePriorityStrategy:
    return UpdatePriorityStrategy(order_priority=tuple(UpdatePriorityOrderTerm(ordered_key=key) for key in keys))


def test_priorities_by_order() -> None:
    """IPU-121: pods without any key first, then by the position of the key, then larger numbers first."""
    pods = [
        make_pod("a", labels={"two": "sts-99"}),
        make_pod("b", labels={"one": "sts-2"}),
        make_pod("c", labels={"one": "sts-10", "two": "sts-1"}),
        make_pod("d", labels={"other": "sts-100"}),
        make_pod("e", labels={"two": "none"}),
    ]
    assert names(by_priority(pods, by_keys("one", "two"))) == ["d", "c", "b", "a", "e"]


def test_equal_priorities_keep_the_order() -> None:
    # IPU-121: ties keep the previous order.
    pods = [make_pod(name, labels={"k": "1"}) for name in "cab"]
    assert names(by_priority(pods, by_keys("k"))) == ["c", "a", "b"]
    assert names(by_priority(pods, UpdatePriorityStrategy(weight_priority=(weight(3, k="1"),)))) == ["c", "a", "b"]


def test_no_priorities_no_effect() -> None:
    pods = [make_pod(name) for name in "cab"]
    assert names(by_priority(pods, UpdatePriorityStrategy())) == ["c", "a", "b"]
    assert names(by_priority(pods, None)) == ["c", "a", "b"]


# Scattering


def numbered(count: int, matching: Sequence[int], value: str = "x") -> list[Pod]:
    return [make_pod(str(i), labels={"grp": value} if i in matching else {}) for i in range(count)]


@pytest.mark.parametrize(
    ("count", "matching", "wanted"),
    [
        (10, [7, 8, 9], "7 0 1 2 3 8 4 5 6 9"),
        (6, [4, 5], "4 0 1 2 3 5"),
        (9, [1, 3, 6, 7, 8], "1 0 3 2 6 4 7 5 8"),
        (4, [], "0 1 2 3"),
        (4, [2], "0 1 2 3"),
        (4, [1, 2, 3], "0 1 2 3"),
        (4, [0, 1, 2, 3], "0 1 2 3"),
    ],
)
def test_scattered_by_one_term(count: int, matching: list[int], wanted: str) -> None:
    # IPU-122: the vectors of the rule; step 1 leaves the order alone where one side has at most one pod.
    pods = numbered(count, matching)
    assert names(scattered(pods, pods, (X,))) == wanted.split()


def test_recorded_scattering_one_pod_at_a_time() -> None:
    """Recorded of the original: sorted anew for each pod, 3 of 8 matching pods are the 1st, 4th and 8th."""
    everyone = numbered(8, [5, 6, 7])
    waiting, order = list(everyone), ""
    while waiting:
        pod = scattered(waiting, everyone, (X,))[0]
        order += "x" if pod.metadata.labels else "o"
        waiting.remove(pod)
    assert order == "xooxooox"


def test_the_term_with_most_waiting_pods_is_applied_first() -> None:
    """IPU-122: the last term applied has the last word; terms that match no waiting pod are left out."""
    labels = [{"a": "1"}, {"a": "1"}, {"b": "1"}, {"b": "1"}, {"b": "1"}, {}, {}, {}]
    pods = [make_pod(str(i), labels=of) for i, of in enumerate(labels)]
    few, many = UpdateScatterTerm(key="a", value="1"), UpdateScatterTerm(key="b", value="1")
    nobody = UpdateScatterTerm(key="c", value="1")
    by_hand = scattered(scattered(pods, pods, (many,)), pods, (few,))
    assert scattered(pods, pods, (few, nobody, many)) == by_hand
    assert names(by_hand)[0] == "0"
    assert names(by_hand)[-1] == "1"
    assert by_hand != scattered(scattered(pods, pods, (few,)), pods, (many,))


def test_waiting_pods_that_are_unknown_to_the_workload_do_no_harm() -> None:
    pods = numbered(6, [4, 5])
    assert sorted(names(scattered(pods, [], (X,)))) == names(pods)


# The whole


def test_preparing_pods_come_first() -> None:
    # IPU-123: stably, after everything else.
    labels = {"a": {"w": "1"}, "b": {STATE: "PreparingUpdate"}, "c": {"w": "1"}, "d": {STATE: "PreparingUpdate"}}
    pods = [make_pod(name, labels=of, ready_since=ago(10)) for name, of in labels.items()]
    strategy = UpdatePriorityStrategy(weight_priority=(weight(9, w="1"),))
    assert names(update_order(pods, pods, priority=strategy, scatter=())) == ["b", "d", "a", "c"]


def test_scattering_comes_after_priorities() -> None:
    strategy = UpdatePriorityStrategy(weight_priority=(weight(9, grp="x"),))
    pods = numbered(10, [7, 8, 9])
    assert " ".join(names(update_order(pods, pods, priority=strategy, scatter=(X,)))) == "7 0 1 2 3 8 4 5 6 9"


some_labels = st.fixed_dictionaries(
    {},
    optional={
        "grp": st.sampled_from("xy"),
        "ord": st.sampled_from(["sts-1", "sts-2", "none"]),
        STATE: st.sampled_from(["Normal", "PreparingUpdate"]),
    },
)
some_pods = st.lists(
    st.builds(
        make_pod,
        st.uuids().map(str),
        phase=st.sampled_from(["Pending", "Unknown", "Running"]),
        node=st.sampled_from(["", "n1", "n2"]),
        ready=st.sampled_from([None, False, True]),
        ready_since=st.sampled_from([None, ago(1), ago(2)]),
        restarts=st.lists(st.integers(0, 2), max_size=2).map(tuple),
        created=st.sampled_from([None, ago(1), ago(2)]),
        labels=some_labels,
    ),
    max_size=25,
    unique_by=lambda pod: pod.metadata.name,
)
some_priority = st.sampled_from(
    [None, by_keys("ord"), UpdatePriorityStrategy(weight_priority=(weight(5, grp="x"), weight(3, ord="sts-1")))]
)
some_scatter = st.lists(
    st.builds(UpdateScatterTerm, key=st.sampled_from(["grp", "ord"]), value=st.sampled_from(["x", "y", "sts-1"])),
    max_size=3,
)


@settings(max_examples=100, deadline=None)
@given(pods=some_pods, others=some_pods, priority=some_priority, scatter=some_scatter, shuffle=st.randoms())
def test_an_order_is_a_permutation_and_always_the_same(pods, others, priority, scatter, shuffle) -> None:  # type: ignore[no-untyped-def]
    """Nobody is lost or doubled, and it does not matter in which order the pods were listed."""
    everyone = [*pods, *others]
    ordered = update_order(pods, everyone, priority=priority, scatter=scatter)
    assert sorted(names(ordered)) == sorted(names(pods))
    shuffle.shuffle(pods)
    shuffle.shuffle(everyone)
    assert update_order(pods, everyone, priority=priority, scatter=scatter) == ordered
    preparing = [pod.metadata.labels.get(STATE) == "PreparingUpdate" for pod in ordered]
    assert preparing == sorted(preparing, reverse=True)


@settings(max_examples=100, deadline=None)
@given(pods=some_pods, others=some_pods)
def test_scattering_keeps_the_order_on_both_sides(pods: list[Pod], others: list[Pod]) -> None:
    """Among the matching pods, and among the others, nobody overtakes anybody."""
    ordered = scattered(pods, [*pods, *others], (X,))
    for matching in (True, False):
        side = [pod for pod in pods if (pod.metadata.labels.get("grp") == "x") is matching]
        assert [pod for pod in ordered if (pod.metadata.labels.get("grp") == "x") is matching] == side


@settings(max_examples=100, deadline=None)
@given(matching=st.integers(2, 12), others=st.integers(2, 40))
def test_scattered_pods_begin_and_end_the_order(matching: int, others: int) -> None:
    """With everything waiting, the spread reaches from the first place to the last."""
    pods = numbered(matching + others, range(others, others + matching))
    order = [bool(pod.metadata.labels) for pod in scattered(pods, pods, (X,))]
    assert order[0]
    assert order[-1]
