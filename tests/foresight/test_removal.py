"""What drains and deletions would do: pure, over a few pods."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.api.native.policy import PodDisruptionBudget
from kruise.api.policy.podunavailablebudget import PodUnavailableBudget
from kruise.foresight.removal import deleting, telling
from kruise.foresight.removal.draining import Drain, Scene, drain
from kruise.foresight.removal.guards import Guards
from kruise.machinery.codec import convert
from kruise.protection.podunavailablebudget import keys

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def node(name: str) -> Node:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return convert({"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}, Node)


def pod(name: str, where: str, *, kind: str = "CloneSet", is_ready: bool = True, **labels: str) -> Pod:
    owner = [{"apiVersion": "v1", "kind": kind, "name": "web", "uid": "1", "controller": True}] if kind else []
    document = {
        "metadata": {
            "name": name,
            "namespace": "demo",
            "uid": name,
            "labels": {"app": "web", **labels},
            "annotations": {keys.RELATED: "web"},
            "ownerReferences": owner,
        },
        "spec": {"nodeName": where, "containers": [{"name": "main", "image": "nginx"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]},
    }
    return convert(document, Pod)


def ours(allowed: int, **spec: Any) -> PodUnavailableBudget:
    status = {"unavailableAllowed": allowed, "currentAvailable": 3, "desiredAvailable": 2, "totalReplicas": 3}
    return convert(
        {"metadata": {"name": "web", "namespace": "demo"}, "spec": spec, "status": status}, PodUnavailableBudget
    )


def native(name: str, allowed: int) -> PodDisruptionBudget:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    document = {"metadata": {"name": name, "namespace": "demo"}, "spec": spec, "status": status}
    return convert(document, PodDisruptionBudget)


def played(pods: list[Pod], *, nodes: int = 2, unavailable: Any = (), disruption: Any = ()) -> Drain:
    guards = Guards(unavailable, disruption, gates={}, now=NOW)
    return drain(Scene(node="a", nodes=[node(name) for name in "abc"[:nodes]], pods=pods, guards=guards))


def test_pods_go_as_budgets_let_them() -> None:
    """One at a time, and the next when the successor of the one before is ready."""
    found = played([pod("one", "a"), pod("two", "a"), pod("three", "b")], unavailable=[ours(1)])
    assert [[gone.pod for gone in wave] for wave in found.waves] == [["one"], ["two"]]
    assert [wave[0].at for wave in found.waves] == [0.0, 5.0]
    assert {gone.to for wave in found.waves for gone in wave} == {"b"}
    assert found.ends
    assert "ends after about 7s" in telling.drain_lines(found)[1]


def test_without_a_budget_all_go_at_once() -> None:
    found = played([pod("one", "a"), pod("two", "a")])
    assert [[gone.pod for gone in wave] for wave in found.waves] == [["one", "two"]]


def test_both_kinds_of_budgets_have_to_agree() -> None:
    found = played([pod("one", "a"), pod("two", "a")], unavailable=[ours(2)], disruption=[native("native", 0)])
    assert not found.ends
    assert found.stuck[0].budgets == ("poddisruptionbudget/native",)
    lines = telling.drain_lines(found)
    assert lines[1] == "Result:      does not end: 2 pods stay"
    assert telling.as_data(found)["ends"] is False


def test_two_native_budgets_over_a_pod_stop_it() -> None:
    found = played([pod("one", "a")], disruption=[native("x", 1), native("y", 1)])
    assert "more than one" in found.stuck[0].why


def test_a_successor_without_a_place_gives_nothing_back() -> None:
    """The first goes, and nobody comes: the second is refused for ever."""
    found = played([pod("one", "a"), pod("two", "a")], nodes=1, unavailable=[ours(1)])
    assert [[gone.pod for gone in wave] for wave in found.waves] == [["one"]]
    assert [stay.pod for stay in found.stuck] == ["two"]
    assert any("no node takes its successor" in note for note in found.notes)


def test_who_is_left_alone_and_which_flags_it_takes() -> None:
    found = played([pod("agent", "a", kind="DaemonSet"), pod("bare", "a", kind="")])
    assert [stay.pod for stay in found.untouched] == ["agent"]
    assert found.flags == ("--ignore-daemonsets", "--force")
    assert [[gone.to for gone in wave] for wave in found.waves] == [[""]]


def test_pods_that_are_down_ask_nobody_of_ours() -> None:
    found = played([pod("one", "a", is_ready=False)], unavailable=[ours(0)])
    assert found.ends


def document(kind: str, name: str, *owners: str, **spec: Any) -> dict[str, Any]:
    references = [{"uid": owner} for owner in owners]
    return {"kind": kind, "metadata": {"name": name, "uid": name, "ownerReferences": references}, "spec": spec}


def test_what_goes_with_an_object_and_what_stays() -> None:
    pods = [document("Pod", "p", "rs", volumes=[{"persistentVolumeClaim": {"claimName": "data"}}])]
    objects = {
        "replicaset": [document("ReplicaSet", "rs", "web"), document("ReplicaSet", "other", "api")],
        "pod": [*pods, document("Pod", "shared", "rs", "api")],
    }
    goes = deleting.dependents("web", objects)
    assert {(group.kind, group.names) for group in goes} == {("replicaset", ("rs",)), ("pod", ("p",))}
    left = deleting.claims_left(pods, [document("PersistentVolumeClaim", "data")], ())
    assert left is not None
    assert left.names == ("data",)


def test_protection_is_told() -> None:
    label = {"policy.kruise.io/delete-protection": "Cascading"}
    web = {"metadata": {"name": "web", "labels": label}, "spec": {"replicas": 2}}
    assert deleting.protection_of(web) is not None
    assert deleting.protection_of({**web, "spec": {"replicas": 0}}) is None
