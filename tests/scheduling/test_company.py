"""What pods ask of the pods around them: spread constraints, affinity and preferences."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.native.pod import Pod
from kruise.scheduling import messages
from kruise.scheduling.messages import Unschedulable
from kruise.scheduling.placing import Cluster, Placement
from tests.scheduling.builders import make_node, make_pod, where, why

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
APP = {"app": "web"}


def node(name: str, zone: str = "", **more: Any) -> Any:
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    return make_node(name, labels=labels, **more)


def constraint(skew: int = 1, key: str = ZONE, *, hard: bool = True, **more: Any) -> dict[str, Any]:
    when = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": APP},
        **more,
    }


def spread(name: str, *constraints: dict[str, Any], **more: Any) -> Pod:
    return make_pod(name, labels=APP, topologySpreadConstraints=list(constraints), **more)


def near(topology: str, *, weight: int = 0, kind: str = "podAffinity", **labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": topology}
    if weight:
        weighted = {"weight": weight, "podAffinityTerm": term}
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def others(count: int, **more: Any) -> list[Pod]:
    return [make_pod(f"other-{more.get('at', '')}{number}", labels=APP) for number in range(count)]


A1, A2, B1 = node("a1", "a"), node("a2", "a"), node("b1", "b")


def test_pods_go_where_they_are_fewest() -> None:
    assert where(spread("p", constraint()), A1, B1, on={"a1": others(1)}) == "b1"
    assert where(spread("p", constraint(2)), A1, B1, on={"b1": others(1, at="b")}) == "a1"


def test_a_skew_that_would_be_too_large() -> None:
    """Both zones count, also where one cannot take the pod."""
    cordoned = make_node("b1", labels={HOST: "b1", ZONE: "b"}, spec={"unschedulable": True})
    text = why(spread("p", constraint()), A1, cordoned, on={"a1": others(1)})
    assert messages.UNEVEN in text
    assert messages.CORDONED in text
    assert "1 No preemption victims found for incoming pod" in text


def test_a_node_without_the_label() -> None:
    text = why(spread("p", constraint()), node("x"))
    assert messages.NO_SPREAD_LABEL in text
    assert "1 Preemption is not helpful for scheduling" in text


def test_nodes_that_the_pod_cannot_use_do_not_count() -> None:
    """By their labels, as the policy says by default; taints are asked only where it says so."""
    only_a = {"nodeSelector": {ZONE: "a"}}
    assert where(spread("p", constraint(), **only_a), A1, A2, B1, on={"a1": others(3)}) in ("a1", "a2")
    ignoring = constraint(nodeAffinityPolicy="Ignore")
    assert messages.UNEVEN in why(spread("p", ignoring, **only_a), A1, A2, B1, on={"a1": others(3)})
    taint = [{"key": "k", "value": "", "effect": "NoSchedule"}]
    tainted = make_node("b1", labels={HOST: "b1", ZONE: "b"}, spec={"taints": taint})
    assert messages.UNEVEN in why(spread("p", constraint()), A1, tainted, on={"a1": others(1)})
    honouring = constraint(nodeTaintsPolicy="Honor")
    assert where(spread("p", honouring), A1, tainted, on={"a1": others(1)}) == "a1"


def test_fewer_domains_than_asked_for() -> None:
    assert where(spread("p", constraint(minDomains=2)), A1) == "a1"
    assert messages.UNEVEN in why(spread("p", constraint(minDomains=2)), A1, on={"a1": others(1)})


def test_match_label_keys_count_one_revision_alone() -> None:
    old = make_pod("old", labels={**APP, "rev": "1"})
    new = make_pod("new", labels={**APP, "rev": "2"}, topologySpreadConstraints=[constraint(matchLabelKeys=["rev"])])
    cordoned = make_node("b1", labels={HOST: "b1", ZONE: "b"}, spec={"unschedulable": True})
    assert where(new, A1, cordoned, on={"a1": [old]}) == "a1"


def test_what_is_only_wished_for_refuses_nobody() -> None:
    cordoned = make_node("b1", labels={HOST: "b1", ZONE: "b"}, spec={"unschedulable": True})
    soft = constraint(hard=False)
    assert where(spread("p", soft), A1, cordoned, on={"a1": others(3)}) == "a1"
    assert where(spread("p", soft), A1, B1, on={"a1": others(2), "b1": others(1, at="b")}) == "b1"


def test_affinity_keeps_together() -> None:
    friend = make_pod("friend", labels={"app": "cache"})
    pod = make_pod("p", affinity=near(ZONE, app="cache"))
    assert where(pod, A1, A2, B1, on={"b1": [friend]}) == "b1"
    text = why(pod, A1, B1)
    assert messages.NO_AFFINITY in text
    assert "2 Preemption is not helpful for scheduling" in text
    first = make_pod("p", labels={"app": "cache"}, affinity=near(ZONE, app="cache"))
    assert where(first, A1, B1) == "a1"
    assert messages.NO_AFFINITY in why(first, node("x"))


def test_preferences_lead_and_repel() -> None:
    friend = make_pod("friend", labels={"app": "cache"})
    assert where(make_pod("p", affinity=near(ZONE, weight=50, app="cache")), A1, B1, on={"b1": [friend]}) == "b1"
    away = near(ZONE, weight=50, kind="podAntiAffinity", app="cache")
    assert where(make_pod("p", affinity=away), A1, B1, on={"a1": [friend]}) == "b1"
    shy = make_pod("shy", affinity=near(ZONE, weight=50, kind="podAntiAffinity", app="web"))
    assert where(make_pod("p", labels=APP), A1, B1, on={"a1": [shy]}) == "b1"


def test_company_comes_and_goes() -> None:
    """A refusal is no longer true once a pod has come that was missed."""
    cluster = Cluster([A1, B1], {})
    pod = make_pod("p", affinity=near(ZONE, app="cache"))
    assert isinstance(cluster.place(pod), Unschedulable)
    cluster.assume(make_pod("friend", labels={"app": "cache"}), "b1")
    assert cluster.place(pod) == Placement("b1")
    cluster.leave("uid-friend")
    assert isinstance(cluster.place(pod), Unschedulable)


@settings(max_examples=40)
@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=6), st.integers(1, 3), st.integers(1, 12))
def test_the_skew_is_kept(zones: list[str], skew: int, pods: int) -> None:
    """However many pods come, one after the other, and however many leave."""
    nodes = [node(f"n{place}", zone) for place, zone in enumerate(zones)]
    cluster = Cluster(nodes, {})
    counts = dict.fromkeys(zones, 0)
    for number in range(pods):
        placed = cluster.place(spread(f"p{number}", constraint(skew)))
        assert isinstance(placed, Placement)
        zone = zones[int(placed.node[1:])]
        counts[zone] += 1
        cluster.assume(spread(f"p{number}", constraint(skew)), placed.node)
        assert max(counts.values()) - min(counts.values()) <= skew
