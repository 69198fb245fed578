"""Which pods go first when there are too many (CS-90 to CS-93)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.native.deletion_cost import DELETION_COST, deletion_cost
from kruise.inplace.availability import is_available, is_update_ready
from kruise.workloads.cloneset.deletion_order import (
    HOST_NAME,
    choose_for_deletion,
    in_deletion_order,
    topology_keys,
)
from kruise.workloads.cloneset.numbers import ScaleNumbers
from kruise.workloads.shared.pod_facts import PodFacts
from tests.support.pods import NOW, make_pod

ZONE = "topology.kubernetes.io/zone"
RACK = "example.com/rack"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def fact(
    name: str, *, new: bool = True, state: str = "", min_ready: int = 0, cost: str = "", **pod: object
) -> PodFacts:
    annotations = {DELETION_COST: cost} if cost else {}
    # A node for itself, so that sharing one decides nothing unless a test says so.
    built = make_pod(name, **{"node": f"node-of-{name}", "annotations": annotations, **pod})  # type: ignore[arg-type]
    return PodFacts(
        pod=built,
        name=name,
        state=state,
        is_new=new,
        is_available=state in ("", "Normal") and is_available(built, min_ready, NOW),
        is_ready=is_update_ready(built, 0, NOW),
        is_specified=False,
        is_preparing_delete=state == "PreparingDelete",
    )


def names(facts: Iterable[PodFacts]) -> str:
    return " ".join(item.name for item in facts)


# One pod against another


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"node": ""}, {"phase": "Pending", "cost": "-9"}, id="1: no node assigned"),
        pytest.param({"phase": "Pending"}, {"phase": "Unknown", "cost": "-9"}, id="2: Pending before Unknown"),
        pytest.param({"phase": "Unknown"}, {"ready": False, "cost": "-9"}, id="2: Unknown before Running"),
        pytest.param({"state": "Updating"}, {"cost": "-9"}, id="3: not available before available"),
        pytest.param({"ready_since": ago(5), "min_ready": 60}, {"cost": "-9"}, id="3: not available for long enough"),
        pytest.param(
            {"ready": False}, {"state": "Updating", "cost": "-9"}, id="3: of unavailable ones, not Ready before Ready"
        ),
        pytest.param({"cost": "-5", "ready_since": ago(99)}, {"ready_since": ago(1)}, id="4: lower cost"),
        pytest.param({"ready_since": ago(99)}, {"cost": "100", "ready_since": ago(1)}, id="4: higher cost stays"),
        pytest.param({"ready_since": ago(5)}, {"ready_since": ago(50), "restarts": (9,)}, id="6: shorter Ready time"),
        pytest.param({"ready_since": None}, {"ready_since": ago(1)}, id="6: unset Ready time"),
        pytest.param({"restarts": (0, 3)}, {"restarts": (2, 2), "created": ago(1)}, id="7: higher max restarts"),
        pytest.param({"created": ago(5)}, {"created": ago(50)}, id="8: newer"),
        pytest.param({}, {}, id="then by name"),
    ],
)
def test_one_goes_before_the_other(first: Mapping[str, object], second: Mapping[str, object]) -> None:
    # CS-91, in the order of its list.
    one, other = ("a", "z") if first == second else ("z", "a")
    pods = [fact(one, **first), fact(other, **second)]  # type: ignore[arg-type]
    assert names(in_deletion_order(pods)) == f"{one} {other}"
    assert names(in_deletion_order(reversed(pods))) == f"{one} {other}"


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0", 0),
        ("7", 7),
        ("-5", -5),
        ("-0", 0),
        ("-05", -5),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("2147483648", 0),
        ("-2147483649", 0),
        ("+1", 0),
        ("007", 0),
        ("1.5", 0),
        (" 1", 0),
        ("1\n", 0),
        ("٣", 0),
        ("x", 0),
        ("", 0),
        ("9" * 500, 0),
    ],
)
def test_deletion_cost(text: str, cost: int) -> None:
    # CS-91.4
    assert deletion_cost(make_pod(annotations={DELETION_COST: text})) == cost
    assert deletion_cost(make_pod()) == 0


# Spread over nodes


def test_pods_that_share_a_node_go_first() -> None:
    """CS-92: the last of a node has rank 0, those before it the more the earlier they are."""
    pods = [
        *(fact(name, node="crowded", created=ago(age)) for name, age in [("c1", 10), ("c2", 20), ("c3", 30)]),
        *(fact(name, node="pair", created=ago(age)) for name, age in [("p1", 1), ("p2", 2)]),
        fact("alone", node="single", created=ago(0)),
    ]
    assert names(in_deletion_order(pods)) == "c1 p1 c2 alone p2 c3"


def test_a_rank_weighs_less_than_the_cost_and_more_than_the_age() -> None:
    pods = [
        fact("shared-1", node="n", cost="1", created=ago(50)),
        fact("shared-2", node="n", created=ago(60)),
        fact("shared-3", node="n", created=ago(70)),
        fact("alone", created=ago(1)),
    ]
    assert names(in_deletion_order(pods)) == "shared-2 shared-3 alone shared-1"


def test_recorded_scale_down() -> None:
    """Recorded of the original: the unready pod, the one with cost -5, those that share a node with others; the one
    with cost 100 outlasts its equals."""
    facts: dict[str, dict[str, object]] = {
        "pod-1": {"node": "sim-4", "cost": "-5"},
        "pod-2": {"node": "sim-5", "cost": "100"},
        "pod-3": {"node": "sim-2", "ready": False},
        "pod-4": {"node": "sim-0"},
        "pod-5": {"node": "sim-3"},
        "pod-6": {"node": "sim-5"},
        "pod-7": {"node": "sim-5"},
        "pod-8": {"node": "sim-5"},
    }
    pods = [fact(name, **of) for name, of in facts.items()]  # type: ignore[arg-type]
    gone = []
    while len(pods) > 3:
        (pod,) = choose_for_deletion(pods, ScaleNumbers(down=1))
        gone.append(pod.name)
        pods.remove(pod)
    assert gone == ["pod-3", "pod-1", "pod-6", "pod-7", "pod-8"]


# Spread over topologies


def nodes(**zones: str) -> dict[str, dict[str, str]]:
    return {node: {HOST_NAME: node, ZONE: zone} for node, zone in zones.items()}


def test_recorded_scale_down_by_zone() -> None:
    """Recorded of the original: two pods in each of three zones, one of each zone in turn."""
    zones = nodes(n0="a", n1="b", n2="c", n3="a", n4="b", n5="c")
    pods = [fact(f"pod-{i}", node=f"n{i}", created=ago(60 - i)) for i in range(6)]
    gone = []
    while len(pods) > 3:
        (pod,) = choose_for_deletion(pods, ScaleNumbers(down=1), topologies=(ZONE,), node_labels=zones)
        gone.append(zones[pod.pod.spec.node_name][ZONE])
        pods.remove(pod)
    assert sorted(gone) == ["a", "b", "c"]


def test_a_crowded_domain_goes_first() -> None:
    # CS-93: the i-th of n gains (n - i) times a weight that is the same for all domains of a topology.
    zones = nodes(n0="a", n1="a", n2="a", n3="b")
    pods = [fact(f"p{i}", node=f"n{i}", created=ago(40 - i)) for i in range(4)]
    assert names(in_deletion_order(pods, topologies=(ZONE,), node_labels=zones)) == "p2 p1 p3 p0"


def test_pods_in_no_domain_gain_nothing() -> None:
    # CS-93: on nodes without the label, or unknown ones. A label with an empty value is a domain.
    labels = {"n0": {ZONE: ""}, "n1": {}, "n3": {ZONE: "a"}}
    pods = [fact(f"p{i}", node=f"n{i}", created=ago(40 - i)) for i in range(4)]
    assert names(in_deletion_order(pods, topologies=(ZONE,), node_labels=labels)) == "p3 p0 p2 p1"


def test_within_a_zone_a_crowded_node_goes_first() -> None:
    """CS-93 with CS-92: ranks by node decide the order within a domain."""
    zones = nodes(n0="a", n1="a")
    pods = [
        fact("alone", node="n1", created=ago(1)),
        fact("shared-1", node="n0", created=ago(10)),
        fact("shared-2", node="n0", created=ago(20)),
    ]
    assert names(in_deletion_order(pods, topologies=(ZONE,), node_labels=zones)) == "shared-1 alone shared-2"


def test_hosts_as_a_topology() -> None:
    """CS-93: a host's own order takes no ranks by node; the crowded host still loses first."""
    zones = nodes(n0="a", n1="a")
    pods = [
        fact("alone", node="n1", created=ago(1)),
        fact("shared-1", node="n0", created=ago(10)),
        fact("shared-2", node="n0", created=ago(20)),
    ]
    assert names(in_deletion_order(pods, topologies=(HOST_NAME,), node_labels=zones)) == "shared-1 alone shared-2"


