"""Placements by property: no filter is ever broken, and the same question has the same answer."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.scheduling.messages import Unschedulable
from kruise.scheduling.placing import Cluster, Placement, place
from kruise.scheduling.requests import amounts, requests
from tests.scheduling.builders import anti_affinity, make_node, make_pod
from tests.support.examples import EXAMPLES

ZONE = "topology.kubernetes.io/zone"
TAINT = {"key": "k", "effect": "NoSchedule"}


@st.composite
def nodes(draw: st.DrawFn) -> list[Any]:
    return [
        make_node(
            f"n{number}",
            cpu=draw(st.sampled_from(["1", "2", "4"])),
            pods=draw(st.sampled_from(["1", "3", "10"])),
            labels={ZONE: draw(st.sampled_from("ab")), "disk": draw(st.sampled_from(["ssd", "hdd"]))},
            spec={
                "taints": draw(st.sampled_from([[], [TAINT]])),
                "unschedulable": draw(st.sampled_from([False, False, True])),
            },
        )
        for number in range(draw(st.integers(1, 6)))
    ]


@st.composite
def pods(draw: st.DrawFn, number: int) -> Any:
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        spec["nodeSelector"] = {"disk": draw(st.sampled_from(["ssd", "hdd"]))}
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    app = draw(st.sampled_from("xy"))
    if draw(st.integers(0, 3)) == 0:
        spec["affinity"] = anti_affinity(draw(st.sampled_from([ZONE, "kubernetes.io/hostname"])), app=app)
    cpu = draw(st.sampled_from(["", "100m", "500m", "1500m"]))
    return make_pod(f"p{number}", cpu=cpu, labels={"app": app}, owner=draw(st.sampled_from(["", "rs"])), **spec)


pod_lists = st.integers(1, 12).flatmap(lambda count: st.tuples(*(pods(number) for number in range(count))))


@given(nodes(), pod_lists)
@settings(max_examples=40 * EXAMPLES, deadline=None)
def test_placements_respect_every_rule(nodes: list[Any], pods: tuple[Any, ...]) -> None:
    cluster = Cluster(nodes, {})
    by_name = {node.metadata.name: node for node in nodes}
    there: dict[str, list[Any]] = {name: [] for name in by_name}
    for pod in pods:
        result = cluster.place(pod)
        # The batch and the single question agree: nothing that is remembered between pods goes stale.
        assert result == place(pod, nodes, there) or not isinstance(result, Placement)
        if not isinstance(result, Placement):
            assert not isinstance(place(pod, nodes, there), Placement)
            continue
        node = by_name[result.node]
        assert not node.spec.unschedulable
        assert not node.spec.taints or pod.spec.tolerations
        assert pod.spec.node_selector.items() <= node.metadata.labels.items()
        for other_name, others in there.items():
            for other in others:
                for one, two in ((pod, other), (other, pod)):
                    if one.spec.affinity is None or one.metadata.labels != two.metadata.labels:
                        continue
                    (term,) = one.spec.affinity.pod_anti_affinity.required
                    here, far = node.metadata.labels, by_name[other_name].metadata.labels
                    assert here[term.topology_key] != far[term.topology_key]
        there[result.node].append(pod)
        cluster.assume(pod, result.node)
    for name, placed in there.items():
        limits = amounts(by_name[name].status.allocatable)
        assert len(placed) <= limits["pods"]
        assert sum(requests(pod).get("cpu", 0) for pod in placed) <= limits["cpu"]


@given(nodes(), pod_lists, st.data())
@settings(max_examples=40 * EXAMPLES, deadline=None)
def test_whoever_leaves_leaves_nothing_behind(nodes: list[Any], pods: tuple[Any, ...], data: st.DataObject) -> None:
    cluster = Cluster(nodes, {})
    there: dict[str, list[Any]] = {node.metadata.name: [] for node in nodes}
    for pod in pods:
        result = cluster.place(pod)
        if isinstance(result, Placement):
            there[result.node].append(pod)
            cluster.assume(pod, result.node)
        for name, placed in there.items():
            leaving = [one for one in placed if data.draw(st.booleans())]
            there[name] = [one for one in placed if one not in leaving]
            for one in leaving:
                cluster.leave(one.metadata.uid)
        for other in pods:
            found, anew = cluster.place(other), place(other, nodes, there)
            # A refusal is remembered until a pod leaves, with the reasons that it had then.
            assert found == anew or (isinstance(found, Unschedulable) and isinstance(anew, Unschedulable))


@given(nodes(), pods(0))
@settings(max_examples=100, deadline=None)
def test_the_order_of_the_nodes_does_not_matter(nodes: list[Any], pod: Any) -> None:
    assert place(pod, nodes, {}) == place(pod, nodes[::-1], {})


@given(nodes(), pods(0))
@settings(max_examples=100, deadline=None)
def test_a_refusal_accounts_for_every_node(nodes: list[Any], pod: Any) -> None:
    result = place(pod, nodes, {})
    if not isinstance(result, Placement):
        assert sum(result.reasons.values()) >= len(nodes)
        assert result.message.startswith(f"0/{len(nodes)} nodes are available: ")