def test_a_topology_with_more_domains_weighs_more() -> None:
    """CS-93: weight = ln(number of values + 2). Two pods gain 2·w of one topology each; racks are more than zones."""
    labels = {
        "n0": {ZONE: "z0", RACK: "r0"},
        "n1": {ZONE: "z0", RACK: "r1"},
        "n2": {ZONE: "z1", RACK: "r2"},
        "n3": {ZONE: "z1", RACK: "r2"},
        "n4": {ZONE: "z1", RACK: "r3"},
    }
    # zones: 2 values, weight ln 4; racks: 4 values, weight ln 6. p0: 2·ln4 + ln6, p1: ln4 + ln6,
    # p2: 3·ln4 + 2·ln6, p3: 2·ln4 + ln6, p4: ln4 + ln6.
    pods = [fact(f"p{i}", node=f"n{i}", created=ago(i)) for i in range(5)]
    assert names(in_deletion_order(pods, topologies=(ZONE, RACK), node_labels=labels)) == "p2 p0 p3 p1 p4"


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ({}, ()),
        ({"spec": {}}, ()),
        ({"spec": {"topologySpreadConstraints": None}}, ()),
        (
            {"spec": {"topologySpreadConstraints": [{"topologyKey": ZONE}, {"topologyKey": HOST_NAME}]}},
            (ZONE, HOST_NAME),
        ),
        ({"spec": {"topologySpreadConstraints": [{"maxSkew": 1}, {"topologyKey": 5}]}}, ()),
    ],
)
def test_topologies_of_a_template(template: dict[str, object], wanted: tuple[str, ...]) -> None:
    assert topology_keys(template) == wanted


# Old and new


def sides() -> list[PodFacts]:
    return [fact(f"old-{i}", new=False, created=ago(i)) for i in range(3)] + [
        fact(f"new-{i}", created=ago(i)) for i in range(3)
    ]


@pytest.mark.parametrize(
    ("down", "down_old", "wanted"),
    [
        pytest.param(2, 2, "old-0 old-1", id="covered by old pods"),
        pytest.param(3, 1, "old-0 new-0 new-1", id="between"),
        pytest.param(2, 0, "new-0 new-1", id="only new pods"),
        pytest.param(2, 5, "old-0 old-1", id="more old pods too many than have to go"),
        pytest.param(0, 0, "", id="nothing"),
        pytest.param(6, 3, "old-0 old-1 old-2 new-0 new-1 new-2", id="all"),
    ],
)
def test_old_pods_first(down: int, down_old: int, wanted: str) -> None:
    # CS-90
    assert names(choose_for_deletion(sides(), ScaleNumbers(down=down, down_old=down_old))) == wanted


def test_a_pod_that_prepares_its_update_counts_as_new_with_the_gate() -> None:
    # CS-90: old and new as in the numbers for scaling.
    pods = [fact("a", new=False, state="PreparingUpdate"), fact("b", new=False)]
    numbers = ScaleNumbers(down=1, down_old=1)
    assert names(choose_for_deletion(pods, numbers)) == "a"
    assert names(choose_for_deletion(pods, numbers, preparing_as_new=True)) == "b"


def test_ranks_are_those_of_the_group() -> None:
    """CS-92: a new pod on the same node does not make an old one crowded."""
    pods = [
        fact("new", node="n1"),
        fact("old-1", new=False, node="n1", created=ago(10)),
        fact("old-2", new=False, node="n2", created=ago(5)),
    ]
    assert names(choose_for_deletion(pods, ScaleNumbers(down=1, down_old=1))) == "old-2"


# Properties

some_facts = st.lists(
    st.builds(
        fact,
        st.uuids().map(str),
        new=st.booleans(),
        state=st.sampled_from(["", "Normal", "Updating"]),
        cost=st.sampled_from(["", "-1", "5", "+1"]),
        node=st.sampled_from(["", "n1", "n2", "n3"]),
        phase=st.sampled_from(["Pending", "Running"]),
        ready=st.booleans(),
        ready_since=st.sampled_from([None, ago(1), ago(2)]),
        restarts=st.lists(st.integers(0, 2), max_size=2).map(tuple),
        created=st.sampled_from([None, ago(1), ago(2)]),
    ),
    max_size=25,
    unique_by=lambda item: item.name,
)
LABELS = {"n1": {ZONE: "a", RACK: "x"}, "n2": {ZONE: "a"}, "n3": {ZONE: "b", RACK: "y"}}
some_topologies = st.sampled_from([(), (ZONE,), (ZONE, RACK), (ZONE, ZONE), (HOST_NAME,)])


@settings(max_examples=100, deadline=None)
@given(facts=some_facts, topologies=some_topologies, order=st.randoms())
def test_an_order_is_a_permutation_and_always_the_same(facts, topologies, order) -> None:  # type: ignore[no-untyped-def]
    ordered = in_deletion_order(facts, topologies=topologies, node_labels=LABELS)
    assert Counter(item.name for item in ordered) == Counter(item.name for item in facts)
    order.shuffle(facts)
    assert in_deletion_order(facts, topologies=topologies, node_labels=LABELS) == ordered


@settings(max_examples=100, deadline=None)
@given(facts=some_facts, topologies=some_topologies)
def test_what_weighs_more_than_the_spread_is_kept(facts: list[PodFacts], topologies: tuple[str, ...]) -> None:
    """CS-91: node, phase, availability, readiness and cost come before any rank."""
    ordered = in_deletion_order(facts, topologies=topologies, node_labels=LABELS)
    heads = [
        (
            bool(item.pod.spec.node_name),
            item.pod.status.phase == "Running",
            item.is_available,
            any(condition.type == "Ready" and condition.status == "True" for condition in item.pod.status.conditions),
            deletion_cost(item.pod),
        )
        for item in ordered
    ]
    assert heads == sorted(heads)


@settings(max_examples=100, deadline=None)
@given(facts=some_facts, down=st.integers(0, 30), down_old=st.integers(0, 30), topologies=some_topologies)
def test_never_more_than_asked_for(
    facts: list[PodFacts], down: int, down_old: int, topologies: tuple[str, ...]
) -> None:
    numbers = ScaleNumbers(down=down, down_old=min(down, down_old))
    chosen = choose_for_deletion(facts, numbers, topologies=topologies, node_labels=LABELS)
    assert len({item.name for item in chosen}) == len(chosen) <= down
    assert sum(not item.is_new for item in chosen) <= numbers.down_old
    old, new = (sum(item.is_new is side for item in facts) for side in (False, True))
    assert len(chosen) == min(old, numbers.down_old) + min(new, down - numbers.down_old)
